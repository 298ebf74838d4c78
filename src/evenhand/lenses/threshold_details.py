"""What stands behind an implied threshold: bandwidths tried, calibration, a falling prevalence."""

from typing import Any

import numpy as np

from evenhand.lenses.margins import Margin
from evenhand.stats.estimate import FloatArray, number
from evenhand.stats.histogram import leverage_fit
from evenhand.stats.implied import bandwidth_curve
from evenhand.stats.isotonic import Monotonicity, monotonicity

MULTIPLES = (0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
# Cells under this many cases are hidden in whatever people are shown.
HIDDEN_UNDER = 10


def margin_details(margin: Margin, *, level: float, seed: int) -> tuple[list[Any], list[str]]:
    """One plain table per group, and notes on groups whose prevalence falls as scores rise."""
    found = margin.found
    safe = np.where(np.isfinite(found.bandwidth), found.bandwidth, 1.0)
    curve = bandwidth_curve(margin.histogram, bandwidths=np.outer(MULTIPLES, safe), level=level)
    strict = leverage_fit(margin.histogram, bandwidth=safe, degree=2).standard_error
    tables, notes = [], []
    for g, name in enumerate(margin.groups):
        table: dict[str, Any] = {"group": name, "threshold": number(found.threshold[g])}
        if g in margin.discrete:
            table |= {"kind": "discrete", "margin": _discrete(margin, g)}
            tables.append(table)
            continue
        defined = found.undefined[g] is None
        table |= {
            "kind": "continuous",
            "bandwidth": number(found.bandwidth[g]),
            "n": number(found.n[g]),
            "n_effective": number(found.n_effective[g]),
            "raw": number(found.raw[g]),
            "slope": number(found.slope[g]),
            "centre": number(found.centre[g]),
            "standard_error": number(found.centre_error[g]),
            "standard_error_hc3": number(strict[g]) if defined else None,
            "sensitivity": _sensitivity(curve, g) if defined else None,
        }
        near = _falling(margin, g, half_width=float(safe[g]), seed=seed)
        table["calibration"] = _calibration(margin, near, g)
        # Every group is tested, so the share of false alarms is split among them.
        if near.p * len(margin.groups) <= 0.05:
            table["falls"] = True
            notes.append(
                f"{name}: prevalence falls as the score rises near the threshold "
                f"(p = {near.p:.3f}), so one threshold may not be the cheapest everywhere."
            )
        tables.append(table)
    return tables, notes


def _falling(margin: Margin, g: int, *, half_width: float, seed: int) -> Monotonicity:
    """The test of a falling prevalence, with draws enough to survive that all groups are tested."""
    found = monotonicity(margin.histogram, group=g, half_width=half_width, draws=199, seed=seed)
    if not found.p <= 0.05:
        return found
    draws = max(1000, 50 * len(margin.groups)) - 1
    return monotonicity(margin.histogram, group=g, half_width=half_width, draws=draws, seed=seed)


def _plain(values: FloatArray, n: FloatArray) -> list[float | None]:
    return [None if k < HIDDEN_UNDER else number(v) for v, k in zip(values, n)]


def _sensitivity(curve: tuple[Any, ...], g: int) -> dict[str, Any]:
    """The estimate at narrower and wider bandwidths."""
    n = np.array([fit.n[g] for fit in curve])
    names = ("value", "low", "high", "cost_ratio", "cost_ratio_low", "cost_ratio_high")
    told: dict[str, Any] = {"bandwidth": [number(fit.bandwidth[g]) for fit in curve]}
    told["n"] = [number(v) for v in n]
    return told | {
        name: _plain(np.array([getattr(fit, name)[g] for fit in curve]), n) for name in names
    }


def _calibration(margin: Margin, near: Monotonicity, g: int) -> dict[str, Any]:
    """The decision threshold beside the implied one, and prevalence in bins around it."""
    found = margin.found
    cut = found.threshold[g]
    shift = cut if np.isfinite(cut) else 0.0
    return {
        "threshold": number(cut),
        "implied_threshold": number(found.value[g]),
        "gap": number(found.value[g] - cut),
        "gap_low": number(found.low[g] - cut),
        "gap_high": number(found.high[g] - cut),
        "score": [number(v + shift) for v in near.scores],
        "n": [number(v) for v in near.n],
        "prevalence": _plain(near.prevalence, near.n),
        "isotonic": _plain(near.fitted, near.n),
        "p_falls": number(near.p),
    }


def _discrete(margin: Margin, g: int) -> dict[str, Any]:
    part = margin.discrete[g]
    cut = margin.found.threshold[g]
    shift = cut if np.isfinite(cut) else 0.0
    told: dict[str, Any] = {}
    for side in ("accepted", "refused"):
        n = getattr(part, f"{side}_n")
        told[side] = {
            "score": number(getattr(part, f"{side}_score")[0] + shift),
            "prevalence": _plain(getattr(part, side), n)[0],
            "low": _plain(getattr(part, f"{side}_low"), n)[0],
            "high": _plain(getattr(part, f"{side}_high"), n)[0],
            "n": number(n[0]),
        }
    enough = min(part.accepted_n[0], part.refused_n[0]) >= HIDDEN_UNDER
    for name in ("cost_ratio_low", "cost_ratio_high", "cost_ratio_lowest", "cost_ratio_highest"):
        told[name] = number(getattr(part, name)[0]) if enough else None
    return told
