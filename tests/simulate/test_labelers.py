"""Simulated labelers: planted values are found again."""

import numpy as np
import polars as pl
import pytest

from evenhand.errors import UsageError
from evenhand.simulate.labelers import LabelerGroup, Variation, simulate_labelers
from evenhand.stats.labelers.signal import ez_diffusion, signal_detection


def counted(frame, group):
    rows = frame.filter(group=group)
    truth, said = rows["truth"].to_numpy(), rows["decision"].to_numpy()
    return [int(((truth == t) & (said == s)).sum()) for t, s in ((1, 1), (1, 0), (0, 1), (0, 0))]


def test_planted_values_by_hand():
    # φ = 0.1, d′ = 2, t = 1.2: log c = ln 9 − 2.4 + 2 = 1.7972.
    found = simulate_labelers(labelers=2, items_each=2).planted
    assert found["log_cost_ratio"][0] == pytest.approx(1.797224577, abs=1e-8)


def test_planted_values_are_recovered():
    groups = {
        "A": LabelerGroup(prevalence=0.2, separation=1.6, criterion=1.0),
        "B": LabelerGroup(prevalence=0.4, separation=1.2, criterion=0.5),
    }
    found = simulate_labelers(groups, labelers=20, items_each=4000, seed=2)
    for name, group in groups.items():
        result = signal_detection(*counted(found.frame, name))
        planted = found.planted.filter(group=name)
        assert abs(result.criterion - group.criterion) < 3 * result.criterion_error
        assert abs(result.separation - group.separation) < 3 * result.separation_error
        away = result.log_cost_ratio - planted["log_cost_ratio"][0]
        assert abs(away) < 3 * result.log_cost_ratio_error


def test_same_seed_same_rows():
    one, two, other = simulate_labelers(), simulate_labelers(), simulate_labelers(seed=1)
    assert one.frame.equals(two.frame)
    assert not one.frame.equals(other.frame)
    assert one.frame.height == 2000


def test_no_labeler_sees_an_item_twice():
    for shared in (None, 30):
        frame = simulate_labelers(shared_items=shared).frame
        assert not frame.select("labeler", "item").is_duplicated().any()
    items = frame.group_by("item").agg(pl.col("truth").n_unique(), pl.len())
    assert items["truth"].max() == 1
    assert items["len"].max() > 10


def test_variation_between_labelers():
    spread = Variation(criterion_across=0.5, criterion_within=0.1)
    found = simulate_labelers(labelers=4000, items_each=2, variation=spread).labelers
    wide = found.pivot(on="group", index="labeler", values="criterion")
    a, b = wide["A"].to_numpy(), wide["B"].to_numpy()
    assert a.std() == pytest.approx(np.hypot(0.5, 0.1), rel=0.05)
    assert (a - b).std() == pytest.approx(0.1 * np.sqrt(2), rel=0.05)
    assert found["separation"].n_unique() == 1


def test_items_carry_their_share_of_the_noise():
    groups = {"A": LabelerGroup(prevalence=0.5, separation=1.0, criterion=0.5)}
    same = simulate_labelers(
        groups, labelers=60, items_each=200, shared_items=200, item_share=0.5, seed=4
    ).frame
    # Two labelers' signals of one negative item correlate 0.5; so must their answers:
    # both yes at t = 0.5 has probability 0.1633 by the bivariate normal, not 0.3085² = 0.0952.
    wide = same.filter(truth=0).pivot(on="labeler", index="item", values="decision")
    table = wide.drop("item").to_numpy().astype(float)
    k, m = table.sum(axis=1), table.shape[1]
    assert (k * (k - 1)).mean() / (m * (m - 1)) == pytest.approx(0.1633, abs=0.04)
    assert table.mean() == pytest.approx(0.3085, abs=0.05)


def test_response_times_are_longer_near_the_criterion():
    found = simulate_labelers(labelers=20, items_each=500, seconds=True, seed=1)
    frame = found.frame.with_columns(right=pl.col("truth") == pl.col("decision"))
    assert frame["seconds"].min() > 0.3
    mean = frame.group_by("right").agg(pl.col("seconds").mean())
    seconds = dict(mean.iter_rows())
    assert seconds[False] > seconds[True]
    fit = ez_diffusion(
        frame["right"].mean(),
        variance_seconds=frame["seconds"].var(),
        mean_seconds=frame["seconds"].mean(),
    )
    assert fit.drift > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"groups": {}}, r"^groups is empty\. Give at least one group"),
        ({"labelers": 0}, r"^labelers=0, items_each=50 leave a group without labels\."),
        ({"shared_items": 10}, r"^shared_items=10 is fewer than the 25 items a labeler judges"),
        ({"item_share": 1.0}, r"^item_share=1 is not a share\. Give 0 or more, below 1\."),
    ],
)
def test_words(arguments, words):
    with pytest.raises(UsageError, match=words):
        simulate_labelers(**arguments)
