"""What every statistical measure must satisfy, whatever it measures."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.decisions.roles import Attribute
from evenhand.decisions.tally import Tally
from evenhand.lenses.measures import CATALOGUE
from evenhand.lenses.rows import COLUMNS, Options, Rows
from evenhand.lenses.statistical.lens import measure_tally

STATISTICAL = [name for name, m in CATALOGUE.items() if "statistical" in m.lenses]
NUMBERS = (
    "value",
    "low",
    "high",
    "family_low",
    "family_high",
    "p",
    "p_adjusted",
    "n",
    "n_reference",
)
KEYS = ("measure", "class", "attribute", "group", "reference", "stratum")
CLASSES = ("0", "1", "2")


def made(n: int = 900, *, seed: int = 0) -> pl.DataFrame:
    """Three unequal groups, three classes, a site, and a score for each class."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    truth = rng.integers(0, 3, n)
    lean = np.array([0.8, 0.65, 0.7])[group]
    decision = np.where(rng.random(n) < lean, truth, rng.integers(0, 3, n))
    shares = rng.dirichlet([1, 1, 1], n) + np.eye(3)[truth]
    shares /= shares.sum(axis=1, keepdims=True)
    return pl.DataFrame(
        {
            "group": [("a", "b", "c")[i] for i in group],
            "truth": truth,
            "decision": decision,
            "site": [f"s{i}" for i in rng.integers(0, 2, n)],
            "unit": np.ones(n),
            "two": np.full(n, 2.0),
            **{f"score:{c}": np.round(shares[:, i], 3) for i, c in enumerate(CLASSES)},
        }
    )


TABLE = made()


def rows_of(table: Any = TABLE, **roles: Any) -> Rows:
    roles = {"truth": "truth", "decision": "decision", "group": "group", "stratum": "site", **roles}
    return eh.audit(eh.Decisions(table, **roles), lenses=["statistical"], keep_small=True).rows


@cache
def base() -> Rows:
    return rows_of()


def by_key(rows: Rows, measure: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    mine = rows.take(rows["measure"] == measure)
    return {tuple(row[k] for k in KEYS): row for row in mine}


def agree(left: Any, right: Any, *, tolerance: float = 1e-9) -> bool:
    if left is None or right is None:
        return left is right
    return abs(left - right) <= tolerance * max(1.0, abs(left))


def assert_same(one: Rows, other: Rows, measure: str, columns: tuple[str, ...] = NUMBERS) -> None:
    left, right = by_key(one, measure), by_key(other, measure)
    assert left, f"no rows of {measure}"
    assert left.keys() == right.keys()
    for key, row in left.items():
        for column in columns:
            assert agree(row[column], right[key][column]), (key, column)
        assert (row["undefined"] is None) == (row["value"] is not None), key


def test_the_table_shows_every_measure_of_the_catalogue() -> None:
    assert set(STATISTICAL) == set(base()["measure"])


def test_rows_have_the_columns_of_the_design() -> None:
    assert tuple(base().to_frame().columns) == COLUMNS
    assert rows_of(stratum=None, group="site").to_frame().schema == base().to_frame().schema


@cache
def shuffled() -> Rows:
    return rows_of(TABLE.sample(fraction=1.0, shuffle=True, seed=7))


@pytest.mark.parametrize("measure", STATISTICAL)
def test_order_of_rows(measure: str) -> None:
    assert_same(base(), shuffled(), measure)


@cache
def renamed(order: str) -> Rows:
    names = dict(zip("abc", order))
    rows = rows_of(TABLE.with_columns(pl.col("group").replace_strict(names)))
    back = {new: old for old, new in names.items()}
    columns = {
        k: np.array([back.get(v, v) for v in rows[k]], dtype=object) for k in ("group", "reference")
    }
    return rows.replace(**columns)


@pytest.mark.parametrize("measure", STATISTICAL)
def test_renaming_groups(measure: str) -> None:
    assert_same(base(), renamed("xyz"), measure)
    # Names in another order change the draws of the family, by which its intervals move a little.
    exact = tuple(c for c in NUMBERS if not c.startswith("family"))
    if not measure.endswith("_null_level"):
        assert_same(base(), renamed("zyx"), measure, exact)


@cache
def doubled() -> Rows:
    return rows_of(pl.concat([TABLE, TABLE]))


CORRECTED = ("_corrected", "_null_level", "_homogeneity")


@pytest.mark.parametrize("measure", STATISTICAL)
def test_duplication_of_the_data(measure: str) -> None:
    once, twice = by_key(base(), measure), by_key(doubled(), measure)
    assert once.keys() == twice.keys()
    for key, row in once.items():
        more = twice[key]
        if measure.endswith(CORRECTED):
            continue
        assert agree(row["value"], more["value"], tolerance=1e-6), key
        if row["low"] is not None and row["high"] > row["low"] > 0:
            assert more["high"] - more["low"] < row["high"] - row["low"], key
    if measure.endswith("_null_level"):
        assert all(twice[k]["value"] < row["value"] for k, row in once.items() if row["value"])


@cache
def weighed(weight: str) -> Rows:
    return rows_of(weight=weight)


@pytest.mark.parametrize("measure", STATISTICAL)
def test_unit_weights(measure: str) -> None:
    assert_same(base(), weighed("unit"), measure)


@pytest.mark.parametrize("measure", STATISTICAL)
def test_weights_have_no_scale(measure: str) -> None:
    # Weights of 2 say how rows count against each other, not that there were twice as many.
    assert_same(weighed("unit"), weighed("two"), measure)


@cache
def against(reference: str) -> Rows:
    return rows_of(reference=reference)


# The impact ratio's reference is the highest group, whichever is asked for.
COMPARED = [m for m in STATISTICAL if m.endswith(("_gap", "_ratio")) and m != "impact_ratio"]


@pytest.mark.parametrize("measure", COMPARED)
def test_swap_of_group_and_reference(measure: str) -> None:
    one, other = by_key(against("a"), measure), by_key(against("b"), measure)
    seen = 0
    for key, row in one.items():
        m, c, attribute, group, reference, stratum = key
        if (group, reference) != ("b", "a"):
            continue
        mirror = other[m, c, attribute, "a", "b", stratum]
        seen += 1
        if measure.endswith("_gap"):
            assert agree(row["value"], -mirror["value"])
            assert agree(row["low"], -mirror["high"], tolerance=1e-7)
            assert agree(row["high"], -mirror["low"], tolerance=1e-7)
        else:
            assert agree(row["value"], 1 / mirror["value"])
            assert agree(row["low"], 1 / mirror["high"], tolerance=1e-6)
        assert agree(row["p"], mirror["p"], tolerance=1e-7)
    assert seen


@pytest.mark.parametrize("rate", ["selection_rate", "true_positive_rate", "precision"])
def test_comparison_with_everybody(rate: str) -> None:
    rows = rows_of(reference="<overall>", weight="unit", stratum=None)
    alone = {(r["group"], r["class"]): r for r in rows.where(measure=rate)}
    for row in rows.where(measure=f"{rate}_gap"):
        own = alone[row["group"], row["class"]]
        parts = [alone[g, row["class"]] for g in "abc"]
        whole = sum(p["value"] * p["n"] for p in parts) / sum(p["n"] for p in parts)
        assert row["value"] == pytest.approx(own["value"] - whole, abs=1e-12)
        assert row["n_reference"] == sum(p["n"] for p in parts)
    for row in rows.where(measure=f"{rate}_ratio"):
        own = alone[row["group"], row["class"]]
        parts = [alone[g, row["class"]] for g in "abc"]
        whole = sum(p["value"] * p["n"] for p in parts) / sum(p["n"] for p in parts)
        assert row["value"] == pytest.approx(own["value"] / whole, abs=1e-12)
    gaps = {r["group"]: [] for r in rows.where(measure=f"{rate}_gap")}
    for row in rows.where(measure=f"{rate}_gap"):
        gaps[row["group"]].append(row["value"])
    for row in rows.where(measure=f"{rate}_gap_rms"):
        size = np.sqrt(np.mean(np.square(gaps[row["group"]])))
        assert row["value"] == pytest.approx(size, abs=1e-12)


def test_weights_decide_what_everybody_is() -> None:
    # f: 1 of 2 at weight 3 each; m: 1 of 4 at weight 1 each. Overall (3 + 1)/(6 + 4) = 0.4.
    table = {
        "decision": [1, 0, 1, 0, 0, 0] * 20,
        "group": ["f", "f", "m", "m", "m", "m"] * 20,
        "w": [3.0, 3.0, 1.0, 1.0, 1.0, 1.0] * 20,
    }
    rows = rows_of(table, truth=None, stratum=None, weight="w", reference="<overall>")
    gap = rows.where(measure="selection_rate_gap", class_="1", group="f")
    assert gap.plain("value") == pytest.approx([0.1])


SMALL = [0, 1, 2]


@pytest.mark.parametrize("cases", SMALL)
def test_a_group_of_few_cases(cases: int) -> None:
    few = TABLE.filter(pl.col("group") == "c").head(cases)
    table = pl.concat([TABLE.filter(pl.col("group") != "c"), few])
    rows = rows_of(table)
    assert ("c" in set(rows["group"])) == (cases > 0)
    for row in rows:
        assert (row["undefined"] is None) == (row["value"] is not None), row
        if row["value"] is None:
            assert row["low"] is None
            assert row["p"] is None or row["measure"].endswith("_gap_homogeneity")
    for row in rows.where(measure="true_positive_rate", group="c", stratum=None):
        assert row["n"] <= cases
        if row["value"] is not None:
            # Honest about one or two cases: the interval is wide.
            assert row["high"] - row["low"] > 0.5


def test_a_group_without_positives_has_no_rate() -> None:
    table = TABLE.filter(~((pl.col("group") == "c") & (pl.col("truth") == 1)))
    rate = rows_of(table).where(measure="true_positive_rate", class_="1", group="c", stratum=None)
    assert (rate.plain("value"), rate.plain("undefined")) == ([None], ["no cases in the group"])
    gaps = rows_of(table).where(
        measure="true_positive_rate_gap", class_="1", group="c", stratum=None
    )
    assert set(gaps.plain("undefined")) == {"no cases in the group"}
    backwards = rows_of(table, reference="c").where(
        measure="true_positive_rate_gap", class_="1", group="a", stratum=None, reference="c"
    )
    assert backwards.plain("undefined") == ["no cases in the reference"]


def test_a_single_class_of_truth() -> None:
    rows = rows_of(TABLE.with_columns(truth=pl.lit(1)))
    for row in rows.where(stratum=None):
        assert (row["undefined"] is None) == (row["value"] is not None), row
        if row["measure"].startswith("false_positive_rate") and row["class"] == "1":
            assert row["value"] is None
    assert all(v is not None for v in rows.where(measure="selection_rate").plain("value"))


def test_a_group_of_weight_zero_says_why() -> None:
    table = TABLE.with_columns(w=pl.when(pl.col("group") == "c").then(0.0).otherwise(1.0))
    for row in rows_of(table, weight="w"):
        assert (row["undefined"] is None) == (row["value"] is not None), row


def test_rates_that_cannot_vary() -> None:
    table = TABLE.with_columns(decision=pl.lit(1))
    for row in rows_of(table):
        assert (row["undefined"] is None) == (row["value"] is not None), row


small_tables = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.sampled_from([0, 1, None]),
        st.sampled_from([0, 1, None]),
        st.sampled_from(["s", "t", None]),
        st.sampled_from([0.5, 1.0, 3.0]),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=15)
@given(small_tables)
def test_small_tables_are_sound(cells: list[tuple[Any, ...]]) -> None:
    names = ("group", "truth", "decision", "site", "w")
    columns = {name: [cell[i] for cell in cells] for i, name in enumerate(names)}
    kinds = {"group": pl.String, "truth": pl.Int64, "decision": pl.Int64, "site": pl.String}
    table = pl.DataFrame(columns, schema_overrides=kinds)
    usable = table.drop_nulls(["group", "decision"])
    if usable.is_empty():
        with pytest.raises(eh.EvenhandError, match="Nothing is left to measure"):
            rows_of(table)
        return
    clustered = {"cluster": "site", "stratum": None}
    for roles in ({"weight": "w"}, {"reference": "<rest>", "stratum": None}, clustered):
        if roles is clustered and table.drop_nulls(["group", "decision", "site"]).is_empty():
            continue
        for row in rows_of(table, **roles):
            assert (row["undefined"] is None) == (row["value"] is not None), row
            if row["no_interval"] is not None:
                assert row["value"] is not None, row
                assert row["low"] is row["high"] is row["family_low"] is None, row
            if row["low"] is None:
                continue
            slack = 1e-9
            if not row["measure"].endswith(("_corrected", "_rms", "_spread")):
                assert row["low"] - slack <= row["value"] <= row["high"] + slack, row
            assert row["family_low"] <= row["low"] + slack, row
            assert row["family_high"] >= row["high"] - slack, row
            if CATALOGUE[row["measure"]].kind == "rate":
                assert -slack <= row["low"] <= row["high"] <= 1 + slack


@settings(max_examples=15)
@given(small_tables, small_tables)
def test_tallies_merge_to_the_tally_of_all(one: list[Any], two: list[Any]) -> None:
    attribute = Attribute(name="group", columns=("group",))
    names = ("group", "truth", "decision", "site", "w")
    kinds = {"group": pl.String, "truth": pl.Int64, "decision": pl.Int64, "site": pl.String}

    def counted(cells: list[Any]) -> tuple[eh.Decisions, Tally]:
        columns = {name: [cell[i] for cell in cells] for i, name in enumerate(names)}
        table = pl.DataFrame(columns, schema_overrides=kinds)
        roles = {"truth": "truth", "decision": "decision", "stratum": "site", "weight": "w"}
        decisions = eh.Decisions(table, group="group", **roles)
        return decisions, decisions.count(attribute)

    (decisions, left), (_, right), (_, whole) = counted(one), counted(two), counted(one + two)
    merged = left.merge(right)
    assert merged.fingerprint() == whole.fingerprint() == right.merge(left).fingerprint()
    if not whole.dense(["group", "decision"], "n").any():
        return
    for tally in (merged, whole):
        assert tally.total() == len(one) + len(two)
    ours, theirs = (
        Rows.concatenate(measure_tally(t, attribute, decisions.roles, Options())[0])
        for t in (merged, whole)
    )
    for column in ("value", "low", "high", "p", "n"):
        assert np.allclose(ours[column], theirs[column], atol=1e-9, equal_nan=True)
