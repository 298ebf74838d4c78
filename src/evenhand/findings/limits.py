"""Rows against their limits: within, outside, cannot tell, or not assessed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import REST
from evenhand.errors import UsageError
from evenhand.lenses.measures import limit_band, look_up
from evenhand.lenses.rows import (
    KNOWN_SHARES,
    TEXT,
    UNEQUALLY_KNOWN,
    Column,
    Rows,
    choose,
    of_one_group,
)
from evenhand.lenses.scope import HIDDEN_UNDER, UNTOLD_UNDER

WITHIN, OUTSIDE, CANNOT_TELL, NOT_ASSESSED = "within", "outside", "cannot tell", "not assessed"
NORMS = "norms"

# Why a row has no number where people see it: it rests on too few cases.
HIDDEN = f"fewer than {HIDDEN_UNDER} cases: hidden"
_NUMBERS = (
    "value",
    "set_low",
    "set_high",
    "low",
    "high",
    "family_low",
    "family_high",
    "p",
    "p_adjusted",
)


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
        mask = judged & is_judged_as(rows, limit.measure)
        if limit.group is not None:
            mask = mask & (rows["group"] == limit.group)
        if limit.attribute is not None:
            mask = mask & (rows["attribute"] == limit.attribute)
        low[mask], high[mask] = limit.low, limit.high
    limited = np.isfinite(low)
    rows = _asked_alone(rows, limited)
    verdict = np.full(len(rows), NOT_ASSESSED, dtype=object)
    verdict[limited] = CANNOT_TELL
    few = small(rows, under=UNTOLD_UNDER) | _unjudged(rows)
    with np.errstate(all="ignore"):
        inside = (rows["family_low"] >= low) & (rows["family_high"] <= high)
        beyond = (rows["family_low"] > high) | (rows["family_high"] < low)
    verdict[limited & inside & ~few] = WITHIN
    verdict[limited & beyond & ~few] = OUTSIDE
    return rows.replace(limit_low=low, limit_high=high, verdict=verdict)


def is_judged_as(rows: Rows, measure: str) -> NDArray[np.bool_]:
    """Which rows a limit on a measure is held against: its own, or those that stand in for it."""
    named = np.asarray(rows["measure"] == measure, dtype=bool)
    standing = np.asarray(rows["judged_as"] == measure, dtype=bool)
    if not standing.any():
        return named
    places = list(zip(*(rows[name] for name in TEXT if name != "measure")))
    replaced = {places[i] for i in np.flatnonzero(standing)}
    named &= np.array([place not in replaced for place in places], dtype=bool)
    return np.asarray(named | standing)


def judged_rows(rows: Rows, positive: str | None) -> NDArray[np.bool_]:
    """Which rows a limit speaks of."""
    judged = np.asarray(rows["reference"] != REST, dtype=bool)
    if not judged.all():
        columns = [rows[name] for name in ("lens", "attribute", "measure")]
        named = set(zip(*(column[judged] for column in columns)))
        families = zip(*(column[~judged] for column in columns))
        judged[~judged] = [family not in named for family in families]
    # The group that others are held against is not compared with itself.
    own = (rows["group"] == rows["reference"]) & _is_named(rows["group"])
    judged &= ~np.asarray(own, dtype=bool)
    judged &= ~_pooled(rows)
    # A labeler beside all others is shown, not judged: limits speak of groups.
    judged &= ~(single_labelers(rows) & (rows["reference"] == REST))
    if positive is not None:
        mirrored = (rows["lens"] == "statistical") | (rows["lens"] == "counterfactual")
        judged &= ~(mirrored & _is_named(rows["class"]) & (rows["class"] != positive))
    return np.asarray(judged)


def _pooled(rows: Rows) -> NDArray[np.bool_]:
    """Rows on a norm among the people of several classes at once, and of no class alone.

    Classes that differ in how typical their people look, and in their scores, make a correlation
    over all of them that holds within none. Of two classes, all but one are the other one.
    """
    of_norms = np.asarray(rows["lens"] == NORMS, dtype=bool)
    shares = of_norms & np.asarray(rows["measure"] == "group_share", dtype=bool)
    classes = set(rows["class"][shares])
    if len(classes) <= 2:
        return np.zeros(len(rows), dtype=bool)
    pooled = of_norms.copy()
    pooled[of_norms] = [n is not None and n not in classes for n in rows["class"][of_norms]]
    return pooled


def single_labelers(rows: Rows) -> NDArray[np.bool_]:
    """Which rows speak of one labeler."""
    return _is_named(rows["labeler"])


def _is_named(column: Column) -> NDArray[np.bool_]:
    """Where a column has a word."""
    return np.asarray(column != None, dtype=bool)  # noqa: E711


def counted_rows(rows: Rows) -> Rows:
    """The rows that the overall verdict counts.

    Of single labelers only those shown to lie outside: that one labeler's few labels leave it open
    says nothing about the groups.
    """
    return rows.take(~single_labelers(rows) | (rows["verdict"] == OUTSIDE))


def is_unreviewed(row: Mapping[str, Any]) -> bool:
    """Whether one plain row says nothing, because the truth is known unequally often."""
    return row.get("unjudged") == UNEQUALLY_KNOWN


def _unjudged(rows: Rows) -> NDArray[np.bool_]:
    """Rows whose lens knows that no limit can be held against them."""
    return _is_named(rows["unjudged"])


def _asked_alone(rows: Rows, limited: NDArray[np.bool_]) -> Rows:
    """The rows, numbers of one group withheld for what is known of the truth only from a limit."""
    idle = (rows["unjudged"] == UNEQUALLY_KNOWN) & of_one_group(rows) & ~limited
    if not idle.any():
        return rows
    return rows.replace(unjudged=choose(idle, None, rows["unjudged"]))


def shares_told(details: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    """What lenses left, without the known shares of the truth that withhold no row."""
    marked = rows.take(rows["unjudged"] == UNEQUALLY_KNOWN)
    names = ("lens", "attribute", "group", "reference", "class", "stratum")
    places = set(zip(*(marked[name].tolist() for name in names)))
    found = dict(details)
    for lens, held in details.items():
        if KNOWN_SHARES not in held:
            continue
        told = [(lens, *(one[name] for name in names[1:])) for one in held[KNOWN_SHARES]]
        kept = [one for one, place in zip(held[KNOWN_SHARES], told) if place in places]
        found[lens] = {**held, KNOWN_SHARES: kept}
        if not kept:
            del found[lens][KNOWN_SHARES]
    return found


def unclaimed(rows: Rows) -> NDArray[np.bool_]:
    """Rows of which nothing is claimed, where nobody set a limit either.

    On norms these are the rows against which no limit can be held: their intervals are of
    something else than the norm of a group within a class.
    """
    return np.asarray(rows["lens"] == NORMS, dtype=bool) & _unjudged(rows)


def is_unclaimed(row: Mapping[str, Any]) -> bool:
    """Whether nothing is claimed of one plain row."""
    return row["lens"] == NORMS and row.get("unjudged") is not None


def small(rows: Rows, *, under: int) -> NDArray[np.bool_]:
    """Rows with fewer cases than this in the group or in the reference."""
    known = {name: look_up(name).counts_cases for name in set(rows["measure"])}
    of_cases = np.array([known[name] for name in rows["measure"]], dtype=bool)
    with np.errstate(all="ignore"):
        few = (rows["n"] < under) | (rows["n_reference"] < under)
    return np.asarray(few & of_cases)


def small_row(row: Mapping[str, Any], *, under: int) -> bool:
    """Whether one plain row has fewer cases than this in the group or in the reference."""
    # Asked of every row that is shown: the counts first, most rows have enough.
    n, n_reference = row["n"], row["n_reference"]
    few = (n is not None and n < under) or (n_reference is not None and n_reference < under)
    return few and look_up(row["measure"]).counts_cases


def hide_small(rows: Rows) -> Rows:
    """The rows with the numbers of cells under 10 cases taken out."""
    hide = small(rows, under=HIDDEN_UNDER)
    if not hide.any():
        return rows
    changed = {name: np.where(hide, np.nan, rows[name]) for name in _NUMBERS}
    # A rate without any case is undefined for everybody to see; only real small cells are hidden,
    # and with them why they have no number: that a rate is 0 says how many cases were decided so.
    unsaid = ~_is_named(rows["undefined"]) | ~((rows["n"] == 0) | (rows["n_reference"] == 0))
    reason = choose(hide & unsaid, HIDDEN, rows["undefined"])
    return rows.replace(
        **changed, undefined=reason, no_interval=choose(hide, None, rows["no_interval"])
    )


def hide_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """One plain row as people may be shown it, without the numbers of a small cell."""
    if not small_row(row, under=HIDDEN_UNDER):
        return row
    known = row["value"] is not None or row.get("set_low") is not None
    if not known and 0 in (row["n"], row["n_reference"]):
        return row
    return {**row, **dict.fromkeys(_NUMBERS), "undefined": HIDDEN, "no_interval": None}


def overall(verdicts: Iterable[str]) -> str:
    """One verdict for all: outside, else cannot tell, else within, else not assessed.

    Examples:
        >>> overall(["within", "cannot tell", "not assessed"])
        'cannot tell'
    """
    present = set(verdicts)
    return next((v for v in (OUTSIDE, CANNOT_TELL, WITHIN) if v in present), NOT_ASSESSED)
