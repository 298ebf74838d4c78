"""Rows against their limits: within, outside, cannot tell, or not assessed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import UsageError
from evenhand.lenses.catalogue import CATALOGUE, limit_band
from evenhand.lenses.rows import Rows, choose
from evenhand.stats.estimate import critical
from evenhand.stats.power import (
    AT_LIMIT,
    further_cases,
    further_cases_rate,
    further_cases_ratio,
)

WITHIN, OUTSIDE, CANNOT_TELL, NOT_ASSESSED = "within", "outside", "cannot tell", "not assessed"
HIDDEN_UNDER, UNTOLD_UNDER = 10, 50
# Measures whose n counts classes or groups, not cases: the floors on cases do not apply to them.
OVER_CLASSES = ("norm_bias", "norm_bias_corrected", "norm_slope", "norm_correlation_mean")
COUNTED_OTHERWISE = (
    *("_rms", "_rms_corrected", "_spread", "_spread_corrected"),
    *("_null_level", "_null_level_irrelevant"),
    *(f"{name}{end}" for name in OVER_CLASSES for end in ("", "_irrelevant")),
)
# Measures inferred from several rates at once: n cases do not vary as those of one share do.
_INFERRED = ("implied_threshold", "cost_ratio", "criterion", "separation")
_NUMBERS = ("value", "low", "high", "family_low", "family_high", "p", "p_adjusted")
_HIDDEN = f"fewer than {HIDDEN_UNDER} cases: hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A band agreed on for a measure, for all groups or for one group of an attribute."""

    measure: str
    low: float
    high: float
    group: str | None = None
    attribute: str | None = None


def read_limits(limits: Mapping[str, object] | None) -> list[Limit]:
    """Limits as given by flags or a dict: `{"true_positive_rate_gap": 0.05}`.

    Examples:
        >>> read_limits({"selection_rate_ratio": "0.8"})
        [Limit(measure='selection_rate_ratio', low=0.8, high=1.25, group=None, attribute=None)]
    """
    if limits is not None and not isinstance(limits, Mapping):
        raise UsageError(
            f"limits={limits!r} is not a dict of limits, such as "
            "{'true_positive_rate_gap': 0.05}."
        )
    found = []
    for name, value in (limits or {}).items():
        pair = isinstance(value, list | tuple) and len(value) == 2
        low, high = limit_band(name, ":".join(map(str, value)) if pair else str(value))  # type: ignore[call-overload]
        if not (isfinite(low) and isfinite(high)):
            raise UsageError(
                f"limit {name}={value} has no end on one side, so nothing could be judged. "
                f"Write both ends, such as {name}=-1:0.05."
            )
        found.append(Limit(measure=name, low=low, high=high))
    return found


def judge(rows: Rows, limits: Iterable[Limit], *, positive: str | None = None) -> Rows:
    """The rows with their limits and verdicts.

    Comparisons with everybody else are judged only where that is the reference asked for, and
    of two classes only the positive one: its mirror has a measure of its own.
    """
    judged = judged_rows(rows, positive)
    low = np.full(len(rows), np.nan)
    high = np.full(len(rows), np.nan)
    for limit in limits:
        mask = judged & (rows["measure"] == limit.measure)
        if limit.group is not None:
            mask = mask & (rows["group"] == limit.group)
        if limit.attribute is not None:
            mask = mask & (rows["attribute"] == limit.attribute)
        low[mask], high[mask] = limit.low, limit.high
    limited = np.isfinite(low)
    verdict = np.full(len(rows), NOT_ASSESSED, dtype=object)
    verdict[limited] = CANNOT_TELL
    few = small(rows, under=UNTOLD_UNDER) | _untold(rows)
    with np.errstate(all="ignore"):
        inside = (rows["family_low"] >= low) & (rows["family_high"] <= high)
        beyond = (rows["family_low"] > high) | (rows["family_high"] < low)
    verdict[limited & inside & ~few] = WITHIN
    verdict[limited & beyond & ~few] = OUTSIDE
    return rows.replace(limit_low=low, limit_high=high, verdict=verdict)


def judged_rows(rows: Rows, positive: str | None) -> NDArray[np.bool_]:
    """Which rows a limit speaks of."""
    judged = rows["reference"] != "<rest>"
    families = list(zip(rows["lens"], rows["attribute"], rows["measure"]))
    named = {family for family, direct in zip(families, judged) if direct}
    judged = np.array([j or f not in named for j, f in zip(judged, families)], dtype=bool)
    # A labeler beside all others is shown, not judged: limits speak of groups.
    judged &= ~(single_labelers(rows) & (rows["reference"] == "<rest>"))
    if positive is not None:
        mirrored = (rows["lens"] == "statistical") | (rows["lens"] == "causal")
        mirror = np.array(
            [name is not None and name != positive for name in rows["class"]], dtype=bool
        )
        judged &= ~(mirrored & mirror)
    return np.asarray(judged)


def single_labelers(rows: Rows) -> NDArray[np.bool_]:
    """Which rows speak of one labeler."""
    return np.array([name is not None for name in rows["labeler"]], dtype=bool)


def counted_rows(rows: Rows) -> Rows:
    """The rows that the overall verdict counts.

    Of single labelers only those surely outside: that one labeler's few labels leave it open
    says nothing about the groups.
    """
    return rows.take(~single_labelers(rows) | (rows["verdict"] == OUTSIDE))


def _untold(rows: Rows) -> NDArray[np.bool_]:
    """Rows whose lens says in `method` that no limit can be held against them."""
    return np.array(["cannot be told" in (method or "") for method in rows["method"]], dtype=bool)


def small(rows: Rows, *, under: int) -> NDArray[np.bool_]:
    """Rows with fewer cases than this in the group or in the reference."""
    exempt = np.array(
        [str(name).endswith(COUNTED_OTHERWISE) for name in rows["measure"]], dtype=bool
    )
    with np.errstate(all="ignore"):
        few = (rows["n"] < under) | (rows["n_reference"] < under)
    return np.asarray(few & ~exempt)


def hide_small(rows: Rows) -> Rows:
    """The rows with the numbers of cells under 10 cases taken out."""
    hide = small(rows, under=HIDDEN_UNDER)
    if not hide.any():
        return rows
    changed = {name: np.where(hide, np.nan, rows[name]) for name in _NUMBERS}
    # A rate without any case is undefined for everybody to see; only real small cells are hidden.
    unsaid = np.array([reason is None for reason in rows["undefined"]], dtype=bool)
    reason = choose(hide & unsaid, _HIDDEN, rows["undefined"])
    return rows.replace(**changed, undefined=reason)


def hide_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """One plain row as people may be shown it, without the numbers of a small cell."""
    counts = [row[name] for name in ("n", "n_reference") if row[name] is not None]
    exempt = str(row["measure"]).endswith(COUNTED_OTHERWISE)
    if exempt or row["value"] is None or not any(count < HIDDEN_UNDER for count in counts):
        return row
    return {**row, **dict.fromkeys(_NUMBERS), "undefined": _HIDDEN}


def overall(verdicts: Iterable[str]) -> str:
    """One verdict for all: outside, else cannot tell, else within, else not assessed.

    Examples:
        >>> overall(["within", "cannot tell", "not assessed"])
        'cannot tell'
    """
    present = set(verdicts)
    return next((v for v in (OUTSIDE, CANNOT_TELL, WITHIN) if v in present), NOT_ASSESSED)


def cases_needed(row: Mapping[str, object], base: tuple[float, float] | None) -> float | str | None:
    """Further cases of this group that would settle a row at its present value.

    `base` are the rates of the group and of the reference, where the row compares two rates.
    None where the row is settled or has no value; a sentence where no number would do.
    """
    numbers = {
        k: row[k] for k in ("value", "low", "high", "family_low", "family_high", "n", "level")
    }
    if row["verdict"] != CANNOT_TELL or any(v is None for v in numbers.values()):
        return None
    value, low, high, family_low, family_high, n, level = (float(v) for v in numbers.values())  # type: ignore[arg-type]
    _, reason, why = str(row.get("method") or "").partition("cannot be told: ")
    if reason:
        return reason + why.partition(";")[0]
    z = critical(level)
    # The family's critical value, recovered from how much wider its interval is.
    q = z * (family_high - family_low) / (high - low) if high > low else z
    band = {"low": float(row["limit_low"]), "high": float(row["limit_high"])}  # type: ignore[arg-type]
    kind = CATALOGUE[str(row["measure"])].kind
    other = row["n_reference"]
    if str(row["measure"]).startswith(_INFERRED):
        return _by_width(value, family_low, family_high, n, band)
    if kind == "rate":
        found = further_cases_rate(value * n, n, z=q, **band)
    elif base is not None and other is not None and kind in {"gap", "ratio"}:
        m = float(other)  # type: ignore[arg-type]
        settle = further_cases if kind == "gap" else further_cases_ratio
        found = settle(base[0] * n, n, base[1] * m, m, z=q, **band)
    else:
        return _by_width(value, family_low, family_high, n, band)
    cases = float(found.cases)
    if not np.isfinite(cases):
        return str(found.reason).replace("would:", "would settle it:")
    return max(cases, UNTOLD_UNDER - n, 0.0)


def _by_width(
    value: float, low: float, high: float, n: float, band: Mapping[str, float]
) -> float | str:
    """Cases by the square-root law: the interval's half-width shrinks to the distance to settle."""
    edges = [edge for edge in (band["low"], band["high"]) if np.isfinite(edge)]
    distance = min(abs(value - edge) for edge in edges)
    scale = max(max(abs(edge) for edge in edges), 1e-12)
    if distance < 0.01 * scale:
        return AT_LIMIT.replace("would:", "would settle it:")
    width = max(high - value, value - low)
    return max(n * ((width / distance) ** 2 - 1), UNTOLD_UNDER - n, 0.0)
