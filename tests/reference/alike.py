"""How the tests of faults make, name and compare tables: the same on every engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError, EvenhandError

FRAMES = ["polars", "pandas", "pandas arrow", "pyarrow", "duckdb"]
N = 120
GROUPS = ["f", "m", "m"] * (N // 3)
TRUTH = [0, 1] * (N // 2)
DECIDED = [0, 1, 1, 0] * (N // 4)
GIVEN = {"truth": "y", "decision": "d", "group": "g"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A table that is read, and what an audit of it must show on every frame."""

    kind: str
    name: str
    table: Callable[[], pl.DataFrame]
    check: Callable[[eh.Audit], None]
    roles: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A table that is refused, with this sentence on every frame."""

    kind: str
    name: str
    table: Callable[[], pl.DataFrame]
    sentence: str
    roles: dict[str, Any] = field(default_factory=dict)
    error: type[EvenhandError] = DataError


def audited(data: Any, **roles: Any) -> eh.Audit:
    """An audit of a table by its plain roles, those given here before them."""
    settings = roles.pop("settings", None)
    return eh.audit(eh.Decisions(data, **{**GIVEN, **roles}), keep_small=True, settings=settings)


def check_seen(case: Seen, frame: str) -> None:
    """The case holds on a frame, and gives what it gives on Polars."""
    table = case.table()
    found = audited(on(frame, table), **case.roles)
    case.check(found)
    if frame != "polars":
        check_same(found, audited(table, **case.roles))


def check_refused(case: Refused, frame: str) -> None:
    """The case is refused on a frame in its exact words."""
    with pytest.raises(case.error) as caught:
        audited(on(frame, case.table()), **case.roles)
    assert str(caught.value) == case.sentence


def check_values(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Numbers by name are those expected."""
    assert found == pytest.approx(expected, abs=1e-12)


def says(*notes: str) -> Callable[[eh.Audit], None]:
    """A check that an audit says these sentences."""

    def check(audit: eh.Audit) -> None:
        assert [note for note in audit.notes if note in notes] == list(notes)

    return check


def cases(table: Sequence[Any]) -> list[Any]:
    """The rows of a table as parameters that are counted by their kind."""
    return [
        pytest.param(case, id=f"kind={case.kind}-{case.name}", marks=pytest.mark.kind(case.kind))
        for case in table
    ]


def plain(**columns: Any) -> pl.DataFrame:
    """A table of 120 plain rows, with columns added or replaced."""
    return pl.DataFrame({"y": TRUTH, "d": DECIDED, "g": GROUPS} | columns)


def on(frame: str, table: pl.DataFrame) -> Any:
    """The table as a frame of another library."""
    if frame == "pandas":
        return table.to_pandas()
    if frame == "pandas arrow":
        return table.to_pandas(use_pyarrow_extension_array=True)
    if frame == "pyarrow":
        return table.to_arrow()
    if frame == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.from_arrow(table.to_arrow())
    return table


def check_same(one: eh.Audit, other: eh.Audit) -> None:
    """Two audits have the same labels, numbers and notes."""
    assert one.data["fingerprint"] == other.data["fingerprint"]
    assert one.data["excluded"] == other.data["excluded"]
    assert one.notes == other.notes
    for column in ("group", "class", "stratum"):
        assert one.rows[column].tolist() == other.rows[column].tolist()
    for column in ("value", "low", "high", "n"):
        mine, theirs = (np.asarray(a.rows[column], dtype=float) for a in (one, other))
        assert np.allclose(mine, theirs, rtol=0, atol=1e-9, equal_nan=True)


def groups(audit: eh.Audit, *, key: str = "group") -> list[str]:
    """The groups of an audit (or its strata or classes) in the order of its rows."""
    rows = audit.rows.where(measure="selection_rate")
    return list(dict.fromkeys(name for name in rows.plain(key) if name is not None))


def selected(audit: eh.Audit, *, class_: str = "1") -> dict[str, float | None]:
    """The selection rate of each group."""
    rows = audit.rows.where(measure="selection_rate", class_=class_, stratum=None)
    return dict(zip(rows.plain("group"), rows.plain("value")))
