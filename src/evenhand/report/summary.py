"""From a record to what a page says: a plain dict, selected and ordered, nothing computed."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.sentences import plural
from evenhand.report.compare import change_sentence, changes, comparison_section
from evenhand.report.first_screen import first_screen
from evenhand.report.sections.causal import causal_section
from evenhand.report.sections.costs import costs_section
from evenhand.report.sections.gaps import gaps_section
from evenhand.report.sections.labelers import labelers_section
from evenhand.report.sections.norms import norms_section
from evenhand.report.sections.record import methods_section, quality_section
from evenhand.report.sections.remedies import remedies_section
from evenhand.report.sections.thresholds import thresholds_section
from evenhand.report.sections.where import where_section
from evenhand.report.view import View

_SECTIONS = (
    costs_section,
    thresholds_section,
    gaps_section,
    causal_section,
    norms_section,
    labelers_section,
)


def summarise(
    record: Mapping[str, Any] | None,
    *,
    ledger: Mapping[str, Any] | None = None,
    previous: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What the page says of a record, of a ledger of remedies, or of both.

    `previous` is an older record to compare with. A lens without rows has no section.

    Examples:
        >>> page = summarise(None, ledger={"rows": [{"remedy": "reweigh", "accuracy": 0.8}]})
        >>> page["title"], [section["id"] for section in page["sections"]]
        ('Remedies compared', ['remedies'])
    """
    remedies = remedies_section(ledger)
    if record is None:
        return _ledger_page(ledger or {}, remedies)
    view = View.of(record)
    before = View.of(previous) if previous is not None else None
    sections = [make(view) for make in _SECTIONS]
    if before is not None:
        sections.insert(0, comparison_section(before, view))
    sections += [remedies, where_section(view), quality_section(view), methods_section(view)]
    compared = change_sentence(before, view, changes(before, view)) if before else None
    screen = first_screen(view, compared=compared)
    return {
        "title": screen.pop("title"),
        "meta": screen.pop("meta"),
        "screen": screen,
        "sections": _numbered([one for one in sections if one]),
    }


def _ledger_page(ledger: Mapping[str, Any], remedies: dict[str, Any] | None) -> dict[str, Any]:
    rows = ledger.get("rows") or []
    names = {row.get("remedy") for row in rows}
    made = ledger.get("made") or {}
    return {
        "title": "Remedies compared",
        "meta": [
            text
            for text in (
                plural(len(names), "option"),
                f"made {str(made.get('at'))[:10]}" if made.get("at") else "",
                f"Evenhand {made['version']}" if made.get("version") else "",
            )
            if text
        ],
        "screen": None,
        "sections": _numbered([remedies] if remedies else []),
    }


def _numbered(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"number": i} for i, one in enumerate(sections, start=1)]
