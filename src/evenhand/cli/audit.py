"""`evenhand audit`: a table in, a verdict, a table and files out."""

import shlex
import sys
from typing import Any

import click

from evenhand.cli.options import (
    lens_options,
    read_limits,
    read_roles,
    read_settings,
    read_words,
    roles_options,
)
from evenhand.cli.output import check_outputs, console, listing, progress, write_outputs

EXIT = {"outside": 1, "cannot tell": 3}


@click.command("audit")
@click.argument("data", nargs=-1)
@roles_options
@click.option("--charter", metavar="FILE", help="Chosen trade-offs, limits and column roles.")
@lens_options
@click.option("--limit", "limits", multiple=True, metavar="MEASURE=BAND",
              help="Agreed, such as true_positive_rate_gap=0.05; repeat for more.")  # fmt: skip
@click.option("--lens", "lenses", multiple=True, metavar="LENS",
              help="Only this lens, such as statistical; repeat for more.")  # fmt: skip
@click.option("--level", default=0.95, show_default=True, help="Confidence level.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything drawn.")
@click.option("--norms", "norm_folder", metavar="FOLDER",
              help="The norm scorer; with --model, tells the words that weigh.")  # fmt: skip
@click.option("--model", metavar="FILE", help="The linear model of texts that decided (joblib).")
@click.option("--trust", is_flag=True, help="Open a joblib file, which can run any code.")
@click.option("--keep-small", is_flag=True, help="Keep numbers of cells under 10 cases.")
@click.option("--out", "out_path", metavar="FILE", help="Write the report page (HTML).")
@click.option("--json", "json_path", metavar="FILE", help="Write the record; - prints it.")
@click.option("--csv", "csv_path", metavar="FILE", help="Write all rows.")
@click.option("--markdown", "markdown_path", metavar="FILE", help="Write a summary.")
@click.option("--junit", "junit_path", metavar="FILE", help="Write test results.")
@click.option("--fail-on", type=click.Choice(["outside", "cannot-tell"]), default="outside",
              show_default=True, help="When to exit other than 0.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would run and what is lacking.")
@click.option("--list-measures", is_flag=True, help="List the measures that limits may name.")
@click.option("--quiet", is_flag=True, help="Print the verdict only.")
def audit_command(data: tuple[str, ...], **flags: Any) -> int:
    """Audit the decisions in DATA (Parquet, CSV, JSON Lines or Arrow; one, several or a glob).

    \b
    evenhand audit posts.parquet --truth violates --decision removed --group gender

    Exits 0 when nothing lies outside its limit, 1 when something does, 2 on wrong usage, 4 on
    data that cannot be used, and 3 with --fail-on cannot-tell when it cannot be told.
    """
    from evenhand.decisions.table import Decisions
    from evenhand.errors import UsageError
    from evenhand.findings.run import audit

    if flags.pop("list_measures"):
        listing()
        return 0
    if not data:
        raise UsageError(
            "Name the file to audit, such as: evenhand audit decisions.parquet --decision approved "
            "--group gender. All flags: evenhand audit --help"
        )
    outputs = {k: flags.pop(f"{k}_path") for k in ("out", "json", "csv", "markdown", "junit")}
    fail_on, dry_run, quiet = flags.pop("fail_on"), flags.pop("dry_run"), flags.pop("quiet")
    limits = read_limits(flags.pop("limits"))
    settings = read_settings(flags)
    lenses = list(flags.pop("lenses")) or None
    check_outputs(outputs, data)
    charter = flags.pop("charter")
    if charter:
        from evenhand.charter.read import read_charter

        charter = read_charter(charter)
    roles = {**(charter.roles if charter else {}), **read_roles(flags)}
    words = read_words(flags.pop("norm_folder"), flags.pop("model"), trust=flags.pop("trust"))
    decisions = Decisions(data[0] if len(data) == 1 else list(data), **roles)
    if dry_run:
        _dry_run(decisions, limits, lenses)
        return 0
    with progress() as tell:
        result = audit(
            decisions,
            limits=limits,
            charter=charter,
            settings=settings,
            lenses=lenses,
            words=words,
            level=flags["level"],
            seed=flags["seed"],
            keep_small=flags["keep_small"],
            arguments={"command": shlex.join(["evenhand", *sys.argv[1:]])},
            progress=tell,
        )
    record = result.record()
    piped = write_outputs(result, record, outputs)
    if quiet and not piped:
        click.echo(record["sentence"])
    elif not piped:
        from evenhand.report.terminal import show

        show(record, console())
    code = EXIT.get(result.verdict, 0)
    return code if code == 1 or fail_on == "cannot-tell" else 0


def _dry_run(decisions: Any, limits: dict[str, str], lenses: list[str] | None) -> None:
    from evenhand.findings.run import LENSES, choose_lenses
    from evenhand.findings.verdict import read_limits as bands

    bands(limits)
    columns = f"{len(decisions.columns)} {'column' if len(decisions.columns) == 1 else 'columns'}"
    click.echo(f"{decisions.source}: {columns}, engine {decisions.engine}.")
    for role, value in decisions.roles.used().items():
        click.echo(f"  {role}: {_plain(value)}")
    lacking = {name: module.lacks(decisions) for name, module in LENSES.items()}
    chosen = choose_lenses(decisions, lenses) if not all(lacking.values()) else []
    for name, lack in lacking.items():
        state = "will run" if name in chosen else f"needs {lack}" if lack else "not asked for"
        click.echo(f"  lens {name}: {state}")
    click.echo("Nothing was computed.")


def _plain(value: Any) -> str:
    """A role's value without Python's brackets."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={_plain(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
