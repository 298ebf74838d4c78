"""`evenhand audit`: a table in, a verdict, a table and files out."""

import shlex
import sys
from typing import Any

import click

from evenhand.cli.options import (
    export_options,
    lens_options,
    read_decisions,
    read_form_details,
    read_limits,
    read_roles,
    read_settings,
    read_words,
    roles_options,
)
from evenhand.cli.output import (
    IN,
    OUT,
    FormOutput,
    Guarded,
    Input,
    Output,
    listing,
    progress,
    say,
    show,
    write_figures,
    write_forms,
    write_outputs,
)
from evenhand.findings.gate import FAIL_ON
from evenhand.speech import without_secrets


@click.command("audit", cls=Guarded)
@click.argument("data", nargs=-1, type=Input("the data"))
@roles_options
@export_options
@click.option(
    "--charter", type=IN, metavar="FILE", help="Chosen trade-offs, limits and column roles."
)
@lens_options
@click.option("--limit", "limits", multiple=True, metavar="MEASURE=BAND",
              help="Agreed, such as true_positive_rate_gap=0.05; repeat for more.")  # fmt: skip
@click.option("--lens", "lenses", multiple=True, metavar="LENS",
              help="Only this lens, such as statistical; repeat for more.")  # fmt: skip
@click.option("--level", default=0.95, show_default=True, help="Confidence level.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything drawn.")
@click.option("--norms", "norm_folder", type=IN, metavar="FOLDER",
              help="The norm scorer; with --model, tells the words that weigh.")  # fmt: skip
@click.option("--model", type=IN, metavar="FILE",
              help="The linear model that decided (joblib; compare's too).")  # fmt: skip
@click.option("--trust", is_flag=True, help="Open a joblib file, which can run any code.")
@click.option("--keep-small", is_flag=True, help="Keep numbers of cells under 10 cases.")
@click.option("--exact", is_flag=True, help="Sort scores, even of more than 5 million rows.")
@click.option(
    "--out",
    "out_path",
    type=OUT,
    metavar="FILE",
    help="Write the report page (HTML; .md: Markdown).",
)
@click.option(
    "--json", "json_path", type=OUT, metavar="FILE", help="Write the record; - prints it."
)
@click.option("--csv", "csv_path", type=OUT, metavar="FILE", help="Write all rows.")
@click.option("--markdown", "markdown_path", type=OUT, metavar="FILE", help="Write a summary.")
@click.option("--figures", type=Output(folder="figures"), metavar="FOLDER",
              help="Write every chart as SVG, PNG and PDF in a paper's size.")  # fmt: skip
@click.option("--form", "forms", multiple=True, type=FormOutput(), metavar="FORM=FILE",
              help="Fill in a form, such as ll144=table.html (or .csv).")  # fmt: skip
@click.option("--form-details", type=IN, metavar="FILE",
              help="What forms say beside their counts (TOML, a table for each).")  # fmt: skip
@click.option("--junit", "junit_path", type=OUT, metavar="FILE", help="Write test results.")
@click.option("--fail-on", type=click.Choice(FAIL_ON), show_default="outside",
              help="When to exit other than 0; needs a limit.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would run and what is lacking.")
@click.option("--list-measures", is_flag=True, help="List the measures that limits may name.")
@click.option("--quiet", is_flag=True, help="Print the verdict only.")
@click.option("--verbose", is_flag=True, help="Print every finding, gap and note.")
def audit_command(data: tuple[str, ...], **flags: Any) -> int:
    """Audit the decisions in DATA (Parquet, CSV, JSON Lines or Arrow; one, several or a glob).

    DATA may also be tally sets (evenhand tally), which are merged.

    \b
    evenhand audit posts.parquet --truth violates --decision removed --group gender

    Exits 0 when nothing lies outside its limit, 1 when something does, 2 on wrong usage, 4 on
    data that cannot be used, and 3 with --fail-on cannot-tell when the data cannot tell.
    """
    from evenhand.errors import UsageError
    from evenhand.findings.gate import gate
    from evenhand.findings.run import audit
    from evenhand.findings.sentences.verdict import TAGS

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
    verbose, figures = flags.pop("verbose"), flags.pop("figures")
    limits = read_limits(flags.pop("limits"))
    settings = read_settings(flags)
    lenses = list(flags.pop("lenses")) or None
    forms = flags.pop("forms")
    details = read_form_details(flags.pop("form_details"), [place.form for place in forms])
    charter = flags.pop("charter")
    if charter:
        from evenhand.charter.read import read_charter

        charter = read_charter(charter)
    roles = read_roles(flags)
    words = read_words(flags.pop("norm_folder"), flags.pop("model"), trust=flags.pop("trust"))
    decisions = read_decisions(data, roles, flags, charter=charter)
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
            forms=details,
            level=flags["level"],
            seed=flags["seed"],
            keep_small=flags["keep_small"],
            exact=flags["exact"],
            arguments={"command": without_secrets(shlex.join(["evenhand", *sys.argv[1:]]))},
            progress=tell,
        )
    judged = gate(result, fail_on=fail_on)
    piped = write_outputs(result, outputs)
    write_forms(result, forms)
    if figures:
        write_figures([result], figures)
    if quiet and not piped:
        say(f"{TAGS[result.verdict]}: {result.sentence}")
    elif not piped:
        from evenhand.report.terminal import show as show_record

        record = result.record()
        show(lambda console: show_record(record, console, verbose=verbose))
    return judged.code


def _dry_run(decisions: Any, limits: dict[str, str], lenses: list[str] | None) -> None:
    from evenhand.findings.limits import read_limits as bands
    from evenhand.findings.registry import choose_lenses, lacking

    bands(limits)
    columns = f"{len(decisions.columns)} {'column' if len(decisions.columns) == 1 else 'columns'}"
    say(f"{decisions.source}: {columns}, engine {decisions.engine}.")
    for role, value in decisions.roles.used().items():
        say(f"  {role}: {_plain(value)}")
    needs = lacking(decisions)
    chosen = choose_lenses(decisions, lenses) if not all(needs.values()) else []
    for name, lack in needs.items():
        state = "will run" if name in chosen else f"needs {lack}" if lack else "not asked for"
        say(f"  lens {name}: {state}")
    say("Nothing was computed.")


def _plain(value: Any) -> str:
    """A role's value without Python's brackets."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={_plain(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
