"""Pooled signal detection: oracles, exact integration, coverage and the real data."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from work import calls, times_as_long

from evenhand.errors import DataError, UsageError
from evenhand.simulate.labelers import LabelerGroup, Variation, simulate_labelers
from evenhand.stats.labelers import pooled
from evenhand.stats.labelers.bent import Bent
from evenhand.stats.labelers.cells import CellCounts, cell_counts, log_likelihood, to_z
from evenhand.stats.labelers.marginals import BEND, quadratic
from evenhand.stats.labelers.modes import by_turns, find_modes
from evenhand.stats.labelers.pooled import hyper_posterior
from evenhand.stats.labelers.posterior import ItemCounts, item_variance, pooled_signal
from evenhand.stats.labelers.variation import (
    hyper_sds,
    hyper_size,
    log_prior,
    precision_of,
)

ROOT = Path(__file__).parent.parent
ORACLES = json.loads((ROOT / "oracles" / "pooling.json").read_text())
LAPLACE = ORACLES["A2_laplace_fixed_hyper"]
ONE = ORACLES["A3_one_labeler_known_population"]
REAL = ROOT.parent.parent / "shared" / "data" / "labelers_recidivism.csv"

HYPER = [[0.4, 0.3, np.arctanh(0.2), 0.2, 0.15, 0.0]]
CELLS = CellCounts(yes=np.array(LAPLACE["inputs"]["K"]), n=np.array(LAPLACE["inputs"]["N"]))


def table_of(frame, groups):
    """Counts (labelers, groups, 4) and the items of a frame of labels."""
    labelers, who = np.unique(frame["labeler"].to_numpy(), return_inverse=True)
    names = {name: g for g, name in enumerate(groups)}
    group = np.array([names[g] for g in frame["group"]])
    truth, said = frame["truth"].to_numpy(), frame["decision"].to_numpy()
    cell = np.where(truth == 1, np.where(said == 1, 0, 1), np.where(said == 1, 2, 3))
    counts = np.zeros((labelers.size, len(groups), 4))
    np.add.at(counts, (who, group, cell), 1)
    _, first, item = np.unique(frame["item"].to_numpy(), return_index=True, return_inverse=True)
    items = ItemCounts(
        yes=np.bincount(item, said).astype(float),
        n=np.bincount(item).astype(float),
        group=group[first].astype(float),
        truth=truth[first].astype(float),
    )
    return counts, items


def covariance_with_the_means(modes):
    """Covariance of each labeler's θ with the uncertainty of β, by the law of total variance."""
    pull = modes.inverse(0) @ modes.precision[0]
    spread = np.linalg.inv(by_turns(modes.curvature)[0])
    return modes.inverse(0) + pull @ spread @ np.swapaxes(pull, -1, -2)


class TestFixedHyperparameters:
    MODES = find_modes(CELLS, HYPER)

    def test_covariance(self):
        inverse = by_turns(precision_of(np.array(HYPER), groups=2).dense(2))[0]
        assert np.linalg.inv(inverse) == pytest.approx(np.array(LAPLACE["Sigma"]), abs=1e-7)

    def test_modes(self):
        assert self.MODES.theta[0] == pytest.approx(np.array(LAPLACE["theta"]), abs=1e-7)
        assert self.MODES.beta[0] == pytest.approx(np.array(LAPLACE["beta"]), abs=1e-7)

    def test_curvatures(self):
        spread = np.linalg.inv(by_turns(self.MODES.curvature)[0])
        assert spread == pytest.approx(np.array(LAPLACE["cov_beta"]), abs=1e-7)
        own = covariance_with_the_means(self.MODES)
        sds = np.sqrt(np.diagonal(own, axis1=1, axis2=2))
        assert sds == pytest.approx(np.array(LAPLACE["sd_theta"]), abs=1e-7)

    def test_log_marginal(self):
        assert self.MODES.log_marginal[0] == pytest.approx(
            LAPLACE["log_marginal_without_constants"], abs=1e-7
        )

    def test_contrasts(self):
        want = LAPLACE["contrast_t"]
        line = np.array([-1.0, 0, 1, 0])
        spread = np.linalg.inv(by_turns(self.MODES.curvature)[0])
        assert line @ self.MODES.beta[0] == pytest.approx(want["est"], abs=1e-7)
        assert np.sqrt(line @ spread @ line) == pytest.approx(want["se"], abs=1e-7)
        assert self.MODES.theta[0] @ line == pytest.approx(np.array(want["labelers"]), abs=1e-7)
        own = np.sqrt(np.einsum("i,jik,k->j", line, covariance_with_the_means(self.MODES), line))
        assert own == pytest.approx(np.array(want["labelers_sd"]), abs=1e-7)

    def test_gradient_vanishes_at_the_mode(self):
        # A numerical check of the Newton formulas: no small move of θ or β does better.
        precision = self.MODES.precision[0]

        def target(theta, beta):
            away = theta - beta
            prior = ((beta - [1, 1.5, 1, 1.5]) ** 2).sum() / 8
            fit = log_likelihood(CELLS.yes, CELLS.n - CELLS.yes, to_z(theta)).sum()
            return fit - 0.5 * np.einsum("ji,ik,jk->", away, precision, away) - prior

        theta, beta = self.MODES.theta[0], self.MODES.beta[0]
        best = target(theta, beta)
        rng = np.random.default_rng(0)
        for _ in range(20):
            near = target(theta + 1e-3 * rng.normal(size=theta.shape), beta)
            assert near < best
            assert target(theta, beta + 1e-3 * rng.normal(size=4)) < best

    def test_batches_and_chunks_agree(self, monkeypatch):
        rows = np.array(HYPER) + np.linspace(0, 0.3, 7)[:, None]
        whole = find_modes(CELLS, rows)
        monkeypatch.setattr("evenhand.stats.labelers.modes.LARGEST_BATCH", 200)
        parts = find_modes(CELLS, rows)
        assert parts.log_marginal == pytest.approx(whole.log_marginal, abs=1e-8)
        warm = find_modes(CELLS, rows, start=(whole.planes, whole.means))
        assert warm.theta == pytest.approx(whole.theta, abs=1e-6)

    @pytest.mark.parametrize("groups", [1, 2, 5])
    def test_blocks_are_the_dense_inverse(self, groups):
        rng = np.random.default_rng(groups)
        n = rng.integers(5, 20, (6, 2 * groups)).astype(float)
        cells = CellCounts(yes=np.floor(n * rng.random(n.shape)), n=n)
        h = np.array([[0.4, 0.3, 0.2, 0.2, 0.15, -0.1]])[:, : hyper_size(groups)]
        modes = find_modes(cells, h)
        # Numerical Hessian of labeler 0's own terms at the mode.
        precision = modes.precision[0]

        def own(theta):
            away = theta - modes.beta[0]
            fit = log_likelihood(cells.yes[0], cells.n[0] - cells.yes[0], to_z(theta))
            return fit.sum() - 0.5 * away @ precision @ away

        step, unit = 1e-3, np.eye(2 * groups) * 1e-3
        at = modes.theta[0, 0]
        hessian = [
            [own(at + a + b) - own(at + a - b) - own(at - a + b) + own(at - a - b) for b in unit]
            for a in unit
        ]
        dense = np.linalg.inv(-np.array(hessian) / (4 * step**2))
        assert modes.inverse(0)[0] == pytest.approx(dense, abs=1e-4)

    def test_likelihood_keeps_its_digits_in_both_tails(self):
        # From one tail up to |z| = 37, by logarithms beyond, where Φ(−z) is 0.
        yes, no = np.array([3.0, 2.0]), np.array([2.0, 0.0])
        for z in ([0.0, 1.5], [-8.0, 9.0], [-36.0, 36.0], [-45.0, 45.0]):
            below, above = log_ndtr(np.array(z)), log_ndtr(-np.array(z))
            want = 3 * below[0] + 2 * above[0] + 2 * below[1]
            assert log_likelihood(yes, no, np.array(z)).sum() == pytest.approx(want, rel=1e-14)

    def test_target_is_even_in_the_signed_sds(self):
        flipped = np.array(HYPER) * [-1, -1, 1, -1, -1, 1]
        assert find_modes(CELLS, flipped).log_marginal == pytest.approx(self.MODES.log_marginal)
        assert log_prior(flipped) == pytest.approx(log_prior(HYPER))
        assert hyper_sds(flipped) == pytest.approx(hyper_sds(HYPER))
        # −½·Σ(x/scale)²: 0.4²/0.25 + 0.3²/0.25 + 0.2027²/0.25 + 0.2²/0.0625 + 0.15²/0.0625 = 2.164
        assert log_prior(HYPER)[0] == pytest.approx(-0.5 * 2.1644, abs=1e-4)

    def test_labeler_without_labels_in_a_cell_is_pulled_to_the_pool(self):
        empty = CellCounts(
            yes=np.vstack([CELLS.yes, np.zeros(4)]), n=np.vstack([CELLS.n, [20.0, 0, 0, 0]])
        )
        modes = find_modes(empty, HYPER)
        assert np.isfinite(modes.theta).all()
        assert modes.log_marginal[0] < 0


class TestOneLabeler:
    COUNTS = (((8, 2, 3, 17),),)

    def test_mode(self):
        want = ONE["laplace"]
        # The population's SD is 0.3 exactly: x² + 0.01² = 0.09.
        x = np.sqrt(0.09 - 1e-4)
        modes = find_modes(cell_counts(self.COUNTS), [[x, x, 0.0]], known_mean=[1.0, 1.5])
        assert modes.theta[0, 0] == pytest.approx([want["t"], want["d"]], abs=1e-6)
        sds = np.sqrt(np.diag(modes.inverse(0)[0]))
        assert sds == pytest.approx([want["t_sd"], want["d_sd"]], abs=1e-6)

    def test_exact_posterior_by_its_cumulants(self):
        # The mode is .0019 and .0054 below the mean: moves and bends make up for it.
        want, x = ONE["exact"], np.sqrt(0.09 - 1e-4)
        cells = cell_counts(self.COUNTS)
        bent = Bent(cells, find_modes(cells, [[x, x, 0.0]], known_mean=[1.0, 1.5]))
        alone = bent.of(np.eye(2)[None])
        mean = (
            ONE["laplace"]["t"] + bent.moves[0].item(),
            ONE["laplace"]["d"] + bent.moves[1].item(),
        )
        sds = np.sqrt(np.diagonal(bent.covariance[0]) + alone.variance[0])
        assert mean == pytest.approx([want["t"], want["d"]], abs=2e-4)
        assert sds == pytest.approx([want["t_sd"], want["d_sd"]], abs=2e-4)
        slopes = np.array([[-mean[1], mean[1] - mean[0]]])
        bend = quadratic(slopes, bent.covariance, BEND)
        value = np.log(0.9 / 0.1) + mean[1] ** 2 / 2 - mean[0] * mean[1]
        value += np.trace(BEND @ bent.covariance[0]) / 2
        assert value == pytest.approx(want["log_c"], abs=0.002)
        along = slopes @ bent.covariance[0] @ slopes[0] + bent.of(slopes[None]).variance[0]
        skewed = bent.met_by_bends(slopes[None], np.ones((1, 1)))[0]
        variance = along[0] + bend.variance[0] + skewed[0]
        assert np.sqrt(variance) == pytest.approx(want["log_c_sd"], abs=0.003)

    def test_exact_posterior_by_grid(self):
        # The oracle itself, by brute-force integration over (t, d′).
        t, d = np.meshgrid(np.linspace(-0.5, 2.5, 601), np.linspace(0, 3.2, 641), indexing="ij")
        cells = cell_counts(self.COUNTS)
        fit = log_likelihood(cells.yes, cells.n - cells.yes, to_z(np.stack([t, d], axis=-1)))
        log_p = fit.sum(axis=-1) - ((t - 1) ** 2 + (d - 1.5) ** 2) / (2 * 0.09)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        assert (p * t).sum() == pytest.approx(ONE["exact"]["t"], abs=1e-6)
        assert (p * d).sum() == pytest.approx(ONE["exact"]["d"], abs=1e-6)


def simulated(seed, *, labelers=40, items_each=50, gap=0.2, **rest):
    groups = {
        "A": LabelerGroup(prevalence=0.3, separation=1.5, criterion=1.0),
        "B": LabelerGroup(prevalence=0.3, separation=1.5, criterion=1.0 - gap),
    }
    spread = Variation(
        criterion_across=0.4, separation_across=0.3, criterion_within=0.2, separation_within=0.15
    )
    found = simulate_labelers(
        groups, labelers=labelers, items_each=items_each, variation=spread, seed=seed, **rest
    )
    counts, items = table_of(found.frame, list(groups))

    def planted(column):
        return np.stack([found.labelers.filter(group=g)[column].to_numpy() for g in groups], axis=1)

    return counts, items, planted


class TestPool:
    def test_reproducible_and_seeded(self):
        counts, *_ = simulated(0, labelers=10)
        one, two = pooled_signal(counts, hyper_draws=64), pooled_signal(counts, hyper_draws=64)
        other = pooled_signal(counts, hyper_draws=64, seed=1)
        assert np.array_equal(one.labelers_drawn, two.labelers_drawn)
        assert not np.array_equal(one.labelers_drawn, other.labelers_drawn)
        a, b = one.labelers("criterion"), other.labelers("criterion")
        assert a.mean == pytest.approx(b.mean, abs=0.06)

    def test_shrinks_noise_and_tells_its_reliability(self):
        counts, _, planted = simulated(1, labelers=60)
        found = pooled_signal(counts)
        pooled = found.labelers("criterion").mean
        raw = -table_z(counts)[..., 0]
        truth = planted("criterion")
        assert np.mean((pooled - truth) ** 2) < 0.7 * np.mean((raw - truth) ** 2)
        reliability = found.reliability("criterion")
        assert np.all((reliability > 0.4) & (reliability < 0.95))
        assert found.reliability("criterion", "own")[0] < 0.5

    def test_log_cost_ratio_is_prevalence_and_behaviour(self):
        counts, *_ = simulated(2, labelers=12)
        found = pooled_signal(counts, prevalence=[0.3, 0.1])
        total = found.population_draws("log_cost_ratio")
        rest = total - found.population_draws("behaviour")
        assert rest == pytest.approx(np.tile(np.log([7 / 3, 9]), (len(total), 1)))
        t, d = found.population_draws("criterion"), found.population_draws("separation")
        assert found.population_draws("behaviour") == pytest.approx(-t * d + d**2 / 2)
        drawn = pooled_signal(counts, prevalence=[0.3, 0.1], prevalence_error=[0.021, 0.009])
        # An SE of 0.021 at φ = 0.3 is 0.1 on the logit scale, 0.009 at 0.1 likewise.
        assert drawn.log_odds_against.std(axis=0) == pytest.approx([0.1, 0.1], rel=0.06)

    def test_prevalence_comes_from_distinct_items(self):
        counts, items, _ = simulated(3, labelers=12, shared_items=60)
        found = pooled_signal(counts, items=items)
        phi = np.array([items.truth[items.group == g].mean() for g in (0, 1)])
        size = np.array([(items.group == g).sum() for g in (0, 1)])
        assert found.log_odds_against.mean(axis=0) == pytest.approx(
            np.log((1 - phi) / phi), abs=0.03
        )
        assert found.log_odds_against.std(axis=0) == pytest.approx(
            1 / np.sqrt(size * phi * (1 - phi)), rel=0.06
        )

    def test_item_variance_widens_everything_alike(self):
        counts, items, _ = simulated(4, labelers=20, shared_items=40, item_share=0.4)
        without, with_items = pooled_signal(counts), pooled_signal(counts, items=items)
        assert np.all(with_items.item_variance >= 0)
        assert with_items.item_variance.max() > 0
        assert with_items.contrast("criterion").sd > without.contrast("criterion").sd
        assert with_items.method.endswith("with item variance")
        assert with_items.reliability("criterion") == pytest.approx(
            without.reliability("criterion")
        )
        # One shift for all labelers: differences between them do not feel it.
        a, b = (each.labelers("criterion") for each in (with_items, without))
        assert np.all(a.sd > b.sd + 1e-3)
        a, b = (each.labelers("criterion", "rest") for each in (with_items, without))
        np.testing.assert_array_equal(a.low, b.low)

    def test_item_variance_by_hand(self):
        # Cell F: p = 0.5, Σ(k−pm)² = 8, I/(I−1) = 2, n = 8: 16/64 − 0.25/8 = 0.21875, over
        # φ(0)² = 1/(2π) is 1.3744; times 1 + 0.25 is 1.7181.
        items = ItemCounts(
            yes=np.array([4.0, 0, 3, 1]),
            n=np.full(4, 4.0),
            group=np.zeros(4),
            truth=np.array([0.0, 0, 1, 1]),
        )
        found = item_variance(items, groups=1, labeler_variance=0.25)
        assert found[0] == pytest.approx(0.21875 * 2 * np.pi * 1.25)
        single = ItemCounts(
            yes=np.array([2.0]), n=np.array([4.0]), group=np.zeros(1), truth=np.zeros(1)
        )
        assert item_variance(single, groups=1).tolist() == [0, 0]

    def test_one_group(self):
        counts, *_ = simulated(5)
        found = pooled_signal(counts[:, :1])
        assert hyper_size(1) == 3
        assert found.sds.shape == (2,)
        assert found.population("criterion").low[0] < 1.0 < found.population("criterion").high[0]

    def test_no_positives_in_a_group_comes_from_the_pool(self):
        counts, *_ = simulated(6, labelers=12)
        counts[0, 1, :2] = 0
        found = pooled_signal(counts)
        assert found.from_pool[0].tolist() == [False, True]
        summary = found.labelers("separation")
        assert np.isfinite(summary.mean).all()
        assert summary.sd[0, 1] > np.median(summary.sd[:, 1])

    def test_a_correlation_of_nearly_one_has_a_marginal_likelihood(self):
        counts, *_ = simulated(7140, gap=0.5)
        # One of the draws for these labels: its last correlation is 1 to eleven digits.
        far = [[0.446, 0.682, 7.251, 1.456, 6.473, 12.599]]
        assert np.isfinite(find_modes(cell_counts(counts), far).log_marginal).all()
        own = pooled_signal(counts, prevalence=0.3, seed=7140).labelers("criterion")
        assert np.isfinite([own.low, own.mean, own.high]).all()

    def test_share_and_own_differences(self):
        counts, *_ = simulated(7, labelers=30, items_each=200)
        found = pooled_signal(counts)
        share = found.share_leaning("criterion")
        assert 0.5 < share.mean <= 1
        own = found.labelers("criterion", "own")
        assert own.mean.shape == (30, 1)
        # Least labelers by group less the reference, whatever the model says of each by itself.
        by_group = found.labelers("criterion").mean
        assert own.mean[:, 0] == pytest.approx(by_group[:, 1] - by_group[:, 0])

    def test_mode_is_found_as_closely_as_a_centre_needs_to_be(self, monkeypatch):
        # Labelers who do not differ: their SD is next to 0, where the evidence is flat.
        rng = np.random.default_rng(0)
        n = np.tile([700.0, 350.0], (60, 2))
        chance = ndtr(np.tile([-0.8, 0.7], (60, 2)))
        cells = CellCounts(yes=rng.binomial(n.astype(int), chance).astype(float), n=n)
        searches, highest = [], []
        monkeypatch.setattr(
            pooled, "find_modes", lambda *a, **k: searches.append(1) or find_modes(*a, **k)
        )
        for close in (pooled.CLOSE, 1e-6):
            monkeypatch.setattr(pooled, "CLOSE", close)
            mode, modes = pooled._outer_mode(cells)
            highest.append(modes.log_marginal + log_prior(mode))
        assert highest[0] == pytest.approx(highest[1], abs=0.01)
        assert len(searches) < 120

    def test_effective_draws_are_repeated_until_enough(self):
        counts, *_ = simulated(8, labelers=10)
        found = hyper_posterior(cell_counts(counts), draws=32)
        # Rows of next to no weight are left out.
        assert 32 < len(found.weights) <= 128
        assert len(found.weights) > 64 or found.effective >= 30

    def test_words(self):
        counts, *_ = simulated(0, labelers=4)
        with pytest.raises(DataError) as caught:
            pooled_signal(counts)
        assert str(caught.value) == (
            "Pooling needs 5 labelers and there are 4. "
            "Use signal_detection with the log-linear correction and read the intervals."
        )
        with pytest.raises(DataError, match=r"^Every labeler needs at least one label"):
            cell_counts(np.zeros((5, 2, 4)))
        with pytest.raises(DataError, match=r"^counts have shape \(3, 4\)"):
            cell_counts(np.ones((3, 4)))
        counts, *_ = simulated(0, labelers=6)
        with pytest.raises(UsageError, match=r"^prevalence=1\.2 is not between 0 and 1\."):
            pooled_signal(counts, prevalence=1.2)
        with pytest.raises(UsageError, match=r"^quantity='d' is unknown\."):
            pooled_signal(counts).population("d")


def table_z(counts):
    """z of false alarms and hits with the log-linear correction."""
    from scipy.special import ndtri

    hits, misses, alarms, rejections = np.moveaxis(counts, -1, 0)
    rates = [(alarms + 0.5) / (alarms + rejections + 1), (hits + 0.5) / (hits + misses + 1)]
    return ndtri(np.stack(rates, axis=-1))


def coverage(seeds, **rest):
    """Share of 95 % intervals that cover, by quantity."""
    quantities = ("criterion", "separation", "log_cost_ratio")
    inside = {name: [] for name in (*quantities, "contrast", "whole", "share")}
    for seed in seeds:
        counts, items, planted = simulated(seed, **rest)
        found = pooled_signal(
            counts,
            items=items if "shared_items" in rest else None,
            prevalence=0.3,
            reference=1,
            seed=seed,
        )
        for name in quantities:
            summary, truth = found.labelers(name), planted(name)
            inside[name].append(np.mean((summary.low <= truth) & (truth <= summary.high)))
        own, t = found.labelers("criterion", "own"), planted("criterion")
        gap = t[:, 0] - t[:, 1]
        inside["contrast"].append(np.mean((own.low[:, 0] <= gap) & (gap <= own.high[:, 0])))
        whole = found.contrast("criterion")
        inside["whole"].append(whole.low <= 0.2 <= whole.high)
        share = found.share_leaning("criterion")
        inside["share"].append(share.low - 1e-9 <= np.mean(gap > 0) <= share.high + 1e-9)
    return {name: float(np.mean(values)) for name, values in inside.items()}


class TestCoverage:
    def test_labelers_of_forty_with_fifty_items(self):
        found = coverage(range(14))
        assert found["criterion"] >= 0.93
        assert found["separation"] >= 0.92
        assert found["log_cost_ratio"] >= 0.92
        assert found["whole"] >= 0.75  # 14 draws of a share near 0.95

    @pytest.mark.heavy
    def test_labelers_of_forty_with_fifty_items_closely(self):
        found = coverage(range(1000, 1250))
        assert min(found["criterion"], found["separation"], found["log_cost_ratio"]) >= 0.93
        assert found["whole"] >= 0.91
        assert found["contrast"] >= 0.93
        assert found["share"] >= 0.93

    @pytest.mark.heavy
    def test_shared_items_do_not_fool_the_contrast(self):
        shared = coverage(range(200), labelers=20, items_each=60, shared_items=60, item_share=0.3)
        assert shared["whole"] >= 0.90

    @pytest.mark.heavy
    def test_time_grows_with_the_labelers_and_no_faster(self):
        few, many = (simulated(0, labelers=number)[0] for number in (50, 500))
        ratio = times_as_long(
            lambda: pooled_signal(many).labelers("log_cost_ratio"),
            lambda: pooled_signal(few).labelers("log_cost_ratio"),
        )
        print(f"500 labelers: {ratio:.1f} times 50")
        assert ratio < 20
        # All labelers in one array: as many steps for 500 as for 50, some 80,000.
        assert calls(lambda: pooled_signal(many).labelers("log_cost_ratio")) < 150_000


@pytest.fixture(scope="module")
def labels():
    import polars as pl

    groups = ["African-American", "Caucasian"]
    frame = pl.read_csv(REAL).rename({"race": "group", "label": "decision"})
    frame = frame.filter(pl.col("group").is_in(groups))
    assert frame.height == 4938
    return table_of(frame, groups)


@pytest.mark.heavy
@pytest.mark.skipif(not REAL.exists(), reason="the real data do not lie beside the repository")
class TestRealData:
    def test_published_values(self, labels):
        counts, items = labels
        plain = pooled_signal(counts, hyper_draws=256)
        found = pooled_signal(counts, items=items, hyper_draws=256)
        contrast = found.contrast("criterion")
        assert plain.contrast("criterion").mean == pytest.approx(-0.210, abs=0.01)
        assert plain.contrast("criterion").sd == pytest.approx(0.054, abs=0.005)
        assert contrast.mean == pytest.approx(-0.210, abs=0.01)
        assert contrast.sd == pytest.approx(0.090, abs=0.005)
        assert [contrast.low, contrast.high] == pytest.approx([-0.39, -0.04], abs=0.02)
        assert found.reliability("criterion") == pytest.approx([0.81, 0.81], abs=0.03)
        assert found.reliability("separation")[0] == pytest.approx(0.22, abs=0.05)
        assert found.reliability("criterion", "own")[0] == pytest.approx(0.06, abs=0.03)

    def test_split_of_the_cost_ratio(self, labels):
        counts, items = labels
        found = pooled_signal(counts, items=items, hyper_draws=256)
        against = found.log_odds_against.mean(axis=0)
        assert against[0] - against[1] == pytest.approx(-0.82, abs=0.02)
        assert found.contrast("behaviour").mean == pytest.approx(0.13, abs=0.02)
        assert found.contrast("log_cost_ratio").median == pytest.approx(-0.69, abs=0.03)


def test_labels_follow_the_model():
    # The simulator the coverage rests on: rates of 200,000 labels against Φ.
    groups = {"A": LabelerGroup(prevalence=0.3, separation=1.5, criterion=1.0)}
    found = simulate_labelers(groups, labelers=10, items_each=20_000)
    counts, _ = table_of(found.frame, ["A"])
    hits, misses, alarms, rejections = counts.sum(axis=(0, 1))
    assert hits / (hits + misses) == pytest.approx(ndtr(0.5), abs=0.006)
    assert alarms / (alarms + rejections) == pytest.approx(ndtr(-1.0), abs=0.004)
