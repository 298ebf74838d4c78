"""Simulated biographies: what was planted is there, each switch by itself."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from work import calls

from evenhand.errors import UsageError
from evenhand.simulate.biographies import Occupation, biographies, occupations
from evenhand.simulate.biography_words import FEMALE_SHARE, NORM_WORDS
from evenhand.text.swap import swap_texts

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())[
    "1.13_public_female_share"
]


def norm_counts(frame):
    """Feminine minus masculine norm words in each text."""
    split = frame["text"].str.replace_all(r"[^\w ]", "").str.split(" ").to_list()
    feminine, masculine = (set(NORM_WORDS[g].split()) for g in ("female", "male"))
    return np.array([sum((w in feminine) - (w in masculine) for w in words) for words in split])


def test_the_female_shares_are_the_published_ones():
    assert {title: round(share, 4) for title, share in FEMALE_SHARE.items()} == ORACLE["p_c"]
    assert len(occupations()) == 28


def test_columns_length_and_seed():
    made = biographies(500, seed=5)
    assert made.frame.columns == ["id", "name", "gender", "title", "text"]
    lengths = made.frame["text"].str.split(" ").list.len()
    assert lengths.min() >= 60
    assert lengths.max() <= 75
    assert 64 <= lengths.mean() <= 70
    assert made.frame.equals(biographies(500, seed=5).frame)
    assert not made.frame.equals(biographies(500, seed=6).frame)


def test_base_rates_come_out_as_planted():
    made = biographies(60_000, seed=1)
    found = made.frame.group_by("title").agg(n=pl.len(), f=(pl.col("gender") == "female").mean())
    for title, n, share in found.iter_rows():
        p = made.planted["female_share"][title]
        assert abs(share - p) < 4.5 * (p * (1 - p) / n) ** 0.5
        assert n / 60_000 == pytest.approx(made.planted["size"][title], rel=0.2)


def test_without_the_causal_path_a_swap_changes_nothing():
    texts = biographies(300, pronouns=0).frame["text"].to_list()
    assert not swap_texts(texts, to="female").changed.any()


def test_with_the_causal_path_every_text_of_the_other_gender_changes():
    frame = biographies(300).frame
    done = swap_texts(frame["text"].to_list(), to="female", sources=frame["gender"].to_list())
    assert done.changed.tolist() == (frame["gender"] == "male").to_list()
    assert not done.mixed.any()
    assert not done.unresolved


def test_the_spurious_path_is_a_switch_of_its_own():
    for spurious, apart in ((1.0, True), (0.0, False)):
        frame = biographies(8_000, spurious=spurious, pronouns=0, seed=2).frame
        counts, female = norm_counts(frame), (frame["gender"] == "female").to_numpy()
        gap = counts[female].mean() - counts[~female].mean()
        error = (counts.var() * (1 / female.sum() + 1 / (~female).sum())) ** 0.5
        assert (gap > 10 * error) if apart else (abs(gap) < 4 * error)


def test_label_noise_depends_on_the_norm():
    made = biographies(20_000, leak="label_noise", seed=3)
    moved = (made.frame["title"] != made.hidden["title"]).to_numpy()
    norm = made.hidden["norm"].to_numpy()
    feminine = np.array([made.planted["slope"][t] > 0.5 for t in made.hidden["title"]])
    masculine = np.array([made.planted["slope"][t] < -0.5 for t in made.hidden["title"]])
    assert moved[feminine & (norm < 0)].mean() > moved[feminine & (norm > 0)].mean() + 0.05
    assert moved[masculine & (norm > 0)].mean() > moved[masculine & (norm < 0)].mean() + 0.05
    assert made.planted["relabelled"] == pytest.approx(moved.mean())


def test_class_words_carry_the_norm():
    made = biographies(20_000, leak="class_words", seed=4)
    chosen = occupations()
    own = np.array(
        [
            sum(word in text for word in chosen[title].words)
            for title, text in made.frame.select("title", "text").iter_rows()
        ]
    )
    slope = np.array([made.planted["slope"][t] for t in made.frame["title"]])
    norm = made.hidden["norm"].to_numpy()
    assert np.corrcoef(own, slope * norm)[0, 1] > 0.2
    plain = biographies(20_000, seed=4)
    assert plain.planted["relabelled"] == 0


def test_other_occupations_and_names():
    made = biographies(
        200,
        occupations={"cook": Occupation(female_share=0.9), "smith": Occupation(female_share=0.1)},
        first_names=True,
    )
    assert set(made.frame["title"]) == {"cook", "smith"}
    assert all(name in text for name, text in made.frame.select("name", "text").iter_rows())


def test_many_biographies_are_drawn_together():
    # About two calls for each beyond what one table takes, 400,000 biographies a second: a call
    # of the generator for each of its words would be hundreds.
    assert calls(lambda: biographies(4_000)) / 4_000 < 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"leak": "imbalanc"}, "leak='imbalanc' is not one of imbalance, label_noise, "
         "class_words. Did you mean 'imbalance'?"),
        ({"pronouns": 2}, "pronouns=2 is not a share between 0 (no pronouns) and 1."),
        ({"occupations": {"a": Occupation(female_share=0.5)}},
         "n=5 and 1 occupations: give one or more and two or more."),
        ({"occupations": {"a": Occupation(female_share=1.5), "b": Occupation(female_share=0.5)}},
         "'a' has female_share=1.5 and size=1.0. A share lies between 0 and 1, a size above 0."),
    ],
)  # fmt: skip
def test_bad_arguments(arguments, message):
    with pytest.raises(UsageError) as caught:
        biographies(5, **arguments)
    assert str(caught.value) == message
