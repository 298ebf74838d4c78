"""What would settle a row that cannot be told, in a sentence."""

from typing import Any

import numpy as np

from evenhand.findings.sentences import base_of, plural
from evenhand.findings.verdict import cases_needed
from evenhand.lenses.catalogue import RATES
from evenhand.lenses.rows import Rows
from evenhand.stats.estimate import critical
from evenhand.stats.power import further_cases_rms
from evenhand.stats.spread import rms, spread

# Cases that the present data are called, to be told how many times as many would do.
_NOW = 1e6
_SIZES = {
    "_rms_corrected": rms,
    "_rms": rms,
    "_spread_corrected": spread,
    "_spread": spread,
}


def settling(row: dict[str, Any], rows: Rows) -> str:
    """The further cases that would settle this row at its present value, among all the rows."""
    ending = next((end for end in _SIZES if row["measure"].endswith(end)), None)
    if ending is not None:
        return _times(row, rows, ending)
    needed = cases_needed(row, _base(row, rows))
    if needed is None:
        return "It cannot be told whether that is within the limit."
    if isinstance(needed, str):
        return f"{needed[:1].upper()}{needed[1:]}."
    if row["lens"] == "causal":
        return f"About {plural(float(needed), 'further pair')} of texts would settle it."
    return f"About {plural(float(needed), 'further case')} of this group would settle it."


def _base(row: dict[str, Any], rows: Rows) -> tuple[float, float] | None:
    """The rates of the group and of the reference, where the row compares two."""
    rate = base_of(row["measure"])
    if rate not in RATES or row["reference"] is None:
        return None
    values: list[float] = []
    for group in (row["group"], row["reference"]):
        same = rows.where(
            measure=rate,
            attribute=row["attribute"],
            group=group,
            class_=row["class"],
            stratum=row["stratum"],
        )
        values += [v for v in same.plain("value")[:1] if v is not None]
    return (float(values[0]), float(values[1])) if len(values) == 2 else None


def _times(row: dict[str, Any], rows: Rows, ending: str) -> str:
    """How many times the present data would settle a size over classes or groups."""
    over_classes = ending.startswith("_rms")
    shared = {
        "lens": row["lens"],
        "measure": row["measure"].removesuffix(ending),
        "attribute": row["attribute"],
        "stratum": row["stratum"],
    }
    place = (
        {"group": row["group"], "reference": row["reference"]}
        if over_classes
        else {"class_": row["class"]}
    )
    parts = rows.where(**shared, **place)
    values = parts["value"]
    if row["value"] is None or not np.isfinite(values).all() or len(values) != row["n"]:
        # A class too small to be shown counts in the size, so its gap would be missed here.
        return "It cannot be told whether that is within the limit."
    z = critical(float(row["level"]))
    found = further_cases_rms(
        values,
        ((parts["high"] - parts["low"]) / (2 * z)) ** 2,
        _NOW,
        low=float(row["limit_low"]),
        high=float(row["limit_high"]),
        z=z,
        measure=_SIZES[ending],
    )
    if not np.isfinite(found.cases):
        return "No number of further cases would settle it."
    times = 1 + float(found.cases) / _NOW
    told = f"{times:.1f}" if times < 9.95 else f"{times:,.0f}"
    return f"About {told} times as many cases in every group would settle it."
