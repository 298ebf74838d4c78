"""What the page of replications says of public counts, worked out again."""

from math import exp, hypot
from pathlib import Path

import polars as pl
import pytest

import evenhand as eh
from evenhand.stats.labelers.signal import signal_detection
from evenhand.stats.rates import gap

EDOS = Path(__file__).parents[3] / "shared" / "data" / "edos_sexism.csv"
PAGE = Path(__file__).parents[2] / "docs" / "papers" / "replication.md"
# ProPublica 2016: reoffended and flagged, not flagged; did not and flagged, not flagged.
BLACK, WHITE = (1369, 532, 805, 990), (505, 461, 349, 1139)


@pytest.fixture(scope="module")
def words():
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def test_error_rates_differ_where_the_standard_does_not(words):
    apart = gap(805, 1795, 349, 1488)
    told = (
        f"{100 * apart.value:.1f} points higher ({100 * apart.low:.1f} to {100 * apart.high:.1f})"
    )
    assert told in words
    black, white = (signal_detection(*counts) for counts in (BLACK, WHITE))
    for found, who in (
        (black, "for Black people ({} to {})"),
        (white, "for White people ({} to {})"),
    ):
        ends = [f"{100 * float(end):.0f}" for end in found.interval("implied_threshold")]
        assert f"{100 * float(found.implied_threshold):.0f} %" in words
        assert who.format(*ends) in words
    log = float(black.log_cost_ratio - white.log_cost_ratio)
    error = hypot(black.log_cost_ratio_error, white.log_cost_ratio_error)
    low, value, high = (exp(log + k * 1.96 * error) for k in (-1, 0, 1))
    assert low < 1 < high  # no difference of standard
    told = f"weighs {value:.2f} times as much ({low:.2f} to {high:.2f})".replace("0.", ".")
    assert told in words
    assert (
        f"({float(black.separation):.2f} and {float(white.separation):.2f})".replace("0.", ".")
        in words
    )
    lower = float(white.criterion - black.criterion)
    assert f"lower by {lower:.2f}".replace("0.", ".") in words


@pytest.mark.heavy
@pytest.mark.skipif(not EDOS.exists(), reason="the real data is not there")
def test_copies_trade_one_gap_for_the_other_on_real_posts(words):
    """EDOS, its groups by the words: what the page tells of CDA, on two training sets."""
    posts = pl.read_csv(EDOS).with_columns(pl.col("split").replace({"dev": "train"}))
    about = [eh.swap(text, to="male", lexicon="gender_words").value for text in posts["text"]]
    posts = posts.with_columns(gender=pl.Series(about)).drop_nulls("gender")
    assert f"{len(posts):,} posts have one" in words
    ledger = eh.compare(
        posts, text="text", truth="label_sexist", group="gender", split="split", seeds=2,
        positive="sexist", reference="male", remedies=["augment"],
        texts={"representations": ["bow"], "lexicon": "gender_words"},
    )  # fmt: skip
    assert f"{ledger.document['data']['test_rows']:,} posts to test" in words

    def gap(remedy, name):
        return ledger.row(remedy)["measures"][name]["female"]

    plain, paired = "true_positive_rate_gap", "counterfactual_true_positive_rate_gap"
    assert gap("baseline", paired)["value_low"] > 0.05
    assert gap("baseline", plain)["value"] < 0
    assert (gap("baseline", plain)["n"], gap("baseline", paired)["n"]) == (759, 890)
    assert abs(gap("augment", paired)["value"]) < 0.01
    assert gap("augment", plain)["value"] < gap("baseline", plain)["value"] - 0.04
    assert (
        "One gap for another: the counterfactual true positive gap of 'female' fell"
        in (ledger.row("augment")["sentence"])
    )
