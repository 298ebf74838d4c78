"""`evenhand report`: a record rendered again, two compared, or a ledger of remedies shown."""

from pathlib import Path
from typing import Any

import click

from evenhand.errors import UsageError

OUTPUTS = ("out", "markdown", "junit", "card", "cyclonedx")


@click.command("report")
@click.argument("records", nargs=-1)
@click.option("--out", metavar="FILE", help="Write the report page (default report.html).")
@click.option("--markdown", metavar="FILE", help="Write a summary for a pull request.")
@click.option("--junit", metavar="FILE", help="Write test results.")
@click.option("--card", metavar="FILE", help="Write a model card section; a card that exists "
              "keeps the rest.")  # fmt: skip
@click.option("--cyclonedx", metavar="FILE", help="Write a CycloneDX fairness assessment.")
@click.option("--github", is_flag=True, help="Print annotations for a GitHub workflow.")
@click.option("--charts/--no-charts", default=True, show_default=True)
def report_command(records: tuple[str, ...], **flags: Any) -> int:
    """Render RECORDS: audit.json, two of them (old and new), a ledger folder, or both kinds."""
    from evenhand.decisions.batches import check_writable
    from evenhand.findings.record import read_record, write_text
    from evenhand.mitigation.ledger_files import read_ledger
    from evenhand.report.whole import whole

    audits = [path for path in records if not _is_ledger(path)]
    ledgers = [path for path in records if _is_ledger(path)]
    if not records or len(audits) > 2 or len(ledgers) > 1:
        raise UsageError(
            "Name one record, two to compare, a ledger folder, or records and a ledger, such as: "
            "evenhand report audit.json --out report.html"
        )
    asked = {name: flags[name] for name in OUTPUTS if flags[name]}
    if not asked and not flags["github"]:
        asked["out"] = "report.html"
    for path in asked.values():
        check_writable(path)
    read = [whole(read_record(path)) for path in audits]
    record = read[-1] if read else None
    ledger = read_ledger(ledgers[0]) if ledgers else None
    if record is None and (set(asked) - {"out"} or flags["github"]):
        raise UsageError("A ledger alone has only a page: --out report.html. Name a record too.")
    for name, path in asked.items():
        if name == "out":
            text = page(record, ledger, read[0] if len(read) == 2 else None, flags["charts"])
        else:
            text = _other(name, path, record or {})
        write_text(path, text)
        click.echo(f"Written: {path} ({len(text.encode()) / 1024:,.0f} KB)", err=flags["github"])
    if flags["github"]:
        from evenhand.report.annotations import as_annotations

        click.echo(as_annotations(record or {}))
    return 0


def page(record: Any, ledger: Any = None, previous: Any = None, charts: bool = True) -> str:
    """The report page; says on standard error when charts cannot be drawn."""
    from evenhand.report.html import as_page
    from evenhand.report.svg import HINT, can_draw

    if charts and not can_draw():
        click.echo(f"evenhand: the report has no charts. To add them: {HINT}", err=True)
    return as_page(record, ledger=ledger, previous=previous, charts=charts)


def _other(name: str, path: str, record: dict[str, Any]) -> str:
    if name == "markdown":
        from evenhand.report.markdown import as_markdown

        return as_markdown(record)
    if name == "junit":
        from evenhand.report.junit import as_junit

        return as_junit(record)
    if name == "cyclonedx":
        from evenhand.report.cyclonedx import as_cyclonedx

        return as_cyclonedx(record)
    from evenhand.report.card import as_card_section, put_into

    section = as_card_section(record)
    card = Path(path)
    if not card.is_file():
        return section
    try:
        return put_into(card.read_text(encoding="utf-8"), section)
    except UnicodeDecodeError:
        raise UsageError(f"'{path}' is not a text file. Choose another place.") from None


def _is_ledger(path: str) -> bool:
    return Path(path).is_dir() or Path(path).name == "ledger.json"
