"""Labels that fall on the same items: rows by labeler and by item, and the wider of the two.

Labels of one labeler have something in common, and so have labels of one item. Each row is made
with either for its units, and what is told of it is what the more cautious of the two tells.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.roles import Roles
from evenhand.decisions.shared_items import SharedItems
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Rows, choose
from evenhand.lenses.scope import ONE_CLUSTER
from evenhand.lenses.statistical.rates import GroupRates
from evenhand.speech import opening
from evenhand.stats.estimate import FloatArray

ONLY_ROWS = "labels of one item are counted together only from rows"
_ENDS = {"low": np.minimum, "high": np.maximum, "family_low": np.minimum, "family_high": np.maximum}
_CHANCES = ("p", "p_adjusted")


def wider(first: Rows, second: Rows) -> Rows:
    """The same rows made with two kinds of unit: each as the wider of the two has it.

    The value (of a size without noise and of a null level, which depend on the units), method and
    reason are those of the row with the wider interval, or with none. Limits, the family's too,
    are the outer ones of both and chances the larger, so that whatever holds for either kind of
    unit holds. A row has no interval where either has none.

    Examples:
        >>> one = Rows.block((2,), value=0.5, low=[0.4, 0.45], high=[0.6, 0.55], p=[0.03, 0.2])
        >>> two = Rows.block((2,), value=0.5, low=[0.3, 0.48], high=[0.7, 0.52], p=[0.2, 0.1])
        >>> [(row["low"], row["high"], row["p"]) for row in wider(one, two)]
        [(0.3, 0.7, 0.2), (0.45, 0.55, 0.2)]
    """
    is_second = _is_wider(second, first)
    columns = {
        name: np.where(is_second, second[name], column) for name, column in first.columns.items()
    }
    for name, outer in _ENDS.items():
        columns[name] = outer(first[name], second[name])
    for name in _CHANCES:
        columns[name] = np.maximum(first[name], second[name])
    return Rows(columns)


def _is_wider(rows: Rows, than: Rows) -> NDArray[np.bool_]:
    """Which rows have the wider interval, or none; of those without any, which tell less."""
    with np.errstate(invalid="ignore"):
        widths = [each["high"] - each["low"] for each in (rows, than)]
    mine, other = (np.isnan(width) for width in widths)
    with np.errstate(invalid="ignore"):
        further = (mine & ~other) | (widths[0] > widths[1])
    # Of a test the larger chance tells less, of what noise alone would give the larger value.
    tested = np.isfinite(rows["p"]) & np.isfinite(than["p"])
    chance, value = (_larger(rows[name], than[name]) for name in ("p", "value"))
    return np.asarray(np.where(mine & other, np.where(tested, chance, value), further))


def _larger(one: FloatArray, other: FloatArray) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(one > other)


def without_intervals(rows: Rows, reason: str) -> Rows:
    """The rows with values alone: nothing is told of how sure they are, for this reason.

    What noise alone would give, and sizes freed of it, are not told either.

    Examples:
        >>> rows = Rows.block((1,), measure="selection_rate", value=0.5, low=0.4, high=0.6)
        >>> [(row["value"], row["low"], row["no_interval"]) for row in without_intervals(rows, "x")]
        [(0.5, None, 'x')]
    """
    names = set(rows["measure"])
    of_noise = {name for name in names if _rests_on_noise(name)}
    gone = np.array([name in of_noise for name in rows["measure"]], dtype=bool)
    there = np.isfinite(rows["value"]) & np.isfinite(rows["low"])
    value = np.where(gone, np.nan, rows["value"])
    lost = gone & np.isfinite(rows["value"])
    nothing = dict.fromkeys((*_ENDS, *_CHANCES), np.nan)
    return rows.replace(
        **nothing,
        value=value,
        undefined=choose(lost, reason, rows["undefined"]),
        no_interval=choose(there & ~gone, reason, rows["no_interval"]),
    )


def _rests_on_noise(name: str) -> bool:
    """Whether a measure's value depends on what is taken for noise."""
    measure = look_up(name)
    return measure.kind in ("floor", "test") or measure.variant_of is not None


def unit_note(shared: SharedItems, roles: Roles) -> str:
    """What the audit says of labels that fall on the same items."""
    if not shared.by_item:
        only = f"{opening(ONLY_ROWS)}: no number has an interval."
        return f"Labels of the same item are not independent. {only}"
    if shared.second is None:
        return "Labels of the same item are not independent: intervals are those by item."
    other = "cluster" if roles.cluster else "labeler"
    return (
        "Labels of the same item are not independent: intervals are the wider of those by "
        f"{other} and by item."
    )


def each_wider(blocks: Sequence[Sequence[Rows]]) -> list[Rows]:
    """Blocks of rows by one kind of unit or by two, those of two each as the wider has it."""
    if len(blocks) == 1:
        return list(blocks[0])
    first, second = blocks
    return [wider(one, two) for one, two in zip(first, second, strict=True)]


def alike(rates: Sequence[GroupRates]) -> Sequence[GroupRates]:
    """A rate by units of one kind or two, without intervals where either kind gives none.

    What is made of all groups or classes then leaves out the same of them.
    """
    if len(rates) == 1:
        return rates
    first, second = (each.reasons(ONE_CLUSTER) for each in rates)
    reasons = choose(second != None, second, first)  # noqa: E711
    return [each.without(reasons) for each in rates]
