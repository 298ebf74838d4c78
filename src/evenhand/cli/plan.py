"""`evenhand plan`: cases needed before collecting any."""

import click


@click.command("plan")
@click.option("--rate", type=float, required=True, help="The reference's expected rate.")
@click.option("--gap", type=float, required=True, help="The gap that should be found.")
@click.option("--groups", type=int, default=2, show_default=True)
@click.option("--level", type=float, default=0.95, show_default=True)
@click.option("--power", type=float, default=0.8, show_default=True)
def plan_command(rate: float, gap: float, groups: int, level: float, power: float) -> int:
    """Cases needed so that a gap of this size would probably be found.

    For a true positive rate, cases are people whose truth is positive: divide by their share to
    get rows.
    """
    from evenhand.stats.power import plan

    found = plan(rate, gap, groups=groups, level=level, power=power)
    click.echo(
        f"{found}: enough to find a gap of {gap:+g} from a rate of {rate:g} with probability "
        f"{power:.0%} at level {level:.0%}, all {groups} groups compared with the reference."
    )
    return 0
