"""Claims of the statistics themselves: sizes, families, strata, pairs, further units."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from claims.claim import Claim
from claims.draws import (
    beta_binomial,
    clusters_over_strata,
    labels_over_strata,
    shared_labelers,
)
from evenhand.stats.estimate import critical, student_critical
from evenhand.stats.families import halved_level, sidak
from evenhand.stats.labelers.contrasts import jackknife_over_strata
from evenhand.stats.power import further_units, further_units_of_group, further_units_of_size
from evenhand.stats.rates import agresti_min, base_group, koopman, newcombe
from evenhand.stats.spread import (
    influence_covariance,
    multinomial_covariance,
    paired_covariance,
    quadratic_moments,
    rate_spread,
    root_mean_square,
    size_of,
    worst_pair,
)
from evenhand.stats.strata import mantel_haenszel_jackknife
from evenhand.stats.weights import group_covariance, pair_certainty, weighted_pairs

Z = critical(0.95)
COVERED = (0.93, 0.98)
LIMIT = 0.05
Floats = NDArray[np.float64]
Generator = np.random.Generator


def held(found: object, truth: object) -> Floats:
    """Whether intervals hold the truth; limits that meet it exactly do, whatever the last digit."""
    low, high = found.low, found.high  # type: ignore[attr-defined]
    inside = (low <= np.asarray(truth) + 1e-12) & (np.asarray(truth) <= high + 1e-12)
    return np.where(np.isnan(low), np.nan, inside.astype(float))


def two_shares(classes: int) -> tuple[Floats, Floats]:
    """Shares of two groups that differ in the two largest classes, as mistaken pairs do."""
    reference = np.full(classes, 0.2 / (classes - 2))
    reference[:2] = 0.4
    group = reference.copy()
    group[:2] = 0.55, 0.25
    return group, reference


def rms_of_shares(generator: Generator, repetitions: int, *, classes: int, n: int) -> Floats:
    p = two_shares(classes)
    counts = [generator.multinomial(n, share, repetitions) for share in p]
    s = sum(multinomial_covariance(count) for count in counts)
    gaps = (counts[0] - counts[1]) / n
    truth = np.sqrt(((p[0] - p[1]) ** 2).mean())
    return held(root_mean_square(gaps, covariance=s, z=Z), truth)


def rms_of_pairs(generator: Generator, repetitions: int, *, classes: int, n: int) -> Floats:
    share = two_shares(classes)[1]
    table = 0.9 * np.diag(share) + 0.1 * np.outer(share, share[::-1])
    drawn = generator.multinomial(n, table.ravel(), repetitions).reshape(-1, classes, classes)
    gaps = (drawn.sum(-1) - drawn.sum(-2)) / n
    truth = np.sqrt(((table.sum(1) - table.sum(0)) ** 2).mean())
    return held(root_mean_square(gaps, covariance=paired_covariance(drawn), z=Z), truth)


def rms_of_clusters(generator: Generator, repetitions: int, *, clusters: int) -> Floats:
    p = np.array([[0.5, 0.3, 0.2], [0.35, 0.4, 0.25]])
    shares = [
        generator.multinomial(15, generator.dirichlet(4 * row, (repetitions, clusters))) / 15
        for row in p
    ]
    s = sum(
        influence_covariance(np.moveaxis(side - side.mean(1, keepdims=True), 1, 0) / clusters)
        for side in shares
    )
    found = root_mean_square(
        shares[0].mean(1) - shares[1].mean(1),
        covariance=s,
        z=student_critical(Z, freedom=clusters - 1),
    )
    return held(found, np.sqrt(((p[0] - p[1]) ** 2).mean()))


def joint_rates(
    generator: Generator, repetitions: int, *, size: str, classes: int, n: int, even: bool
) -> Floats:
    """All classes' aggregates at once, of true positive rates that differ between three groups."""
    share = np.full(3, 1 / 3) if even else np.array([0.6, 0.3, 0.1])
    cases = np.maximum(np.round(n * share / classes * 2), 5).astype(int)
    base = np.linspace(0.2, 0.9, classes)[:, None]
    p = np.clip(base + np.array([0.0, 0.08, -0.05]), 0.02, 0.98)
    hits = generator.binomial(cases, p, (repetitions, classes, 3))
    if size == "spread":
        found = rate_spread(hits, cases, z=sidak(0.95, members=classes))
        return held(found, p.std(axis=1)).all(axis=1).astype(float)
    times = 2 if size == "equalised odds" else 1
    worst = worst_pair(hits, cases, z=sidak(0.95, members=times * classes), draws=0)
    first = held(worst, np.ptp(p, axis=1)).all(axis=1)
    if times == 1:
        return first.astype(float)
    # The false positive rates, whose cells are other rows.
    wrong = np.clip(0.3 - 0.25 * base + np.array([0.0, 0.03, 0.0]), 0.01, 0.9)
    others = worst_pair(
        generator.binomial(3 * cases, wrong, (repetitions, classes, 3)),
        3 * cases,
        z=sidak(0.95, members=2 * classes),
        draws=0,
    )
    return (first & held(others, np.ptp(wrong, axis=1)).all(axis=1)).astype(float)


def rms_of_groups(generator: Generator, repetitions: int, *, groups: int) -> Floats:
    """Root mean squares of several groups against one reference, all at once."""
    group, reference = two_shares(6)
    base = generator.multinomial(900, reference, repetitions)
    truth = np.sqrt(((group - reference) ** 2).mean())
    inside = np.ones(repetitions, dtype=bool)
    for _ in range(groups - 1):
        own = generator.multinomial(300, group, repetitions)
        s = multinomial_covariance(own) + multinomial_covariance(base)
        found = root_mean_square(
            own / 300 - base / 900, covariance=s, z=sidak(0.95, members=groups - 1)
        )
        inside &= held(found, truth) > 0
    return inside.astype(float)


def mantel_haenszel(
    generator: Generator, repetitions: int, *, clusters: int, uneven: bool, crossing: bool
) -> Floats:
    table = clusters_over_strata(
        generator, repetitions, clusters=clusters, uneven=uneven, crossing=crossing
    )
    found = mantel_haenszel_jackknife(
        *table.columns, stratum=table.stratum, cluster=table.cluster, z=Z
    )
    return held(found, table.truth)


def labelers_over_strata(
    generator: Generator, repetitions: int, *, quantity: str, labelers: int
) -> Floats:
    spread, bar = 0.35, 0.3
    shrink = np.sqrt(1 + spread**2)
    d, t = 1.6 / shrink, (1 + np.linspace(-0.3, 0.3, 4)) / shrink
    # Pooled over labelers the signal has this separation and these bars.
    truth = {
        "criterion": bar / shrink,
        "separation": 0.0,
        "log_cost_ratio": float((-bar / shrink * d * np.ones_like(t)).mean()),
    }[quantity]
    out = np.empty(repetitions)
    for i in range(repetitions):
        counts = labels_over_strata(generator, labelers=labelers, strata=4, spread=spread, bar=bar)
        found = jackknife_over_strata(counts, weights=np.ones(4), z=Z)[quantity]  # type: ignore[index]
        out[i] = held(found, truth)
    return out


def strata_in_the_headline(
    generator: Generator, repetitions: int, *, strata: int, gap: float
) -> Floats:
    """Something is said to lie outside ±0.05, within a stratum or over all, and does not."""
    n = 400
    k = generator.binomial(n, [0.30 + gap, 0.30], (repetitions, strata, 2))
    half = halved_level(0.95)
    low, high = newcombe(k[..., 0], n, k[..., 1], n, z=sidak(half, members=strata))
    rows = ((low > LIMIT) | (high < -LIMIT)).any(axis=1)
    over = k.sum(axis=1)
    low, high = newcombe(over[:, 0], strata * n, over[:, 1], strata * n, z=sidak(half, members=1))
    return (rows | (low > LIMIT) | (high < -LIMIT)).astype(float)


def pairs_by_weight(generator: Generator, repetitions: int, *, heavier: float) -> Floats:
    n, up, down = 300, 0.12, 0.05
    u = generator.random((repetitions, n))
    d = np.where(u < up, 1.0, np.where(u < up + down, -1.0, 0.0))
    w = generator.gamma(2.0, 1.0, d.shape) * np.where(d != 0, heavier, 1.0)
    truth = heavier * (up - down) / (heavier * (up + down) + 1 - up - down)
    sides = [d > 0, d < 0, np.ones_like(d)]
    sums = [(w * side).sum(1) for side in sides]
    squares = [(w**2 * side).sum(1) for side in sides]
    found = weighted_pairs(
        *sums,
        gained_squares=squares[0],
        lost_squares=squares[1],
        total_squares=squares[2],
        pairs=n,
    )
    low, high = agresti_min(found.gained, found.lost, found.n, z=Z)
    return ((low <= truth) & (truth <= high)).astype(float)


def shared_clusters(generator: Generator, repetitions: int, *, measure: str) -> Floats:
    """Worst pair or impact ratio of groups that the same 60 labelers judged, ten labels each."""
    hits, truth = shared_labelers(generator, repetitions)
    _, labelers, groups = hits.shape
    n = np.full((labelers, groups), 10.0)
    cell = np.tile(np.arange(groups), labelers)
    cluster = np.repeat(np.arange(labelers), groups)
    out = np.empty(repetitions)
    for i, one in enumerate(hits):
        shared = group_covariance(
            one.ravel(), n.ravel(), cell=cell, cluster=cluster, shape=(groups,), axis=0
        )
        rate, v = one.sum(0) / n.sum(0), np.diag(shared)
        effective = rate * (1 - rate) / v
        counts = (rate * effective, effective)
        sure = pair_certainty(v, shared)
        if measure == "worst pair":
            worst = worst_pair(*counts, z=Z, draws=0, certainty=sure)
            out[i] = held(worst, np.ptp(truth))
            continue
        sides = [side[g] * sure[2, 0] for g in (2, 0) for side in counts]
        low, high = koopman(*sides, z=Z)
        out[i] = float(low <= truth[2] / truth[0] <= high)
    return out


def impact_below(generator: Generator, repetitions: int) -> Floats:
    """A group falls under four fifths of the base, and all rates are equal."""
    n = np.array([18, 700, 900, 382])
    rate = generator.binomial(n, 0.3, (repetitions, 4)) / n
    base, eligible = base_group(rate, np.broadcast_to(n, rate.shape))
    top = np.take_along_axis(rate, base[:, None], axis=1)
    return ((rate / top < 0.8) & eligible).any(axis=1).astype(float)


def settle_clusters(generator: Generator, repetitions: int, *, size: int, icc: float) -> Floats:
    """Units asked for from one sample, and whether as many more settle it at what it looked like.

    With size 1 the rows are independent.
    """
    groups, now = 2, max(15, 300 // size)
    planted = np.array([0.42, 0.30])

    def shares(rates: Floats, clusters: int, count: int) -> Floats:
        shape = (count, groups, clusters)
        if size == 1:
            return generator.binomial(1, rates[:, None], shape).astype(float)
        return beta_binomial(generator, rates, size=size, icc=icc, shape=shape) / size

    def interval(share: Floats) -> tuple[Floats, Floats]:
        value = share.mean(-1)
        error = np.sqrt(share.var(-1, ddof=1).sum(-1) / share.shape[-1])
        half = student_critical(Z, freedom=2 * (share.shape[-1] - 1)) * error
        gap = value[..., 0] - value[..., 1]
        return gap - half, gap + half

    out = np.full(repetitions, np.nan)
    for i in range(repetitions):
        first = shares(planted, now, 1)
        low, high = (float(end[0]) for end in interval(first))
        if low > LIMIT or high < -LIMIT or (low > -LIMIT and high < LIMIT):
            continue
        q = float(student_critical(Z, freedom=2 * (now - 1)))
        more = further_units(
            (low + high) / 2,
            family_low=low,
            family_high=high,
            z=q,
            low=-LIMIT,
            high=LIMIT,
            units=2 * now,
        )
        seen = first.mean(-1)[0]
        if str(more.reason) or not (seen > 0.02).all() or not (seen < 0.98).all():
            continue
        later = now + int(np.ceil(float(more.units) / 2))
        low, high = interval(shares(seen, later, 1))
        out[i] = float(low[0] > LIMIT or high[0] < -LIMIT or (low[0] > -LIMIT and high[0] < LIMIT))
    return out


def settle_alone(generator: Generator, repetitions: int) -> Floats:
    """The group alone grows; the reference of 4,000 stays as it is."""
    n, m, rate, other = 150, 4000, 0.42, 0.30
    more = further_units_of_group(
        rate - other,
        variance=rate * (1 - rate) / n,
        variance_reference=other * (1 - other) / m,
        z=Z,
        low=-LIMIT,
        high=LIMIT,
        units=n,
    )
    later = n + int(np.ceil(float(more.units)))
    # What is known of the reference stays: its luck is the same before and after.
    reference = np.full(repetitions, round(other * m))
    low, high = newcombe(generator.binomial(later, rate, repetitions), later, reference, m, z=Z)
    return ((low > LIMIT) | (high < -LIMIT)).astype(float)


def settle_size(generator: Generator, repetitions: int, *, size: float, limit: float) -> Floats:
    truth, variance = np.tile([size, -size], 6), np.full(12, 0.003)
    swollen = truth * np.sqrt(1 + variance.sum() / (truth**2).sum())
    moments = quadratic_moments(swollen, variances=variance)
    more = further_units_of_size(moments, z=Z, low=0, high=limit, units=1000)
    later = variance / float(more.ratio)
    seen = truth + generator.standard_normal((repetitions, 12)) * np.sqrt(later)
    found = size_of(quadratic_moments(seen, variances=later), z=Z)
    return ((found.low > limit) | (found.high < limit)).astype(float)


def _claims() -> list[Claim]:
    def claim(
        title: str,
        setting: str,
        simulate: Callable[..., Floats],
        wanted: tuple[float, float] = COVERED,
        kind: str = "coverage",
        share: float = 1.0,
        **setup: object,
    ) -> Claim:
        return Claim(
            measure=title,
            setting=setting,
            wanted=wanted,
            simulate=partial(simulate, **setup) if setup else simulate,
            kind=kind,
            share=share,
        )

    return [
        claim("RMS over classes", f"shares of {k} classes, n = {n:,} a group", rms_of_shares,
              classes=k, n=n)
        for k, n in ((4, 300), (4, 10_000), (28, 1000), (28, 10_000))
    ] + [
        claim("RMS over classes", f"{n:,} pairs, {k} classes", rms_of_pairs, (0.93, 1.0),
              classes=k, n=n)
        for k, n in ((4, 300), (12, 2000))
    ] + [
        claim("RMS over classes", f"selection in {j} clusters a group", rms_of_clusters,
              (0.93, 0.99), clusters=j)
        for j in (30, 100)
    ] + [
        claim(kind, f"{k} classes, n = {n:,}, groups {'even' if even else '.6/.3/.1'}",
              joint_rates, (0.93, 1.0), "joint", size=kind, classes=k, n=n, even=even)
        for kind in ("worst pair", "spread", "equalised odds")
        for k, n, even in ((6, 600, True), (6, 600, False), (12, 3600, True), (12, 3600, False))
    ] + [
        claim("RMS over classes", f"{g} groups", rms_of_groups, (0.93, 1.0), "joint", groups=g)
        for g in (3, 5)
    ] + [
        claim("Mantel–Haenszel gap",
              f"{j} clusters {'across' if crossing else 'within'} strata, "
              f"{'uneven' if uneven else 'even'}", mantel_haenszel,
              clusters=j, uneven=uneven, crossing=crossing)
        for j in (9, 39) for uneven in (False, True) for crossing in (False, True)
    ] + [
        claim(f"labelers' {name}", f"{j} labelers across 4 strata", labelers_over_strata,
              share=0.25, quantity=quantity, labelers=j)
        for name, quantity in (("criterion gap", "criterion"), ("separation gap", "separation"),
                               ("cost ratio", "log_cost_ratio"))
        for j in (10, 30)
    ] + [
        claim("counterfactual gap, weighted", f"changed pairs weigh {w:g} times", pairs_by_weight,
              (0.93, 0.98), heavier=w)
        for w in (1.0, 2.0, 4.0)
    ] + [
        claim("gap found in strata", f"{s} strata, gap {gap:g}, limit 0.05",
              strata_in_the_headline, (0.0, 0.05), "error", strata=s, gap=gap)
        for s in (5, 20, 60) for gap in (0.0, 0.05)
    ] + [
        claim("worst pair", "60 labelers judge all three groups", shared_clusters, (0.93, 0.99),
              share=0.25, measure="worst pair"),
        claim("impact ratio", "60 labelers judge all three groups", shared_clusters,
              share=0.25, measure="impact ratio"),
        claim("impact ratio under 0.8", "equal rates, one group of 18", impact_below, (0.0, 0.05),
              "error"),
        claim("further units", "independent rows", settle_clusters, (0.75, 0.9), "settled",
              share=0.25, size=1, icc=0.0),
        claim("further units", "clusters of 20, ICC .2", settle_clusters, (0.75, 0.9), "settled",
              share=0.25, size=20, icc=0.2),
        claim("further units", "this group alone", settle_alone, (0.75, 0.9), "settled"),
        claim("further units", "RMS inside its limit", settle_size, (0.75, 0.9), "settled",
              size=0.03, limit=0.06),
        claim("further units", "RMS outside its limit", settle_size, (0.75, 0.9), "settled",
              size=0.08, limit=0.05),
    ]  # fmt: skip


CLAIMS = tuple(_claims())
