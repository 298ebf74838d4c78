"""Tally sets: every lens from rows, from one set and from a merge of seven parts."""

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.decisions.tallied import TalliedDecisions
from evenhand.decisions.tallies.privacy import join_cells
from evenhand.decisions.tallies.sets import Tallies, merge_all
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.findings import tallying
from evenhand.findings.registry import LENSES
from evenhand.lenses.rows import Options, Rows

ROWS = 1_400
KEYS = ("lens", "measure", "class", "attribute", "group", "reference", "stratum", "labeler", "norm")
NUMBERS = ("value", "low", "high", "family_low", "family_high", "n", "n_reference", "p")
KEY = b"a secret that nobody can guess"


def table(seed: int = 3) -> pl.DataFrame:
    """Rows with everything that lenses look at, gaps in most columns."""
    rng = np.random.default_rng(seed)
    gender = rng.choice(["f", "m", "x"], ROWS, p=[0.4, 0.5, 0.1])
    score = np.round(np.clip(rng.beta(2, 3, ROWS) + 0.05 * (gender == "f"), 0, 1), 5)
    truth = (rng.random(ROWS) < score).astype(int)
    jobs = np.array(["cook", "nurse", "pilot"])
    job = rng.integers(0, 3, ROWS)
    wide = rng.dirichlet([1, 1, 1], ROWS)
    wide[np.arange(ROWS), job] += 0.4
    swapped = {v: np.where(rng.random(ROWS) < 0.8, job, rng.integers(0, 3, ROWS)) for v in "fm"}
    item = rng.integers(0, 300, ROWS)
    frame = pl.DataFrame(
        {
            "gender": gender,
            "region": rng.choice(["north", "south"], ROWS),
            "age": rng.integers(18, 80, ROWS),
            "score": score,
            "points": np.round(score * 20).astype(int) - 5,
            "logit": np.log(score + 0.01) - np.log(1.01 - score),
            "cut": np.where(gender == "f", 0.45, 0.4),
            "truth": truth,
            "decision": np.where(rng.random(ROWS) < 0.85, truth, 1 - truth),
            "job": jobs[job],
            "picked": jobs[np.where(rng.random(ROWS) < 0.7, job, rng.integers(0, 3, ROWS))],
            **{f"score:{name}": wide[:, i] for i, name in enumerate(jobs)},
            **{f"decision@{v}": jobs[swapped[v]] for v in "fm"},
            "weight": rng.uniform(0.5, 2, ROWS),
            "share": rng.uniform(0.4, 1, ROWS),
            "who": [f"ann {i}" for i in rng.integers(0, 12, ROWS)],
            "item": [f"post {i}" for i in item],
            "site": [f"site {i}" for i in item % 60],
            "expert": (item % 3 == 0).astype(int),
            "seconds": rng.gamma(2, 5, ROWS),
            "norm@f": rng.random(ROWS),
            "norm@m": rng.random(ROWS),
        }
    )
    holes = rng.random((ROWS, 4)) < 0.03
    return frame.with_columns(
        pl.when(~pl.Series(holes[:, i])).then(pl.col(name)).alias(name)
        for i, name in enumerate(("gender", "truth", "score", "decision"))
    )


TABLE = table()
PLAIN = ("gender", "region", "age", "score", "points", "logit", "cut", "truth", "decision",
         "weight", "share", "who")  # fmt: skip
SCORES = {"truth": "truth", "score": "score", "threshold": 0.4, "group": "gender"}
# Name: columns, roles and lens.
CASES: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "counts": (PLAIN, {"truth": "truth", "decision": "decision", "group": ["gender", "region"],
                       "crossed": True, "missing": "group"}, "statistical"),
    "strata": (PLAIN, {"truth": "truth", "decision": "decision", "group": "gender",
                       "stratum": "age", "stratum_edges": [30, 50]}, "statistical"),
    "weights": (PLAIN, {"truth": "truth", "decision": "decision", "group": "gender",
                        "weight": "weight", "review_share": "share"}, "statistical"),
    "clusters": (PLAIN, {"truth": "truth", "decision": "decision", "group": "gender",
                         "cluster": "who"}, "statistical"),
    "classes": (("gender", "job", "picked"), {"truth": "job", "decision": "picked",
                                              "group": "gender"}, "statistical"),
    "areas": (PLAIN, {**SCORES, "stratum": "region"}, "statistical"),
    "weighted areas": (PLAIN, {**SCORES, "weight": "weight"}, "statistical"),
    "clustered areas": (PLAIN, {**SCORES, "cluster": "who"}, "statistical"),
    "whole numbers": (PLAIN, {**SCORES, "score": "points", "threshold": 3}, "statistical"),
    "scores of classes": (("gender", "job", "score:cook", "score:nurse", "score:pilot"),
                          {"truth": "job", "group": "gender", "rule": "one-versus-rest",
                           "threshold": 0.4}, "statistical"),
    "thresholds": (PLAIN, {**SCORES, "stratum": "region"}, "thresholds"),
    "thresholds by group": (PLAIN, {**SCORES, "threshold": {"f": 0.45, "m": 0.4, "x": 0.4}},
                            "thresholds"),
    "thresholds in a column": (PLAIN, {**SCORES, "threshold": "cut", "group": "region"},
                               "thresholds"),
    "logits": (PLAIN, {**SCORES, "score": "logit", "threshold": -0.4}, "thresholds"),
    "discrete thresholds": (PLAIN, {**SCORES, "score": "points", "threshold": 3}, "thresholds"),
    "weighted thresholds": (PLAIN, {**SCORES, "weight": "weight", "cluster": "who"}, "thresholds"),
    "pairs": (("gender", "region", "job", "picked", "score:nurse", "decision@f", "decision@m"),
              {"truth": "job", "decision": "picked", "group": ["region", "gender"]},
              "counterfactual"),
    "labelers": (("gender", "region", "who", "item", "expert", "decision", "seconds"),
                 {"truth": "expert", "decision": "decision", "labeler": "who", "item": "item",
                  "seconds": "seconds", "group": "gender", "stratum": "region"}, "labelers"),
    "norms": (("gender", "job", "score:cook", "score:nurse", "score:pilot", "norm@f", "norm@m"),
              {"truth": "job", "group": "gender"}, "norms"),
}  # fmt: skip
# Every lens with each of what rows may have besides.
_WIDE = ("job", "score:cook", "score:nurse", "score:pilot", "norm@f", "norm@m")
_LENSES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "statistical": (("truth", "score"), {k: v for k, v in SCORES.items() if k != "group"}),
    "thresholds": (("truth", "score"), {k: v for k, v in SCORES.items() if k != "group"}),
    "counterfactual": (("job", "picked", "decision@f", "decision@m"),
                       {"truth": "job", "decision": "picked"}),
    "labelers": (("who", "item", "expert", "decision"),
                 {"truth": "expert", "decision": "decision", "labeler": "who", "item": "item"}),
    "norms": (_WIDE, {"truth": "job"}),
}  # fmt: skip
_BESIDES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "plain": ((), {}),
    "strata": (("age",), {"stratum": "age", "stratum_edges": [40]}),
    "weights": (("weight",), {"weight": "weight"}),
    "clusters": (("site",), {"cluster": "site"}),
    "crossed": (("region",), {"group": ["gender", "region"], "crossed": True}),
}
EVERY = {
    f"{lens}, {besides}": (
        ("gender", *columns, *more),
        {"group": "gender", **roles, **further},
        lens,
    )
    for lens, (columns, roles) in _LENSES.items()
    for besides, (more, further) in _BESIDES.items()
}
ALL_CASES = CASES | EVERY
# Of more than five million rows these come from the grid in any case.
GRIDDED = ("auc", "auc_gap", "calibration", "calibration_intercept", "calibration_slope",
           "implied_threshold", "cost_ratio")  # fmt: skip


def parts(frame: pl.DataFrame, roles: dict[str, Any], *, seed: int, many: int = 7) -> list[Tallies]:
    mark = np.random.default_rng(seed).integers(0, many, len(frame))
    return [eh.tally(frame.filter(mark == i), **roles, names=True) for i in range(many)]


def measured(decisions: eh.Decisions, lens: str) -> Rows:
    return LENSES[lens].measure(decisions, Options()).rows


def by_key(rows: Rows) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = {tuple(row[k] for k in KEYS): row for row in rows}
    assert len(found) == len(rows)
    return found


def check_same(one: Rows, other: Rows, *, tolerance: float, but: tuple[str, ...] = ()) -> None:
    mine, theirs = by_key(one), by_key(other)
    assert mine.keys() == theirs.keys()
    for key, row in mine.items():
        if key[1].startswith(but) and but:
            continue
        for number in NUMBERS:
            a, b = row[number], theirs[key][number]
            assert (a is None) == (b is None), (key, number, a, b)
            if a is not None:
                assert a == pytest.approx(b, rel=tolerance, abs=tolerance), (key, number)


def check_tables(one: Tallies, other: Tallies) -> None:
    """The same cells, counts and, as far as floating numbers can be, sums."""
    assert one.fingerprint() == other.fingerprint()
    for name in one.tables:
        mine, theirs = one.tables[name].pruned(), other.tables[name].pruned()
        assert mine.labels == theirs.labels
        for key, codes in mine.codes.items():
            assert (codes == theirs.codes[key]).all()
        assert (mine.sums["n"] == theirs.sums["n"]).all()
        for key, sums in mine.sums.items():
            np.testing.assert_allclose(sums, theirs.sums[key], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_engines_make_the_same_set(case: str, tmp_path: Path) -> None:
    columns, roles, _ = CASES[case]
    TABLE.select(columns).write_parquet(tmp_path / "t.parquet")
    found = eh.tally(tmp_path / "t.parquet", **roles, names=True, engine="duckdb")
    check_tables(found, eh.tally(TABLE.select(columns), **roles, names=True))


@pytest.mark.parametrize("case", ALL_CASES)
def test_rows_a_set_and_a_merge_of_seven_parts_give_the_same(case: str, tmp_path: Path) -> None:
    columns, roles, lens = ALL_CASES[case]
    frame = TABLE.select(columns).head(600 if case in EVERY else ROWS)
    rows = eh.Decisions(frame, **roles)
    whole = eh.tally(frame, **roles, names=True)
    saved = tmp_path / "t.tallies"
    whole.save(saved)
    loaded = Tallies.load(saved)
    check_tables(whole, loaded)
    from_set = measured(TalliedDecisions(loaded), lens)
    check_same(measured(rows, lens), from_set, tolerance=1e-11, but=GRIDDED)
    merged = merge_all(parts(frame, roles, seed=5))
    check_tables(whole, merged)
    if lens == "norms":
        with pytest.raises(DataError, match="compared by ranks"):
            measured(TalliedDecisions(merged), lens)
        return
    check_same(from_set, measured(TalliedDecisions(merged), lens), tolerance=1e-9)


@pytest.mark.parametrize(
    "case", ["areas", "weighted areas", "clustered areas", "scores of classes"]
)
def test_areas_and_calibration_lie_within_the_error_they_name(case: str) -> None:
    columns, roles, lens = CASES[case]
    exact = by_key(measured(eh.Decisions(TABLE.select(columns), **roles), lens))
    grid = by_key(measured(TalliedDecisions(eh.tally(TABLE.select(columns), **roles)), lens))
    told = 0
    for key, row in grid.items():
        bound = 1e-9
        if "at most" in (row["method"] or ""):
            bound = float(row["method"].partition("at most ")[2].partition(" ")[0])
            told += 1
        if key[1] in ("auc", "auc_gap", "calibration") and row["value"] is not None:
            assert abs(row["value"] - exact[key]["value"]) <= bound * (1 + 1e-9), key
    assert told > 3


@pytest.mark.parametrize(
    "case", ["thresholds", "thresholds by group", "thresholds in a column", "weighted thresholds"]
)
def test_implied_thresholds_of_the_grid_are_those_of_the_rows(case: str) -> None:
    columns, roles, lens = CASES[case]
    rows = by_key(measured(eh.Decisions(TABLE.select(columns), **roles), lens))
    grid = by_key(measured(TalliedDecisions(eh.tally(TABLE.select(columns), **roles)), lens))
    assert rows.keys() == grid.keys()
    seen = 0
    for key, row in rows.items():
        if key[1] == "implied_threshold" and row["value"] is not None:
            width = row["high"] - row["low"]
            for number in ("value", "low", "high"):
                assert abs(row[number] - grid[key][number]) < 0.01 * width
            seen += 1
    assert seen >= 2


def test_discrete_scores_give_the_same_sets() -> None:
    columns, roles, lens = CASES["discrete thresholds"]
    rows = measured(eh.Decisions(TABLE.select(columns), **roles), lens)
    grid = measured(TalliedDecisions(eh.tally(TABLE.select(columns), **roles)), lens)
    check_same(rows, grid, tolerance=1e-11)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(5)), st.lists(st.integers(0, 10), min_size=4, max_size=4))
def test_parts_merge_in_any_order_and_association(order: list[int], joints: list[int]) -> None:
    pieces = [PIECES[i] for i in order]
    for joint in joints:
        place = joint % (len(pieces) - 1)
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
    (merged,) = pieces
    assert merged.fingerprint() == WHOLE.fingerprint()
    assert merged.rows == WHOLE.rows
    assert merged.survey == WHOLE.survey
    assert merged.source == "polars table"
    assert merged.parts == 5
    for name, one in WHOLE.tables.items():
        for key, sums in one.pruned().sums.items():
            np.testing.assert_allclose(sums, merged.tables[name].pruned().sums[key], rtol=1e-12)


MERGING = {**SCORES, "stratum": "region", "weight": "weight", "cluster": "who"}
PIECES = parts(TABLE.select(PLAIN).head(400), MERGING, seed=9, many=5)
WHOLE = eh.tally(TABLE.select(PLAIN).head(400), **MERGING, names=True)


def test_a_large_table_is_measured_on_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallying, "MOST_EXACT", 100)
    frame = TABLE.select(PLAIN)
    grid, exact = eh.audit(frame, **SCORES), eh.audit(frame, **SCORES, exact=True)
    tallied = eh.audit(eh.tally(frame, **SCORES))
    assert "from a grid of scores" in grid.rows.where(measure="auc")["method"][0]
    assert "grid" not in exact.rows.where(measure="auc")["method"][0]
    check_same(grid.rows, tallied.rows, tolerance=0)
    check_same(grid.rows, exact.rows, tolerance=1e-11, but=GRIDDED)
    assert grid.data["fingerprint"] == tallied.data["fingerprint"]
    assert grid.data["excluded"] == tallied.data["excluded"] == exact.data["excluded"]


def test_sets_of_different_things_are_refused_with_what_differs() -> None:
    frame = TABLE.select(PLAIN)
    one = eh.tally(frame, **SCORES)
    with pytest.raises(DataError) as told:
        one + eh.tally(frame, **{**SCORES, "threshold": 0.5})
    assert str(told.value) == (
        "The tally sets differ in threshold: 0.4 and 0.5. Merge sets made with the same roles, "
        "rule and thresholds, or audit each alone."
    )
    with pytest.raises(DataError, match="differ in stratum: none and 'region'"):
        one + eh.tally(frame, **SCORES, stratum="region")
    with pytest.raises(DataError, match="differ in floor: none and 10"):
        one + eh.tally(frame, **SCORES, floor=10)
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


def test_numbered_people_do_not_merge_and_pseudonyms_do() -> None:
    columns, roles, lens = CASES["labelers"]
    frame = TABLE.select(columns)
    one, two = (eh.tally(frame.filter(pl.col("region") == r), **roles) for r in ("north", "south"))
    assert "ann 3" not in one.to_bytes().decode("latin1")
    assert one.table("labels/gender").labels["labeler"] == tuple(str(i + 1) for i in range(12))
    with pytest.raises(DataError, match=r"number every labeler on their own.*--pseudonyms KEYFILE"):
        one + two
    keyed = [
        eh.tally(frame.filter(pl.col("region") == r), **roles, pseudonyms=KEY)
        for r in ("north", "south")
    ]
    merged = keyed[0] + keyed[1]
    named = eh.tally(frame, **roles, names=True)
    for key, size in (("labeler", 12), ("item", 300)):
        table = merged.table("labels/gender" if key == "labeler" else "items/gender")
        assert len(table.labels[key]) <= size
        assert all(name.startswith("x") for name in table.labels[key])
    groups = [row for row in measured(TalliedDecisions(merged), lens) if row["labeler"] is None]
    wanted = [row for row in measured(TalliedDecisions(named), lens) if row["labeler"] is None]
    assert len(groups) == len(wanted)
    for a, b in zip(groups, wanted, strict=True):
        assert a["value"] == pytest.approx(b["value"], rel=1e-6, nan_ok=True)
    with pytest.raises(DataError, match="differ in names"):
        keyed[0] + eh.tally(frame, **roles, pseudonyms=b"another secret that is long")
    with pytest.raises(DataError, match="holds 3 bytes"):
        eh.tally(frame, **roles, pseudonyms=b"abc")


def test_small_cells_are_withheld_and_the_audit_says_so() -> None:
    frame = TABLE.select(PLAIN).with_columns(
        gender=pl.when(pl.int_range(pl.len()) < 4).then(pl.lit("rare")).otherwise("gender")
    )
    found = eh.tally(frame, **SCORES, floor=10)
    for table in found.tables.values():
        assert table.sums["n"].min() >= 10
    result = eh.audit(found)
    (note,) = [n for n in result.notes if "withheld" in n]
    cells, rows = found.withheld["counts/gender"]
    assert f"up to {max(r for _, r in found.withheld.values()):,} of 1,400 rows" in note
    assert cells > 0
    assert rows == 1400 - found.table("counts/gender").total()
    area = result.rows.where(measure="auc", group="f", stratum=None)["value"][0]
    exact = eh.audit(frame, **SCORES).rows.where(measure="auc", group="f")["value"][0]
    assert area == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize(
    ("case", "table", "without"),
    [
        ("labelers, plain", "items/gender", " or without item"),
        ("counterfactual, clusters", "counts/gender", " or without cluster"),
    ],
)
def test_a_floor_that_leaves_nothing_says_so(case: str, table: str, without: str) -> None:
    columns, roles, _ = EVERY[case]
    found = eh.tally(TABLE.select(columns), **roles, floor=10, pseudonyms=KEY)
    with pytest.raises(DataError) as told:
        eh.audit(Tallies.from_bytes(found.to_bytes()))
    assert str(told.value) == (
        f"No cell of '{table}' has 10 rows, so the floor withheld all of them. Tally with a "
        f"smaller floor{without}, or audit the table itself."
    )


@pytest.mark.parametrize("case", ["statistical, crossed", "thresholds, strata", "norms, plain"])
def test_a_floor_costs_what_the_audit_says(case: str) -> None:
    """Nothing under the floor leaves, and cells that stay count what they counted."""
    columns, roles, _ = EVERY[case]
    found = eh.tally(TABLE.select(columns), **roles, floor=10)
    whole = eh.tally(TABLE.select(columns), **roles)
    for name, tally in {**found.tables, **found.finished}.items():
        assert tally.sizes.min() >= 10
        lost = whole.table(name).sizes.sum() - tally.sizes.sum()
        assert lost == found.withheld.get(name, (0, 0))[1]
    rows = max(rows for _, rows in found.withheld.values())
    (note,) = [note for note in eh.audit(found).notes if "withheld" in note]
    assert f"up to {rows:,} of 1,400 rows ({rows / 14:.1f} %)" in note


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1), st.integers(1, 9)), min_size=1),
    st.integers(2, 12),
)
def test_joined_cells_lose_no_row_and_keep_their_order(
    entries: list[tuple[int, int, int]], floor: int
) -> None:
    keys = {"y": [y for _, y, _ in entries], "cell": [4 * c + 3 for c, _, _ in entries]}
    table = Tally.of(keys, {"n": [n for _, _, n in entries]}).compact()
    joined = join_cells(table, floor)
    assert joined.dense(["y"], "n").tolist() == table.dense(["y"], "n").tolist()
    before = np.array(table.labels["cell"], int)
    after = np.array(joined.labels["cell"], int)
    cells = table.relabel("y", ["0", "1"]).dense(["cell", "y"], "n")
    ranges = joined.relabel("y", ["0", "1"]).dense(["cell", "y"], "n")
    # Each joined cell holds all rows from its own number up to the next one's.
    place = np.searchsorted(after, before, side="right") - 1
    for k in range(after.size):
        assert ranges[k].tolist() == cells[place == k].sum(axis=0).tolist()
        if k < after.size - 1:
            assert all(n == 0 or n >= floor for n in ranges[k])


def test_audits_of_sets_take_what_does_not_change_counts() -> None:
    found = eh.tally(TABLE.select(PLAIN), **SCORES)
    other = eh.audit(found, reference="f")
    assert set(other.rows.where(measure="auc_gap")["reference"]) == {"f"}
    with pytest.raises(UsageError, match=r"^threshold=0.7 would change what was counted"):
        eh.audit(found, threshold=0.7)
    with pytest.raises(DataError, match=r"^This needs rows"):
        eh.audit(found, settings={"evidence": 3})


def test_sets_are_found_by_a_pattern(tmp_path: Path) -> None:
    for i, part in enumerate(PIECES):
        part.save(tmp_path / f"week-{i}.tallies")
    found = eh.audit(str(tmp_path / "week-*.tallies"))
    assert found.data["rows"] == WHOLE.rows
    assert found.data["source"] == "polars table"
    with pytest.raises(DataError, match=r"There is no file '.*day-\*\.tallies'"):
        eh.audit(str(tmp_path / "day-*.tallies"))


def test_cost_curves_come_from_sets_too() -> None:
    frame = TABLE.select(PLAIN)
    for roles in (SCORES, {**SCORES, "threshold": None, "decision": "decision"}):
        rows = eh.cost_curve(eh.Decisions(frame, **roles), cost_ratio=2)
        grid = eh.cost_curve(TalliedDecisions(eh.tally(frame, **roles)), cost_ratio=2)
        for one, other in zip(rows.groups, grid.groups, strict=True):
            assert (one.group, one.n) == (other.group, other.n)
            assert one.cheapest.cost == pytest.approx(other.cheapest.cost, rel=0.02)
            assert (one.present is None) == (other.present is None)
            if one.present is not None and other.present is not None:
                assert one.present.cost == other.present.cost


def test_damaged_and_newer_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    found = eh.tally(TABLE.select(PLAIN), **SCORES)
    content = found.to_bytes()
    assert content == found.to_bytes()
    path = tmp_path / "w.tallies"

    def changed(**fields: Any) -> bytes:
        new = BytesIO()
        with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(new, "w") as out:
            for name in old.namelist():
                body = old.read(name)
                if name == "set.json":
                    body = json.dumps({**json.loads(body), **fields}).encode()
                out.writestr(name, body)
        return new.getvalue()

    for body, words in (
        (b"no zip at all", "is not a tally set. Make one with"),
        (content[: len(content) // 2], "is a damaged tally set"),
        (content.replace(b"PAR1", b"XXXX", 1), "is a damaged tally set"),
        (changed(schema="evenhand.tallies/2"), "of schema evenhand.tallies/2, and this version"),
        (changed(schema="other"), "is not a tally set of schema"),
        (changed(rows=-3), "rows is -3, not a whole number of 0 or more"),
        (changed(roles={"group": 3}), "its role 'group' is not what a role can be"),
        (changed(tables=[]), "its counts are not those it was made with"),
    ):
        path.write_bytes(body)
        with pytest.raises(DataError, match=words) as told:
            Tallies.load(path)
        assert str(path) in str(told.value)
        assert str(told.value).endswith((".", ".tallies"))
    with pytest.raises(DataError, match=r"^There is no file"):
        Tallies.load(tmp_path / "none.tallies")


def test_clusters_beyond_a_million_cells_need_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenhand.decisions.tallies import collect

    monkeypatch.setattr(collect, "MOST_CELLS", 20)
    columns, roles, lens = CASES["clusters"]
    found = eh.tally(TABLE.select(columns), **roles)
    assert "cluster" not in found.table("counts/gender").labels
    with pytest.raises(DataError, match=r"^cluster='who' makes more than 20 cells"):
        measured(TalliedDecisions(found), lens)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "case", ["counts", "areas", "weighted areas", "thresholds in a column", "pairs", "labelers"]
)
def test_spark_makes_the_same_set(case: str, spark: Any, tmp_path: Path) -> None:
    columns, roles, _ = CASES[case]
    TABLE.select(columns).write_parquet(tmp_path / "t.parquet")
    found = eh.tally(spark.read.parquet(str(tmp_path / "t.parquet")), **roles, names=True)
    check_tables(found, eh.tally(TABLE.select(columns), **roles, names=True))


@pytest.mark.parametrize("case", ["areas", "weighted areas", "scores of classes"])
@pytest.mark.parametrize("lines", [1, 5, 64])
@pytest.mark.parametrize(("most_held", "row_bits"), [(40, 24), (2**23, 24), (2**23, 60)])
@pytest.mark.parametrize(("few_rows", "middle"), [(0, 0), (2**20, 0), (0, 2**14), (0, 2**25)])
def test_batches_and_lines_do_not_change_what_is_counted(
    case: str,
    lines: int,
    most_held: int,
    row_bits: int,
    few_rows: int,
    middle: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from evenhand.decisions.tallies import counting

    columns, roles, _ = CASES[case]
    frame = TABLE.select(columns)
    monkeypatch.setattr("evenhand.decisions.tallies.counting.may_count", lambda *_: False)
    hashed = eh.tally(frame, **roles)
    monkeypatch.undo()
    monkeypatch.setattr(counting, "BATCH", 97)
    monkeypatch.setattr(counting, "FEW_LINES", lines)
    monkeypatch.setattr(counting, "MOST_HELD", most_held)
    monkeypatch.setattr(counting, "FEW_ROWS", few_rows)
    monkeypatch.setattr(counting, "MOST_MIDDLE", middle)
    monkeypatch.setattr(counting, "MOST_PACKED", 0)
    # So many bits for rows leave none for lines: they are sorted another way.
    monkeypatch.setattr(counting, "ROW_BITS", row_bits)
    monkeypatch.setattr(
        "evenhand.decisions.tallies.key_lines.MOST_LISTED", 2 if most_held == 40 else 2**24
    )
    if lines == 5:
        # Fewer lines in the first batches than in the last: counting changes on the way.
        frame = frame.sort("gender", nulls_last=True)
    check_tables(hashed, eh.tally(frame, **roles))


@pytest.mark.parametrize("case", ["areas", "thresholds"])
@pytest.mark.parametrize("most_lines", [0, 11, 2**12])
@pytest.mark.parametrize("middle", [0, 2**25])
def test_packed_rows_count_as_others_do(
    case: str, most_lines: int, middle: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.decisions.tallies import counting
    from evenhand.decisions.tallies.packed import PackedRows

    columns, roles, _ = CASES[case]
    frame = TABLE.select(columns).sort("gender", nulls_last=True)
    monkeypatch.setattr(counting, "MOST_PACKED", 0)
    others = eh.tally(frame, **roles)
    monkeypatch.undo()
    held = []
    monkeypatch.setattr(PackedRows, "add", _noting(PackedRows.add, held))
    monkeypatch.setattr(counting, "BATCH", 97)
    # With fewer lines than there are, what is packed is left for arrays or rows on the way.
    monkeypatch.setattr(counting, "MOST_LINES", most_lines)
    monkeypatch.setattr(counting, "MOST_MIDDLE", middle)
    check_tables(others, eh.tally(frame, **roles))
    assert (len(held) > 0) == (most_lines > 0)
    assert (sum(held) == ROWS) == (most_lines == 2**12)


def _noting(add: Any, held: list[int]) -> Any:
    """A method that notes how many rows it was given."""

    def noted(self: Any, line: Any, *given: Any, **named: Any) -> None:
        held.append(line.size)
        add(self, line, *given, **named)

    return noted


@pytest.mark.parametrize(
    "roles",
    [
        {},
        {"stratum": "region"},
        {"weight": "weight"},
        {"weight": "weight", "review_share": "share", "cluster": "who", "stratum": "region"},
        {"group": ["gender", "region"], "crossed": True, "missing": "group"},
    ],
)
def test_sorting_gives_what_windows_give(roles: dict[str, Any]) -> None:
    from evenhand.decisions.tallies.scores import ScoreTallies, placements, score_bins

    decisions = eh.Decisions(TABLE.select(PLAIN), **{**SCORES, **roles})
    held = ScoreTallies(decisions, ["score"])
    for attribute in decisions.roles.attributes:
        for within in (False, True)[: 1 + ("stratum" in roles)]:
            pairs = [
                (
                    held.placements(attribute, "score", "1", within=within).tally,
                    placements(decisions, attribute, "score", "1", within=within),
                ),
                (
                    held.bins(attribute, "score", "1", within=within).tally,
                    score_bins(decisions, attribute, "score", "1", within=within),
                ),
            ]
            for one, other in pairs:
                one, other = one.pruned(), other.pruned()
                keys = sorted(other.labels)
                assert sorted(one.labels) == keys
                for name in other.sums:
                    np.testing.assert_allclose(
                        one.dense(keys, name), other.dense(keys, name), rtol=3e-14, atol=1e-12
                    )
