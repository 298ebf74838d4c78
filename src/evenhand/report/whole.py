"""A record made whole before it is shown: older ones lack keys, damaged ones are refused."""

from collections.abc import Mapping
from typing import Any, NoReturn

from evenhand.errors import DataError
from evenhand.findings.sentences import TAGS
from evenhand.lenses.rows import COLUMNS

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
