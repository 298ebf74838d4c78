"""Validity of a swap: shares, round trip, articles, placebo and the leak probe."""

import numpy as np
import pytest

from evenhand.simulate.biographies import biographies
from evenhand.text.lexicon import load_lexicon
from evenhand.text.swap import swap_texts
from evenhand.text.validity import (
    _paired_auc,
    article_mismatches,
    leak_probe,
    placebo_changes,
    swap_validity,
    words_and_pairs,
)

TEXTS = biographies(800, seed=3).frame["text"].to_list()


def test_shares_by_hand():
    # Of four texts that are not null, "He ran." and the mixed one change; one is mixed.
    texts = ["He ran.", "She ran.", "He met her.", "Rain.", None]
    found = swap_validity(texts, to="female", probe=False)
    assert found.changed.value == 0.5
    assert found.changed.n == 4
    assert found.mixed.value == 0.25
    assert found.missing == 1
    assert found.round_trip.undefined == "the lexicon promises no round trip"
    assert found.leak.undefined == "the probe was not asked for"
    assert "changed: 0.500" in str(found)
    assert found.to_json()["changed"]["value"] == 0.5


def test_a_lexicon_that_promises_a_round_trip_keeps_it():
    texts = ["The priest read the Bible.", "Muslims met an imam.", "Hindus at a temple.", "Rain."]
    found = swap_validity(texts, to="muslim", lexicon="religion", probe=False)
    assert found.round_trip.value == 1.0
    assert found.round_trip.n == 2
    assert found.articles.value == 0.0


def test_unresolved_words_are_listed():
    found = swap_validity(["The gospel at church."], to="hindu", lexicon="religion", probe=False)
    assert found.unresolved_words == {"gospel": 1}


def test_article_mismatches():
    assert article_mismatches("an actor, a heroine, an hour, a university") == 0
    assert article_mismatches("a actor, an heroine") == 2


def test_the_placebo_changes_words_but_no_pronoun():
    texts = ["She often worked with many people.", "Rain.", None, "She frequently ran."]
    lexicon = load_lexicon("neutral_synonyms")
    done = [swap_texts(texts, to=value, lexicon=lexicon) for value in lexicon.values]
    assert done[1].texts[:3] == ["She frequently worked with numerous people.", "Rain.", None]
    assert (done[0].changed | done[1].changed).tolist() == [True, False, False, True]
    assert placebo_changes(texts) == 2


def test_the_probe_finds_no_trace_of_a_clean_swap_and_every_trace_of_a_bad_one(tmp_path):
    clean = leak_probe(TEXTS, lexicon=load_lexicon("gender_pronouns"))
    assert clean.low < 0.5 < clean.high
    path = tmp_path / "bad.toml"
    path.write_text(
        'attribute = "g"\nvalues = ["x", "y"]\npairs = [["she", "he"]]\n'
        'one_way = [{word="her", value="x", to={y="hym"}}, {word="his", value="y", to={x="hur"}}]'
    )
    bad = leak_probe(TEXTS, lexicon=load_lexicon(path))
    assert bad.value > 0.95
    assert 300 < bad.n <= 400  # half of the texts, or fewer: the other half is learned from
    alone = leak_probe(["He ran."] * 60, lexicon=load_lexicon("gender_pronouns"))
    assert alone.undefined == "the swap changes only 0 texts of female; the probe needs 50"


def test_the_probe_is_calibrated_although_topics_go_with_gender():
    # The swap of these texts is exact, but their topics tell the gender: the probe must not see
    # that "knitting. Ms. Sato" fits better than "knitting. Mr. Sato".
    words = load_lexicon("gender_pronouns")
    found = [
        leak_probe(biographies(600, spurious=3.0, seed=seed).frame["text"].to_list(), lexicon=words)
        for seed in range(20)
    ]
    assert sum(each.low <= 0.5 <= each.high for each in found) >= 17
    assert np.mean([each.value for each in found]) == pytest.approx(0.5, abs=0.02)


def test_paired_auc_against_counting():
    rng = np.random.default_rng(0)
    original, changed = rng.normal(size=40).round(1), rng.normal(0.4, size=40).round(1)
    wins = (changed[:, None] > original).mean() + 0.5 * (changed[:, None] == original).mean()
    found = _paired_auc(original, changed, level=0.95)
    assert found.value == pytest.approx(wins)


def test_the_paired_interval_covers():
    # Two scores of one text share their content u; without an effect the AUC is 0.5.
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        u = rng.normal(size=60)
        found = _paired_auc(u + rng.normal(size=60), u + rng.normal(size=60), level=0.95)
        hits += found.low <= 0.5 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


@pytest.mark.parametrize("fewest", [1, 3])
def test_words_and_pairs_are_those_of_scikit_learn(fewest):
    from sklearn.feature_extraction.text import CountVectorizer

    texts = [*TEXTS[:200], "", "One.", "Ärzte, Ärztinnen: 3 of 4!", "a_b c-d"]
    sklearn = CountVectorizer(
        ngram_range=(1, 2), min_df=fewest, token_pattern=r"\w+|[.!?;:,]", binary=True
    ).fit_transform(texts)
    found = words_and_pairs(texts, fewest=fewest)
    assert found.shape == sklearn.shape
    assert (found != sklearn).nnz == 0
    assert found.dtype == sklearn.dtype


def test_words_and_pairs_of_nothing():
    assert words_and_pairs([], fewest=3).shape == (0, 0)
    assert words_and_pairs(["", ""], fewest=1).shape == (2, 0)
