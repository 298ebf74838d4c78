"""A measure is one record: all that is known of it stands there, and one entry adds a new one."""

import json
import re
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import UsageError
from evenhand.findings import peers
from evenhand.findings.sentences.rows import row_sentence
from evenhand.findings.sentences.words import Words
from evenhand.lenses.kinds import CELLS, KINDS, Cells, Measure
from evenhand.lenses.measures import (
    CATALOGUE,
    cells_of,
    counted_rates,
    distance,
    leading_measures,
    limit_band,
    measure,
    register,
    surely_apart,
)
from evenhand.report.page import as_page
from evenhand.stats.odds import odds_gap_limits, odds_ratio_limits
from evenhand.stats.rates import newcombe, wilson
from evenhand.watching.streams import watchable

# Treatment equality compares missed ÷ wrong decisions between groups (Berk et al. 2021).
TREATMENT_EQUALITY = Measure(
    name="treatment_equality",
    label="number of misses per wrong decision",
    lenses=("statistical",),
    kind="odds",
    cells=Cells(hits={"false_negative"}, cases={"false_negative", "false_positive"}),
    counts="errors",
    unit="errors",
)
# The same cells as a share of all errors: a rate like any other.
MISSED_SHARE = Measure(
    name="missed_share",
    label="missed share of errors",
    lenses=("statistical",),
    kind="rate",
    cells=TREATMENT_EQUALITY.cells,
)


def run(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def cells_table(counts: dict[str, tuple[int, int, int, int]]) -> pl.DataFrame:
    """Rows by group with so many true positives, misses, wrong decisions and true negatives."""
    parts = []
    for group, four in counts.items():
        for (truth, decision), count in zip(((1, 1), (1, 0), (0, 1), (0, 0)), four, strict=True):
            parts += [(group, truth, decision)] * count
    return pl.DataFrame(parts, schema=["g", "y", "d"], orient="row")


def many_classes() -> pl.DataFrame:
    """4,000 decisions between five classes, of three groups in two strata, with weights."""
    rng = np.random.default_rng(5)
    n = 4000
    truth = rng.integers(0, 5, n)
    return pl.DataFrame(
        {
            "g": rng.choice(["a", "b", "c"], n),
            "y": truth,
            "d": np.where(rng.random(n) < 0.6, truth, rng.integers(0, 5, n)),
            "w": rng.random(n) + 0.5,
            "s": rng.choice(["p", "q"], n),
        }
    )


TABLE = cells_table({"f": (300, 120, 80, 500), "m": (500, 60, 180, 760), "x": (60, 30, 20, 90)})
ROLES = {"truth": "y", "decision": "d", "group": "g", "reference": "m"}


@pytest.mark.parametrize("name", CATALOGUE)
def test_records_are_whole(name: str) -> None:
    one = CATALOGUE[name]
    assert one.name == name
    assert one.lenses
    assert one.kind in KINDS
    # A name that can be said aloud: words, no underscores, no doubled "ratio ratio".
    assert re.fullmatch(r"[A-Za-z][A-Za-z ,]+", one.label)
    assert not re.search(r"(\b\w+\b) \1", one.label)
    for other in (one.mirror, one.base, one.parts, one.floor, one.variant_of):
        assert other is None or other in CATALOGUE
    if one.mirror:
        assert CATALOGUE[one.mirror].mirror == name
    if one.floor:
        assert CATALOGUE[one.floor].kind == "floor"
    if one.parts:
        assert one.counts in ("classes", "groups")
    assert one.low is not None
    assert one.high is not None
    assert one.low < one.high
    if one.neutral is not None:
        assert one.low <= one.neutral <= one.high


def test_labels_tell_measures_apart() -> None:
    labels = [one.label for one in CATALOGUE.values()]
    assert len(labels) == len(set(labels))
    assert CATALOGUE["cost_ratio_ratio"].label == "relative weight of a miss"


def test_mirrored_rates_count_what_the_other_leaves() -> None:
    for rate in counted_rates():
        cells, mirror = cells_of(rate), CATALOGUE[rate].mirror
        assert cells.hits < cells.cases <= set(CELLS)
        if mirror:
            other = cells_of(mirror)
            assert cells.cases == other.cases
            assert cells.hits | other.hits == cells.cases
            assert not cells.hits & other.hits
    assert [rate for rate in counted_rates() if cells_of(rate).disjoint] == [
        "true_positive_rate",
        "false_negative_rate",
        "precision",
    ]


def test_what_may_lead_is_in_order() -> None:
    first = ("selection_rate_gap", "true_positive_rate_gap", "false_positive_rate_gap")
    assert leading_measures()[:3] == first
    assert not {"selection_rate", "flip_rate"} & set(leading_measures())


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"measure": "accuracy_gap", "value": -0.2}, 0.2),
        ({"measure": "accuracy_ratio", "value": 0.6}, 0.4),
        ({"measure": "norm_bias", "value": -0.5}, 0.5),
        ({"measure": "accuracy", "value": 0.6}, 0.6),
        ({"measure": "accuracy", "value": 0.6, "limit_low": 0.7, "limit_high": 0.9}, 0.2),
        # From the middle of the band, 4, to 1 and to 16 it is equally far: a factor of 4.
        ({"measure": "cost_ratio", "value": 1, "limit_low": 2, "limit_high": 8}, np.log(4)),
        ({"measure": "cost_ratio", "value": 16, "limit_low": 2, "limit_high": 8}, np.log(4)),
        ({"measure": "accuracy_gap", "value": None}, -1.0),
        ({"measure": "of another version", "value": -3.0}, 3.0),
    ],
)
def test_distance_has_one_home(row: dict[str, Any], expected: float) -> None:
    held = {"limit_low": None, "limit_high": None} | row
    assert distance(held) == pytest.approx(expected)


def test_what_is_sure() -> None:
    ends = {"family_low": 0.4, "family_high": 0.9}
    assert surely_apart({"measure": "accuracy_gap", **ends})
    assert surely_apart({"measure": "accuracy_ratio", **ends})
    assert not surely_apart({"measure": "accuracy_ratio", **ends, "family_high": 1.1})
    assert surely_apart({"measure": "cost_ratio", **ends})
    assert not surely_apart({"measure": "accuracy_gap", **ends, "family_high": None})


REFUSED = [
    ("true_positive_rate_gap=5", "limit true_positive_rate_gap=5 can never fail, for the measure's "
     "reach is all in it: it lies between -1 and 1. Write a narrower band, such as "
     "true_positive_rate_gap=0.05."),
    ("accuracy=1", "limit accuracy=1 can never fail, for the measure's reach is all in it: it lies "
     "between 0 and 1. Write a narrower band, such as accuracy=0.7:1."),
    ("accuracy=0.7:5", "limit accuracy=0.7:5 goes beyond what the measure can be: it lies between "
     "0 and 1."),
    ("cost_ratio=-1:4", "limit cost_ratio=-1:4 goes beyond what the measure can be: it is 0 or "
     "more."),
    ("norm_bias=-2:-1.5", "limit norm_bias=-2:-1.5 goes beyond what the measure can be: it lies "
     "between -1 and 1."),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "words"), REFUSED)
def test_limits_that_judge_nothing_are_refused(
    limit: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name, _, band = limit.partition("=")
    with pytest.raises(UsageError) as caught:
        limit_band(name, band)
    assert str(caught.value) == words
    data = tmp_path / "t.csv"
    TABLE.write_csv(data)
    flags = ["--truth", "y", "--decision", "d", "--group", "g"]
    assert run(["audit", str(data), *flags, "--limit", limit]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_limit_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--limit", "accuracy_gap=0.1", "--limit", "accuracy_gap=0.2"]
    assert run(["audit", "none.csv", *twice]) == 2
    words = "--limit accuracy_gap is given twice, as 0.1 and as 0.2. Give it once."
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["accuracy=0.7:1", "accuracy_gap=-1:0.05", "criterion_gap=3"])
def test_limits_at_the_edge_are_taken(limit: str) -> None:
    name, _, band = limit.partition("=")
    low, high = limit_band(name, band)
    assert low < high


def test_one_entry_adds_treatment_equality(tmp_path: Path) -> None:
    with register(TREATMENT_EQUALITY):
        result = eh.audit(TABLE, limits={"treatment_equality_gap": 0.5}, **ROLES)
        rows = result.rows.where(class_="1", stratum=None)
        [own] = rows.where(measure="treatment_equality", group="f")
        # 120 missed for 80 wrong decisions, among 200 errors.
        assert (own["value"], own["n"]) == (pytest.approx(1.5), 200)
        low, high = wilson(120, 200, z=1.959964)
        ends = [float(low / (1 - low)), float(high / (1 - high))]
        assert [own["low"], own["high"]] == pytest.approx(ends, abs=1e-6)
        [gap] = rows.where(measure="treatment_equality_gap", group="f", reference="m")
        # 120/80 − 60/180 = 7/6.
        assert gap["value"] == pytest.approx(7 / 6)
        ends = [float(end) for end in odds_gap_limits(120, 200, 60, 240, z=1.959964)]
        assert [gap["low"], gap["high"]] == pytest.approx(ends, abs=1e-6)
        assert gap["family_low"] < gap["low"]
        assert gap["family_high"] > gap["high"]
        assert gap["verdict"] == result.verdict == "outside"
        [ratio] = rows.where(measure="treatment_equality_ratio", group="f", reference="m")
        assert ratio["value"] == pytest.approx(4.5)
        ends = [float(end) for end in odds_ratio_limits(120, 200, 60, 240, z=1.959964)]
        assert [ratio["low"], ratio["high"]] == pytest.approx(ends, abs=1e-6)
        assert ratio["family_low"] < ratio["low"] < ratio["high"] < ratio["family_high"]
        # The other class mirrors it: wrong ÷ missed.
        [other] = result.rows.where(measure="treatment_equality", group="f", class_="0")
        assert other["value"] == pytest.approx(1 / 1.5)
        first = result.findings[0]
        assert first.line.startswith(
            "The number of misses per wrong decision is 1.50 for group f and 0.33 for group m: "
            "1.17 more ("
        )
        assert first.line.endswith("; at most 0.5 was agreed.")
        assert first.claim is not None
        assert (first.claim.group, first.claim.direction) == ("f", "more")
        [unsettled] = rows.where(measure="treatment_equality_gap", group="x", reference="m")
        assert unsettled["verdict"] == "cannot tell"
        assert "more errors across all 3 groups" in " ".join(str(result).split())
        # JSON and back, CSV, the terminal and the page.
        for name in ("audit.json", "page.html", "rows.csv", "gate.xml", "page.md"):
            result.save(tmp_path / name)
            text = (tmp_path / name).read_text("utf-8")
            assert "treatment_equality" in text or "misses per wrong decision is 1.50" in text
        assert eh.read_record(tmp_path / "audit.json")["verdict"] == "outside"
        held = pl.read_csv(tmp_path / "rows.csv").filter(pl.col("measure") == "treatment_equality")
        assert held.filter(pl.col("group") == "f", pl.col("class") == 1)["value"].item() == (
            pytest.approx(1.5)
        )
        assert 'id="treatment-equality-gap-g"' in (tmp_path / "page.html").read_text("utf-8")
        cells = [line.split()[:4] for line in str(result).splitlines()]
        ends = [f"{own['family_low']:.2f}", f"{own['family_high']:.2f}"]
        assert ["f", "1.50", f"[{ends[0]},", f"{ends[1]}]"] in cells
        checks = peers.verify(eh.Decisions(TABLE, **ROLES))
        assert all(check.agrees for check in checks if check.why_not is None)
    assert not [name for name in CATALOGUE if name.startswith("treatment_equality")]


ODDS_LIMITS = [
    ("treatment_equality_ratio", "0.8", "The number of misses per wrong decision of group f is "
     "4.50 times that of group m ("),
    ("treatment_equality", "0.5:2", "The number of misses per wrong decision is 0.33 for group m "
     "(0.2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "limit", "words"), ODDS_LIMITS)
def test_odds_are_judged_by_their_ratio_and_alone(name: str, limit: str, words: str) -> None:
    with register(TREATMENT_EQUALITY):
        result = eh.audit(TABLE, limits={name: limit}, **ROLES)
    assert result.verdict == "outside"
    assert result.findings[0].line.startswith(words)


def test_odds_hold_with_weights_strata_clusters_and_many_classes() -> None:
    table = many_classes().with_columns(c=pl.arange(0, 4000) // 4)
    roles = {"truth": "y", "decision": "d", "group": "g", "stratum": "s"}
    with register(TREATMENT_EQUALITY):
        plain = eh.audit(table, **roles).rows
        weighted = eh.audit(table, weight="w", **roles).rows
        clustered = eh.audit(table, cluster="c", **roles).rows
        overall = eh.audit(table, **roles | {"reference": "<overall>"}).rows
    for rows in (plain, weighted, clustered):
        gaps = rows.where(measure="treatment_equality_gap", stratum=None)
        assert len(gaps) == 5 * (2 + 3)
        assert all(v is not None for v in gaps.plain("family_low"))
        assert len(rows.where(measure="treatment_equality", stratum="p")) == 5 * 3
    mine = table.filter(pl.col("g") == "a")
    missed, wrong = (
        mine.filter((pl.col(one) == 3) & (pl.col(other) != 3)) for one, other in ("yd", "dy")
    )
    asked = {"measure": "treatment_equality", "class_": "3", "group": "a", "stratum": None}
    for rows, amount in ((plain, pl.len()), (weighted, pl.col("w").sum())):
        [row] = rows.where(**asked)
        by_hand = missed.select(amount).item() / wrong.select(amount).item()
        assert row["value"] == pytest.approx(by_hand)
    # Everybody's odds are no mean of two groups', so a group is compared with everybody else.
    assert {*overall.where(measure="treatment_equality_gap")["reference"]} == {"<rest>"}
    with pytest.raises(UsageError, match="'treatment_equality_gap_rms' is not a measure"):
        limit_band("treatment_equality_gap_rms", "1")


def test_odds_without_a_case_to_divide_by_are_undefined() -> None:
    table = cells_table({"f": (30, 12, 0, 50), "m": (50, 60, 18, 76), "x": (60, 0, 20, 90)})
    with register(TREATMENT_EQUALITY):
        rows = eh.audit(table, **ROLES).rows.where(class_="1")
    [own] = rows.where(measure="treatment_equality", group="f")
    assert (own["value"], own["low"], own["high"]) == (None, None, None)
    assert own["undefined"] == "nothing in the group to divide by"
    for name in ("treatment_equality_gap", "treatment_equality_ratio"):
        [row] = rows.where(measure=name, group="f", reference="m")
        assert (row["value"], row["p"], row["undefined"]) == (None, None, own["undefined"])
    [none] = rows.where(measure="treatment_equality_ratio", group="x", reference="m")
    assert (none["value"], none["low"]) == (0.0, 0.0)
    with register(TREATMENT_EQUALITY):
        against = eh.audit(table, **ROLES | {"reference": "f"}).rows.where(class_="1")
    [row] = against.where(measure="treatment_equality_gap", group="m", reference="f")
    assert row["undefined"] == "nothing in the reference to divide by"


def test_odds_are_watched_as_nothing_yet() -> None:
    with register(TREATMENT_EQUALITY), register(MISSED_SHARE):
        assert "missed_share_gap" in watchable()
        assert "treatment_equality_gap" not in watchable()


def test_one_entry_adds_a_measure() -> None:
    with register(MISSED_SHARE):
        result = eh.audit(TABLE, limits={"missed_share_gap": 0.1}, **ROLES)
        rows = result.rows.where(class_="1", stratum=None)
        [rate] = rows.where(measure="missed_share", group="f")
        # 120 of 200 errors are misses.
        assert (rate["value"], rate["n"]) == (0.6, 200)
        ends = [float(end) for end in wilson(120, 200, z=1.959964)]
        assert [rate["low"], rate["high"]] == pytest.approx(ends, abs=1e-6)
        [gap] = rows.where(measure="missed_share_gap", group="f", reference="m")
        # 120/200 − 60/240 = 0.35.
        assert gap["value"] == pytest.approx(0.35)
        ends = [float(end) for end in newcombe(120, 200, 60, 240, z=1.959964)]
        assert [gap["low"], gap["high"]] == pytest.approx(ends, abs=1e-6)
        assert gap["family_low"] < gap["low"]
        assert gap["family_high"] > gap["high"]
        assert gap["verdict"] == result.verdict == "outside"
        [ratio] = rows.where(measure="missed_share_ratio", group="f", reference="m")
        assert ratio["value"] == pytest.approx(2.4)
        assert rows.where(measure="missed_share_gap_worst").plain("value") == pytest.approx([0.35])
        assert len(rows.where(measure="missed_share_spread_corrected")) == 1
        first = result.findings[0]
        assert first.line.startswith(row_sentence(gap, Words(positive="1"), rows.where))
        assert first.line.endswith(" Outside as well: group x 35 points more (18 to 50).")
        assert first.line.startswith(
            "The missed share of errors is 60% for group f and 25% for group m: 35 points more ("
        )
        assert first.claim is not None
        assert (first.claim.group, first.claim.direction) == ("f", "more")
        record = json.loads(result.to_json())
        page = as_page(record, charts=False)
        assert 'id="missed-share-gap-g"' in page
        # The rate itself stands first among those of every group: f 60%, m 25%.
        shown = str(result).splitlines()
        heading = next(i for i, line in enumerate(shown) if line.startswith(" group"))
        assert shown[heading - 1].split() == ["missed", "share", "of"]
        assert shown[heading].split()[1] == "errors"
        shares = [line.split()[:2] for line in shown]
        assert ["f", "60.0%"] in shares
        assert ["m", "25.0%"] in shares
    assert not [name for name in CATALOGUE if name.startswith("missed_share")]
    with pytest.raises(UsageError, match="'missed_share_gap' is not a measure"):
        limit_band("missed_share_gap", "0.1")


def test_a_new_measure_holds_with_many_classes_weights_and_strata() -> None:
    table = many_classes()
    roles = {"truth": "y", "decision": "d", "group": "g", "stratum": "s"}
    with register(MISSED_SHARE):
        plain = eh.audit(table, **roles).rows
        weighted = eh.audit(table, weight="w", **roles).rows
    for rows in (plain, weighted):
        gaps = rows.where(measure="missed_share_gap", stratum=None)
        assert len(gaps) == 5 * (2 + 3)
        assert all(v is not None for v in gaps.plain("family_low"))
        assert len(rows.where(measure="missed_share_gap_rms_corrected", stratum=None)) == 2
    assert weighted.where(measure="missed_share").plain("value") != plain.where(
        measure="missed_share"
    ).plain("value")
    # By hand: of class 3 and group a, misses among errors.
    mine = table.filter(pl.col("g") == "a")
    missed = mine.filter((pl.col("y") == 3) & (pl.col("d") != 3)).height
    wrong = mine.filter((pl.col("y") != 3) & (pl.col("d") == 3)).height
    [row] = plain.where(measure="missed_share", class_="3", group="a", stratum=None)
    assert (row["value"], row["n"]) == (missed / (missed + wrong), missed + wrong)


def test_other_tools_leave_out_what_they_do_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fairlearn")
    decisions = eh.Decisions(TABLE, **ROLES)
    without = next(iter(peers.verify(decisions)))
    with register(MISSED_SHARE):
        check = next(iter(peers.verify(decisions)))
    assert check.agrees
    assert check.compared == without.compared


def test_names_are_taken_once() -> None:
    with pytest.raises(UsageError) as caught:
        register(Measure(name="accuracy", label="x", lenses=("statistical",), kind="rate"))
    assert str(caught.value) == "There is a measure 'accuracy' already. Choose another name."
    with register(MISSED_SHARE), pytest.raises(UsageError, match="There is a measure"):
        register(MISSED_SHARE)


def test_a_record_that_means_nothing_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        Cells(hits={"false_negatives"}, cases={"false_negative"})
    assert str(caught.value).startswith(
        "'false_negatives' is not a cell. Did you mean 'false_negative'? The cells are "
    )
    with pytest.raises(UsageError, match="must be some of its cases"):
        Cells(hits={"false_negative"}, cases={"false_positive"})
    with pytest.raises(UsageError, match=r"kind='gaps' of 'm' is not a kind of measure\. Did you"):
        Measure(name="m", label="m", lenses=("statistical",), kind="gaps")
    with pytest.raises(UsageError, match="is not counted from cells"):
        cells_of("cost_ratio")


def test_kinds_give_what_a_record_leaves_out() -> None:
    own = Measure(name="m", label="share", lenses=("x",), kind="rate")
    assert (own.low, own.high, own.neutral, own.many) == (0, 1, None, "shares")
    open_ = Measure(name="m", label="m", lenses=("x",), kind="gap", low=-inf, high=inf)
    assert (open_.low, open_.high, open_.neutral) == (-inf, inf, 0)
    assert measure("norm_bias").counts_cases is False
    assert measure("accuracy_gap_worst_null_level").counts_cases is False
