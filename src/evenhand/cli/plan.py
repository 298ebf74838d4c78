"""`evenhand plan`: cases needed before collecting any."""

import click

from evenhand.cli.output import Guarded, say


@click.command("plan", cls=Guarded)
@click.option("--rate", type=float, required=True, help="The rate expected of the reference: 0.1.")
@click.option("--gap", type=float, required=True, help="The gap to be found: 0.03, or -0.03.")
@click.option("--groups", type=int, default=2, show_default=True,
              help="Groups in all, the reference among them.")  # fmt: skip
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level.")
@click.option("--power", type=float, default=0.8, show_default=True,
              help="Probability of finding a gap that is there.")  # fmt: skip
@click.option("--family", type=click.Choice(["bonferroni", "none"]), default="bonferroni",
              show_default=True, help="Whether all comparisons hold together.")  # fmt: skip
def plan_command(
    rate: float, gap: float, groups: int, level: float, power: float, family: str
) -> int:
    """Cases to collect so that a gap of this size would probably be found.

    A case is a row that the rate counts: for a true positive rate one whose truth is positive, so
    divide by their share to get rows.
    """
    from evenhand.stats.power import plan

    found = plan(rate, gap, groups=groups, level=level, power=power, family=family)
    share = "all comparisons together hold" if family == "bonferroni" else "each comparison holds"
    others = "the other group" if groups == 2 else f"each of the {groups - 1} other groups"
    say(
        f"{found}.\nWith them a gap of {gap:+g} from a rate of {rate:g} is found with probability "
        f"{power:g}, where {others} is compared with the reference and {share} at level {level:g}."
    )
    return 0
