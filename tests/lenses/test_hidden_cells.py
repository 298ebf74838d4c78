"""Cells that are hidden cannot be worked out from the numbers over several cells beside them."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh

KEYS = ("lens", "measure", "class", "attribute", "group", "reference", "stratum")
HIDDEN = "fewer than 10 cases: hidden"
TELLING = "it would tell of a group with fewer than 10 cases"
ROLES: dict[str, Any] = {"decision": "d", "group": "g", "positive": 1}
# Of 200 of group a 120 are decided 1, of 150 of group b 60; of 9 of group c nobody is told.
LARGE = {"a": (200, 120), "b": (150, 60)}


def table(selected: int, **more: tuple[int, int]) -> dict[str, list[Any]]:
    """Groups with so many rows and selected among them; `selected` of the 9 of group c."""
    groups = {**LARGE, "c": (9, selected), **more}
    return {
        "d": [int(i < hits) for n, hits in groups.values() for i in range(n)],
        "g": [name for name, (n, _) in groups.items() for _ in range(n)],
    }


def published(data: Any, **options: Any) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Every row of an audit's record by what it speaks of."""
    rows = eh.audit(data, **{**ROLES, **options}).record()["results"]
    return {tuple(row[key] for key in KEYS): row for row in rows}


def row_of(rows: Any, **wanted: Any) -> dict[str, Any]:
    """The one row with these words."""
    (row,) = [row for row in rows if all(row[name] == word for name, word in wanted.items())]
    return dict(row)


@pytest.mark.parametrize("reference", [None, "a", "c", "<rest>", "<overall>"])
def test_no_published_number_depends_on_a_hidden_count(reference: str | None) -> None:
    tried = [published(table(k), reference=reference) for k in range(10)]
    assert all(found == tried[0] for found in tried)
    hidden = tried[0]["statistical", "selection_rate", "1", "g", "c", None, None]
    assert (hidden["value"], hidden["n"], hidden["undefined"]) == (None, 9, HIDDEN)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_no_output_of_the_command_depends_on_a_hidden_count(engine: str, run: Any) -> None:
    printed, records = set(), []
    for k in range(10):
        pl.DataFrame(table(k)).write_csv("t.csv")
        code, out, said = run("audit", "t.csv", "--decision", "d", "--group", "g", "--positive",
                              "1", "--engine", engine, "--limit", "selection_rate_gap=0.05",
                              "--verbose", "--json", "t.json", "--csv", "rows.csv")  # fmt: skip
        assert (code, said) == (1, "")
        printed.add((out, Path("rows.csv").read_text()))
        records.append(json.loads(Path("t.json").read_text()))
    assert len(printed) == 1
    assert all(each["results"] == records[0]["results"] for each in records)
    assert all(each["findings"] == records[0]["findings"] for each in records)
    # Who keeps small cells gets the spread over all three groups: k and 9 − k alone look the same.
    kept = set()
    for k in range(10):
        pl.DataFrame(table(k)).write_csv("t.csv")
        run("audit", "t.csv", "--decision", "d", "--group", "g", "--positive", "1", "--keep-small",
            "--json", "t.json")  # fmt: skip
        rows = json.loads(Path("t.json").read_text())["results"]
        spread = row_of(rows, measure="selection_rate_spread", **{"class": "1"})["value"]
        kept.add(round(spread, 9))
    assert len(kept) == 5


@pytest.mark.parametrize("selected", range(10))
def test_sizes_over_groups_are_of_those_that_are_shown(selected: int) -> None:
    result = eh.audit(table(selected), **ROLES)
    one = {"class": "1"}
    # Rates of 60% and 40% lie 10 points from their mean; their gap is 20 points.
    spread = row_of(result.rows, measure="selection_rate_spread", **one)
    assert spread["value"] == pytest.approx(0.1, abs=1e-12)
    assert spread["n"] == 2
    pair = row_of(result.rows, measure="selection_rate_gap_worst", **one)
    assert (pair["group"], pair["reference"]) == ("a", "b")
    assert (pair["n"], pair["n_reference"]) == (200, 150)
    assert pair["value"] == pytest.approx(0.2, abs=1e-12)
    # They are what two groups alone would have.
    alone = eh.audit({name: held[:350] for name, held in table(selected).items()}, **ROLES)
    of_two = row_of(alone.rows, measure="selection_rate_gap_worst", **one)
    assert pair == of_two
    # With small cells kept all three count: mean m, distances from it, and a root of their mean.
    kept = eh.audit(table(selected), keep_small=True, **ROLES)
    rates = [0.6, 0.4, selected / 9]
    mean = sum(rates) / 3
    expected = (sum((rate - mean) ** 2 for rate in rates) / 3) ** 0.5
    every = row_of(kept.rows, measure="selection_rate_spread", **one)
    assert (every["value"], every["n"]) == (pytest.approx(expected, abs=1e-12), 3)


def test_where_nobody_is_hidden_nothing_changes() -> None:
    data = table(4, c=(10, 4), d=(60, 30))
    assert published(data) == published(data, keep_small=True)
    # A group of nobody hides nothing: with its truth missing it has no cases at all.
    truth = [i % 2 if name != "c" else None for i, name in enumerate(data["g"])]
    assert published({**data, "y": truth}, truth="y") == published(
        {**data, "y": truth}, truth="y", keep_small=True
    )


def test_too_few_groups_that_are_shown() -> None:
    data = table(4, b=(8, 3))
    data["y"] = [i % 2 for i in range(len(data["d"]))]
    rows = eh.audit(data, truth="y", **ROLES).rows
    for measure in ("selection_rate_spread", "selection_rate_gap_worst", "equalised_odds"):
        row = row_of(rows, measure=measure, **{"class": "1"})
        assert row["value"] is None
        assert row["undefined"] == "fewer than two groups with 10 cases"
    kept = eh.audit(data, truth="y", keep_small=True, **ROLES).rows
    assert row_of(kept, measure="equalised_odds", **{"class": "1"})["undefined"] is None


def test_everybody_else_is_withheld_where_they_would_tell() -> None:
    rows = eh.audit(table(4), reference="<rest>", limits={"selection_rate_gap": 0.05}, **ROLES).rows
    for group, reason in (("a", TELLING), ("b", TELLING), ("c", HIDDEN)):
        for measure in ("selection_rate_gap", "selection_rate_ratio"):
            row = row_of(rows, measure=measure, group=group, **{"class": "1"})
            assert row["undefined"] == reason
            assert row["value"] is None
        assert row_of(rows, measure="selection_rate_gap", group=group, **{"class": "1"})[
            "verdict"
        ] == "cannot tell"  # fmt: skip
    # Two hidden groups of 9 and 8 together are 17 people, of whom a sum may be told.
    several = eh.audit(table(4, d=(8, 3)), reference="<rest>", **ROLES).rows
    gap = row_of(several, measure="selection_rate_gap", group="a", **{"class": "1"})
    assert gap["value"] == pytest.approx(120 / 200 - 67 / 167, abs=1e-12)


def by_class(right: int) -> dict[str, list[Any]]:
    """Four classes and two groups; of the 9 cases of class z in group b so many are recognised."""
    cells = {
        ("a", "w"): (60, 50), ("a", "x"): (60, 40), ("a", "y"): (60, 45), ("a", "z"): (60, 30),
        ("b", "w"): (50, 20), ("b", "x"): (50, 30), ("b", "y"): (50, 25), ("b", "z"): (9, right),
    }  # fmt: skip
    rows = [
        (group, name, name if i < hits else "w" if name != "w" else "x")
        for (group, name), (n, hits) in cells.items()
        for i in range(n)
    ]
    return {"g": [r[0] for r in rows], "y": [r[1] for r in rows], "d": [r[2] for r in rows]}


def test_sizes_over_classes_are_of_those_that_are_shown() -> None:
    found = []
    for right in range(10):
        rows = eh.audit(by_class(right), truth="y", decision="d", group="g").rows
        sizes = [
            dict(row) for row in rows if row["measure"].startswith("true_positive_rate_gap_rms")
        ]
        found.append([(row["measure"], row["value"], row["n"], row["method"]) for row in sizes])
    assert all(each == found[0] for each in found)
    # Gaps of 43, 7 and 25 points: the root of the mean of their squares.
    gaps = [50 / 60 - 20 / 50, 40 / 60 - 30 / 50, 45 / 60 - 25 / 50]
    expected = (sum(gap**2 for gap in gaps) / 3) ** 0.5
    assert found[0][0] == (
        "true_positive_rate_gap_rms",
        pytest.approx(expected, abs=1e-12),
        3,
        "moments; 1 of 4 classes hidden",
    )
    kept = eh.audit(by_class(9), truth="y", decision="d", group="g", keep_small=True).rows
    row = row_of(kept, measure="true_positive_rate_gap_rms")
    assert (row["n"], row["method"]) == (4, "moments")


def test_too_few_classes_that_are_shown() -> None:
    data = by_class(3)
    shown = [i for i, (g, y) in enumerate(zip(data["g"], data["y"])) if g == "a" or y in "wz"]
    few = {name: [held[i] for i in shown] for name, held in data.items()}
    row = row_of(
        eh.audit(few, truth="y", decision="d", group="g").rows,
        measure="true_positive_rate_gap_rms",
    )
    assert row["undefined"] == "fewer than two classes with 10 cases"
    assert row["method"] == "moments; 2 of 4 classes undefined; 1 of 4 classes hidden"


def test_sizes_of_counterfactual_gaps_are_of_classes_that_are_shown() -> None:
    found = []
    for flipped in range(10):
        cells = {"x": (60, 12), "y": (60, 20), "z": (9, flipped)}
        rows = [(name, i < k) for name, (n, k) in cells.items() for i in range(n)]
        result = eh.audit(
            {
                "y": [name for name, _ in rows],
                "decision@a": [name for name, _ in rows],
                "decision@b": ["x" if flip and name != "x" else "y" if flip else name
                               for name, flip in rows],
            },
            truth="y",
            counterfactual={"a": "decision@a", "b": "decision@b"},
        )  # fmt: skip
        row = row_of(result.rows, measure="counterfactual_true_positive_rate_gap_rms")
        found.append((row["value"], row["n"], row["method"]))
    # 12 and 20 of 60 are recognised under the first alone: gaps of 20 and 33 points.
    expected = ((0.2**2 + (1 / 3) ** 2) / 2) ** 0.5
    assert all(each == found[0] for each in found)
    assert found[0] == (pytest.approx(expected), 2, "moments; 1 of 3 classes hidden")


def test_why_a_hidden_number_is_missing_tells_nothing_either() -> None:
    # Against nobody selected of 9 there is no ratio; that it is so would tell that it is nobody.
    reasons = {
        (k, row["undefined"])
        for k in (0, 5)
        for row in eh.audit(table(k), reference="c", **ROLES).rows
        if row["measure"] == "selection_rate_ratio" and row["reference"] == "c"
    }
    assert reasons == {(0, HIDDEN), (5, HIDDEN)}
    page = eh.render(eh.audit(table(0), reference="c", keep_small=True, **ROLES), charts=False)
    assert not re.search("the reference's rate is 0|the reference&#39;s rate is 0", page)
