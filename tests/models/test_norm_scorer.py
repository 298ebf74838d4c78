"""Norm scorers: their weights, what they learn, what they refuse, and how they are kept."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from work import times_as_long

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.models.corpus import BagOfWords, Corpus, pooled
from evenhand.models.linear import LogisticClassifier
from evenhand.models.norms.card import NormCard, area, quality_card, told, weighted_share
from evenhand.models.norms.fit import (
    alpha_weights,
    fit_norm_scorer,
    fit_number_scorer,
    training_groups,
)
from evenhand.models.norms.multiplicity import HeldOutRows, norm_multiplicity
from evenhand.models.norms.ratings import Ratings, agreement, read_ratings
from evenhand.models.norms.relevance import Rule
from evenhand.models.norms.scorer import NormScorer, load_norms, save_norms
from evenhand.models.vectors import WordVectors
from evenhand.simulate.biographies import Occupation, biographies
from evenhand.stats.estimate import Estimate

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
SHARES = {"nurse": 0.8, "teacher": 0.65, "poet": 0.5, "lawyer": 0.4, "pilot": 0.3, "rapper": 0.2}
FEW = {title: Occupation(female_share=share) for title, share in SHARES.items()}


@cache
def bios(seed: int = 0) -> pl.DataFrame:
    return biographies(2_400, occupations=FEW, spurious=2.0, seed=seed).frame


def parts() -> tuple[dict[str, Any], dict[str, Any]]:
    """Training rows and held-out rows, as arguments."""
    table = bios()
    cut = table.height * 2 // 3
    made = []
    for part in (table[:cut], table[cut:]):
        columns = ("text", "gender", "title", "name")
        made.append({name: part[name].to_list() for name in columns})
    return made[0], made[1]


def fitted(**more: Any) -> NormScorer:
    train, _ = parts()
    more = {"representation": BagOfWords(minimum=2), **more}
    names = more.pop("names", train["name"])
    return fit_norm_scorer(
        train["text"], group=train["gender"], truth=train["title"], names=names, **more
    )


@cache
def usual() -> NormScorer:
    return fitted()


def card_of(scorer: NormScorer, **more: Any) -> NormCard:
    _, test = parts()
    return quality_card(scorer, test["text"], group=test["gender"], truth=test["title"],
                        names=test["name"], **more)  # fmt: skip


@pytest.mark.parametrize("case", ["S=30,H=90", "S=90,H=30", "S=50,H=50", "S=0,H=40", "S=7,H=0"])
def test_weights_as_in_oracle_1_1(case: str) -> None:
    wanted = ORACLES["1.1_alpha_x"][case]
    she, he = (int(part.split("=")[1]) for part in case.split(","))
    group = ["she"] * she + ["he"] * he
    # A second class makes both groups known where the first has one alone.
    weights = alpha_weights(["c"] * len(group) + ["d"] * 2, [*group, "she", "he"])[: len(group)]
    assert weights[:she].sum() == pytest.approx(wanted["total_she"])
    assert weights[she:].sum() == pytest.approx(wanted["total_he"])
    for part, name in ((weights[:she], "alpha_she"), (weights[she:], "alpha_he")):
        if len(part):
            assert part.tolist() == pytest.approx([wanted[name]] * len(part), abs=1e-9)


def test_weights_of_three_groups():
    group = ["a"] * 20 + ["b"] * 50 + ["c"] * 80
    weights = alpha_weights(["x"] * 150, group)
    assert [weights[0], weights[20], weights[70]] == pytest.approx([1.0, 0.4, 0.25])
    two = alpha_weights(["x"] * 150, group, groups=["b", "c"])
    assert [two[0], two[20], two[70]] == pytest.approx([0.0, 1.0, 0.625])
    assert alpha_weights([None, "x", "x"], ["a", "a", None]).tolist() == [0, 0, 0]
    with pytest.raises(UsageError, match=r"'d' is not a group of the training rows. They have a"):
        alpha_weights(["x"] * 150, group, groups=["a", "d"])


def test_small_groups_do_not_train():
    truth = [t for t in "abcde" for _ in range(120)]
    group = (["f", "m"] * 59 + ["x"] * 2) * 5
    assert training_groups(truth, group) == ("f", "m")
    with pytest.raises(DataError) as refused:
        training_groups(["a"] * 5, ["f"] * 5)
    assert str(refused.value) == (
        "The group column has one value alone, 'f'. A norm scorer tells groups apart: it needs "
        "rows of two or more."
    )
    with pytest.raises(DataError, match="No group has 200 rows and 20 in at least 1 classes"):
        training_groups(["a"] * 6, ["f", "m"] * 3)
    with pytest.raises(UsageError, match="truth has 1 values and group 2"):
        training_groups(["a"], ["f", "m"])


def test_the_fit_is_a_weighted_logistic_regression():
    train, test = parts()
    scorer = usual()
    corpus = Corpus.from_texts(train["text"])
    weights = alpha_weights(train["title"], train["gender"])
    rows = scorer.counts(train["text"], names=train["name"])
    other = LogisticRegression(C=1.0, max_iter=3_000, tol=1e-8)
    other.fit(rows, np.array(train["gender"]) == "female", sample_weight=weights)
    mine = scorer.score(test["text"], names=test["name"]).norm["female"]
    theirs = other.predict_proba(scorer.counts(test["text"], names=test["name"]))[:, 1]
    assert np.abs(mine - theirs).max() < 0.01
    assert len(corpus) == len(train["text"])
    # No scrubbed word and no name is left.
    assert not {"she", "he", "mr", "ms", "hers"} & set(scorer.names)
    surnames = {name.split()[-1].lower() for name in train["name"]}
    assert not surnames & set(scorer.names)


def test_norms_of_two_groups_mirror_and_lie_between_0_and_1():
    _, test = parts()
    scores = usual().score(test["text"], names=test["name"], truth=test["title"])
    for found in (scores.norm, scores.irrelevant):
        assert found["female"] + found["male"] == pytest.approx(1)
        assert ((found["female"] > 0) & (found["female"] < 1)).all()
    assert (scores.leaked, scores.empty, scores.unscored) == (0, 0, 0)
    women = np.array(test["gender"]) == "female"
    assert scores.norm["female"][women].mean() > scores.norm["female"][~women].mean() + 0.1


def test_three_groups_share_one_scorer():
    rng = np.random.default_rng(0)
    truth = rng.choice(list("abcdef"), 1_500)
    group = rng.choice(["f", "m", "x"], 1_500)
    own = {"f": "rose", "m": "oak", "x": "fern"}
    texts = [" ".join([own[g], *rng.choice(["leaf", "tree"], 8)]) for g in group]
    scorer = fit_norm_scorer(
        texts, group=group.tolist(), truth=truth.tolist(), representation=BagOfWords()
    )
    assert scorer.groups == ("f", "m", "x")
    found = scorer.score(texts).norm
    assert sum(found.values()) == pytest.approx(1)
    assert np.argmax(np.stack(list(found.values())), axis=0).tolist() == [
        "fmx".index(g) for g in group
    ]
    assert scorer.word_weights("x")[scorer.names.index("fern")] > 0


def test_irrelevant_scorers_are_those_refitted_from_nothing():
    train, _ = parts()
    scorer = usual()
    relevant = scorer.relevant[scorer.classes.index("nurse")]
    assert relevant.any()
    counts = scorer.counts(train["text"], names=train["name"])
    other = LogisticRegression(C=1.0, max_iter=3_000, tol=1e-8)
    weights = alpha_weights(train["title"], train["gender"])
    rows = pooled(counts, None, keep=~relevant)
    other.fit(rows, np.array(train["gender"]) == "female", sample_weight=weights)
    nurses = [k for k, title in enumerate(train["title"]) if title == "nurse"]
    mine = scorer.score(
        [train["text"][k] for k in nurses],
        names=[train["name"][k] for k in nurses],
        truth=["nurse"] * len(nurses),
    ).irrelevant["female"]
    theirs = other.predict_proba(rows[nurses])[:, 1]
    assert np.abs(mine - theirs).max() < 0.01


def test_irrelevant_vector_scorers_never_see_the_relevant_words():
    scorer = fitted(representation=WordVectors(width=30))
    relevant = scorer.relevant[scorer.classes.index("rapper")]
    words = [scorer.names[k] for k in np.flatnonzero(relevant)]
    assert words
    _, test = parts()
    text = test["text"][0]
    more = scorer.score([text, f"{text} {' '.join(words)}"], truth=["rapper"] * 2)
    assert more.irrelevant["female"][0] == pytest.approx(more.irrelevant["female"][1], abs=1e-5)
    assert more.norm["female"][0] != pytest.approx(more.norm["female"][1], abs=1e-5)


def test_rows_without_anything_known_get_no_norm():
    scores = usual().score(["", None, "zzzz qqqq", "chess"], truth=["nurse", None, "nurse", "king"])
    assert np.isnan(scores.norm["female"]).tolist() == [True, True, True, "chess" not in
                                                        usual().names]  # fmt: skip
    assert scores.empty == 3 + ("chess" not in usual().names)
    assert scores.unscored == 2


def test_rows_of_the_training_split_are_known_again():
    train, test = parts()
    scorer = usual()
    assert scorer.score(train["text"][:7] + test["text"][:3]).leaked == 7
    card = quality_card(scorer, train["text"], group=train["gender"], truth=train["title"])
    assert (
        "1,600 rows were in the scorer's training split (a leak): its norms look better there "
        "than they are. Score rows that it has not seen."
    ) in card.warnings


def test_the_folder_keeps_everything(tmp_path):
    _, test = parts()
    for scorer in (usual(), fitted(representation=WordVectors(width=20))):
        save_norms(scorer, tmp_path / "norms", card={"accuracy": 0.7})
        again, card = load_norms(tmp_path / "norms")
        assert card == {"accuracy": 0.7}
        assert sorted(p.name for p in (tmp_path / "norms").iterdir()) == [
            "arrays.npz",
            "manifest.json",
            "norms.json",
        ]
        one = scorer.score(test["text"], truth=test["title"])
        other = again.score(test["text"], truth=test["title"])
        assert np.array_equal(one.norm["male"], other.norm["male"])
        assert np.array_equal(one.irrelevant["male"], other.irrelevant["male"])
    assert [p.name for p in tmp_path.iterdir()] == ["norms"]


def test_folders_that_are_not_norms_are_refused(tmp_path):
    with pytest.raises(DataError) as refused:
        load_norms(tmp_path)
    assert str(refused.value) == (
        f"'{tmp_path}' is not a folder of norms. Make one with: evenhand norms fit … --out "
        f"{tmp_path}"
    )
    home = tmp_path / "norms"
    save_norms(usual(), home)
    document = json.loads((home / "norms.json").read_text())
    (home / "norms.json").write_text(json.dumps(document | {"schema": "evenhand.norms/9"}))
    with pytest.raises(DataError) as refused:
        load_norms(home)
    assert str(refused.value) == (
        f"'{home}' has schema 'evenhand.norms/9'; this version reads evenhand.norms/1. "
        f"Make it again with: evenhand norms fit … --out {home}"
    )
    (home / "norms.json").write_text(json.dumps(document))
    (home / "arrays.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataError, match=r"arrays.npz' is damaged"):
        load_norms(home)
    (home / "norms.json").write_text("{")
    with pytest.raises(DataError, match=r"norms.json' cannot be read"):
        load_norms(home)
    other = tmp_path / "letters"
    other.mkdir()
    (other / "a.txt").write_text("dear")
    with pytest.raises(
        UsageError, match=r"cannot be written: it holds 'a\.txt', which Evenhand did not"
    ):
        save_norms(usual(), other)
    with pytest.raises(UsageError, match="cannot be written: it is a file"):
        save_norms(usual(), other / "a.txt")
    with pytest.raises(UsageError, match="cannot be written: there is no folder"):
        save_norms(usual(), tmp_path / "none" / "norms")


def test_bad_training_rows_are_refused():
    train, _ = parts()
    shared = {"group": train["gender"], "truth": train["title"]}
    with pytest.raises(DataError) as refused:
        fit_norm_scorer([""] * len(train["text"]), **shared)
    assert str(refused.value) == (
        "All 1,600 training texts are empty. Name the column that holds the texts."
    )
    with pytest.raises(UsageError, match="truth has 1,600 values for 2 rows"):
        fit_norm_scorer(["a", "b"], **shared)
    with pytest.raises(UsageError, match=r"groups=\['female'\] is not two groups or more"):
        fit_norm_scorer(train["text"], groups=["female"], **shared)
    with pytest.raises(DataError) as refused:
        fit_norm_scorer(train["text"], group=train["gender"], truth=train["gender"],
                        groups=["female", "male"])  # fmt: skip
    assert str(refused.value) == (
        "No class has rows of two of the groups female, male, so there is nothing to learn a norm "
        "from. See whether the truth and the group are two different columns."
    )


def test_the_card_tells_what_was_removed_and_how_good_it_is():
    train, test = parts()
    card = card_of(usual())
    norm = usual().score(test["text"], names=test["name"]).norm["female"]
    women = np.array(test["gender"]) == "female"
    assert card.accuracy.value == pytest.approx(((norm > 0.5) == women).mean())
    assert card.auc["female"].value == pytest.approx(roc_auc_score(women, norm))
    weights = alpha_weights(test["title"], test["gender"])
    assert card.accuracy_weighted.value == pytest.approx(
        np.average((norm > 0.5) == women, weights=weights)
    )
    assert card.cells["nurse"]["female"] == sum(
        t == "nurse" and g == "female" for t, g in zip(train["title"], train["gender"], strict=True)
    )
    she = sum(len(re.findall(r"\bshe\b", text, re.I)) for text in train["text"])
    assert card.removed["she"] == she > 0
    assert card.removed["<names>"] > 0
    assert 0.5 < card.calibration[1] < 1.5
    assert card.warnings == ()
    assert 0.9 < card.irrelevant_shares["more in all"] < 1
    json.dumps(card.plain(), allow_nan=False)
    assert "AUC of female" in str(card)
    assert "training rows" in str(card)


def test_a_scorer_that_reads_pronouns_is_said_to():
    card = card_of(fitted(scrub=False, irrelevant=False))
    assert card.accuracy.value > 0.95
    assert card.warnings[0] == (
        f"The scorer is right on {card.accuracy.value:.1%} of the rows: something in them names "
        "the group outright (see the words it weighs most), and correlations with it say little."
    )
    assert card.warnings[1].endswith(
        "which scrubbing removes: the scorer reads who is meant, not how they write."
    )
    assert card.warnings[2] == (
        "The texts were not scrubbed: pronouns, titles and names may tell the group."
    )


def test_a_scorer_of_noise_is_too_weak():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["leaf", "tree", "stone", "brook"], 12)) for _ in range(1_200)]
    group, truth = (rng.choice(list(names), 1_200).tolist() for names in ("fm", "abcde"))
    scorer = fit_norm_scorer(texts[:800], group=group[:800], truth=truth[:800],
                             representation=BagOfWords())  # fmt: skip
    card = quality_card(scorer, texts[800:], group=group[800:], truth=truth[800:])
    guess = card.auc_irrelevant["f"]
    assert guess.low < 0.5 < guess.high
    assert card.warnings == (
        "The scorer is too weak to carry the measurement: the data do not tell it from guessing. "
        "Give more training rows, or other features.",
        "100.0% of the words as used are irrelevant: the task-irrelevant norms are nearly the "
        "norms themselves. Choose more words to be relevant (--relevant 0.6), or leave them out "
        "(--no-irrelevant).",
        "The task-irrelevant norms of d and e are nearly the same for everybody (SD under 0.02): "
        "correlations with them cannot show anything.",
        f"Within classes the data do not tell the task-irrelevant scorers from guessing (AUC "
        f"{guess.value:.2f}, {guess.low:.2f} to {guess.high:.2f}): correlations with their norms "
        "cannot show anything.",
    )


def test_the_card_tells_what_the_task_irrelevant_scorers_can_show():
    _, test = parts()
    scorer = usual()
    card = card_of(scorer)
    scores = scorer.score(test["text"], names=test["name"], truth=test["title"])
    norm = scores.irrelevant["female"]
    women, titles = np.array(test["gender"]) == "female", np.array(test["title"])
    assert set(card.irrelevant) == set(SHARES)
    weights, areas = [], []
    for name, one in card.irrelevant.items():
        rows = titles == name
        m, n = int((rows & women).sum()), int((rows & ~women).sum())
        assert one.n == m + n
        assert one.accuracy.value == pytest.approx(((norm > 0.5) == women)[rows].mean())
        assert one.deviation["female"] == pytest.approx(norm[rows].std())
        assert one.auc["female"].value == pytest.approx(roc_auc_score(women[rows], norm[rows]))
        assert (one.auc["female"].n, one.auc["female"].n_reference) == (m, n)
        assert not one.flat
        weights.append(m * n / (m + n))
        areas.append(one.auc["female"].value)
    mean = card.auc_irrelevant["female"]
    assert mean.value == pytest.approx(np.average(areas, weights=weights))
    assert 0.5 < mean.low < mean.value < mean.high < 1
    # The interval of the mean is narrower than that of any class.
    assert all(
        mean.high - mean.low < one.auc["female"].high - one.auc["female"].low
        for one in card.irrelevant.values()
    )
    assert card.accuracy_irrelevant.value == pytest.approx(((norm > 0.5) == women).mean())
    assert "    relevant            more in all groups at a false discovery rate of 0.05" in str(
        card
    )
    assert "    SD of the norms     0." in str(card)


def test_few_rows_of_a_class_are_not_told_of():
    _, test = parts()
    few = [k for k, (t, g) in enumerate(zip(test["title"], test["gender"], strict=True))
           if t == "nurse" and g == "male"][:9]  # fmt: skip
    many = [k for k, t in enumerate(test["title"]) if t != "nurse" or test["gender"][k] != "male"]
    part = {name: [column[k] for k in (*many, *few)] for name, column in test.items()}
    card = quality_card(usual(), part["text"], group=part["gender"], truth=part["title"],
                        names=part["name"])  # fmt: skip
    one = card.irrelevant["nurse"].auc["male"]
    women = card.irrelevant["nurse"].n - 9
    assert one.undefined == f"9 rows of the group and {women} others, and 10 of each are needed"


def test_the_share_of_relevant_words_is_chosen_and_kept(tmp_path):
    strict, wide = usual(), fitted(rule=Rule(relevant=0.6))
    shares = [card_of(scorer).irrelevant_use for scorer in (strict, wide)]
    assert shares[1]["chosen"] == pytest.approx(0.4, abs=0.01)
    assert shares[1]["more in all"] == shares[0]["more in all"] > 0.6
    assert wide.relevant.sum() > strict.relevant.sum()
    accuracy = [card_of(scorer).accuracy_irrelevant.value for scorer in (strict, wide)]
    assert accuracy[1] < accuracy[0]
    assert "    relevant            the 60% of the words as used most typical of the class" in str(
        card_of(wide)
    )
    save_norms(wide, tmp_path / "norms")
    again, _ = load_norms(tmp_path / "norms")
    assert again.settings["rule"] == {
        "relevant": 0.6, "of": "use", "fdr": None, "variant": "more in all", "unit": "token"
    }  # fmt: skip
    assert np.array_equal(again.relevant, wide.relevant)
    few = card_of(fitted(rule=Rule(relevant=len(wide.names) - 1)))
    assert any("of the words as used are irrelevant, so that" in each for each in few.warnings)


def test_folders_of_earlier_versions_are_read(tmp_path):
    _, test = parts()
    save_norms(usual(), tmp_path / "norms")
    path = tmp_path / "norms" / "norms.json"
    document = json.loads(path.read_text())
    for name in ("rule", "capitalised_names"):
        del document["settings"][name]
    document["settings"] |= {"unit": "token", "variant": "more in all"}
    for name in ("name_words", "relevant"):
        del document["facts"][name]
    path.write_text(json.dumps(document))
    again, _ = load_norms(tmp_path / "norms")
    one, other = (each.score(test["text"], truth=test["title"]) for each in (usual(), again))
    assert np.array_equal(one.irrelevant["male"], other.irrelevant["male"])
    old = card_of(again)
    assert "    relevant            more in all" in str(old)
    assert old.irrelevant_use == card_of(usual()).irrelevant_use


def test_area_of_one_group_is_undefined():
    found = area(np.array([0.1]), np.array([]), level=0.95)
    assert found.undefined == "the held-out rows have one group alone"
    with pytest.raises(DataError, match="No held-out row belongs to female or male and has a"):
        quality_card(usual(), ["x"], group=["other"], truth=["nurse"])


def test_ratings_lean_towards_the_group_that_is_named(tmp_path):
    scorer = usual()
    weights = scorer.word_weights("female")
    path = tmp_path / "ratings.csv"
    rows = [f"{word.upper()},{weight}" for word, weight in zip(scorer.names, weights, strict=True)]
    path.write_text("\n".join(["word,mean", *rows, "qqqq,3"]))
    found = agreement(scorer, read_ratings(path, toward="female"))
    assert found.value == pytest.approx(1)
    assert found.n == len(scorer.names)
    assert agreement(scorer, read_ratings(path, toward="male")).value == pytest.approx(-1)
    card = card_of(scorer, ratings=read_ratings(path, toward="female"))
    assert card.ratings.value == pytest.approx(1)
    assert str(card.ratings) in str(card)
    # The same words weigh nearly the same in the scorers without each class's own words.
    each = [one.ratings for one in card.irrelevant.values()]
    for name, one in zip(card.irrelevant, each, strict=True):
        kept = ~scorer.relevant[scorer.classes.index(name)]
        assert one.n == kept.sum()
        expected = spearmanr(weights[kept], scorer.word_weights("female", name=name)[kept])[0]
        assert one.value == pytest.approx(expected)
    mean = card.ratings_irrelevant
    assert mean.value == pytest.approx(np.mean([one.value for one in each]))
    assert 0.8 < mean.low < mean.value < mean.high <= 1
    assert mean.n == min(one.n for one in each)
    assert mean.method.startswith("mean over 6 classes, SD 0.")
    with pytest.raises(UsageError, match=r"Ratings lean towards 'femal', which is not a group of "
                                         r"the norm scorer. Did you mean 'female'\?"):  # fmt: skip
        agreement(scorer, read_ratings(path, toward="femal"))
    strange = Ratings(words=("qqqq",), values=np.array([1.0]), toward="female", source="r.csv")
    with pytest.raises(DataError) as refused:
        agreement(scorer, strange)
    assert str(refused.value) == (
        f"'r.csv' has none of the {len(scorer.names):,} words of the norm scorer. See whether its "
        "language and its case are those of the texts."
    )
    (tmp_path / "other.csv").write_text("term,mean\na,1\n")
    with pytest.raises(
        DataError, match=r"has the columns term, mean. It needs 'word' and a number"
    ):
        read_ratings(tmp_path / "other.csv", toward="female")
    with pytest.raises(DataError, match="There is no file"):
        read_ratings(tmp_path / "none.csv", toward="female")


def test_numbers_have_norms_too():
    rng = np.random.default_rng(0)
    n = 2_000
    women = rng.random(n) < 0.4
    truth = rng.choice(list("abcdef"), n).tolist()
    group = np.where(women, "f", "m").tolist()
    table = np.stack([40 - 5 * women + 3 * rng.standard_normal(n), rng.standard_normal(n)], axis=1)
    shared = {"columns": ["hours", "age"]}
    scorer = fit_number_scorer(table[:1500], group=group[:1500], truth=truth[:1500], **shared)
    norm = scorer.score(table[1500:]).norm["f"]
    assert roc_auc_score(women[1500:], norm) > 0.8
    # The unit of a feature changes nothing.
    minutes = table * [60, 1]
    other = fit_number_scorer(minutes[:1500], group=group[:1500], truth=truth[:1500], **shared)
    assert other.score(minutes[1500:]).norm["f"] == pytest.approx(norm, abs=1e-6)
    card = quality_card(scorer, table[1500:], group=group[1500:], truth=truth[1500:])
    assert card.strongest["m"][0][0] == "hours"
    holes = table[1500:].copy()
    holes[0, 1] = np.nan
    assert np.isnan(scorer.score(holes).norm["f"][0])
    with pytest.raises(UsageError, match=r"The features have the shape \(5,\); 2 columns"):
        scorer.score(np.ones(5))
    with pytest.raises(DataError, match="No training row has a value of every one of hours, age"):
        fit_number_scorer(np.full((n, 2), np.nan), group=group, truth=truth, **shared)


def test_refits_show_how_far_the_bias_depends_on_the_scorer():
    train, test = parts()
    rng = np.random.default_rng(0)
    norm = usual().score(test["text"], names=test["name"]).norm["female"]
    share = np.array([SHARES[title] for title in test["title"]])
    score = (share - 0.5) * 40 * (norm - 0.5) + 0.1 * rng.standard_normal(len(norm))
    held = HeldOutRows(texts=test["text"], group=test["gender"], truth=test["title"],
                score=score.tolist(), names=test["name"])  # fmt: skip
    found = norm_multiplicity(
        train["text"],
        group=train["gender"],
        truth=train["title"],
        names=train["name"],
        held=held,
        representations={"words": BagOfWords(minimum=2), "vectors": WordVectors(width=20)},
        refits=3,
    )
    assert found.bias.shape == (6, 2)
    assert found.representations == ("words",) * 3 + ("vectors",) * 3
    middle, low, high = found.spread("female")
    assert low <= middle <= high
    assert low > 0.5
    with pytest.raises(UsageError, match="refits=0 of 1 representations is no refit"):
        norm_multiplicity(train["text"], group=train["gender"], truth=train["title"], held=held,
                          representations={"words": BagOfWords()}, refits=0)  # fmt: skip


def audited(leak: str, *, spurious: float) -> dict[tuple[str, str], dict[str, Any]]:
    """Norm bias of a bag-of-words classifier on simulated biographies, out of sample."""
    jobs = {
        f"job{k:02d}": Occupation(female_share=s) for k, s in enumerate(np.linspace(0.1, 0.9, 12))
    }
    table = biographies(9_600, occupations=jobs, leak=leak, spurious=spurious, seed=0).frame
    train, test = table[:4_800], table[4_800:]
    words = BagOfWords(minimum=2)
    scorer = fit_norm_scorer(
        train["text"].to_list(),
        group=train["gender"].to_list(),
        truth=train["title"].to_list(),
        names=train["name"].to_list(),
        representation=words,
    )
    model = LogisticClassifier()
    model.fit(scorer.counts(train["text"].to_list(), names=train["name"].to_list()),
              train["title"].to_numpy())  # fmt: skip
    texts, names = test["text"].to_list(), test["name"].to_list()
    logits = model.decision_function(scorer.counts(texts, names=names))
    found = scorer.score(texts, names=names, truth=test["title"].to_list())
    columns = [pl.Series(f"score:{name}", logits[:, k]) for k, name in enumerate(model.classes_)]
    columns += [pl.Series(f"norm@{group}", norm) for group, norm in found.norm.items()]
    columns += [pl.Series(f"norm_irrelevant@{g}", norm) for g, norm in found.irrelevant.items()]
    scored = test.select("title", "gender").with_columns(columns)
    decisions = eh.Decisions(scored, truth="title", group="gender")
    rows = eh.audit(decisions, lenses=["norms"], settings={"not_class": False}).rows
    return {(r["measure"], r["group"]): r for r in rows if r["group"] == r["norm"]}


@pytest.mark.heavy
@pytest.mark.parametrize("leak", ["label_noise", "class_words"])
def test_a_planted_leak_is_found_in_texts(leak: str) -> None:
    found = audited(leak, spurious=1.0)
    for group in ("female", "male"):
        for end in ("", "_irrelevant"):
            assert found[f"norm_bias{end}", group]["low"] > 0.5
        assert found["norm_slope", group]["low"] > 0.5


@pytest.mark.heavy
def test_nothing_is_found_where_nothing_was_planted():
    found = audited("imbalance", spurious=0.0)
    for group in ("female", "male"):
        for name in ("norm_bias", "norm_bias_irrelevant", "norm_slope"):
            assert found[name, group]["low"] < 0 < found[name, group]["high"]


@pytest.mark.heavy
def test_28_irrelevant_scorers_take_less_than_15_times_one():
    table = biographies(20_000, seed=0).frame
    arguments = {"group": table["gender"].to_list(), "truth": table["title"].to_list(),
                 "names": table["name"].to_list()}  # fmt: skip

    scorers = {}

    def fit(irrelevant):
        scorers[irrelevant] = fit_norm_scorer(
            table["text"].to_list(),
            irrelevant=irrelevant,
            representation=WordVectors(),
            **arguments,
        )

    ratio = times_as_long(lambda: fit(True), lambda: fit(False), runs=1) - 1
    assert len(scorers[True].by_class) == 28
    print(f"28 task-irrelevant scorers: {ratio:.1f} times one norm scorer")
    assert ratio < 15


def test_all_right_under_any_weights_is_one() -> None:
    for seed in range(200):
        weights = np.random.default_rng(seed).gamma(1.0, size=245)
        found = weighted_share(np.ones(245), weights, level=0.95)
        assert found.value == pytest.approx(1.0)
        assert found.high == pytest.approx(1.0)


def test_numbers_that_are_none_go_into_a_document_as_none() -> None:
    plain = told(Estimate(value=1.0, low=float("nan"), high=None, level=0.95, n=12))
    assert (plain["value"], plain["low"], plain["high"], plain["n"]) == (1.0, None, None, 12)
