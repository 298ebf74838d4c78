"""Means over seeds, and differences from the baseline with their uncertainty.

Two things vary: the training rows, which every seed draws again, and the test rows. The first
shows in the differences between seeds; the second is the paired bootstrap of the test rows, the
same draws for remedy and baseline. With five seeds or more both are added to one interval.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from evenhand.remedies.cells import Codes
from evenhand.remedies.ledger.measures import EVERYBODY, MEASURES, RATES, SIGNED, Outcome
from evenhand.stats.estimate import Estimate, FloatArray, critical, number
from evenhand.stats.ranks import spearman
from evenhand.stats.trend import FEWEST_CLASSES, class_columns, mean_size, slope

if TYPE_CHECKING:
    from evenhand.remedies.ledger.rows import LedgerRows
    from evenhand.remedies.ledger.texts import LedgerTexts

FEWEST_SEEDS = 5
DRAWS = 200
Key = tuple[str, str]  # measure, group
Statistic = Callable[[Outcome, FloatArray], FloatArray]
Gaps = Callable[[Any, Outcome, FloatArray, int, FloatArray], FloatArray]


def summary(
    own: Sequence[Mapping[str, Mapping[str, float | None]]],
    baseline: Sequence[Mapping[str, Mapping[str, float | None]]],
    *,
    variances: Sequence[Mapping[Key, float]] = (),
    spans: Sequence[Mapping[str, Mapping[str, Sequence[float | None]]]] = (),
    estimates: Mapping[Key, Estimate] | None = None,
    undefined: Mapping[str, str],
    groups: Sequence[str],
    level: float,
) -> dict[str, dict[str, dict[str, Any]]]:
    """By measure and group: mean, SD over seeds, difference from the baseline, its interval.

    `own`, `baseline` and `spans` have one entry a seed, the same seeds in the same order. A value's
    own interval (`value_low`, `value_high`) and n are of `spans`; of `estimates` where they have
    it, which are over all seeds and have a p.
    """
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for name, measure in MEASURES.items():
        out[name] = {}
        for group in groups if measure.by_group else (EVERYBODY,):
            mine = [seed[name].get(group) for seed in own]
            theirs = [seed[name].get(group) for seed in baseline]
            values = np.array([np.nan if v is None else v for v in mine])
            bases = np.array([np.nan if v is None else v for v in theirs])
            noise = [each.get((name, group), np.nan) for each in variances]
            cell = seed_differences(values, bases, test_variance=noise, level=level)
            reason = undefined.get(name) if cell["value"] is None else None
            known = (estimates or {}).get((name, group))
            if known is not None:
                about = {"value_low": known.low, "value_high": known.high, "p": known.p,
                         "n": known.n}  # fmt: skip
            else:
                held = [seed.get(name, {}).get(group) for seed in spans]
                about = {**_own_interval(values, held, level=level), "p": None}
            out[name][group or "all"] = {**cell, **about, "undefined": reason}
    return out


def _own_interval(
    values: FloatArray, spans: Sequence[Sequence[float | None] | None], *, level: float
) -> dict[str, Any]:
    """The interval of a mean over seeds and the n behind it, where every seed has one."""
    pairs = [(span[0], span[1]) for span in spans if span is not None]
    known = np.isfinite(values)
    if not pairs or len(pairs) != int(known.sum()) or len(pairs) != len(values):
        return {"value_low": None, "value_high": None, "n": None}
    low, high = interval_over_runs(values, np.array(pairs, dtype=np.float64), level=level)
    first = next(span for span in spans if span is not None)
    return {"value_low": low, "value_high": high, "n": first[2]}


def interval_over_runs(
    values: FloatArray, ends: FloatArray, *, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean of several models that were judged on the same rows.

    Each side is the mean distance of the models' own ends, for the rows they share, and what the
    mean over so many models still moves by. A size stays at 0 or above, a correlation or a rate
    within its range.

    Examples:
        >>> low, high = interval_over_runs(
        ...     np.array([0.4, 0.6]), np.array([[0.3, 0.5], [0.5, 0.7]]))
        >>> round(low, 3), round(high, 3)
        (0.28, 0.72)
    """
    centre = float(values.mean())
    low, high = ends.mean(axis=0)
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    more = critical(level) * spread / np.sqrt(values.size)
    floor = 0.0 if low >= 0 else -1.0 if low >= -1 else -np.inf
    ceiling = 1.0 if high <= 1 else np.inf
    return (
        max(floor, centre - float(np.hypot(centre - low, more))),
        min(ceiling, centre + float(np.hypot(high - centre, more))),
    )


def seed_differences(
    values: FloatArray, baseline: FloatArray, *, test_variance: Sequence[float], level: float
) -> dict[str, Any]:
    """Mean and SD of the values, and of their differences from the baseline seed by seed.

    Examples:
        >>> found = seed_differences(np.array([0.2, 0.4]), np.array([0.5, 0.6]), test_variance=[],
        ...                     level=0.95)
        >>> round(found["difference"], 3), round(found["difference_sd"], 3), found["low"]
        (-0.25, 0.071, None)
    """
    known = np.isfinite(values)
    both = known & np.isfinite(baseline)
    mean = float(values[known].mean()) if known.any() else float("nan")
    sd = float(values[known].std(ddof=1)) if known.sum() > 1 else float("nan")
    gap = values[both] - baseline[both]
    count = gap.size
    centre = float(gap.mean()) if count else float("nan")
    spread = float(gap.std(ddof=1)) if count > 1 else float("nan")
    low = high = float("nan")
    noise = np.asarray(test_variance, dtype=np.float64)
    if count >= FEWEST_SEEDS and noise.size and np.isfinite(noise).all():
        half = float(stdtrit(count - 1, 0.5 + level / 2))
        half *= float(np.sqrt(spread**2 / count + noise.mean()))
        low, high = centre - half, centre + half
    return {
        "value": number(mean),
        "sd": number(sd),
        "difference": number(centre),
        "difference_sd": number(spread),
        "seeds": int(known.sum()),
        "low": number(low),
        "high": number(high),
    }


def row_variances(
    texts: "LedgerTexts", own: Outcome, baseline: Outcome, *, seed: int, draws: int = DRAWS
) -> dict[Key, float]:
    """Variance of each difference over test rows drawn again, the same for both models."""
    rows = texts.rows
    n = rows.test.size
    rng = np.random.default_rng([seed, 0xB007])
    weights = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
    found: dict[Key, float] = {}
    for name, statistic in _decided(texts).items():
        gap = statistic(own, weights) - statistic(baseline, weights)
        found[name, EVERYBODY] = _variance(gap)
    for name, statistic in _signed(texts).items():
        gaps = statistic(own, weights) - statistic(baseline, weights)
        for k, group in enumerate(rows.others):
            found[name, group] = _variance(gaps[:, k])
    for end, norms in (
        ("", texts.norms.first),
        ("_irrelevant", texts.norms.irrelevant),
        ("_second", texts.norms.second),
    ):
        for group in norms:
            trends = _trends(texts, own, baseline, group, norms[group], rng, draws)
            for name, gap in trends.items():
                if f"{name}{end}" in MEASURES:
                    found[f"{name}{end}", group] = _variance(gap)
    return found


def _variance(draws: FloatArray) -> float:
    """Variance of the draws that have a value; NaN where fewer than two have one.

    Examples:
        >>> _variance(np.array([1.0, 3.0, np.nan])), _variance(np.array([np.nan, 1.0]))
        (2.0, nan)
    """
    known = draws[np.isfinite(draws)]
    return float(known.var(ddof=1)) if known.size > 1 else float("nan")


def _decided(texts: "LedgerTexts") -> dict[str, Statistic]:
    """Statistics of the decisions, each a function of an outcome and of draws × row weights."""
    rows = texts.rows
    truth, reference = rows.truth[rows.test], rows.reference

    def accuracy(found: Outcome, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ (found.decided == truth) / weights.sum(axis=1))

    def size(gaps: Gaps, rate: str) -> Statistic:
        def statistic(found: Outcome, weights: FloatArray) -> FloatArray:
            case = _cases(rate)
            return _rms(
                np.stack(
                    [
                        gaps(rows, found, weights, c, case(truth, c))
                        for c in range(len(rows.classes))
                    ]
                )
            )

        return statistic

    def flips(found: Outcome, weights: FloatArray) -> FloatArray:
        base = found.do[rows.groups[reference]]
        others = [found.do[g] != base for g in found.do if g != rows.groups[reference]]
        return np.asarray((weights @ np.stack(others, 1)).max(1) / weights.sum(axis=1))

    out: dict[str, Statistic] = {
        "accuracy": accuracy,
        **{f"{rate}_gap_rms": size(plain_gaps, rate) for rate in RATES},
    }
    if texts.do and rows.groups[reference] in texts.do:
        sizes = {f"counterfactual_{rate}_gap_rms": size(paired_gaps, rate) for rate in RATES}
        out |= sizes | {"flip_rate": flips}
    return out


def _signed(texts: "LedgerTexts") -> dict[str, Statistic]:
    """Gaps of two classes with their sign: draws × groups other than the reference."""
    rows = texts.rows
    if rows.positive is None:
        return {}
    truth, positive = rows.truth[rows.test], rows.positive

    def gap(gaps: Gaps, measure: str, c: int) -> Statistic:
        case = _cases(measure.removesuffix("_gap"))(truth, c)
        return lambda found, weights: gaps(rows, found, weights, c, case)

    kinds = {"": plain_gaps}
    if set(rows.groups) <= set(texts.do):
        kinds["counterfactual_"] = paired_gaps
    return {
        f"{start}{name}": gap(gaps, measure, positive if own else 1 - positive)
        for name, (measure, own) in SIGNED.items()
        for start, gaps in kinds.items()
    }


def _cases(rate: str) -> Callable[[Codes, int], FloatArray]:
    """Which rows a rate of a class counts: all, those of the class, or those of others."""
    kinds: dict[str, Callable[[Codes, int], Any]] = {
        "selection_rate": lambda truth, c: np.ones(truth.size),
        "true_positive_rate": lambda truth, c: truth == c,
        "false_positive_rate": lambda truth, c: truth != c,
    }
    return lambda truth, c: np.asarray(kinds[rate](truth, c), dtype=np.float64)


def plain_gaps(
    rows: "LedgerRows", found: Outcome, weights: FloatArray, c: int, case: FloatArray
) -> FloatArray:
    """Draws × other groups: rate of deciding a class among cases, less the reference's."""
    inside = np.eye(len(rows.groups))[rows.group[rows.test]] * case[:, None]
    hit = (found.decided == c).astype(np.float64)
    with np.errstate(all="ignore"):
        rate = (weights @ (inside * hit[:, None])) / (weights @ inside)
    return np.asarray(np.delete(rate - rate[:, [rows.reference]], rows.reference, axis=1))


def paired_gaps(
    rows: "LedgerRows", found: Outcome, weights: FloatArray, c: int, case: FloatArray
) -> FloatArray:
    """The same of one text rewritten to either group, over all cases."""
    base = found.do[rows.groups[rows.reference]] == c
    moved = [
        weights @ (case * ((found.do[g] == c) * 1.0 - base)) for g in rows.others if g in found.do
    ]
    with np.errstate(all="ignore"):
        return np.asarray(np.stack(moved, axis=1) / (weights @ case)[:, None])


def _rms(gaps: FloatArray) -> FloatArray:
    """Classes × draws × groups to draws: the largest group's root mean square over classes."""
    known = np.isfinite(gaps)
    total = np.where(known, gaps, 0.0) ** 2
    with np.errstate(all="ignore"):
        size = np.sqrt(total.sum(axis=0) / known.sum(axis=0))
    return np.asarray(np.nanmax(size, axis=1))


def _trends(
    texts: "LedgerTexts",
    own: Outcome,
    baseline: Outcome,
    group: str,
    norm: FloatArray,
    rng: np.random.Generator,
    draws: int,
) -> dict[str, FloatArray]:
    """Draws of the difference in ρ, slope and mean |r| of one group and norm."""
    rows = texts.rows
    truth, code = rows.truth[rows.test], rows.group[rows.test]
    counts = np.bincount(truth[truth >= 0], minlength=len(rows.classes))
    r = np.full((2, draws, len(rows.classes)), np.nan)
    n = np.zeros(len(rows.classes))
    share = np.full(len(rows.classes), np.nan)
    for c in range(len(rows.classes)):
        cell = (truth == c) & (code == rows.groups.index(group))
        at = np.flatnonzero(cell & np.isfinite(norm) & np.isfinite(own.own))
        n[c], share[c] = at.size, cell.sum() / max(1, counts[c])
        if at.size < 4:
            continue
        picked = at[rng.integers(at.size, size=(draws, at.size))]
        for k, each in enumerate((own, baseline)):
            r[k, :, c] = spearman(each.own[picked], norm[picked])
    out = {name: np.full(draws, np.nan) for name in ("norm_bias", "norm_slope")}
    out["norm_correlation_mean"] = np.full(draws, np.nan)
    for d in range(draws):
        mine, theirs = (_trend(share, r[k, d], n) for k in range(2))
        for name, a, b in zip(out, mine, theirs, strict=True):
            out[name][d] = a - b
    return out


def _trend(share: FloatArray, r: FloatArray, n: FloatArray) -> tuple[float, float, float]:
    """ρ, slope and mean |r| over classes, NaN where there are too few."""
    p, known = class_columns(share, r)
    rho = float(spearman(p, known)) if p.size >= FEWEST_CLASSES else float("nan")
    found = slope(share, r, n).value, mean_size(r, n).estimate.value
    rise, size = (float("nan") if each is None else each for each in found)
    return rho, rise, size
