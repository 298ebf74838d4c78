"""A record made whole before it is shown: older ones lack keys, damaged ones are refused."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from evenhand.errors import DataError
from evenhand.findings.sentences import TAGS
from evenhand.lenses.rows import COLUMNS

LEDGER = "ledger.json"
_FINDING = {"layer": "implementation", "owner": None, "measure": "", "attribute": None, "rows": ()}


def whole(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with every key that a report reads; a damaged one is refused with a sentence.

    Examples:
        >>> base = {"schema": "evenhand.audit/1", "made": {}, "data": {}, "results": []}
        >>> sorted(whole(base | {"findings": [], "verdict": "not assessed"}))[:4]
        ['charter', 'data', 'details', 'findings']
        >>> whole(base | {"findings": [], "verdict": "fine"})
        Traceback (most recent call last):
        evenhand.errors.DataError: The record is damaged: its verdict is 'fine'. Make it again \
with: evenhand audit … --json
    """
    if record.get("verdict") not in TAGS:
        _damaged(f"its verdict is {record.get('verdict')!r}")
    for name, kind in (("made", Mapping), ("data", Mapping), ("results", list), ("findings", list)):
        if not isinstance(record.get(name), kind):
            _damaged(f"its {name!r} is not what it should be")
    return {
        **record,
        "made": {"level": 0.95, **record["made"]},
        "data": {"excluded": [], "roles": {}, "source": "decisions", **record["data"]},
        "charter": record.get("charter"),
        "details": record.get("details") or {},
        "notes": record.get("notes") or [],
        "sentence": record.get("sentence") or TAGS[record["verdict"]],
        "results": [_row(i, row) for i, row in enumerate(record["results"], start=1)],
        "findings": [_finding(i, one) for i, one in enumerate(record["findings"], start=1)],
    }


def read_ledger(path: str | Path) -> dict[str, Any]:
    """A ledger of remedies from its file, or from the folder that holds it."""
    place = Path(path)
    file = place / LEDGER if place.is_dir() else place
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"There is no {LEDGER} in '{path}'. Make one with: evenhand compare"
        ) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"'{file}' cannot be read as a ledger: {error}.") from error
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise DataError(f"'{file}' is not a ledger: it has no 'rows'.")
    return document


def _row(i: int, row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        _damaged(f"result {i} is not a row")
    for name in ("lens", "measure"):
        if not isinstance(row.get(name), str):
            _damaged(f"result {i} has no {name!r}")
    held = {**dict.fromkeys(COLUMNS), **row}
    if held["verdict"] not in TAGS:
        held["verdict"] = "not assessed"
    return held


def _finding(i: int, finding: Any) -> dict[str, Any]:
    if not isinstance(finding, Mapping) or not isinstance(finding.get("sentence"), str):
        _damaged(f"finding {i} has no sentence")
    if finding.get("verdict") not in TAGS:
        _damaged(f"finding {i} has the verdict {finding.get('verdict')!r}")
    return {**_FINDING, "lens": "", **finding}


def _damaged(why: str) -> NoReturn:
    raise DataError(f"The record is damaged: {why}. Make it again with: evenhand audit … --json")
