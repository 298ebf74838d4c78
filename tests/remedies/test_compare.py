"""The ledger: what is provable of remedies, what it keeps, and what it refuses."""

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import polars as pl
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.remedies.ledger import compare as comparing
from evenhand.remedies.ledger import registry
from evenhand.remedies.ledger.compare import compare
from evenhand.remedies.ledger.document import mark_pareto
from evenhand.remedies.ledger.files import fingerprint, read_ledger
from evenhand.remedies.ledger.intervals import row_variances, seed_differences
from evenhand.remedies.ledger.measures import CLASS_COLUMNS, MEASURES, Outcome
from evenhand.remedies.ledger.rows import join_rows, read_people, two_parts
from evenhand.remedies.ledger.sentences import direction, recommend, remedy_sentence
from evenhand.remedies.ledger.task import Task
from evenhand.remedies.ledger.texts import BY_CONSTRUCTION, prepare_texts
from evenhand.simulate.biographies import biographies, occupations

TITLES = ("nurse", "surgeon", "professor", "teacher", "software_engineer", "journalist")
COLUMNS = {"text": "text", "truth": "title", "group": "gender"}
ROW_KEYS = {
    "remedy", "words", "representation", "stage", "needs", "extra", "needs_group_at_decision",
    "status", "reason", "seeds", "seconds", "chosen", "notes", "pareto", "measures", "sentence",
}  # fmt: skip
CELL_KEYS = {
    "value", "sd", "difference", "difference_sd", "seeds", "low", "high", "undefined",
    "value_low", "value_high", "p", "n",
}  # fmt: skip


def bios(n: int = 1000, *, seed: int = 1, **how) -> pl.DataFrame:
    known = occupations()
    chosen = {title: dataclasses.replace(known[title], size=1.0) for title in TITLES}
    return biographies(n, occupations=chosen, seed=seed, **how).frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("ledger") / "ledger"


@pytest.fixture(scope="module")
def ledger(folder):
    wanted = ["kamiran_calders", "augment", "thresholds", "residualise", "cocl"]
    return compare(
        bios(leak="class_words"),
        **COLUMNS,
        remedies=wanted,
        texts={"representations": ["bow"]},
        seeds=2,
        out=folder,
    )


def value(ledger, remedy, measure, group="all", what="value"):
    return ledger.row(remedy)["measures"][measure][group][what]


def test_thresholds_leave_every_rank_correlation_exactly_as_it_was(ledger):
    """Scores are untouched, so r_c, ρ, the slope and the mean |r_c| are the same numbers."""

    def correlations(remedy):
        return [
            (each["seed"], each["class"], each["group"], each[name])
            for each in ledger.classes
            if each["remedy"] == remedy
            for name in CLASS_COLUMNS
            if name.startswith("norm")
        ]

    assert correlations("thresholds") == correlations("baseline")
    assert any(each[-1] is not None for each in correlations("thresholds"))
    for measure in ("norm_bias", "norm_slope", "norm_correlation_mean", "norm_slope_second"):
        for group in ("female", "male"):
            assert value(ledger, "thresholds", measure, group, "difference") == 0


def test_augmentation_brings_counterfactual_gaps_to_noise(ledger):
    before = value(ledger, "baseline", "counterfactual_true_positive_rate_gap_rms")
    after = value(ledger, "augment", "counterfactual_true_positive_rate_gap_rms_corrected")
    assert before > 0.02
    assert after < 0.01
    assert value(ledger, "augment", "flip_rate") < value(ledger, "baseline", "flip_rate") / 3


def test_residualisation_lowers_the_slope_for_both_groups(ledger):
    for group in ("female", "male"):
        before = value(ledger, "baseline", "norm_slope", group)
        assert 0 < value(ledger, "residualise", "norm_slope", group) < before


def test_the_document_has_fixed_keys(ledger, folder):
    document = read_ledger(folder)
    assert document == json.loads(json.dumps(ledger.document))
    assert set(document) == {
        "schema", "made", "data", "rows", "classes", "class_means", "small_groups", "pareto",
        "contrast", "notes",
    }  # fmt: skip
    assert document["schema"] == "evenhand.ledger/1"
    for row in document["rows"]:
        assert set(row) == ROW_KEYS
        assert set(row["measures"]) == set(MEASURES)
        for name, cells in row["measures"].items():
            expected = {"female", "male"} if MEASURES[name].by_group else {"all"}
            assert set(cells) == expected
            assert all(set(cell) == CELL_KEYS for cell in cells.values())
    place = {"remedy", "representation", "seed", "class", "group"}
    for each in document["classes"]:
        assert set(each) == place | {"training_rows", "training_share"} | set(CLASS_COLUMNS)
    assert len(document["classes"]) == 5 * 2 * len(TITLES) * 2
    table = pl.read_csv(folder / "ledger.csv")
    assert table["remedy"].to_list() == [row["remedy"] for row in document["rows"]]
    assert "norm_slope@female" in table.columns
    assert len(json.loads((folder / "pareto.json").read_text())) == 5
    assert json.loads((folder / "contrast.json").read_text()) == document["contrast"]


def test_who_needs_the_group_is_said(ledger):
    row = ledger.row("thresholds")
    assert row["needs_group_at_decision"]
    assert "Needs the group at decision time." in row["sentence"]
    assert not ledger.row("residualise")["needs_group_at_decision"]


def test_a_remedy_without_names_is_skipped_and_the_rest_goes_on(ledger):
    row = ledger.row("cocl")
    assert (row["status"], row["seeds"]) == ("skipped", 0)
    assert row["sentence"] == ("Not trained: needs the people's names: name their column (--name).")
    assert ledger.row("residualise")["status"] == "measured"


def test_a_run_goes_on_where_it_stopped(folder, ledger, monkeypatch):
    """Nothing is trained again, except the part that is missing; and the numbers are the same."""
    trained = []
    for name, entry in registry.REMEDIES.items():

        def fit(task, *, entry=entry, name=name):
            trained.append((name, task.seed))
            return entry.fit(task)

        monkeypatch.setitem(registry.REMEDIES, name, dataclasses.replace(entry, fit=fit))
    monkeypatch.setattr(registry, "_ENTRIES", tuple(registry.REMEDIES.values()))
    parts = sorted((folder / "parts").glob("*.json"))
    assert len(parts) == 10
    parts[0].unlink()
    again = compare(
        bios(leak="class_words"),
        **COLUMNS,
        remedies=["kamiran_calders", "augment", "thresholds", "residualise", "cocl"],
        texts={"representations": ["bow"]},
        seeds=2,
        out=folder,
    )
    assert len(trained) == 1
    assert [r["measures"] for r in again.rows] == [r["measures"] for r in ledger.rows]


def test_another_budget_is_another_part():
    first, second = (fingerprint("x", {"budget": b}) for b in (0.01, 0.02))
    assert first != second


def test_models_read_texts(folder, ledger):
    frame = bios(leak="class_words")
    texts = frame["text"].to_list()[:200]
    model = joblib.load(folder / "models" / "residualise-bow.joblib")
    assert (model.predict(texts) == frame["title"].to_numpy()[:200]).mean() > 0.8
    assert model.predict_proba(texts).sum(axis=1) == pytest.approx(np.ones(200))
    cut = joblib.load(folder / "models" / "thresholds-bow.joblib")
    with pytest.raises(UsageError) as told:
        cut.predict(texts)
    assert str(told.value) == (
        "This remedy decides by group. Give group= with the group of each text, "
        "or score with another remedy."
    )


def test_scrubbed_texts_have_no_counterfactual_columns_and_say_why():
    found = compare(
        bios(800), **COLUMNS, remedies=["augment"], seeds=1,
        texts={"representations": ["bow"], "setting": "scrubbed"},
    )  # fmt: skip
    cell = found.row("baseline")["measures"]["flip_rate"]["all"]
    assert (cell["value"], cell["undefined"]) == (None, BY_CONSTRUCTION)
    assert found.row("augment")["reason"] == (
        "it rewrites the group's words, and scrubbed texts have none"
    )


def test_a_remedy_that_fails_says_why_and_the_ledger_goes_on(monkeypatch):
    def diverge(task):
        raise DataError("The scores are not finite: training has diverged.")

    def stumble(task):
        raise ValueError("shapes do not fit")

    broken = [
        dataclasses.replace(registry.REMEDIES["augment"], fit=diverge),
        dataclasses.replace(registry.REMEDIES["oversample"], fit=stumble),
        dataclasses.replace(registry.REMEDIES["decoupled"], extra="no_such_extra"),
    ]
    chosen = [registry.REMEDIES["baseline"], *broken]
    monkeypatch.setattr(comparing, "choose_remedies", lambda names: chosen)
    found = compare(bios(800), **COLUMNS, texts={"representations": ["bow"]}, seeds=1)
    told = {row["remedy"]: (row["status"], row["sentence"]) for row in found.rows}
    assert told["baseline"][0] == "measured"
    assert told["augment"] == (
        "failed",
        "Training failed: The scores are not finite: training has diverged.",
    )
    assert told["oversample"] == ("failed", "Training failed: ValueError: shapes do not fit.")
    assert told["decoupled"] == (
        "skipped",
        "Not trained: The remedy 'decoupled' needs the extra 'no_such_extra', which is not "
        "installed. Run: pip install 'evenhand[no_such_extra]'.",
    )


def test_without_a_baseline_there_is_no_ledger(monkeypatch):
    def stumble(task):
        raise ValueError("shapes do not fit")

    chosen = [dataclasses.replace(registry.REMEDIES["baseline"], fit=stumble)]
    monkeypatch.setattr(comparing, "choose_remedies", lambda names: chosen)
    with pytest.raises(DataError) as told:
        compare(bios(300), **COLUMNS, texts={"representations": ["bow"]}, seeds=1)
    assert str(told.value) == (
        "The baseline could not be trained on bow, and no remedy can be compared without it: "
        "ValueError: shapes do not fit"
    )
    assert told.value.exit_code == 4


def test_the_same_seed_gives_the_same_ledger_whatever_the_threads(monkeypatch):
    from threadpoolctl import threadpool_limits

    remedies = ["alpha_weights", "augment", "thresholds", "residualise"]
    documents = []
    for workers, threads in ((1, 1), (4, 2)):
        monkeypatch.setattr(comparing, "WORKERS", workers)
        with threadpool_limits(threads):
            found = compare(bios(800), **COLUMNS, remedies=remedies, seeds=1, seed=3)
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in found.rows]
        documents.append(json.dumps([rows, found.classes]))
    assert documents[0] == documents[1]


def test_libraries_are_imported_before_threads_ask_for_them():
    code = (
        "import sys; from evenhand.remedies.ledger import compare; "
        "print('sklearn.base' in sys.modules, 'evenhand.models.linear' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def people(frame):
    return read_people(frame, **COLUMNS)


def table(rows) -> dict:
    text, title, gender = zip(*rows, strict=True)
    return {"text": list(text), "title": list(title), "gender": list(gender)}


def test_groups_missing_on_one_side_are_refused():
    train = table([("a b", "x", "f"), ("c d", "y", "m")])
    test = table([("e f", "x", "f")])
    with pytest.raises(DataError) as told:
        join_rows(people(train), people(test))
    assert str(told.value) == (
        "The group 'm' has training rows and no test rows. "
        "Give rows of every group in both, or leave the group out of both."
    )
    with pytest.raises(DataError) as told:
        join_rows(people(test | {"title": ["x"]}), people(train))
    assert "The group 'm' has test rows and no training rows." in str(told.value)


def test_shared_rows_are_refused():
    train = table([("a b", "x", "f"), ("c d", "y", "m")])
    with pytest.raises(DataError) as told:
        join_rows(people(train), people(train))
    assert str(told.value) == (
        "2 test texts stand in the training rows as well, so a model would be judged on what it "
        "was trained on. Leave them out of one of the two."
    )


def test_rows_that_a_drawn_split_leaves_out_are_told():
    """A text that stands twice may fall on both sides: it is then no training row, and said."""
    rows = [(f"w{k} a", "xy"[k % 2], "fm"[k // 2 % 2]) for k in range(80)]
    twice = people(table([*rows, *rows[:40]]))
    twice.left_out["no text"] = 3
    train, test = two_parts(twice, split=None, test_share=0.25, seed=0)
    dropped = 120 - len(train) - len(test)
    assert dropped > 1
    made = join_rows(train, test)
    assert made.notes == (
        f"{dropped} training rows left out: the same text is among the test rows.",
        "3 rows left out: no text.",
    )
    single = people(table(rows))
    assert join_rows(*two_parts(single, split=None, test_share=0.25, seed=0)).notes == ()


def test_forms_of_titles_are_masked():
    rows = [(f"blue word{k} medic xylem green", "xy"[k % 2], "fm"[k // 2 % 2]) for k in range(40)]
    made = join_rows(people(table(rows[:20])), people(table(rows[20:])))
    forms = {"x": ["medic"], "y": ["medic", "xylem"]}
    plain = prepare_texts(made)
    own = prepare_texts(made, titles=forms, mask_scope="own")
    everything = prepare_texts(made, titles=forms)

    def words(texts):
        return texts.representations["bow"].words.words

    assert {"medic", "xylem"} <= set(words(plain))
    assert "medic" not in words(own)
    # Left in the texts of x alone, where it says that they are not of y.
    assert "xylem" in words(own)
    assert not {"medic", "xylem"} & set(words(everything))
    assert (own.masks, everything.masks) == ((), ("medic", "x", "xylem", "y"))


def test_masking_all_titles_leaves_no_title_to_weigh(tmp_path):
    """Own titles masked, every other class's stays: a model reads from it what a text is not."""
    frame = bios(600).with_columns(text=pl.col("text") + " Works with every nurse and surgeon.")
    weights, models = {}, {}
    for scope in ("own", "all"):
        out = tmp_path / scope
        compare(frame, **COLUMNS, remedies=["augment"], seeds=1, out=out,
                texts={"representations": ["bow"], "mask_scope": scope})  # fmt: skip
        model = models[scope] = joblib.load(out / "models" / "baseline-bow.joblib")
        column = dict(zip(model.representation.words.words, model.fitted.model.coef_.T))
        weights[scope] = column.get("nurse")
    place = list(models["own"].classes_).index("nurse")
    assert weights["own"][place] < -0.5
    assert weights["all"] is None
    # It masks by itself what it is given.
    texts = frame["text"].to_list()[:50]
    masked = [text.replace("nurse", "_").replace("surgeon", "_") for text in texts]
    model = models["all"]
    np.testing.assert_array_equal(model.predict_proba(texts), model.predict_proba(masked))


def test_what_remedies_share_is_made_once(monkeypatch):
    """However many threads ask, one makes it and tells how long that took."""
    from concurrent.futures import ThreadPoolExecutor

    task = Task(texts=None, representation="bow", rows=np.arange(2), seed=0)
    # Read when the first thread starts and when it is done; a third reading would fail.
    clock = SimpleNamespace(perf_counter=iter([10.0, 13.0]).__next__)
    monkeypatch.setattr("evenhand.remedies.ledger.task.time", clock)
    made = []

    def make():
        time.sleep(0.02)  # the others ask meanwhile
        made.append(1)
        return object()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: task.once("thing", make), range(16)))
    assert len(made) == 1
    assert all(each is found[0] for each in found)
    assert task.seconds("thing") == 3.0


def test_thresholds_and_residualisation_build_on_the_baseline_itself(ledger, folder):
    base = joblib.load(folder / "models" / "baseline-bow.joblib").fitted.model
    for remedy, inner in (("thresholds", "model"), ("residualise", "model.estimator_")):
        model = joblib.load(folder / "models" / f"{remedy}-bow.joblib").fitted
        for name in inner.split("."):
            model = getattr(model, name)
        np.testing.assert_array_equal(model.coef_, base.coef_)


def test_a_class_with_one_group_is_kept_and_named():
    rows = [(f"w{k} a", "xyz"[k % 3], "fm"[k % 2] if k % 3 else "f") for k in range(60)]
    made = join_rows(people(table(rows[:40])), people(table(rows[40:])))
    assert made.notes == (
        "Only one group in the training rows of x: weights and sampling cannot even it out, "
        "undersampling would delete it, and it is kept as it is.",
    )


def test_weights_that_sum_to_zero_end_in_a_row_with_the_reason():
    frame = bios(600).filter(
        pl.col("gender").eq("female") == pl.col("title").is_in(["nurse", "teacher", "journalist"])
    )
    found = compare(
        frame, **COLUMNS, remedies=["alpha_weights"], texts={"representations": ["bow"]}, seeds=1
    )
    assert found.row("alpha_weights")["sentence"] == (
        "Training failed: The weights sum to zero: no class has rows of two groups. "
        "Give training rows in which some class has more than one group."
    )
    assert found.row("baseline")["status"] == "measured"
    assert found.row("baseline")["measures"]["norm_slope"]["female"]["value"] is None
    gaps = found.row("baseline")["measures"]["true_positive_rate_gap_rms"]["all"]
    assert gaps["value"] is None
    assert gaps["undefined"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"remedies": ["augmnt"]}, "remedy='augmnt' is not a remedy. Did you mean 'augment'?"),
        (
            {"texts": {"representations": ["bert"]}},
            "representation='bert' is neither bow, vectors nor a folder.",
        ),
        ({"seeds": 0}, "seeds=0 is not a number of training sets. Give 1 or more."),
        (
            {"texts": {"setting": "mask"}},
            "setting='mask' is not one of masked, scrubbed. Did you mean 'masked'?",
        ),
        (
            {"texts": {"mask_scope": "alle"}},
            "mask_scope='alle' is not one of all, own. Did you mean 'all'?",
        ),
        (
            {"texts": {"lexcon": "gender_words"}},
            "texts has 'lexcon', which is not a setting. Did you mean 'lexicon'?",
        ),
        ({"settings": {"budgt": 0.1}}, "settings has 'budgt', which is not a setting."),
        ({"features": ["age"]}, "Name either the column of texts (text=, --text) or the columns"),
        ({"text": None}, "Name either the column of texts (text=, --text) or the columns to"),
        ({"test_share": 1.5}, "test_share=1.5 is not a share between 0 and 1."),
        ({"truth": "titel"}, "truth='titel' is not a column of the table. Did you mean 'title'?"),
    ],
)
def test_wrong_arguments(changed, words):
    with pytest.raises(UsageError) as told:
        compare(bios(50), **{**COLUMNS, **changed})
    assert words in str(told.value)


def test_split_column_and_its_words():
    frame = bios(60).with_columns(part=pl.Series(["train", "test", "dev"] * 20))
    parts = read_people(frame, **COLUMNS, split="part")
    train, test = two_parts(parts, split="part", test_share=0.25, seed=0)
    assert (len(train), len(test)) == (40, 20)
    bad = read_people(frame.with_columns(part=pl.lit("a")), **COLUMNS, split="part")
    with pytest.raises(DataError) as told:
        two_parts(bad, split="part", test_share=0.25, seed=0)
    assert str(told.value) == "split='part' has a. It must mark rows as 'train' and as 'test'."


def test_validation_is_ten_of_75_parts_of_every_cell():
    rows = [(f"w{k}", "ab"[k % 2], "fm"[k // 2 % 2]) for k in range(300)]
    made = join_rows(people(table(rows)), people(table([(f"t{k}", "a", "fm"[k]) for k in (0, 1)])))
    cell = made.truth[made.validation] * 2 + made.group[made.validation]
    assert np.bincount(cell).tolist() == [10, 10, 10, 10]
    drawn = made.drawn(3, redraw=True)
    assert np.bincount(made.truth[drawn] * 2 + made.group[drawn]).tolist() == [65] * 4
    assert set(drawn.tolist()) <= set(made.fit.tolist())
    assert (made.drawn(3, redraw=True) == drawn).all()
    assert not (made.drawn(4, redraw=True) == drawn).all()


def test_differences_by_hand():
    """Gaps −.1, −.2, −.3, −.1, −.3: mean −.2, SD .1; error √(.01/5 + .002) = .0632; t₄ = 2.776."""
    own, base = np.array([0.4, 0.3, 0.2, 0.4, 0.2]), np.full(5, 0.5)
    found = seed_differences(own, base, test_variance=[0.002] * 5, level=0.95)
    assert found["difference"] == pytest.approx(-0.2)
    assert found["low"] == pytest.approx(-0.2 - 2.7764 * 0.063246, abs=1e-4)
    assert seed_differences(own[:4], base[:4], test_variance=[0.002] * 4, level=0.95)["low"] is None


def test_variance_over_test_rows_is_that_of_the_decisions():
    """Accuracy's variance is p(1−p)/n; a remedy equal to its baseline differs by nothing."""
    rows = join_rows(*two_parts(people(bios(600)), split=None, test_share=0.5, seed=0))
    texts = prepare_texts(rows)
    truth = rows.truth[rows.test]
    n = truth.size
    right = np.arange(n) % 4 > 0
    wrong = (truth + 1) % len(rows.classes)

    def made(decided):
        zeros = np.zeros((len(rows.classes), 2))
        do = dict.fromkeys(rows.groups, decided)
        return Outcome(decided=decided, do=do, own=np.arange(n) * 1.0, auc=1.0,
                       one_versus_rest=zeros, fitted=zeros)  # fmt: skip

    one, other = made(truth), made(np.where(right, truth, wrong))
    found = row_variances(texts, other, one, seed=0, draws=100)
    assert found["accuracy", ""] == pytest.approx(right.mean() * (1 - right.mean()) / n, rel=0.35)
    same = row_variances(texts, one, one, seed=0, draws=5)
    assert max(v for v in same.values() if np.isfinite(v)) == 0


def cell(value, difference, *, sd=None, low=None, high=None, seeds=3):
    return {"value": value, "difference": difference, "difference_sd": sd, "low": low,
            "high": high, "seeds": seeds, "sd": None, "undefined": None}  # fmt: skip


def test_what_counts_as_moved():
    assert direction(cell(0.05, -0.05, sd=0.01)) == -1
    assert direction(cell(0.05, -0.05, sd=0.10)) == 0
    assert direction(cell(0.099, -0.001, sd=0.0001)) == 0
    assert direction(cell(0.05, -0.05, sd=0.01, low=-0.11, high=0.01)) == 0


def row_of(female, male, *, second=None):
    still = {"all": cell(0.1, 0.0)}
    slopes = {"female": female, "male": male}
    return {
        "remedy": "residualise", "status": "measured", "reason": None, "seeds": 3,
        "needs_group_at_decision": False,
        "measures": {
            "true_positive_rate_gap_rms": still,
            "counterfactual_true_positive_rate_gap_rms": still,
            "norm_slope": slopes,
            "norm_slope_second": second or slopes,
            "accuracy": {"all": cell(0.8, -0.012)},
        },
    }  # fmt: skip


def test_over_correction_and_moved_bias_are_said():
    row = row_of(cell(-0.3, -1.0, sd=0.01), cell(0.6, 0.2, sd=0.01))
    told = remedy_sentence(row, groups=["female", "male"])
    assert "Over-corrected for 'female': the norm slope passed 0, from +0.70 to −0.30." in told
    assert (
        "Norm bias fell for 'female' and rose for 'male': it was moved rather than lowered." in told
    )
    assert "Left true positive gaps (10.0 points); counterfactual gaps (10.0 points)." in told
    assert "Accuracy lost 1.2 points." in told


def test_a_second_scorer_that_disagrees_is_said():
    slopes = {"female": cell(0.65, -0.05), "male": cell(0.4, 0.0)}
    row = row_of(cell(0.2, -0.5, sd=0.01), cell(0.4, 0.0, sd=0.01), second=slopes)
    told = remedy_sentence(row, groups=["female", "male"])
    assert "By a second norm scorer less is gained for 'female': from +0.70 to +0.65." in told


def trained(name, *, gap, swap, slope, accuracy, **more):
    """A remedy that changed what was 10 points, 5 points and a slope of +1, and its accuracy."""
    slopes = {"female": cell(1 + slope, slope, sd=0.001), "male": cell(1.0, 0.0, sd=0.001)}
    measures = {
        "true_positive_rate_gap_rms": {"all": cell(0.1 + gap, gap, sd=0.001)},
        "counterfactual_true_positive_rate_gap_rms": {"all": cell(0.05 + swap, swap, sd=0.001)},
        "norm_slope": slopes, "norm_slope_second": slopes,
        "accuracy": {"all": cell(0.9 + accuracy, accuracy)},
    }  # fmt: skip
    row = {"remedy": name, "status": "measured", "seeds": 3, "pareto": True, "reason": None}
    return row | {"needs_group_at_decision": False, "measures": measures} | more


def test_the_recommendation_names_what_it_lowers_costs_and_gives_up():
    both = trained("augment", gap=-0.04, swap=-0.05, slope=0.0, accuracy=0.001)
    norms = trained("residualise", gap=0.0, swap=0.0, slope=-0.6, accuracy=-0.008)
    dear = trained("adversarial", gap=-0.09, swap=-0.05, slope=-0.9, accuracy=-0.02)
    asked = {"groups": ["female", "male"], "budget": 0.01}
    baseline = trained("baseline", gap=0.0, swap=0.0, slope=0.0, accuracy=0.0)
    assert recommend([baseline, both, norms, dear], **asked) == (
        "Start from augment: it lowers true positive gaps from 10.0 to 6.0 points and "
        "counterfactual gaps from 5.0 to 0.0 points. It costs no accuracy. It does not lower the "
        "norm slopes of 'female' and 'male'. Residualise would lower the norm slope of 'female', "
        "for 0.8 points of accuracy."
    )
    # What it raises, or may have raised by half, is said with its numbers.
    up = trained("augment", gap=0.06, swap=-0.05, slope=-0.6, accuracy=0.001)
    assert "It raises true positive gaps from 10.0 to 16.0 points." in recommend([up], **asked)
    up["measures"]["true_positive_rate_gap_rms"]["all"]["difference_sd"] = 0.2
    assert (
        "With it true positive gaps went from 10.0 to 16.0 points, which may be chance. It does "
        "not lower the norm slope of 'male'."
    ) in recommend([up], **asked)
    assert "True positive gaps went from 10.0 to 16.0 points, which may be chance." in (
        remedy_sentence(up, groups=["female", "male"])
    )
    # What costs more than the budget is no candidate; with a larger one it lowers most.
    assert recommend([both, dear], **asked | {"budget": 0.03}).startswith("Start from adversarial")
    assert recommend([norms], **asked).startswith(
        "Start from residualise: it lowers the norm slope of 'female' from +1.00 to +0.40. It "
        "costs 0.8 points of accuracy. It does not lower true positive gaps, counterfactual gaps "
        "and the norm slope of 'male'."
    )
    assert recommend([baseline, dear], **asked).startswith("No remedy that costs at most 1.0 poi")
    assert recommend([baseline], **asked) == (
        "No remedy was trained, so there is nothing to choose from."
    )
    grouped = both | {"needs_group_at_decision": True, "seeds": 1}
    told = recommend([grouped], **asked)
    assert "whether that is allowed is a question of law." in told
    assert told.endswith("repeat it with --seeds 5 before choosing.")
    # One that needs no group goes first, though it lowers less.
    assert recommend([grouped, norms], **asked).startswith("Start from residualise")


def test_pareto_marks_what_no_other_beats():
    def row(accuracy, size):
        values = dict.fromkeys(MEASURES, size) | {"accuracy": accuracy, "balanced_accuracy": 0.5}
        measures = {name: {"all": {"value": v}} for name, v in values.items()}
        return {"status": "measured", "measures": measures, "pareto": None}

    rows = [row(0.9, 0.2), row(0.8, 0.1), row(0.8, 0.2), row(0.9, 0.2)]
    mark_pareto(rows)
    assert [each["pareto"] for each in rows] == [True, True, False, True]
    # A row without values is never marked, and does not mark the others.
    nothing = row(None, None)
    nothing["measures"]["balanced_accuracy"]["all"]["value"] = None
    rows = [row(0.9, 0.2), nothing, row(0.8, 0.2)]
    mark_pareto(rows)
    assert [each["pareto"] for each in rows] == [True, None, False]


def test_groups_that_no_lexicon_knows_have_no_counterfactual_columns():
    frame = bios(800).with_columns(gender=pl.col("gender").replace({"female": "a", "male": "b"}))
    found = compare(
        frame, **COLUMNS, remedies=["augment"], texts={"representations": ["bow"]}, seeds=1
    )
    assert found.row("augment")["status"] == "skipped"
    assert found.row("augment")["reason"].startswith(
        "no counterfactual texts: None of the groups a and b is a value of the lexicon"
    )
    named = compare(
        frame, **COLUMNS, remedies=["augment"], seeds=1,
        texts={"representations": ["bow"], "values": {"a": "female", "b": "male"}},
    )  # fmt: skip
    assert named.row("augment")["status"] == "measured"
    with pytest.raises(UsageError) as told:
        compare(frame, **COLUMNS, remedies=["augment"], texts={"values": {"female": "a"}})
    assert str(told.value) == (
        "values={'female': 'a'} is the wrong way round. Write the group's own value first: "
        "values={'a': 'female'} (--value a=female)."
    )


REAL = Path(__file__).parents[3] / "shared" / "data"
COMMON = 30


@pytest.mark.heavy
@pytest.mark.skipif(not REAL.is_dir(), reason="no real data beside the repository")
def test_all_remedies_on_real_biographies():
    """Nine classes with 30 people of each gender or more, titles masked, halves."""
    frame = pl.read_csv(REAL / "biographies_wikipedia.csv")
    cells = frame.group_by("occupation", "gender").len().filter(pl.col("len") >= COMMON)
    kept = cells.group_by("occupation").len().filter(pl.col("len") == 2)["occupation"]
    frame = frame.filter(pl.col("occupation").is_in(kept.to_list()))
    # In the order of the file: the same seed draws the same rows only from the same table.
    frame = frame.unique("text", maintain_order=True)
    assert len(kept) == 9
    found = compare(
        frame, text="text", truth="occupation", group="gender", name="name", seeds=1,
        test_share=0.5, texts={"vectors": REAL / "glove_100d.vec.gz"},
        # The two that train every class again and again, as briefly as they can.
        settings={"reductions_iterations": 2, "adversary_rates": (0.003,)},
    )  # fmt: skip
    for row in found.rows:
        if row["status"] != "measured":
            skipped = {"reductions", "adversarial", "adversarial_by_class"}
            assert row["remedy"] in skipped, row["reason"]
            continue
        accuracy = row["measures"]["accuracy"]["all"]["value"]
        assert accuracy > row["measures"]["trivial_accuracy"]["all"]["value"], row["remedy"]
    for where in ("bow", "vectors"):
        base, swapped = found.row("baseline", where), found.row("augment", where)
        flips = [r["measures"]["flip_rate"]["all"]["value"] for r in (base, swapped)]
        assert flips[1] <= flips[0]


def test_a_ledger_shows_itself_in_a_notebook_and_draws_its_charts(ledger, tmp_path):
    told = ledger._repr_html_()
    assert "<script" not in told
    for row in ledger.rows:
        assert f"<td>{row['remedy']}</td>" in told
    chart = ledger.chart()
    assert chart._repr_html_() in told
    chart.save(tmp_path / "remedies.svg")
    assert (tmp_path / "remedies.svg").read_text().startswith("<svg")
    with pytest.raises(UsageError, match=r"^chart 'no' does not exist\."):
        ledger.chart("no")


def loans(n: int = 1500, *, seed: int = 0) -> pl.DataFrame:
    """Applications whose income stands for less in group b: a model without it misjudges b."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    skill, luck = rng.normal(size=n), rng.normal(size=n)
    repaid = skill + luck + rng.normal(size=n) / 2 > 0
    return pl.DataFrame(
        {
            "income": skill + 0.8 * (group == "b"),
            "savings": luck,
            "town": rng.choice(["north", "south"], n),
            "repaid": np.where(repaid, "yes", "no"),
            "group": group,
        }
    )


LOANS = {"features": ["income", "savings", "town"], "truth": "repaid", "group": "group"}


@pytest.fixture(scope="module")
def of_columns(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns") / "ledger"
    frame = loans().with_columns(income=pl.when(pl.int_range(pl.len()) > 2).then("income"))
    wanted = ["kamiran_calders", "thresholds", "decoupled", "augment", "residualise", "cocl"]
    wanted.append("thresholds_exact")
    return compare(frame, **LOANS, remedies=wanted, seeds=2, out=folder), folder


def test_remedies_are_compared_on_columns_of_a_table(of_columns):
    found, _ = of_columns
    assert {row["representation"] for row in found.rows} == {"columns"}
    for name in ("baseline", "kamiran_calders", "thresholds", "decoupled"):
        assert found.row(name)["status"] == "measured"
        assert value(found, name, "accuracy") > value(found, name, "trivial_accuracy") + 0.1
        assert 0.5 < value(found, name, "auc") < 1
    # Group b is accepted too often; a model of its own, or cuts of its own, put that right.
    base = value(found, "baseline", "true_positive_rate_gap_rms")
    assert base > 0.1
    assert value(found, "decoupled", "true_positive_rate_gap_rms") < base / 2
    assert value(found, "thresholds", "true_positive_rate_gap_rms") < base * 0.75
    assert "3 rows left out: no income." in found.document["notes"]
    exact = [each for each in found.classes if each["remedy"] == "thresholds_exact"]
    for name, equal in (("yes", True), ("no", False)):
        mine = [each for each in exact if (each["group"], each["class"]) == ("b", name)]
        gaps = [each["one_versus_rest_gap_fitted"] for each in mine]
        # The cuts are those of the positive class; the other's rates follow from them.
        assert (gaps == pytest.approx([0.0] * 2, abs=1e-12)) == equal
        assert all(each["one_versus_rest_gap"] != 0 for each in mine)
    assert value(found, "thresholds_exact", "one_versus_rest_gap_rms_fitted") < 1e-12


def test_what_rests_on_texts_is_undefined_on_columns_and_says_why(of_columns):
    found, _ = of_columns
    measures = found.row("baseline")["measures"]
    assert measures["flip_rate"]["all"]["value"] is None
    assert measures["flip_rate"]["all"]["undefined"] == "rows of a table have no texts to rewrite"
    assert measures["norm_slope"]["a"]["undefined"] == (
        "norms are learned from texts, and rows of a table have none"
    )
    reasons = {name: found.row(name)["reason"] for name in ("augment", "residualise", "cocl")}
    assert reasons == {
        "augment": "rows of a table have no texts to rewrite",
        "residualise": "it needs a norm scorer, and there is none: norms are learned from texts, "
        "and rows of a table have none",
        "cocl": "it reads the words of names, and rows of a table have none",
    }


def test_models_read_columns(of_columns):
    _, folder = of_columns
    frame = loans(400, seed=5)
    model = joblib.load(folder / "models" / "baseline-columns.joblib")
    assert (model.predict(frame) == frame["repaid"].to_numpy()).mean() > 0.75
    assert model.predict_proba(frame).sum(axis=1) == pytest.approx(np.ones(400))
    cut = joblib.load(folder / "models" / "decoupled-columns.joblib")
    with pytest.raises(UsageError, match=r"Give group= with the group of each row, or score"):
        cut.predict(frame)
    assert len(cut.predict(frame, group=frame["group"].to_list())) == 400


def test_rows_that_stand_on_both_sides_are_noted():
    frame = loans(300)
    found = compare(frame, frame.head(50), **LOANS, remedies=["thresholds"], seeds=1)
    assert (
        "50 test rows have the features, class and group of a training row: where they are the "
        "same people, remedies are judged on what they were trained on."
    ) in found.document["notes"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"features": ["incme"]}, "features='incme' is not a column of the table. Did you mean"),
        ({"features": ["income", "repaid"]}, "features='repaid' is also the truth, which it would"),
        ({"features": ["income", "income"]}, "features='income' is named twice."),
        ({"features": "income"}, "features='income' is one name. Give a list, such as ['age']."),
        ({"texts": {"setting": "masked"}}, "texts= says how texts are prepared, and features="),
    ],
)
def test_wrong_features(changed, words):
    with pytest.raises(UsageError) as told:
        compare(loans(60), **{**LOANS, **changed})
    assert words in str(told.value)


def test_columns_that_cannot_be_features():
    ids = loans(300).with_columns(town=pl.format("id {}", pl.int_range(pl.len())))
    with pytest.raises(
        DataError, match=r"^features='town' holds 2\d\d different words; at most 100"
    ):
        compare(ids, **LOANS, seeds=1)
    far = loans(300).with_columns(savings=pl.lit(float("inf")))
    with pytest.raises(DataError, match=r"^features='savings' holds values that are infinite\."):
        compare(far, **LOANS, seeds=1)
    words = loans(100, seed=2).with_columns(savings=pl.lit("much"))
    with pytest.raises(DataError, match=r"^features='savings' holds numbers in the training rows"):
        compare(loans(300), words, **LOANS, seeds=1)
