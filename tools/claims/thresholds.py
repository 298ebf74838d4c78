"""Claims of implied thresholds, cost ratios and norms: clusters, sets, parts, small classes."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from claims.claim import Claim
from claims.draws import clustered_scores, norm_classes
from claims.statistics import COVERED, Floats, Generator, held
from evenhand.stats.labelers.parts import cost_ratio_parts, part_values
from evenhand.stats.labelers.signal import signal_detection
from evenhand.stats.ranks import spearman
from evenhand.stats.thresholds.histogram import (
    ScoreHistogram,
    rule_of_thumb_bandwidth,
    score_histogram,
)
from evenhand.stats.thresholds.implied import (
    DiscreteMargins,
    ImpliedThresholds,
    cost_ratio_gap,
    discrete_margins,
    implied_thresholds,
)
from evenhand.stats.thresholds.local import cluster_fit, local_moments, tricube
from evenhand.stats.thresholds.sets import CostSet, make_set, set_ratio
from evenhand.stats.trend import (
    corrected,
    latent_mean_size,
    leading_trend,
    rank_trend,
    reliability,
)


def fit_clusters(
    score: Floats,
    truth: Floats,
    cluster: NDArray[np.int64],
    *,
    threshold: float,
    bandwidth: float,
    groups: NDArray[np.int64] | None = None,
) -> ImpliedThresholds:
    """Implied thresholds by group with errors by cluster, from the sums of (cluster, group)."""
    group = np.zeros(len(score), dtype=np.int64) if groups is None else np.asarray(groups)
    u = (score - threshold) / bandwidth
    w = tricube(u)
    key, inverse = np.unique(np.stack([cluster, group]), axis=1, return_inverse=True)
    place = inverse.reshape(-1)
    count = int(group.max()) + 1
    near = {"threshold": threshold, "bandwidth": bandwidth}
    clusters = cluster_fit(
        np.stack([np.bincount(place, w * u**k) for k in range(5)], axis=1),
        outcome=np.stack([np.bincount(place, w * truth * u**k) for k in range(3)], axis=1),
        groups=key[1],
        clusters=key[0],
        n_groups=count,
        degree=2,
        jackknife=True,
    )
    sums = local_moments(score, truth=truth, groups=group, n_groups=count, **near)
    return implied_thresholds(sums, quadratic_clusters=clusters, **near)


def clustered_threshold(
    generator: Generator, repetitions: int, *, clusters: int, uneven: bool, ratio: bool
) -> Floats:
    out = np.empty(repetitions)
    for i in range(repetitions):
        parts = [
            clustered_scores(generator, clusters=clusters, uneven=uneven)
            for _ in range(2 if ratio else 1)
        ]
        score, truth = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        cluster = np.concatenate([part[2] + clusters * g for g, part in enumerate(parts)])
        group = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        found = fit_clusters(score, truth, cluster, threshold=0.5, bandwidth=0.25, groups=group)
        if ratio:
            out[i] = held(cost_ratio_gap(found, group=0, reference=1), 0.0)
        elif np.isnan(found.low[0]):
            out[i] = np.nan
        else:
            out[i] = float(found.low[0] <= 0.5 <= found.high[0])
    return out


def steep_threshold(generator: Generator, repetitions: int, *, steep: float) -> Floats:
    """Scores that thin out, a steep curve: the centre and its own interval."""
    out = np.empty(repetitions)
    truth_at = expit(-steep * 0.05)
    for i in range(repetitions):
        score = generator.beta(2, 5, 4000)
        truth = (generator.random(4000) < expit(steep * (score - 0.55))).astype(float)
        cells = score_histogram(score, truth=truth, threshold=0.5)
        near = {"threshold": 0.5, "bandwidth": rule_of_thumb_bandwidth(cells)}
        found = implied_thresholds(local_moments(score, truth=truth, **near), **near)
        out[i] = float(found.low[0] <= truth_at <= found.high[0])
    return out


def _costs(margins: DiscreteMargins) -> CostSet:
    return make_set(
        margins.cost_ratio_low,
        margins.cost_ratio_high,
        low=margins.cost_ratio_lowest,
        high=margins.cost_ratio_highest,
    )


def ratio_of_sets(generator: Generator, repetitions: int) -> Floats:
    """Both ends of the true set of ratios lie within the outer limits."""
    n = np.array([400, 500, 300, 200])
    p = np.array([[0.08, 0.15, 0.30, 0.5], [0.10, 0.20, 0.26, 0.6]])
    yes = generator.binomial(n, p, (repetitions, 2, 4))
    tables = np.stack([n - yes, yes], axis=-1)
    sets = [
        _costs(
            discrete_margins(
                ScoreHistogram.of_counts(
                    tables[:, g], positions=[0.1, 0.2, 0.3, 0.6], thresholds=0.25
                )
            )
        )
        for g in (0, 1)
    ]
    odds = 1 / p - 1
    found = set_ratio(*sets)
    inside = (found.low <= odds[0, 2] / odds[1, 1]) & (odds[0, 1] / odds[1, 2] <= found.high)
    return np.where(found.identified, inside, np.nan)


def parts(generator: Generator, repetitions: int, *, part: str) -> Floats:
    """Prevalence .10 against .25, a higher bar and a better eye, 1,500 labels each."""
    groups = ((0.10, 1.9, 1.6), (0.25, 1.6, 1.2))
    (phi, d, t), (phi_reference, d_reference, t_reference) = groups
    truth = part_values(
        log_odds_against=-logit(phi),
        log_odds_against_reference=-logit(phi_reference),
        criterion=t,
        criterion_reference=t_reference,
        separation=d,
        separation_reference=d_reference,
    )
    out = np.empty(repetitions)
    for i in range(repetitions):
        sides = []
        for p, skill, bar in groups:
            positives = generator.binomial(1500, p)
            hits = generator.binomial(positives, ndtr(skill - bar))
            alarms = generator.binomial(1500 - positives, ndtr(-bar))
            sides.append(
                signal_detection(hits, positives - hits, alarms, 1500 - positives - alarms)
            )
        v = [(s.criterion_error**2, s.separation_error**2 - s.criterion_error**2) for s in sides]
        found = cost_ratio_parts(
            [q for s in sides for q in (s.z_false_alarm, s.z_hit)],
            covariance=np.diag(np.ravel(v)),
            log_odds_against=[s.prevalence_part for s in sides],
            log_odds_error=[s.prevalence_part_error for s in sides],
        )
        out[i] = held(getattr(found, part), getattr(truth, part))
    return out


def latent_trend(generator: Generator, repetitions: int, *, rho: float, people: int) -> Floats:
    p, _, r = norm_classes(generator, repetitions, rho=rho, people=people)
    latent = norm_classes(np.random.default_rng(1), 2000, rho=rho, people=4)[1]
    truth = float(spearman(p, latent).mean())
    n = np.full(p.size, people)
    out = np.empty(repetitions)
    for i, row in enumerate(r):
        found, _ = leading_trend(rank_trend(p, row, draws=1), reliability=reliability(row, n))
        out[i] = np.nan if found.low is None else float(found.low <= truth <= found.high)
    return out


def always_corrected(generator: Generator, repetitions: int, *, rho: float, people: int) -> Floats:
    """The corrected ρ itself, also where the plain one would lead."""
    p, _, r = norm_classes(generator, repetitions, rho=rho, people=people)
    latent = norm_classes(np.random.default_rng(1), 2000, rho=rho, people=4)[1]
    truth = float(spearman(p, latent).mean())
    out = np.empty(repetitions)
    for i, row in enumerate(r):
        found = corrected(
            rank_trend(p, row, draws=1), reliability=reliability(row, np.full(p.size, people))
        )
        out[i] = np.nan if found.low is None else float(found.low <= truth <= found.high)
    return out


def latent_size(generator: Generator, repetitions: int, *, people: int, spread: float) -> Floats:
    p, _, r = norm_classes(generator, repetitions, rho=0.7, people=people, spread=spread)
    latent = norm_classes(np.random.default_rng(1), 2000, rho=0.7, people=4, spread=spread)[1]
    truth, n = float(np.abs(latent).mean()), np.full(p.size, people)
    found = [latent_mean_size(p, row, n) for row in r]
    return np.array([float(e.low <= truth <= e.high) for e in found])  # type: ignore[operator]


CLAIMS = (
    *(
        Claim(
            measure="cost ratio between groups" if ratio else "implied threshold",
            setting=f"{j} clusters, {'uneven' if uneven else 'even'}",
            wanted=(0.93, 0.99),
            simulate=partial(clustered_threshold, clusters=j, uneven=uneven, ratio=ratio),
            share=0.25,
        )
        for ratio in (False, True)
        for j in (15, 40)
        for uneven in (False, True)
    ),
    *(
        Claim(
            measure="implied threshold",
            setting=f"slope {steep:g}, n = 4,000",
            wanted=COVERED,
            simulate=partial(steep_threshold, steep=steep),
            share=0.5,
        )
        for steep in (4.0, 40.0)
    ),
    Claim(
        measure="ratio of two sets of cost ratios",
        setting="four scores, n = 1,400 a group",
        wanted=COVERED,
        simulate=ratio_of_sets,
    ),
    *(
        Claim(
            measure=f"cost ratio, {part} part",
            setting="1,500 labels a group",
            wanted=COVERED,
            simulate=partial(parts, part=part),
            share=0.5,
        )
        for part in ("total", "prevalence", "bar", "skill")
    ),
    *(
        Claim(
            measure="norm bias, the one that leads",
            setting=f"28 classes of {people}, ρ = {rho:g}",
            wanted=(0.93, 1.0),
            simulate=partial(latent_trend, rho=rho, people=people),
            share=0.25,
        )
        for rho, people in ((0.5, 60), (0.85, 60), (0.85, 400))
    ),
    Claim(
        measure="norm bias, corrected",
        setting="28 classes of 60, ρ = 0.85",
        wanted=(0.93, 1.0),
        simulate=partial(always_corrected, rho=0.85, people=60),
        share=0.25,
    ),
    *(
        Claim(
            measure="mean |r| over classes",
            setting=f"28 classes of {people}, spread {spread:g}",
            wanted=(0.93, 0.99),
            simulate=partial(latent_size, people=people, spread=spread),
            share=0.25,
        )
        for people, spread in ((30, 0.2), (60, 0.2), (100, 0.1))
    ),
)
