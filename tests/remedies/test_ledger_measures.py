"""What the ledger measures of the papers: cuts, norm bias over runs, signed gaps, small groups."""

import dataclasses
import io
import re
from types import SimpleNamespace

import joblib
import numpy as np
import polars as pl
import pytest
from rich.console import Console

from evenhand.errors import DataError, UsageError
from evenhand.models.norms.scorer import Linear, NormScorer
from evenhand.models.table import score_table
from evenhand.models.word_tables import filter_words, word_table
from evenhand.remedies.ledger.compare import compare
from evenhand.remedies.ledger.files import TextRemedy
from evenhand.remedies.ledger.measures import SIGNED
from evenhand.remedies.ledger.remarks import (
    cuts_words,
    norm_bias_words,
    remarks,
    sides_words,
    signed_trade_words,
    trade_words,
)
from evenhand.remedies.ledger.task import Fitted
from evenhand.remedies.ledger.texts import Scaled
from evenhand.remedies.ledger.trends import mean_rank_trend
from evenhand.report.ledger import show_ledger
from evenhand.report.page import as_page, summarise
from evenhand.report.sections.remedy_contrast import detail_tables
from evenhand.simulate.biographies import biographies, occupations
from evenhand.stats.ranks import permutation_p
from evenhand.stats.rates import rate
from evenhand.stats.trend import rank_trend

TITLES = ("nurse", "surgeon", "professor", "teacher", "software_engineer", "journalist")
COLUMNS = {"text": "text", "truth": "title", "group": "gender"}
BOW = {"representations": ["bow"]}


def bios(n: int, titles=TITLES, *, seed: int = 1, **how) -> pl.DataFrame:
    known = occupations()
    chosen = {title: dataclasses.replace(known[title], size=1.0) for title in titles}
    return biographies(n, occupations=chosen, seed=seed, **how).frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("measures") / "ledger"


@pytest.fixture(scope="module")
def several(folder):
    """Six classes, three groups, one of them tiny; two runs."""
    frame = bios(1100, leak="class_words").with_row_index("row")
    few = (pl.col("row") % 4 == 0) & (pl.col("title") == "professor")
    frame = frame.with_columns(
        gender=pl.when(few).then(pl.lit("another")).otherwise(pl.col("gender"))
    )
    wanted = ["thresholds", "thresholds_exact", "decoupled", "residualise"]
    return compare(frame, **COLUMNS, remedies=wanted, texts=BOW, seeds=2, out=folder)


@pytest.fixture(scope="module")
def two():
    """Two classes: gaps have a sign."""
    frame = bios(900, ("nurse", "surgeon"), leak="class_words")
    return compare(
        frame,
        **COLUMNS,
        remedies=["augment", "oversample"],
        texts=BOW,
        seeds=2,
        reference="male",
    )


def cell(ledger, remedy, measure, group="all"):
    return ledger.row(remedy)["measures"][measure][group]


def test_exact_cuts_leave_no_gap_on_the_rows_that_set_them(several):
    """Fitted 0, the held-out gap, and ρ as it was: side by side, as METHODS 1.6 b asks."""
    fitted, held = "one_versus_rest_gap_rms_fitted", "one_versus_rest_gap_rms"
    assert cell(several, "thresholds_exact", fitted)["value"] == pytest.approx(0, abs=1e-12)
    assert cell(several, "baseline", fitted)["value"] > 0.05
    assert cell(several, "thresholds", fitted)["value"] > 0
    assert cell(several, "thresholds_exact", held)["value"] > 0.01
    for group in ("female", "male"):
        rho = cell(several, "thresholds_exact", "norm_bias", group)
        assert rho == cell(several, "baseline", "norm_bias", group)
        assert rho["difference"] == 0
    told = several.row("thresholds_exact")["sentence"]
    assert "Class by class, the gap is 0.0 points on the rows that set the cuts and " in told
    assert "norm bias ρ stays exactly as it was ('female' " in told


def test_norm_bias_has_an_interval_and_p_over_runs(several):
    for measure in ("norm_bias", "norm_bias_irrelevant", "norm_bias_second"):
        for group in ("female", "male"):
            held = cell(several, "baseline", measure, group)
            assert held["value_low"] < held["value"] < held["value_high"]
            assert 0 < held["p"] <= 1
            assert held["n"] == len(TITLES)
    assert "Norm bias ρ: 'female' +" in several.row("baseline")["sentence"]
    assert "without task words" in several.row("baseline")["sentence"]


def test_the_trend_of_one_run_is_that_of_the_lens():
    rng = np.random.default_rng(0)
    shares, r = rng.random(12), rng.normal(size=(3, 12))
    one = rank_trend(shares, r[0])
    found = mean_rank_trend(shares, r[:1])
    assert (found.value, found.low, found.high, found.p) == (one.value, one.low, one.high, one.p)
    mean = mean_rank_trend(shares, r)
    each = [rank_trend(shares, row).value for row in r]
    assert mean.value == pytest.approx(np.mean(each))
    # (1 + ρ²/2)/(12 − 3) by the classes, and the variance of three runs over (1 − ρ²)².
    variance = (1 + mean.value**2 / 2) / 9 + np.var(each, ddof=1) / 3 / (1 - mean.value**2) ** 2
    assert np.arctanh(mean.high) - np.arctanh(mean.value) == pytest.approx(1.959964 * variance**0.5)
    ranks = np.argsort(np.argsort(r, axis=1), axis=1).mean(axis=0)
    assert mean.p == permutation_p(shares, ranks)
    assert mean_rank_trend(shares[:4], r[:, :4]).undefined == (
        "4 classes have a value and 5 are needed"
    )
    assert mean_rank_trend(np.full(12, 0.5), r).value is None


def test_runs_without_order_have_no_norm_bias():
    """Under no relation p is uniform: about one in twenty below 0.05, whatever the runs share."""
    rng = np.random.default_rng(1)
    p = []
    for _ in range(200):
        shared = rng.normal(size=6)
        r = shared + 0.5 * rng.normal(size=(3, 6))
        p.append(mean_rank_trend(rng.random(6), r).p)
    assert 0.01 < np.mean(np.array(p) < 0.05) < 0.10


def test_small_groups_are_left_out_of_norms_and_shown_with_power(several):
    notes = " ".join(several.document["notes"])
    assert "No norm of 'another': " in notes
    assert (
        "a scorer needs 200, with 20 in 5 classes or more. Its people's scores are held against "
        "the norms of 'female' and 'male'."
    ) in notes
    assert cell(several, "baseline", "norm_bias", "another")["undefined"] == "no norm of this group"
    rows = [row for row in several.document["small_groups"] if row["remedy"] == "decoupled"]
    # As in the paper's table, by each group's model too; a model of all rows decides about them.
    assert {(row["class"], row["model"], row["norm"]) for row in rows} == {
        ("professor", model, norm)
        for model in (None, "female", "male")
        for norm in ("female", "male")
    }
    assert len({round(row["value"], 12) for row in rows}) == 6
    plain = [row for row in several.document["small_groups"] if row["remedy"] == "thresholds"]
    assert {row["model"] for row in plain} == {None}
    for row in rows:
        assert row["low"] < row["value"] < row["high"]
        assert row["n"] >= 10
        assert 0 < row["significant"] < row["detectable"] < 1
        assert (row["p"] < 0.05) == (abs(row["value"]) > row["significant"])
    note = several.row("decoupled")["notes"]
    assert any(each.startswith("'another' has ") for each in note)
    assert several.row("residualise")["status"] == "measured"


def test_class_means_are_means_over_runs(several):
    means = several.document["class_means"]
    assert len(means) * 2 == len(several.classes)
    keys = ("remedy", "class", "group")
    for mean in means[:: len(means) // 7]:
        runs = [
            each["true_positive_rate_gap"]
            for each in several.classes
            if all(each[key] == mean[key] for key in keys)
        ]
        if None in runs:
            continue
        assert mean["runs"] == 2
        assert mean["true_positive_rate_gap"] == pytest.approx(np.mean(runs))
        assert mean["true_positive_rate_gap_sd"] == pytest.approx(np.std(runs, ddof=1))


def test_gaps_of_two_classes_have_a_sign(two):
    """TPR₀ is the rate of true negatives, the false positive gap its mirror; sizes are |gap|."""
    assert (
        two.document["data"] | {"reference": "male", "positive": "surgeon"}
        == (two.document["data"])
    )
    for kind in ("", "counterfactual_"):
        held = {n: cell(two, "baseline", f"{kind}{n}", "female")["value"] for n in SIGNED}
        assert held["true_negative_rate_gap"] == pytest.approx(-held["false_positive_rate_gap"])
        size = cell(two, "baseline", f"{kind}selection_rate_gap_rms")["value"]
        assert size == pytest.approx(abs(held["selection_rate_gap"]))
    reference = cell(two, "baseline", "selection_rate_gap", "male")
    assert (reference["value"], reference["undefined"]) == (
        None,
        "the reference, or no cases of it and the group",
    )
    chart = two.document["contrast"]
    assert {entry["measure"] for entry in chart} >= set(SIGNED)
    entry = next(
        e for e in chart if e["remedy"] == "augment" and e["measure"] == "selection_rate_gap"
    )
    assert (
        entry["counterfactual"]
        == (cell(two, "augment", "counterfactual_selection_rate_gap", "female")["value"])
    )


def test_the_reference_and_the_positive_class_can_be_named(two):
    frame = bios(900, ("nurse", "surgeon"), leak="class_words")
    other = compare(
        frame, **COLUMNS, remedies=["oversample"], texts=BOW, seeds=2,
        reference="female", positive="nurse",
    )  # fmt: skip
    # Other reference and other class: both signs turn, so that the selection gap stays.
    assert cell(other, "baseline", "selection_rate_gap", "male")["value"] == pytest.approx(
        cell(two, "baseline", "selection_rate_gap", "female")["value"]
    )
    assert cell(other, "baseline", "true_positive_rate_gap", "male")["value"] == pytest.approx(
        -cell(two, "baseline", "true_negative_rate_gap", "female")["value"]
    )
    with pytest.raises(UsageError, match=r"^reference='men' is not among female, male\."):
        compare(frame, **COLUMNS, reference="men")
    with pytest.raises(UsageError, match=r"^positive='nurse' is for two classes, and there are 6"):
        compare(bios(100), **COLUMNS, positive="nurse")


def test_values_have_the_lenses_interval_wider_by_what_runs_differ_by(two):
    """One run: the interval of the lens itself; two: their mean ends and the error of the mean."""
    frame = bios(900, ("nurse", "surgeon"), leak="class_words")
    asked = {**COLUMNS, "remedies": ["oversample"], "texts": BOW, "seeds": 1, "reference": "male"}
    one = compare(frame, **asked)
    found = cell(one, "baseline", "true_positive_rate_gap", "female")
    with_level = compare(frame, **asked, level=0.8)
    narrow = cell(with_level, "baseline", "true_positive_rate_gap", "female")
    assert narrow["value"] == found["value"]
    assert found["value_low"] < narrow["value_low"] < narrow["value_high"] < found["value_high"]
    size = cell(one, "baseline", "accuracy")
    assert size["n"] == one.document["data"]["test_rows"]
    hits = round(size["value"] * size["n"])
    expected = rate(hits, size["n"])
    assert (size["value_low"], size["value_high"]) == (expected.low, expected.high)
    for name in (*SIGNED, *(f"counterfactual_{n}" for n in SIGNED)):
        held = cell(two, "augment", name, "female")
        assert held["value_low"] <= held["value"] <= held["value_high"], name
        assert held["n"] > 0
    flips = cell(two, "baseline", "flip_rate")
    assert 0 <= flips["value_low"] <= flips["value"] <= flips["value_high"] <= 1


def test_a_kept_part_is_measured_again_at_another_level(tmp_path, monkeypatch):
    frame = bios(400, ("nurse", "surgeon"))
    asked = {**COLUMNS, "remedies": ["oversample"], "texts": BOW, "seeds": 1, "out": tmp_path / "l"}
    first = compare(frame, **asked)
    monkeypatch.setattr("evenhand.remedies.ledger.task.Task.classifier", None)  # nothing is trained
    again = compare(frame, **asked, level=0.5)
    wide, narrow = (cell(each, "oversample", "accuracy") for each in (first, again))
    assert wide["value_low"] < narrow["value_low"] < narrow["value_high"] < wide["value_high"]


def test_many_classes_have_no_sign(several):
    held = cell(several, "baseline", "selection_rate_gap", "female")
    assert held["undefined"] == "gaps have one sign for two classes alone"
    assert cell(several, "baseline", "selection_rate_gap_rms")["value"] > 0


def test_the_page_shows_both_gaps_side_by_side(two, several):
    page = as_page(None, ledger=two.document)
    for name in ("contrast-bow", "signed-bow-female", "strips-bow-female"):
        assert f'id="{name}"' in page
    assert "Signed gaps" in page
    section = summarise(None, ledger=several.document)["sections"][0]
    blocks = {block.get("id"): block for block in section["blocks"] if block.get("id")}
    strips = next(block for place, block in blocks.items() if place.startswith("strips-bow"))
    assert strips["id"] != "strips-bow-another"
    assert [chart["axis"] for chart in strips["charts"]] == [
        "True positive rate gap, in points",
        "Counterfactual true positive rate gap, in points",
    ]
    assert "Means over 2 runs; their standard deviation is in the table." in strips["notes"]
    contrast = blocks["contrast-bow"]["charts"][0]
    assert contrast["diagonal"]
    assert "<svg" in several.chart("contrast-bow-1")._repr_html_()
    base = next(point for point in contrast["points"] if point["kind"] == "baseline")
    held = cell(several, "baseline", "true_positive_rate_gap_rms")
    assert base["x"] == held["value"]
    assert base["x_high"] - base["x"] == pytest.approx(held["sd"])
    assert "contrast-bow" in page


def test_details_are_tables_of_the_same_numbers(several, two):
    held = {found.title: found for found in detail_tables(several.document, "bow")}
    assert list(held) == [
        "Norm bias ρ over classes",
        "Gaps class by class, one class against its rest",
        "Groups too small for a norm of their own",
    ]
    cuts = {row[0]: row[1:] for row in held["Gaps class by class, one class against its rest"].rows}
    rho, fitted, tested = cuts["thresholds_exact"]
    assert (rho, fitted) == (cuts["baseline"][0], "0.0")
    assert float(tested) > 0
    norms = held["Norm bias ρ over classes"].rows
    assert [row[:2] for row in norms[:2]] == [["baseline", "female"], ["baseline", "male"]]
    assert re.fullmatch(r"[+−]\d\.\d\d \[[+−]\d\.\d\d, [+−]\d\.\d\d\] [<.]\S+", norms[0][2])
    signed = next(f for f in detail_tables(two.document, "bow") if f.title == "Signed gaps")
    assert signed.columns[2:4] == ("SG PPR", "CG PPR")
    gap = cell(two, "augment", "counterfactual_true_positive_rate_gap", "female")["value"]
    row = next(row for row in signed.rows if row[0] == "augment")
    assert row[1:2] == ["female"]
    assert gap == 0
    assert row[5].startswith("0.0 [")
    told = cell(two, "augment", "selection_rate_gap", "female")["value"]
    assert row[2].startswith(f"{100 * told:+.1f} [".replace("-", "−"))


def test_what_is_wider_than_the_window_stands_below_the_remedies_names(two, several):
    """No number is cut or lost at 80 columns: as many columns as fit, then the others."""
    out = io.StringIO()
    show_ledger(two.document, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    part = lines[lines.index("Signed gaps") : lines.index("", lines.index("Signed gaps"))]
    signed = next(f for f in detail_tables(two.document, "bow") if f.title == "Signed gaps")
    assert part[2].strip() == signed.rows[0][0]
    whole = "\n".join(lines)
    assert all(cell in whole for row in signed.rows for cell in row)
    assert all(head in whole for head in signed.columns[1:])
    assert " · " not in whole
    out = io.StringIO()
    show_ledger(several.document, Console(file=out, width=160))
    assert re.search(r"Remedy +Group +ρ \[interval\] p", out.getvalue())


def told(value, difference, *, sd=None, seeds=3, **more):
    return {"value": value, "difference": difference, "difference_sd": sd, "low": None,
            "high": None, "seeds": seeds, **more}  # fmt: skip


def test_one_gap_lowered_and_the_other_raised_is_said():
    """EDOS: copies take counterfactual gaps and double statistical ones, .063 → .150."""
    name = "true_positive_rate_gap_rms"

    def words(plain, paired):
        return trade_words({name: {"all": plain}, f"counterfactual_{name}": {"all": paired}})

    fell, rose = told(0.01, -0.059, sd=0.001), told(0.150, 0.087, sd=0.01)
    assert words(rose, fell) == (
        "One gap for another: counterfactual true positive gaps fell from 6.9 to 1.0 points while "
        "statistical ones rose from 6.3 to 15.0."
    )
    assert words(told(0.150, 0.087, sd=0.2), fell) == (
        "One gap for another: counterfactual true positive gaps fell from 6.9 to 1.0 points while "
        "statistical ones may have risen from 6.3 to 15.0; that may be chance."
    )
    assert words(fell, rose).startswith("One gap for another: statistical true positive gaps fell")
    assert words(fell, fell) == words(told(0.1, 0.001, sd=0.01), fell) == ""
    assert words(told(None, None), fell) == ""


def test_two_classes_trade_gaps_with_their_sign():
    """EDOS: the counterfactual gap goes from +11.1 to 0.0 points, the statistical from −4.6 to −13.

    As a size over classes that rise may be chance; the gap's own interval leaves 0 out.
    """
    name = "true_positive_rate_gap"

    def words(plain, paired):
        return signed_trade_words({name: {"f": plain}, f"counterfactual_{name}": {"f": paired}},
                                  ["f"])  # fmt: skip

    fell = told(0.0, -0.11) | {"low": -0.15, "high": -0.07}
    rose = told(-0.130, -0.084) | {"low": -0.164, "high": -0.004}
    assert words(rose, fell) == (
        "One gap for another: the counterfactual true positive gap of 'f' fell from 11.0 to 0.0 "
        "points while the statistical one rose from 4.6 to 13.0."
    )
    open_ = told(-0.130, -0.084) | {"low": -0.2, "high": 0.03}
    assert words(open_, fell).endswith(
        "while the statistical one may have risen from 4.6 to 13.0; that may be chance."
    )
    assert words(fell, rose).startswith("One gap for another: the statistical true positive gap")
    assert words(fell, fell) == words(told(None, None), fell) == ""
    # From −6 to +5 no size has risen, and from −5 to +6 it has changed sides, which is told apart.
    for value in (0.05, 0.06):
        assert words(told(value, 0.11) | {"low": 0.08, "high": 0.14}, fell) == ""


def test_gaps_that_change_sides_are_said():
    """Oversampling in the second paper: −2.77 → +2.21 points."""
    measures = {"true_positive_rate_gap": {"f": told(0.0221, 0.0498, sd=0.003)}}
    assert sides_words(measures, ["f"]) == (
        "Changed sides: the true positive gap of 'f' from −2.8 to +2.2 points."
    )
    assert sides_words({"true_positive_rate_gap": {"f": told(0.002, 0.03, sd=0.003)}}, ["f"]) == ""


def test_cuts_and_norm_bias_in_words():
    rho = told(0.8, 0.0, value_low=0.6, value_high=0.9, p=0.0001)
    lone = told(0.3, 0.1, value_low=-0.1, value_high=0.6, p=0.1234)
    measures = {
        "one_versus_rest_gap_rms_fitted": {"all": told(0.0, -0.1)},
        "one_versus_rest_gap_rms": {"all": told(0.078, -0.1)},
        "norm_bias": {"f": rho},
        "norm_bias_irrelevant": {"f": lone},
    }
    assert cuts_words(measures, ["f"]) == (
        "Class by class, the gap is 0.0 points on the rows that set the cuts and 7.8 on the test "
        "rows; norm bias ρ stays exactly as it was ('f' +0.80)."
    )
    assert norm_bias_words(measures, ["f"]) == (
        "Norm bias ρ: 'f' +0.80 (+0.60 to +0.90, p < 0.001), without task words +0.30 "
        "(−0.10 to +0.60, p 0.123)."
    )
    row = {"status": "measured", "remedy": "thresholds_exact", "measures": measures}
    assert remarks(row, groups=["f"]) == [
        cuts_words(measures, ["f"]),
        norm_bias_words(measures, ["f"]),
    ]


def test_models_that_decide_by_group_score_a_table(several, folder, tmp_path):
    """Decisions are those of the cuts, not of the largest score; a copy is decided as its group."""
    frame = bios(120, seed=7).select("text", "title", "gender")
    frame = frame.with_columns(
        pl.col("text").alias("text@female"), pl.col("text").alias("text@male")
    )
    frame[5, "gender"] = None
    for remedy in ("thresholds_exact", "decoupled"):
        place = folder / "models" / f"{remedy}-bow.joblib"
        out = tmp_path / f"{remedy}.parquet"
        report = score_table(
            frame, text="text", model=place, trust=True, group="gender", truth="title", out=out
        )
        made = pl.read_parquet(out)
        assert report.rows == 120
        assert made["decision"].null_count() == made["score:truth"].null_count() == 1
        model = joblib.load(place)
        texts = frame["text"].to_list()
        for value in ("female", "male"):
            decided = model.predict(texts, group=np.array([value] * 120))
            assert made[f"decision@{value}"].to_list() == decided.tolist()
        own = made.filter(pl.col("gender") == "male")
        assert own["decision"].to_list() == own["decision@male"].to_list()
        assert own["score:nurse"].to_list() == own["score:nurse@male"].to_list()
    assert not made["score:nurse@female"].equals(made["score:nurse@male"])
    with pytest.raises(UsageError, match=r"^This model decides by group\. Name the column with"):
        score_table(frame, text="text", model=place, trust=True, out=tmp_path / "x.parquet")
    plain = folder / "models" / "baseline-bow.joblib"
    with pytest.raises(UsageError, match=r"^group='gender' is for models that decide by group"):
        score_table(
            frame, text="text", model=plain, trust=True, group="gender", out=tmp_path / "x.parquet"
        )


def test_words_of_the_ledgers_own_models(several, folder, tmp_path):
    """What a word weighs is the coefficient of the model that decides; by group, of its own."""
    models = folder / "models"
    found = word_table(models / "thresholds-bow.joblib", trust=True, out=tmp_path / "words.csv")
    inner = joblib.load(models / "baseline-bow.joblib")
    np.testing.assert_array_equal(found.weights, inner.fitted.model.coef_)
    assert found.words == inner.representation.words.words
    assert len(pl.read_csv(tmp_path / "words.csv")) == found.weights.size
    place = models / "decoupled-bow.joblib"
    with pytest.raises(UsageError, match=r"has a model for each of another, female, male\. Say"):
        word_table(place, trust=True)
    hers = word_table(place, trust=True, of="female")
    assert not np.allclose(hers.weights, found.weights)
    with pytest.raises(UsageError, match=r"^of='female' is for models by group"):
        word_table(models / "baseline-bow.joblib", trust=True, of="female")
    weights = np.linspace(-1, 1, len(found.words))
    scorer = NormScorer(
        groups=("female", "male"), names=found.words, seen=np.zeros(0, dtype=np.uint64),
        linear=Linear(weights=np.stack([weights, -weights]), intercepts=np.zeros(2)),
    )  # fmt: skip
    passed = filter_words(
        place, models / "baseline-bow.joblib", of="female", norms=scorer, trust=True,
        threshold=0.4, out=tmp_path / "filtered.jsonl",
    )  # fmt: skip
    assert len(passed) == len(pl.read_ndjson(tmp_path / "filtered.jsonl")) > 0
    norm = dict(zip(found.words, scorer.word_weights("female"), strict=True))
    columns = [passed.columns[name] for name in ("class", "word", "weight", "other")]
    for name, word, own, other in zip(*columns, strict=True):
        assert word in passed.of(name)
        assert min(abs(own), abs(norm[word])) > 0.4
        assert abs(own) > 0.7 * abs(other)
    assert str(passed).endswith("|weight| > 0.4, |norm| > 0.4 and |weight| > 0.7 × |the other's|.")
    with pytest.raises(UsageError, match=r"^threshold=-1 and ratio=0.7 must be numbers of 0 or"):
        filter_words(place, place, norms=scorer, threshold=-1)


def test_words_of_vectors_are_cosines_on_their_own_scale():
    """β_w = cos(e_w, W_c) on the vectors themselves, whatever scale the fit was made on."""
    words = SimpleNamespace(words=("w", "v"), embedding=np.array([[3.0, 4.0], [1.0, 0.0]]))
    shown = Scaled(words=words, centre=np.zeros(2), scale=np.array([2.0, 1.0]))
    linear = SimpleNamespace(coef_=np.array([[2.0, 0.0]]), classes_=np.array(["a", "b"]))
    model = TextRemedy(
        classes_=linear.classes_, fitted=Fitted(model=linear), representation=shown, norm=None,
        setting="masked", needs_group_at_decision=False,
    )  # fmt: skip
    assert word_table(model).weights.round(12).tolist() == [[-0.6, -1.0], [0.6, 1.0]]
    bare = dataclasses.replace(model, fitted=Fitted(model=SimpleNamespace()))
    with pytest.raises(DataError, match=r"^This remedy holds SimpleNamespace, which has no weight"):
        word_table(bare)
