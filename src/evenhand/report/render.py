"""Records and ledgers as pages, summaries, test results and tables: by name, or by a file's ending.

Every result saves itself through `render`, and so do the commands that write files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, EvenhandError, UsageError, nearest
from evenhand.files import check_writable, write_text
from evenhand.files.documents import is_sealed
from evenhand.findings.record import read_record, record_text
from evenhand.findings.run import Audit
from evenhand.lenses.rows import COLUMNS, results_frame
from evenhand.remedies.ledger.document import Ledger
from evenhand.remedies.ledger.files import DOCUMENT, read_ledger
from evenhand.report.beside import labelers_beside
from evenhand.report.compare import compare_records
from evenhand.report.cyclonedx import as_cyclonedx
from evenhand.report.figures import write_figures
from evenhand.report.formats import (
    as_annotations,
    as_card_section,
    as_junit,
    as_markdown,
    put_into,
)
from evenhand.report.ll144 import as_ll144_csv, as_ll144_page
from evenhand.report.page import as_page
from evenhand.report.results import Results
from evenhand.report.table import as_people_csv
from evenhand.report.view import View, whole

ENDINGS = {".html": "page", ".md": "markdown", ".json": "json", ".csv": "csv", ".xml": "junit"}
FORMS = (*ENDINGS.values(), "card", "cyclonedx", "github", "ll144")


def render(
    *records: Any,
    path: str | Path | None = None,
    form: str | None = None,
    charts: bool = True,
    figures: str | Path | None = None,
) -> str:
    """A record as a page or in another form; of several, the newest compared with the older.

    Args:
        records: An audit, its record or the file of it; several of them, the oldest first; a
            model's and its labelers'; remedies compared, as a `Ledger` or the folder that
            `compare` wrote; or records and a ledger.
        path: The file to write, whole or not at all.
        form: `page`, `markdown`, `json`, `csv`, `junit`, `card` (a section of a model card,
            which keeps what else stands in the file), `cyclonedx`, `github` (annotations) or
            `ll144` (a form that the audit filled in: a page, or with .csv a table).
            By default what the path's ending says, and without a path the page.
        charts: Draw charts on the page, where the extra that draws them is installed.
        figures: A folder to write every chart to, as SVG, PNG and PDF in a paper's size.

    Returns:
        The text, which is also in the file where a path is given.

    Examples:
        >>> import evenhand as eh
        >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100, "sex": ["f", "m"] * 200}
        >>> result = eh.audit(table, truth="bad", decision="removed", group="sex")
        >>> render(result, form="markdown").splitlines()[0][:28]
        '### Evenhand: Not assessed: '
    """
    if path is not None:
        check_writable(path)
    text = text_for(path, *records, form=form, charts=charts, figures=figures)
    if path is not None:
        write_text(path, text)
    return text


def text_for(
    path: str | Path | None,
    *records: Any,
    form: str | None = None,
    charts: bool = True,
    figures: str | Path | None = None,
) -> str:
    """What `render` writes to a path, unwritten: of several outputs all are made before any is."""
    chosen = _form(form, path)
    if figures is None and len(records) == 1 and isinstance(records[0], Audit):
        text = _of_rows(records[0], chosen)
        if text is not None:
            return text
    sources = _Sources.of(records)
    try:
        if figures is not None:
            write_figures(figures, sources.record, earlier=sources.earlier, ledger=sources.ledger)
        return _text(sources, chosen, path=path, charts=charts)
    except EvenhandError:
        raise
    except Exception:
        _refuse_damaged(records)
        raise


def _of_rows(audit: Audit, form: str) -> str | None:
    """What is but the rows of an audit, without a detour over a document; None for other forms."""
    if form == "json":
        return audit.to_json() + "\n"
    return as_people_csv(audit.to_frame()) if form == "csv" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """The record to show, those before it, and remedies beside them; any may be absent."""

    record: dict[str, Any] | None
    earlier: tuple[dict[str, Any], ...]
    ledger: dict[str, Any] | None

    @classmethod
    def of(cls, given: tuple[Any, ...]) -> "_Sources":
        opened = [_open(one) for one in given]
        audits = [held for held, is_ledger in opened if not is_ledger]
        ledgers = [held for held, is_ledger in opened if is_ledger]
        if not opened or len(ledgers) > 1:
            raise UsageError(
                "Name one record, several to compare (the oldest first), a ledger folder, or "
                "records and a ledger, such as: evenhand report audit.json --out report.html"
            )
        return cls(
            record=audits[-1] if audits else None,
            earlier=tuple(audits[:-1]),
            ledger=ledgers[0] if ledgers else None,
        )


def _open(given: Any) -> tuple[dict[str, Any], bool]:
    """A record or a ledger's document, and whether it is the latter."""
    if isinstance(given, Audit):
        return given._shown(), False
    if isinstance(given, Ledger):
        return given.document, True
    if isinstance(given, Mapping):
        return dict(given), str(given.get("schema", "")).startswith("evenhand.ledger/")
    if not isinstance(given, str | Path):
        raise UsageError(
            f"A {type(given).__name__} cannot be rendered. Give an audit, remedies compared, a "
            "record, or the path of one."
        )
    place = Path(given)
    is_ledger = place.is_dir() or place.name == DOCUMENT
    return (read_ledger(place) if is_ledger else read_record(place)), is_ledger


def _refuse_damaged(given: tuple[Any, ...]) -> None:
    """Refuse a document that was changed by hand: what it breaks is no fault of ours."""
    for place in (Path(one) for one in given if isinstance(one, str | Path)):
        document = place / DOCUMENT if place.is_dir() else place
        if document.is_file() and not is_sealed(document.read_bytes()):
            raise DataError(
                f"'{document}' was changed after it was written, and cannot be shown as it is. "
                "Make it again."
            )


def _form(form: str | None, path: str | Path | None) -> str:
    if form is not None:
        if form not in FORMS:
            raise UsageError(
                f"form={form!r} is not a form.{nearest(form, list(FORMS))} "
                f"Choose one of {', '.join(FORMS)}."
            )
        return form
    ending = Path(path).suffix.lower() if path is not None else ".html"
    if ending not in ENDINGS:
        raise UsageError(
            f"'{path}' does not say by its ending what to write. Choose a name that ends in "
            f"{', '.join(ENDINGS)}."
        )
    return ENDINGS[ending]


def _text(sources: _Sources, form: str, *, path: str | Path | None, charts: bool) -> str:
    if form == "page":
        return as_page(
            sources.record, ledger=sources.ledger, earlier=sources.earlier, charts=charts
        )
    if sources.record is None:
        raise UsageError("A ledger alone has only a page: --out report.html. Name a record too.")
    if form == "json":
        return _json(sources.record)
    if form == "ll144":
        return _ll144(sources.record, path)
    record = whole(sources.record)
    if form == "csv":
        return _rows(record)
    if form == "card":
        return _card(as_card_section(record), path)
    if form == "markdown" and sources.earlier:
        beside = labelers_beside(View.of(record), [View.of(whole(one)) for one in sources.earlier])
        if beside is not None:
            return f"{as_markdown(beside.model.record)}\n{beside.to_markdown()}"
        compared = compare_records(*sources.earlier, sources.record)
        return f"{as_markdown(record)}\n{compared.to_markdown()}"
    makers = {"markdown": as_markdown, "junit": as_junit, "cyclonedx": as_cyclonedx}
    return makers.get(form, as_annotations)(record)


def _json(record: Mapping[str, Any]) -> str:
    """The record as its file has it."""
    results = record["results"]
    held = {**record, "results": results.plain()} if isinstance(results, Results) else record
    return record_text(held) + "\n"


def _ll144(record: Mapping[str, Any], path: str | Path | None) -> str:
    filled = (record.get("forms") or {}).get("ll144")
    if filled is None:
        raise UsageError(
            "The audit did not fill in the form ll144. Audit again with --form ll144=table.html "
            '(forms=["ll144"] in Python).'
        )
    ending = Path(path).suffix.lower() if path is not None else ".html"
    if ending not in {".html", ".csv"}:
        raise UsageError(f"'{path}' is neither .html nor .csv, which the form ll144 is written as.")
    return as_ll144_csv(filled) if ending == ".csv" else as_ll144_page(filled)


def _rows(record: Mapping[str, Any]) -> str:
    """All rows as CSV."""
    results = Results.of(record["results"])
    columns = {name: results.column(name) for name in COLUMNS}
    return as_people_csv(results_frame(columns))


def _card(section: str, path: str | Path | None) -> str:
    card = None if path is None else Path(path)
    if card is None or not card.is_file():
        return section
    try:
        return put_into(card.read_text(encoding="utf-8"), section)
    except UnicodeDecodeError:
        raise UsageError(f"'{path}' is not a text file. Choose another place.") from None
