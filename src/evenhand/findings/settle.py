"""What would settle what the data cannot tell: how many further units, or why none would."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import numpy as np

from evenhand.decisions.labels import SUMMARY
from evenhand.findings.finding import Settle
from evenhand.findings.limits import CANNOT_TELL, is_unreviewed
from evenhand.lenses.kinds import NEGATIVE, POSITIVE, Measure
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import UNTOLD_UNDER
from evenhand.stats import power
from evenhand.stats.estimate import critical
from evenhand.stats.spread import implied_moments

# The rows of a lens whose columns equal what is asked; `class_` stands for `class`.
LookUp = Callable[..., list[Row]]

TOO_CLOSE, NO_NUMBER = "too close", "no number"
NOT_JUDGED, UNKNOWN, UNREVIEWED = "not judged", "unknown", "unreviewed"
# Of a comparison that is not made of one rate, all decisions are the cases.
_EVERY_CASE = {
    "statistical": "selection_rate",
    "counterfactual": "counterfactual_selection_rate_gap",
}
_REASONS = {power.TOO_CLOSE: TOO_CLOSE, power.UNKNOWN: UNKNOWN}
_ENDS = ("low", "high", "family_low", "family_high")
_NUMBERS = ("value", *_ENDS, "n", "level")

# What a case is where a lens counts something of its own.
_CASES = {"labelers": "labels"}


def settle(row: Row, look: LookUp, details: Mapping[str, Any] | None = None) -> Settle | None:
    """What would settle a row if its value is what it looks like; None where nothing is open.

    `look` finds rows among all those of its audit, `details` is what its lenses left for the
    report: where rows come in clusters, `units` there says how many and of what.
    """
    record = look_up(row["measure"])
    if is_unreviewed(row):
        # Whether a limit asks or nobody does: what is missing is not more of the same.
        return Settle(unit=record.unit, reason=UNREVIEWED)
    if row["verdict"] != CANNOT_TELL:
        return None
    why = row.get("unjudged")
    if why is not None:
        return Settle(unit=record.unit, reason=NOT_JUDGED, why=why)
    if any(row[name] is None for name in _NUMBERS):
        return Settle(unit=record.unit, reason=NO_NUMBER if _straddles(row) else UNKNOWN)
    known = (details or {}).get(row["lens"]) or {}
    units = _units(row, record, look, known)
    if "items" in ((known.get("units") or {}).get(row["attribute"]) or {}):
        # Neither more labelers nor more items alone need settle what both of them vary.
        return Settle(unit=record.unit, reason=UNKNOWN)
    if record.parts is not None:
        found = _of_size(row, record, look, units["now"])
    else:
        found = _of_row(row, record, units["now"])
    shared = {"unit": units["unit"], "column": units["column"]}
    more, lacking = _for_floor(row, record, units["now"])
    # Under the floor nothing is judged, so that comes first whatever the interval.
    if not np.isfinite(found.units) and not more:
        return Settle(**shared, reason=_REASONS.get(str(found.reason), NO_NUMBER))
    needed = float(np.nan_to_num(found.units))
    floor_decides = more >= needed
    return Settle(
        **shared,
        how_many=max(more, needed, 1.0),
        groups=units["groups"],
        among=units["among"],
        condition=_condition(record),
        lacking=lacking if floor_decides else None,
        alone=None if lacking or units["column"] else _alone(row, record, look),
    )


def _straddles(row: Row) -> bool:
    """Whether a set of values lies on both sides of a limit: more cases leave the set as it is."""
    if row["value"] is not None or row.get("set_low") is None:
        return False
    low = float(row["set_low"])
    high = inf if row["set_high"] is None else float(row["set_high"])
    return any(low < float(row[end]) < high for end in ("limit_low", "limit_high"))


def _condition(record: Measure) -> str:
    """What has to be so for the number to hold."""
    what = record.kind if record.kind in ("gap", "ratio") else "value"
    return f"if the {what} is what it looks like"


def _units(row: Row, record: Measure, look: LookUp, details: Mapping[str, Any]) -> dict[str, Any]:
    """The independent units there are now, in all groups, and what they are called."""
    alike = {"lens": row["lens"], "attribute": row["attribute"], "labeler": row["labeler"]}
    stratum = None if row["stratum"] == SUMMARY else row["stratum"]
    source = record.base or record.name
    if record.parts is not None or (record.base is None and row["lens"] == "statistical"):
        source = _EVERY_CASE.get(row["lens"], source)
    rows = [
        one
        for one in look(**alike, measure=source, stratum=stratum)
        if one["n"] is not None and one["class"] in (row["class"], None)
    ]
    if record.parts is not None:
        rows = look(**alike, measure=source, stratum=stratum)
    sizes: dict[str | None, float] = {}
    for one in rows:
        sizes[one["group"]] = max(sizes.get(one["group"], 0.0), float(one["n"] or 0.0))
    unit = _CASES.get(row["lens"], record.unit) if record.unit == "cases" else record.unit
    groups = len(sizes) if len(sizes) > 1 else None
    now = sum(sizes.values())
    share = 1.0
    if record.parts is None and row["reference"] is None and row["group"] in sizes:
        # A number of one group alone: the others do not enter it.
        share, groups = sizes[row["group"]] / max(now, 1.0), 1
        now = sizes[row["group"]]
    if unit in ("pairs", "classes") or not now:
        now, groups = float(row["n"] if record.parts is None else now or row["n"]), None
    known = (details.get("units") or {}).get(row["attribute"])
    if known:
        return {
            "unit": known["unit"],
            "column": known["column"],
            "now": float(known["count"]) * (1.0 if known.get("shared") else share),
            "groups": groups,
            "among": None,
        }
    return {
        "unit": unit,
        "column": None,
        "now": now,
        "groups": groups,
        "among": _among(row, record),
    }


def _among(row: Row, record: Measure) -> str | None:
    """Which cases alone count for a rate, by the truth: those of the class, or the others."""
    cells = look_up(record.base or record.name).cells
    if cells is None or record.parts is not None or row["class"] is None:
        return None
    return "true" if cells.cases <= POSITIVE else "untrue" if cells.cases <= NEGATIVE else None


def _on_log(record: Measure) -> bool:
    """Whether it is a positive number without an end, such as a ratio."""
    return record.low == 0 and record.high == inf


def _of_row(row: Row, record: Measure, now: float) -> power.FurtherUnits:
    """Further units of a rate, a comparison or a correlation."""
    value, low, high, family_low, family_high, _, level = (float(row[k]) for k in _NUMBERS)
    on_log = _on_log(record)
    q = power.family_critical(
        low,
        high,
        family_low=family_low,
        family_high=family_high,
        z=critical(level),
        on_log=on_log,
    )
    return power.further_units(
        value,
        family_low=family_low,
        family_high=family_high,
        z=q,
        low=_edge(row["limit_low"], record.low),
        high=_edge(row["limit_high"], record.high),
        units=now,
        on_log=on_log,
    )


def _edge(limit: float, reach: float | None) -> float:
    """A limit, left open where no value can lie beyond it."""
    if reach is not None and float(limit) == reach:
        return -inf if reach <= 0 else inf
    return float(limit)


def _of_size(row: Row, record: Measure, look: LookUp, now: float) -> power.FurtherUnits:
    """Further units of a size over classes or groups, from its interval and its null level."""
    keys = ("lens", "attribute", "group", "reference", "stratum", "labeler")
    same = {key: row[key] for key in keys}
    floors = look(**same, class_=row["class"], measure=record.floor)
    null = next((one["value"] for one in floors), None)
    plain = look(**same, class_=row["class"], measure=record.variant_of or record.name)
    value = next((one["value"] for one in plain), None)
    if null is None or value is None:
        nothing = np.asarray(np.nan)
        return power.FurtherUnits(units=nothing, ratio=nothing, reason=np.asarray(power.UNKNOWN))
    moments, q = implied_moments(
        float(value),
        null=float(null),
        members=int(row["n"]),
        high=float(row["high"]),
        family_high=float(row["family_high"]),
        z=critical(float(row["level"])),
    )
    return power.further_units_of_size(
        moments, z=q, low=float(row["limit_low"]), high=float(row["limit_high"]), units=now
    )


def _for_floor(row: Row, record: Measure, now: float) -> tuple[float, str | None]:
    """Further units until enough cases stand on both sides for a limit, and which side lacks."""
    if not record.counts_cases:
        return 0.0, None
    other = np.nan if row["n_reference"] is None else float(row["n_reference"])
    more, side = power.units_for_floor(float(row["n"]), other, floor=UNTOLD_UNDER, units=now)
    return float(np.nan_to_num(more)), str(side) or None


def _alone(row: Row, record: Measure, look: LookUp) -> float | None:
    """Further cases of the row's own group that would do with the reference as it is."""
    base = look_up(record.base or "")
    if base.cells is None or record.kind not in ("gap", "ratio") or row["reference"] is None:
        return None
    z = critical(float(row["level"]))
    on_log = _on_log(record)
    variances = []
    for group in (row["group"], row["reference"]):
        rates = look(
            lens=row["lens"], measure=base.name, attribute=row["attribute"], group=group,
            class_=row["class"], stratum=row["stratum"],
        )  # fmt: skip
        known = [one for one in rates[:1] if None not in (one["value"], one["low"], one["high"])]
        if not known or (on_log and not known[0]["value"]):
            return None
        error = (known[0]["high"] - known[0]["low"]) / (2 * z)
        variances.append((error / known[0]["value"] if on_log else error) ** 2)
    low, high, family_low, family_high = (float(row[end]) for end in _ENDS)
    q = power.family_critical(
        low, high, family_low=family_low, family_high=family_high, z=z, on_log=on_log
    )
    found = power.further_units_of_group(
        float(row["value"]),
        variance=variances[0],
        variance_reference=variances[1],
        z=q,
        low=_edge(row["limit_low"], record.low),
        high=_edge(row["limit_high"], record.high),
        units=float(row["n"]),
        on_log=on_log,
    )
    units = float(found.units)
    return units if np.isfinite(units) and units >= 1 else None
