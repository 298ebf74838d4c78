"""Simulated tables with a known truth, many repetitions at once, for claims and for tests."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from evenhand.stats.ranks import spearman

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataTable:
    """Rows (cluster, stratum) with a column for each repetition, and the true summary gap."""

    columns: tuple[Integers, ...]
    stratum: Integers
    cluster: Integers
    hits: Integers
    n: Integers
    truth: float


def clusters_over_strata(
    generator: np.random.Generator,
    repetitions: int,
    *,
    clusters: int,
    uneven: bool,
    crossing: bool,
    strata: int = 3,
) -> StrataTable:
    """Clusters whose rates lean together, within one stratum each or across all of them."""
    size = np.full(clusters, 36.0)
    if uneven:
        # One set of sizes for all repetitions: the truth is weighed by them.
        size = 10 * (1 - np.random.default_rng(clusters).random(clusters)) ** -0.5 + 8
    share = np.full((clusters, strata), 1 / strata)
    if not crossing:
        share = np.eye(strata)[np.arange(clusters) % strata]
    base, shift, spread = np.linspace(-0.6, 0.6, strata), 0.5, 0.35
    mean = (size[:, None] * share / 2)[..., None]
    n = generator.poisson(mean, (repetitions, clusters, strata, 2))
    lean = generator.normal(0, spread, (repetitions, clusters, 1, 2))
    # The reference first, then the group.
    hits = generator.binomial(n, ndtr(base[:, None] + [0, shift] + lean))
    gaps = np.diff(ndtr((base[:, None] + [0, shift]) / np.sqrt(1 + spread**2)), axis=1)[:, 0]
    rows = clusters * strata
    columns = tuple(
        np.moveaxis(table[..., side], 0, -1).reshape(rows, repetitions)
        for side in (1, 0)
        for table in (hits, n)
    )
    cluster, stratum = np.divmod(np.arange(rows), strata)
    truth = float((share * size[:, None]).sum(0) @ gaps / size.sum())
    return StrataTable(
        columns=columns, stratum=stratum, cluster=cluster, hits=hits, n=n, truth=truth
    )


def labels_over_strata(
    generator: np.random.Generator, *, labelers: int, strata: int, spread: float, bar: float = 0.3
) -> Integers:
    """Counts (labelers, strata, 2, 4) of labelers whose bars differ, the same in every stratum.

    The group's bar is higher by `bar`; pooled over labelers it is that over √(1 + spread²).
    """
    lean = generator.normal(0, spread, (labelers, 1, 2))
    t = 1.0 + np.linspace(-0.3, 0.3, strata)[:, None] + lean + [bar, 0.0]
    positives, negatives = np.full(t.shape, 12), np.full(t.shape, 30)
    hits = generator.binomial(positives, ndtr(1.6 - t))
    alarms = generator.binomial(negatives, ndtr(-t))
    return np.stack([hits, positives - hits, alarms, negatives - alarms], axis=-1)


def clustered_scores(
    generator: np.random.Generator, *, clusters: int, uneven: bool, steep: float = 3.0
) -> tuple[Floats, Floats, Integers]:
    """Scores, truths and clusters whose scores lie together and whose truths lean together.

    At a score of 0.5 the true prevalence over clusters is 0.5.
    """
    size = np.full(clusters, 60)
    if uneven:
        size = np.minimum(20 * (1 - generator.random(clusters)) ** -0.8, 600).astype(int)
    cluster = np.repeat(np.arange(clusters), size)
    place = generator.normal(0.5, 0.1, clusters)
    score = np.clip(generator.normal(place[cluster], 0.1), 0, 1)
    lean = generator.normal(0, 0.4, clusters)
    chance = expit(steep * (score - 0.5) + lean[cluster])
    return score, (generator.random(score.size) < chance).astype(float), cluster


def norm_classes(
    generator: np.random.Generator,
    repetitions: int,
    *,
    rho: float,
    people: int,
    spread: float = 0.2,
    classes: int = 28,
) -> tuple[Floats, Floats, Floats]:
    """Shares, latent and measured correlations of classes of so many people each.

    The latent correlations rise with the share as far as `rho` says.
    """
    p = np.linspace(0.05, 0.95, classes)
    rise = (p - p.mean()) / p.std()
    noise = generator.standard_normal((repetitions, classes))
    latent = np.clip(spread * (rho * rise + np.sqrt(1 - rho**2) * noise), -0.85, 0.85)
    x = generator.standard_normal((repetitions, classes, people))
    y = latent[..., None] * x
    y += np.sqrt(1 - latent[..., None] ** 2) * generator.standard_normal(x.shape)
    return p, latent, spearman(x, y)


def beta_binomial(
    generator: np.random.Generator, rates: Floats, *, size: int, icc: float, shape: tuple[int, ...]
) -> Integers:
    """Hits of clusters of `size` rows whose members are alike as the intraclass correlation says.

    `shape` is that of the result; its last axis but one runs over the rates.
    """
    rate = np.asarray(rates)[:, None]
    own = generator.beta(rate * (1 - icc) / icc, (1 - rate) * (1 - icc) / icc, shape)
    return generator.binomial(size, own)


def shared_labelers(
    generator: np.random.Generator, repetitions: int, *, labelers: int = 60, each: int = 10
) -> tuple[Integers, Floats]:
    """Hits (repetitions, labelers, 3) of labelers who judge three groups, and the true rates.

    A labeler's bar moves all three groups alike.
    """
    odds = np.log([0.5 / 0.5, 0.42 / 0.58, 0.36 / 0.64])
    lean = generator.normal(0, 0.5, (repetitions, labelers, 1))
    # The mean over labelers of a logistic curve, by quadrature.
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    truth = weights @ expit(odds + 0.5 * nodes[:, None]) / weights.sum()
    return generator.binomial(each, expit(odds + lean)), truth
