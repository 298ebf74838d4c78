"""Rows that are made mappings only where somebody reads them, held against all of them made."""

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.findings.limits import hide_row, small_row
from evenhand.lenses.rows import COLUMNS, Rows
from evenhand.report.page import summarise
from evenhand.report.results import Results
from evenhand.report.view import View


@pytest.fixture(scope="module")
def audit() -> Any:
    rng = np.random.default_rng(3)
    rows = 3000
    group = rng.choice(list("abcd"), rows, p=[0.5, 0.3, 0.196, 0.004])
    table = {
        "group": group,
        "truth": rng.choice(list("xyz"), rows),
        "decision": rng.choice(list("xyz"), rows),
        "region": rng.choice(["north", "south"], rows),
    }
    return eh.audit(
        table,
        truth="truth",
        decision="decision",
        group="group",
        stratum="region",
        limits={"selection_rate_gap": 0.03},
        keep_small=True,
    )


def test_rows_are_the_same_from_columns_and_from_a_record(audit: Any) -> None:
    everything = list(audit.rows)
    lazy, listed = Results.of(audit.rows), Results.of(everything)
    assert list(lazy) == list(listed) == everything
    assert lazy.plain() == audit.rows.results()
    for name in ("lens", "class", "value", "n", "verdict", "unjudged"):
        assert lazy.column(name) == listed.column(name) == [row[name] for row in everything]
    assert lazy.by_measure == listed.by_measure
    for (lens, measure), places in lazy.by_measure.items():
        asked = [
            i
            for i, row in enumerate(everything)
            if (row["lens"], row["measure"]) == (lens, measure)
        ]
        assert places == asked
        assert lazy.of_measure(lens, measure) == [everything[i] for i in asked]


def test_places_count_from_both_ends_and_in_slices(audit: Any) -> None:
    everything, lazy = list(audit.rows), Results.of(audit.rows)
    last = len(everything) - 1
    assert lazy[-1] is lazy[last]
    assert lazy[-1] == everything[last]
    assert lazy[5:50:7] == everything[5:50:7]
    with pytest.raises(IndexError):
        lazy[len(everything)]


def test_shown_rows_lack_the_numbers_of_small_cells(audit: Any) -> None:
    everything = list(audit.rows)
    lazy = Results.of(audit.rows)
    shown = lazy.shown()
    assert list(shown) == [hide_row(row) for row in everything]
    assert shown[3] is shown[3]
    small = [row for row in everything if small_row(row, under=10)]
    assert small
    assert lazy.small(under=10) == small
    assert shown.small(under=10) == [hide_row(row) for row in small]
    judged = [i for i, row in enumerate(everything) if row["verdict"] != "not assessed"]
    assert lazy.judged() == judged != []


def test_a_row_is_made_once_and_only_where_it_is_read() -> None:
    asked: list[int] = []
    rows = [dict.fromkeys(COLUMNS) | {"lens": "l", "measure": f"m{i}"} for i in range(9)]

    def made(places: Any) -> Any:
        asked.extend(places)
        return [rows[place] for place in places]

    results = Results(9, rows=made, column=lambda name: [row[name] for row in rows])
    assert results.of_measure("l", "m4") == [rows[4]]
    assert results.pick([4, 2, 4]) == [rows[4], rows[2], rows[4]]
    assert asked == [4, 2]


def test_a_page_reads_few_rows_of_a_large_audit() -> None:
    rng = np.random.default_rng(5)
    table = {"group": [f"g{i}" for i in rng.integers(0, 20, 20_000)]}
    table |= {
        name: [f"c{i}" for i in rng.integers(0, 12, 20_000)] for name in ("truth", "decision")
    }
    audit = eh.audit(table, truth="truth", decision="decision", group="group")
    record = audit._shown()
    results = View.of(record).rows
    summarise(record)
    made = sum(row is not None for row in results._made)
    assert 0 < made < 0.5 * len(results)
    assert len(results) == len(audit.rows)


def test_rows_of_no_audit() -> None:
    none = Results.of(Rows.block((0,)))
    assert (list(none), none.by_measure, list(none.lenses)) == ([], {}, [])
