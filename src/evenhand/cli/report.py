"""`evenhand report`: a record rendered again, several compared, or a ledger of remedies shown."""

from typing import Any

import click

from evenhand.cli.output import (
    OUT,
    FormOutput,
    Guarded,
    Input,
    Output,
    out_form,
    say,
    warn_of_charts,
    write_figures,
    write_output,
)

PAGE = "report.html"


@click.command("report", cls=Guarded)
@click.argument("records", nargs=-1, type=Input("the record"))
@click.option(
    "--out",
    type=OUT,
    metavar="FILE",
    help="Write the report page (default report.html); .md: Markdown.",
)
@click.option("--markdown", type=OUT, metavar="FILE", help="Write a summary for a pull request.")
@click.option("--junit", type=OUT, metavar="FILE", help="Write test results.")
@click.option("--card", type=OUT, metavar="FILE",
              help="Write a model card section; a card that exists keeps the rest.")  # fmt: skip
@click.option(
    "--cyclonedx", type=OUT, metavar="FILE", help="Write a CycloneDX fairness assessment."
)
@click.option("--figures", type=Output(folder="figures"), metavar="FOLDER",
              help="Write every chart as SVG, PNG and PDF in a paper's size.")  # fmt: skip
@click.option("--form", "forms", multiple=True, type=FormOutput(), metavar="FORM=FILE",
              help="Write a form that the audit filled in, such as ll144=table.html.")  # fmt: skip
@click.option("--github", is_flag=True, help="Print annotations for a GitHub workflow.")
@click.option("--charts/--no-charts", default=True, show_default=True)
def report_command(records: tuple[str, ...], **flags: Any) -> int:
    """Render RECORDS: audit.json, several (oldest first), a ledger folder, or both kinds.

    A model's record and its labelers' stand side by side.
    """
    from evenhand.files import check_writable
    from evenhand.files.places import check_places, is_screen
    from evenhand.report.render import text_for

    charts, github = flags.pop("charts"), flags.pop("github")
    figures, forms = flags.pop("figures"), flags.pop("forms")
    asked = {name: path for name, path in flags.items() if path}
    if not asked and not github and not figures and not forms:
        asked["out"] = PAGE
        check_places({"--out": PAGE}, {"the record": records})
        check_writable(PAGE)
    if "out" in asked and charts:
        warn_of_charts()
    quiet = github or any(is_screen(path) for path in asked.values())
    # All are made before any is written: what one refuses, such as a damaged record, costs none.
    annotations = text_for(None, *records, form="github") if github else ""
    forms_made = [(place, text_for(place, *records, form=place.form)) for place in forms]
    made = {
        path: text_for(
            None if is_screen(path) else path,
            *records,
            form=out_form(path) if name == "out" else name,
            charts=charts,
        )
        for name, path in asked.items()
    }
    for place, text in forms_made:
        write_output(place, text)
        say(f"Written: {place}", err=quiet)
    for path, text in made.items():
        write_output(path, text)
        if not is_screen(path):
            say(f"Written: {path} ({len(text.encode()) / 1024:,.0f} KB)", err=quiet)
    if figures:
        write_figures(records, figures)
        say(f"Written: {figures} (every chart as SVG, PNG and PDF)", err=quiet)
    if github:
        say(annotations)
    return 0
