"""Groups side by side: every rate of a group and class in one line, with its interval."""

from typing import Any

from evenhand.findings.limits import hide_small
from evenhand.lenses.measures import counted_rates
from evenhand.lenses.rows import Rows

# What describes one group without a comparison, and the lenses that measure it, the first before
# the second: a model's own scores tell more of its threshold than signal detection does.
_OTHERS = {
    "auc": ("statistical",),
    "implied_threshold": ("thresholds", "labelers"),
    "cost_ratio": ("thresholds", "labelers"),
    "separation": ("labelers",),
    "criterion": ("labelers",),
}
_KEYS = ("attribute", "group", "class")


def by_group(rows: Rows) -> Any:
    """A Polars frame with one row for each attribute, group and class; always the same columns.

    `n` counts the group's decisions. Each measure has its value, `_low`, `_high` and `_n`, the
    cases it counts; all are null where it was not measured, is undefined, or counts under ten.

    Examples:
        >>> rate = {"lens": "statistical", "measure": "selection_rate", "attribute": "sex"}
        >>> rows = Rows.block((2,), **rate, group=["f", "m"], value=[0.5, 0.9], n=[40, 6])
        >>> by_group(rows).select("group", "n", "selection_rate").rows()
        [('f', 40.0, 0.5), ('m', None, None)]
    """
    import polars as pl

    sought = dict.fromkeys(counted_rates(), ("statistical",)) | _OTHERS
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    of_everybody = hide_small(rows).where(reference=None, stratum=None, labeler=None, norm=None)
    for row in of_everybody:
        lenses = sought.get(row["measure"], ())
        if row["lens"] not in lenses or row["group"] is None:
            continue
        line = lines.setdefault(tuple(row[key] for key in _KEYS), {})
        place = lenses.index(row["lens"])
        if place < line.get(f"{row['measure']}_lens", len(lenses)):
            line[f"{row['measure']}_lens"] = place
            line |= _cells(row)
    columns: dict[str, list[Any]] = {key: [] for key in _KEYS} | {"n": []}
    names = [f"{name}{end}" for name in sought for end in ("", "_low", "_high", "_n")]
    columns |= {name: [] for name in names}
    for keys, line in lines.items():
        for key, value in zip(_KEYS, keys):
            columns[key].append(value)
        columns["n"].append(line.get("selection_rate_n"))
        for name in names:
            columns[name].append(line.get(name))
    kinds = {name: pl.String if name in _KEYS else pl.Float64 for name in columns}
    return pl.DataFrame(columns, schema=kinds, strict=False)


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    """A measure's cells; a small one says nothing, and not how small it is either."""
    name, shown = row["measure"], row["value"] is not None
    return {
        name: row["value"],
        f"{name}_low": row["low"],
        f"{name}_high": row["high"],
        f"{name}_n": row["n"] if shown else None,
    }
