"""Labelers' posterior in closed form, held against dense matrices, differences and draws."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import gamma

from evenhand.stats.labelers import draws as drawing
from evenhand.stats.labelers.cells import CellCounts, bends, cell_counts, log_likelihood, to_z
from evenhand.stats.labelers.covariances import Covariances
from evenhand.stats.labelers.draws import joint_draws
from evenhand.stats.labelers.evidence import log_posterior, log_posterior_slope
from evenhand.stats.labelers.marginals import BEND, marginals, quadratic
from evenhand.stats.labelers.mixtures import (
    Bend,
    leaning,
    mixture_of,
    of_moments,
    raw_moments,
    standard_quantile,
)
from evenhand.stats.labelers.modes import by_turns, find_modes
from evenhand.stats.labelers.pairs import Pairs
from evenhand.stats.labelers.pooled import hyper_posterior
from evenhand.stats.labelers.posterior import pooled_signal
from evenhand.stats.labelers.products import product_quantile
from evenhand.stats.labelers.variation import hyper_size

ROWS = np.array([[0.4, 0.3, 0.1, 0.2, 0.15, -0.1], [0.5, 0.1, -0.3, 0.02, 0.0, 0.4]])


def drawn(seed, *, labelers, groups, most=30):
    """Cells of labelers with few labels, some of them without any in a cell."""
    rng = np.random.default_rng(seed)
    n = rng.integers(0, most, (labelers, 2 * groups)).astype(float)
    n[:, 0] += 1
    return CellCounts(yes=np.floor(n * rng.beta(2, 3, n.shape)), n=n)


def counted(seed, *, labelers, groups, each):
    """Counts (labelers, groups, 4) of labelers who differ."""
    rng = np.random.default_rng(seed)
    t = 1 + 0.4 * rng.normal(size=(labelers, 1)) + 0.2 * rng.normal(size=(labelers, groups))
    d = 1.5 + 0.3 * rng.normal(size=(labelers, 1)) + 0.15 * rng.normal(size=(labelers, groups))
    positives = rng.binomial(each, 0.3, t.shape)
    hits, alarms = rng.binomial(positives, ndtr(d - t)), rng.binomial(each - positives, ndtr(-t))
    cells = [hits, positives - hits, alarms, each - positives - alarms]
    return np.stack(cells, axis=-1).astype(float)


def dense(modes, row):
    """Covariance of all labelers' θ with each other, (labelers, 2G, labelers, 2G)."""
    inverse = modes.inverse(row)
    pull = inverse @ modes.precision[row]
    spread = np.linalg.inv(by_turns(modes.curvature)[row])
    whole = np.einsum("jab,bc,kdc->jakd", pull, spread, pull)
    for j, own in enumerate(inverse):
        whole[j, :, j] += own
    return whole


class TestSlopes:
    def test_likelihood_bends_by_differences(self):
        z, step = np.linspace(-6, 6, 13), 1e-3
        third, fourth = bends(np.array(3.0), np.array(4.0), z)

        def fit(at):
            return log_likelihood(np.array(3.0), np.array(4.0), at)

        def slopes(at):
            return bends(np.array(3.0), np.array(4.0), at)[0]

        twice = fit(z + 2 * step) - fit(z - 2 * step)
        by_difference = (twice - 2 * (fit(z + step) - fit(z - step))) / (2 * step**3)
        assert third == pytest.approx(by_difference, abs=1e-4)
        assert fourth == pytest.approx((slopes(z + step) - slopes(z - step)) / (2 * step), abs=1e-5)

    @pytest.mark.parametrize("groups", [1, 2, 5])
    def test_evidence_by_differences(self, groups):
        cells = drawn(groups, labelers=12, groups=groups)
        h, step = ROWS[:, : hyper_size(groups)], 1e-4
        slope = log_posterior_slope(cells, h, find_modes(cells, h))
        for k in range(h.shape[1]):
            away = step * np.eye(h.shape[1])[k]
            above, below = (
                log_posterior(x, find_modes(cells, x, tolerance=1e-6)) for x in (h + away, h - away)
            )
            assert slope[:, k] == pytest.approx((above - below) / (2 * step), abs=1e-4)


class TestCovariances:
    @pytest.mark.parametrize("groups", [1, 2, 4])
    def test_blocks_and_differences_are_those_of_the_dense_covariance(self, groups):
        cells = drawn(groups, labelers=9, groups=groups)
        modes = find_modes(cells, ROWS[:, : hyper_size(groups)])
        found = Covariances(modes)
        others_mean = (np.eye(9) - np.full((9, 9), 1 / 9)) * 9 / 8
        for row in (0, 1):
            whole = dense(modes, row)
            each = np.stack([whole[j, :, j] for j in range(9)])
            for g in range(groups):
                at = slice(2 * g, 2 * g + 2)
                assert found.blocks.table[row, g] == pytest.approx(each[:, at, at], abs=1e-12)
            for k, rest in enumerate(found.against_rest()):
                for g in range(groups):
                    of_one = whole[:, 2 * g + k, :, 2 * g + k]
                    want = np.diag(others_mean @ of_one @ others_mean.T)
                    assert rest[row, g] == pytest.approx(want, abs=1e-11)
            for reference in range(groups if groups > 1 else 0):
                others = [g for g in range(groups) if g != reference]
                for k, gaps in enumerate(found.gaps(reference)):
                    line = np.zeros((len(others), 2 * groups))
                    line[range(len(others)), [2 * g + k for g in others]] = 1
                    line[:, 2 * reference + k] = -1
                    want = np.einsum("fa,jab,fb->fj", line, each, line)
                    assert gaps[row] == pytest.approx(want, abs=1e-11)
            weights = np.random.default_rng(row).normal(size=(9, groups, 2))
            flat = weights.reshape(9, -1)
            assert found.weighed(weights[..., 0].T, weights[..., 1].T)[row] == pytest.approx(
                np.einsum("ja,jab,jb->j", flat, each, flat), abs=1e-11
            )

    def test_draws_have_the_covariance(self, monkeypatch):
        monkeypatch.setattr(drawing, "MOST_DRAWN", 500_000)
        cells = drawn(3, labelers=6, groups=2)
        posterior = hyper_posterior(cells)
        one = posterior.modes[:1]
        alone = type(posterior)(
            hyper=posterior.hyper[:1], weights=np.ones(1), modes=one, effective=1.0
        )
        found = joint_draws(alone, draws=40_000)
        planes = found.planes.astype(float)
        blocks = Covariances(one).blocks
        assert found.stride == 2
        count = planes.shape[1]
        for k, want in enumerate((blocks.first, blocks.last)):
            variance = planes[k].var(axis=0)
            # A variance of so many draws is known to a share of √(2/draws).
            assert variance == pytest.approx(want[0], rel=5 * np.sqrt(2 / count))
            assert planes[k].mean(axis=0) == pytest.approx(
                one.planes[k, 0], abs=5 * float(np.sqrt(want.max() / count))
            )
        away = found.means.reshape(2, -1, 2) - one.means[:, :1]
        spread = np.cov(np.moveaxis(away, 1, -1).reshape(4, -1))
        assert spread == pytest.approx(one.spread[0], abs=0.04 * np.abs(one.spread[0]).max())
        # θ goes with the draw of β that it was given: its covariance with it is that of the model.
        inverse, pull = one.inverse(0), one.inverse(0) @ one.precision[0]
        want = pull @ by_turns(one.spread)[0]
        for j in (0, 5):
            own = planes[:, :, :, j] - one.planes[:, :1, :, j]
            own = np.moveaxis(own, 0, -1).reshape(count, -1)
            with_means = np.moveaxis(away[:, :: found.stride], 0, -1).reshape(count, -1)
            scale = np.sqrt(np.outer(np.diag(inverse[j]), np.diag(by_turns(one.spread)[0])))
            cross = own.T @ with_means / count
            assert np.abs(cross - want[j]).max() < 5 * scale.max() / np.sqrt(count)


class TestMixtures:
    def test_moments_of_a_mixture(self):
        rng = np.random.default_rng(0)
        weights, mean, variance = rng.dirichlet(np.ones(7)), rng.normal(size=7), rng.random(7)
        row = rng.choice(7, size=2_000_000, p=weights)
        draws = rng.normal(mean[row], np.sqrt(variance[row]))
        raw = raw_moments(weights, mean[:, None, None] - 0.3, variance[:, None, None])
        found = of_moments(np.array([[0.3]]), raw)
        away = draws - draws.mean()
        assert found.mean.item() == pytest.approx(draws.mean(), abs=0.004)
        assert found.variance.item() == pytest.approx(away.var(), abs=0.01)
        kurtosis = (away**4).mean() / away.var() ** 2 - 3
        assert found.kurtosis.item() == pytest.approx(kurtosis, abs=0.02)

    @pytest.mark.parametrize("tail", [0.005, 0.025, 0.5, 0.975, 0.995])
    def test_quantiles_by_draws(self, tail):
        rng = np.random.default_rng(1)
        mean, variance = rng.normal(0, 0.5, (5, 3)), rng.gamma(1.0, size=(5, 3))
        row = rng.integers(0, 5, 1_000_000)
        draws = rng.normal(mean[row], np.sqrt(variance[row]))
        want = (np.quantile(draws, tail, axis=0) - draws.mean(axis=0)) / draws.std(axis=0)
        assert standard_quantile(tail, mean, variance) == pytest.approx(want, abs=0.025)

    def test_a_little_skewness(self):
        # A gamma law of shape 100 has skewness 0.2.
        for tail in (0.025, 0.5, 0.975):
            want = (gamma(100).ppf(tail) - 100) / 10
            found = ndtri(tail) + leaning(tail, np.array([0.2]))
            assert found.item() == pytest.approx(want, abs=0.005)

    def test_parts_that_lie_apart(self):
        # Between them the distribution is flat, and a step of Newton's leads anywhere.
        mean, variance = np.array([[-1.0], [1.0]]), np.full((2, 1), 1e-6)
        found = [standard_quantile(tail, mean, variance).item() for tail in (0.2, 0.5, 0.8)]
        assert found[::2] == pytest.approx([-1, 1], abs=0.1)
        assert found[0] < found[1] < found[2]

    def test_corrections_are_held(self):
        # One that would take twice the variance away leaves a third, one of three times doubles.
        plain = of_moments(np.zeros((1, 2)), raw_moments(np.ones(1), *np.ones((2, 1, 2, 1))))
        bend = Bend(variance=np.array([[-2.0, 3.0]]), third=np.zeros((1, 2)))
        found = mixture_of(plain, bend, given=(np.zeros((1, 1, 2)), np.ones((1, 1, 2))))
        assert found.variance[0] == pytest.approx([1 / 3, 2], abs=0.01)
        # Small ones are added as they are.
        small = Bend(variance=np.array([[-0.01, 0.01]]), third=np.zeros((1, 2)))
        found = mixture_of(plain, small, given=(np.zeros((1, 1, 2)), np.ones((1, 1, 2))))
        assert found.variance[0] == pytest.approx([0.99, 1.01], abs=2e-4)

    def test_quadratic_by_draws(self):
        rng = np.random.default_rng(1)
        covariance = np.array([[0.05, 0.03], [0.03, 0.08]])
        slopes = np.array([-1.4, 0.5])
        y = rng.multivariate_normal([0, 0], covariance, 2_000_000)
        values = y @ slopes + np.einsum("si,ij,sj->s", y, BEND, y) / 2
        found = quadratic(slopes[None], covariance[None], BEND)
        away, linear = values - values.mean(), slopes @ covariance @ slopes
        assert linear + found.variance[0] == pytest.approx(away.var(), rel=0.005)
        assert found.third[0] == pytest.approx((away**3).mean(), rel=0.05)


class TestProducts:
    @pytest.mark.parametrize("tail", [0.005, 0.025, 0.5, 0.975, 0.995])
    @pytest.mark.parametrize("few", [0.02, 0.3])
    def test_quantiles_by_draws(self, few, tail):
        # Two rows of hyperparameters, skewness up to 1.3, and a prevalence that is not known.
        rng = np.random.default_rng(2)
        t, d, more = np.array([0.9, 0.7]), np.array([1.5, 2.0]), 0.01
        size = few * np.array([0.5, 1.0])
        values = []
        for k in (0, 1):
            spread = size[k] * np.array([[1.0, 0.5], [0.5, 1.2]])
            y = rng.multivariate_normal([t[k], d[k]], spread, 1_000_000)
            values.append(y[:, 1] ** 2 / 2 - y[:, 0] * y[:, 1])
        whole = np.concatenate(values)
        whole = whole + np.sqrt(more) * rng.normal(size=whole.size)
        rows = (x[:, None, None] for x in (t, d, size, size * 0.5, size * 1.2))
        t, d, *spread = rows
        found = product_quantile(tail, t, d, Pairs(*spread), noise=more)
        want = (np.quantile(whole, tail) - whole.mean()) / whole.std()
        assert found.item() == pytest.approx(want, abs=0.015)


def weighted_draws(cells, posterior, *, draws, seed=0):
    """θ of every labeler and weights: its exact law given β against its normal one.

    The normal law's own constant, the labeler's evidence for β, is divided out: β is drawn from a
    law that has seen these labels already.
    """
    rng = np.random.default_rng(seed)
    modes, theta, weights = posterior.modes, [], []
    for row, share in enumerate(posterior.weights):
        count = round(share * draws)
        if not count:
            continue
        precision, inverse = modes.precision[row], modes.inverse(row)
        root = np.linalg.cholesky(np.linalg.inv(by_turns(modes.curvature)[row]))
        moved = rng.normal(size=(count, len(root))) @ root.T
        noise = rng.normal(size=(count, cells.labelers, len(root)))
        held = moved @ precision
        own = modes.theta[row] + np.einsum("jik,mk->mji", inverse, held)
        own = own + (np.linalg.cholesky(inverse) @ noise[..., None])[..., 0]
        away = own - (modes.beta[row] + moved)[:, None]
        fit = log_likelihood(cells.yes, cells.n - cells.yes, to_z(own)).sum(axis=-1)
        seen = np.einsum("ma,jab,mb->mj", held, inverse, held) / 2
        seen += held @ (modes.theta[row] - modes.beta[row]).T - (held * moved).sum(-1)[:, None] / 2
        log_weight = fit - ((away @ precision) * away).sum(-1) / 2 + (noise**2).sum(-1) / 2 - seen
        ratio = np.exp(log_weight - log_weight.max(axis=0))
        theta.append(own)
        weights.append(ratio / ratio.mean(axis=0))
    return np.concatenate(theta), np.concatenate(weights)


def weighted_quantile(values, weights, tail):
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return values[order][np.searchsorted(reached / reached[-1], tail)]


class TestMarginals:
    @pytest.mark.parametrize(("labelers", "groups", "each"), [(12, 2, 60), (6, 3, 40), (20, 1, 40)])
    def test_limits_are_those_of_many_weighted_draws(self, labelers, groups, each):
        cells = cell_counts(counted(labelers, labelers=labelers, groups=groups, each=each))
        posterior = hyper_posterior(cells)
        share = np.arange(1.0, groups + 1) / np.arange(1.0, groups + 1).sum()
        found = marginals(
            cells, posterior, share=share, reference=0, shift=Pairs(*[np.zeros(groups)] * 3)
        )
        theta, weights = weighted_draws(cells, posterior, draws=40_000)
        t, d = theta[..., 0::2], theta[..., 1::2]
        behaviour = d**2 / 2 - t * d
        draws = {
            ("groups", "criterion"): t,
            ("groups", "separation"): d,
            ("groups", "behaviour"): behaviour,
            ("whole", "separation"): (d @ share)[..., None],
            ("whole", "behaviour"): (behaviour @ share)[..., None],
        }
        if groups > 1:
            draws["own", "criterion"] = t[..., 1:] - t[..., :1]
        for key, values in draws.items():
            numbers = found.numbers[key]
            for tail in (0.025, 0.5, 0.975):
                want = np.array(
                    [
                        [weighted_quantile(v, w, tail) for v in of_one.T]
                        for of_one, w in zip(np.moveaxis(values, 1, 0), weights.T)
                    ]
                )
                away = (numbers.quantile(tail) - want) / numbers.sd
                # An interval is 3.9 standard deviations wide, and 2,048 draws know its ends to
                # 0.06 of one. Over groups the cost ratio is taken for normal but for its skewness.
                most = 0.15 if key == ("whole", "behaviour") else 0.08
                assert np.sqrt(np.mean(away**2)) < most, (key, tail)

    def test_items_widen_all_but_differences_between_labelers(self):
        cells = cell_counts(counted(1, labelers=8, groups=2, each=50))
        posterior = hyper_posterior(cells)
        extra = np.array([0.02, 0.03]), np.array([0.05, 0.01])
        shift = Pairs(extra[0], extra[0], extra[0] + extra[1])
        share = np.array([0.25, 0.75])
        plain, wide = (
            marginals(cells, posterior, share=share, reference=1, shift=each).numbers
            for each in (shift * 0.0, shift)
        )
        for name, added in (("criterion", shift.first), ("separation", shift.last)):

            def more(kind, name=name):
                return wide[kind, name].variance - plain[kind, name].variance

            assert more("groups") == pytest.approx(np.tile(added, (8, 1)))
            assert more("rest") == pytest.approx(np.zeros((8, 2)))
            assert more("own") == pytest.approx(np.full((8, 1), added.sum()))
            assert more("whole") == pytest.approx(np.full((8, 1), added @ share**2))
        slopes = [-plain["groups", "separation"].mean, 0.0]
        slopes[1] = -slopes[0] - plain["groups", "criterion"].mean
        linear = shift.form(slopes[0], slopes[1])
        grown = wide["groups", "behaviour"].variance - plain["groups", "behaviour"].variance
        # What bends beyond the slopes adds a little: some products of variances.
        assert np.all((grown > linear) & (grown < linear + 0.05))


class TestFurthest:
    def test_critical_values_of_few_draws_are_those_of_many(self, monkeypatch):
        table = counted(2, labelers=15, groups=3, each=60)
        many = pooled_signal(table, prevalence=0.3)
        monkeypatch.setattr(drawing, "MOST_DRAWN", 0)
        few = pooled_signal(table, prevalence=0.3)
        assert (many.stride, few.stride) == (1, 4)
        for kind in ("groups", "whole", "rest", "own"):
            # The 95 % quantile of max|t| of 512 draws has a standard error of about 0.08.
            assert few.critical("criterion", kind) == pytest.approx(
                many.critical("criterion", kind), abs=0.3
            )

    def test_band_holds_all_labelers_at_once(self):
        # The draws stand for the truth: in 95 of 100 none lies beyond.
        found = pooled_signal(counted(4, labelers=10, groups=2, each=200), prevalence=0.3)
        for quantity in ("criterion", "log_cost_ratio"):
            reach, own = found.critical(quantity), found.labelers(quantity)
            draws = found._labeler_draws(quantity)
            inside = np.abs(draws - own.mean.T) <= reach * own.sd.T
            # Where Bonferroni's value is reached it is not exceeded, however heavy the tails.
            assert 0.92 <= inside.all(axis=(1, 2)).mean() <= 0.96
            assert (np.abs(draws - own.mean.T) <= 1.96 * own.sd.T).mean() == pytest.approx(
                0.95, abs=0.015
            )
