"""Rank correlations under weights and clusters: by hand, by brute force, and their coverage."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from evenhand.stats.ranks import bonett_wright, spearman_from_moments
from evenhand.stats.sampled_ranks import SharedError, sampled_interval, sampled_moments
from evenhand.stats.trend import latent_mean_size, mean_size, rank_trend, reliability, slope


def correlation(x, y, w=None):
    found = sampled_moments(
        np.zeros(len(x), int), x, {"f": y}, cells=1, weights=None if w is None else np.asarray(w)
    ).sums
    moments = {k: found[k] for k in ("x", "xx")} | {k: found[f"{k}:f"] for k in ("y", "yy", "xy")}
    return float(spearman_from_moments(found["n"], **moments)[0])


def test_a_value_by_hand():
    # Scores 1 2 2 with weights 1 1 2: weight below plus half the level's, of 4, less a half:
    # 0.5/4 - 0.5 = -0.375 and (1 + 1.5)/4 - 0.5 = 0.125; norms 1 3 2: -0.375, 0.375, 0.
    # xy = 1(.140625) + 1(.046875) + 2(0) = .1875; xx = .140625 + 3(.015625) = .1875;
    # yy = .140625 + .140625 = .28125; r = .1875/sqrt(.1875 · .28125) = 0.816497.
    x, y, w = np.array([1.0, 2, 2]), np.array([1.0, 3, 2]), [1.0, 1.0, 2.0]
    assert correlation(x, y, w) == pytest.approx(0.816497, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_whole_weights_count_rows_again(seed):
    rng = np.random.default_rng(seed)
    x, y = np.round(rng.normal(size=(2, 60)), 1)
    w = rng.integers(0, 4, 60)
    again = spearmanr(np.repeat(x, w), np.repeat(y, w))[0]
    assert correlation(x, y, w.astype(float)) == pytest.approx(again)
    assert correlation(x, y, 7.3 * w) == pytest.approx(again)
    assert correlation(x, y) == pytest.approx(spearmanr(x, y)[0])


def test_moves_are_the_derivative_of_the_correlation():
    rng = np.random.default_rng(2)
    x, y = np.round(rng.normal(size=(2, 40)), 1)
    w, n = rng.gamma(2.0, size=40), 40
    found = sampled_moments(
        np.zeros(n, int), x, {"f": y}, cells=1, weights=w, clusters=np.arange(n)
    )
    mean, step = w.mean(), 1e-6
    for k in range(0, n, 7):
        more = w.copy()
        more[k] += step
        change = (correlation(x, y, more) - correlation(x, y, w)) / step
        # Leaving the row out takes its weight away, from what is left without it.
        expected = -change * w[k] / (1 - w[k] / (n * mean))
        assert found.moves["f"][k] == pytest.approx(expected, rel=1e-3, abs=1e-7)


def test_moves_are_near_what_leaving_a_cluster_out_does():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(40), 10)
    base = rng.normal(size=(2, 40))[:, cluster] * 0.6 + rng.normal(size=(2, 400))
    x, y = base[0], base[1] + 0.5 * base[0]
    found = sampled_moments(np.zeros(400, int), x, {"f": y}, cells=1, clusters=cluster)
    whole = spearmanr(x, y)[0]
    left = [spearmanr(x[cluster != j], y[cluster != j])[0] - whole for j in range(40)]
    np.testing.assert_allclose(found.moves["f"], left, atol=2e-3)
    assert np.corrcoef(found.moves["f"], left)[0, 1] > 0.999
    exact = 39 / 40 * np.sum(np.square(left))
    assert found.sums["variance:f"][0] == pytest.approx(exact, rel=0.05)
    assert found.sums["freedom"][0] == pytest.approx(39)


def test_cells_do_not_meet_and_weightless_rows_are_left_out():
    rng = np.random.default_rng(4)
    cell = rng.integers(0, 3, 300)
    x, y, w = rng.normal(size=300), rng.normal(size=300), rng.integers(0, 3, 300).astype(float)
    who = rng.integers(0, 20, 300)
    found = sampled_moments(cell, x, {"f": y, "m": -y}, cells=4, weights=w, clusters=who)
    for c in range(3):
        rows = (cell == c) & (w > 0)
        alone = sampled_moments(
            np.zeros(rows.sum(), int), x[rows], {"f": y[rows]}, cells=1, weights=w[rows],
            clusters=who[rows],
        )  # fmt: skip
        for name, value in alone.sums.items():
            assert found.sums[name][c] == pytest.approx(value[0]), name
        assert found.sums["n"][c] == rows.sum()
        assert found.sums["clusters"][c] == len(set(who[rows]))
        np.testing.assert_allclose(found.moves["f"][found.cell == c], alone.moves["f"])
    assert found.sums["n"][3] == 0
    np.testing.assert_allclose(found.moves["m"], -found.moves["f"])


def test_columns_that_do_not_vary_and_single_clusters():
    same = np.full(5, 0.3)
    w = np.array([0.1, 0.7, 0.4, 1.3, 0.2])
    found = sampled_moments(np.zeros(5, int), same, {"f": np.arange(5.0)}, cells=1, weights=w)
    assert found.sums["xx"][0] == 0.0
    assert np.isnan(found.sums["variance:f"][0])
    one = sampled_moments(
        np.zeros(5, int), np.arange(5.0), {"f": w}, cells=1, clusters=np.zeros(5, int)
    )
    assert one.sums["freedom"][0] == 0
    found = sampled_interval(0.5, 5, variance=np.nan, freedom=0, z=1.96)
    assert np.isnan([found.low, found.high, found.p, found.n]).all()


def test_at_one_the_interval_is_that_of_as_many_rows_as_clusters():
    found = sampled_interval(1.0, 60, variance=0.0, freedom=9, z=1.96)
    low, high = bonett_wright(1.0, 10, z=1.96)
    assert (found.low, found.high, found.n) == (pytest.approx(low), high, 10)


def clustered(rng, *, clusters, rows, even, icc, rho):
    """Two normal columns that share their correlation within and between clusters."""
    share = np.full(clusters, 1.0) if even else rng.pareto(1.2, clusters) + 0.3
    sizes = np.maximum(2, np.round(rows * share / share.sum())).astype(int)
    who = np.repeat(np.arange(clusters), sizes)
    root = np.array([[1, 0], [rho, np.sqrt(1 - rho**2)]])
    between = (root @ rng.normal(size=(2, clusters)))[:, who] * np.sqrt(icc)
    return (*(between + (root @ rng.normal(size=(2, len(who)))) * np.sqrt(1 - icc)), who)


def coverage(draws, *, weights=None, seed=0, **design):
    rng, rho = np.random.default_rng(seed), design.get("rho", 0.5)
    truth = 6 / np.pi * np.arcsin(rho / 2)
    inside, plain = [], []
    for _ in range(draws):
        x, y, who = clustered(rng, **{"rho": rho, "icc": 0.0, **design})
        w = None
        if weights == "gamma":
            w = rng.gamma(1.0, size=len(x)) + 0.02
        elif weights == "chosen":
            # Rows are kept more often where y is high, and weighed accordingly.
            likely = 1 / (1 + np.exp(-1.2 * y))
            kept = rng.random(len(x)) < likely
            x, y, who, w = x[kept], y[kept], who[kept], 1 / likely[kept]
        alone = design["clusters"] == design["rows"]
        found = sampled_moments(
            np.zeros(len(x), int), x, {"f": y}, cells=1, weights=w,
            clusters=None if alone else who,
        ).sums  # fmt: skip
        r = correlation(x, y, w)
        limits = sampled_interval(
            r, found["kish"], variance=found["variance:f"], freedom=found["freedom"], z=1.959964
        )
        inside.append(bool(limits.low[0] <= truth <= limits.high[0]))
        low, high = bonett_wright(r, len(x), z=1.959964)
        plain.append(bool(low <= truth <= high))
    return float(np.mean(inside)), float(np.mean(plain))


@pytest.mark.parametrize(
    ("design", "worst"),
    [
        ({"clusters": 200, "rows": 200, "even": True, "weights": "gamma"}, 0.90),
        ({"clusters": 200, "rows": 200, "even": True, "weights": "chosen"}, 0.92),
        ({"clusters": 15, "rows": 150, "even": True, "icc": 0.5}, 0.85),
        ({"clusters": 40, "rows": 400, "even": False, "icc": 0.5}, 0.70),
    ],
)
def test_intervals_of_samples_cover(design, worst):
    # 400 draws: three Monte-Carlo errors are 0.033.
    covered, plain = coverage(400, **design)
    assert 0.95 - 0.033 <= covered <= 0.99
    assert plain < worst


@pytest.mark.heavy
@pytest.mark.parametrize("weights", [None, "gamma", "chosen"])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize(("clusters", "rows"), [(8, 160), (15, 150), (40, 400)])
def test_intervals_of_samples_cover_to_a_percent(weights, even, clusters, rows):
    covered, _ = coverage(2_000, weights=weights, even=even, clusters=clusters, rows=rows, icc=0.3)
    assert 0.93 <= covered <= 0.985


def test_shared_errors_add_what_goes_unseen():
    covariance = np.full((3, 3), 0.01) + np.diag([0.02, 0.0, 0.0])
    shared = SharedError(covariance=covariance, freedom=7.0)
    # Weights 1 1 1: all entries are 0.11, the diagonal 0.05.
    assert shared.extra(np.ones(3)) == pytest.approx(0.06)
    assert shared.extra(np.array([1.0, -1.0, 0.0])) == 0.0
    # The mean off the diagonal is 0.01, on it 0.05/3.
    assert shared.apart == pytest.approx(1 - 0.01 / (0.05 / 3))
    assert shared.take([True, False, True]).covariance.tolist() == [[0.03, 0.01], [0.01, 0.01]]
    alone = SharedError(covariance=np.diag([0.01, 0.02]), freedom=3.0)
    assert (alone.extra(np.ones(2)), alone.apart) == (0.0, 1.0)
    assert alone.join(0.5, np.ones(2), freedom=4.0) == (0.5, 4.0)


def test_errors_of_classes_apart_change_nothing():
    rng = np.random.default_rng(0)
    share, n = np.linspace(0.1, 0.9, 9), np.full(9, 80.0)
    r = 0.3 * (share - 0.5) + 0.2 * rng.normal(size=9)
    r[4] = np.nan
    apart = SharedError(covariance=np.diag(np.full(9, 0.01)), freedom=20.0)
    for made in (
        lambda **more: rank_trend(share, r, **more),
        lambda **more: slope(share, r, n, **more),
        lambda **more: mean_size(r, n, **more).estimate,
        lambda **more: latent_mean_size(share, r, n, **more),
    ):
        assert made(shared=apart) == made()
    assert reliability(r, n, shared=apart) == reliability(r, n)
    tilted = SharedError(covariance=0.1 * np.outer(share - 0.5, share - 0.5), freedom=6.0)
    for made in (lambda **more: rank_trend(share, r, **more),
                 lambda **more: slope(share, r, n, **more)):  # fmt: skip
        one, other = made(), made(shared=tilted)
        assert other.value == one.value
        assert (other.low < one.low, other.high > one.high, other.p > one.p) == (True, True, True)
        assert "wider by the clusters that classes share" in other.method


def trend_coverage(draws, *, rows, clusters, tilt, seed=0):
    """Coverage of the slope of r on the share when each cluster tilts it by a draw of its own."""
    rng = np.random.default_rng(seed)
    share = np.linspace(0.05, 0.95, 20)
    # r is nearly linear in a small kappa: its slope is that of the mean over many clusters.
    wide = rng.normal(size=(20, 40_000))
    kappa = 0.6 * (share - 0.5)[:, None] + tilt * rng.normal(size=(1, 40_000)) * (
        share - 0.5
    )[:, None]  # fmt: skip
    noise = rng.normal(size=wide.shape)
    truth = [spearmanr(a, k * a + e)[0] for a, k, e in zip(wide, kappa, noise, strict=True)]
    target = float(np.polyfit(share, truth, 1)[0])
    found = {True: [], False: []}
    for _ in range(draws):
        own = tilt * rng.normal(size=clusters)
        cell = np.repeat(np.arange(20), rows)
        who = rng.integers(0, clusters, cell.size)
        norm = rng.normal(size=cell.size)
        score = (0.6 + own[who]) * (share[cell] - 0.5) * norm + rng.normal(size=cell.size)
        made = sampled_moments(cell, score, {"f": norm}, cells=20, clusters=who)
        r = made.sums["xy:f"] / np.sqrt(made.sums["xx"] * made.sums["yy:f"])
        moves = np.zeros((20, clusters))
        moves[made.cell, made.cluster] = made.moves["f"]
        many = made.sums["clusters"]
        moves *= np.sqrt((many - 1) / many)[:, None]
        shared = SharedError(covariance=moves @ moves.T, freedom=clusters - 1.0)
        worth = sampled_interval(
            r, made.sums["kish"], variance=made.sums["variance:f"], freedom=made.sums["freedom"],
            z=1.96,
        ).n  # fmt: skip
        for used in found:
            line = slope(share, r, worth, shared=shared if used else None)
            found[used].append(line.low <= target <= line.high)
    return float(np.mean(found[True])), float(np.mean(found[False]))


def test_trends_cover_where_clusters_tilt_them_all_alike():
    # 200 draws: three Monte-Carlo errors are 0.046.
    covered, plain = trend_coverage(200, rows=100, clusters=20, tilt=1.0)
    assert covered >= 0.95 - 0.046
    assert plain < 0.8
    covered, plain = trend_coverage(200, rows=60, clusters=20, tilt=0.0)
    assert covered >= 0.95 - 0.046
    assert plain >= 0.95 - 0.046
