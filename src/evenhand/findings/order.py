"""Which row leads its finding, and which finding leads: what is proven and matters goes first."""

from collections.abc import Sequence
from math import inf, isfinite, log

from evenhand.decisions.labels import SUMMARY
from evenhand.findings.limits import (
    CANNOT_TELL,
    NOT_ASSESSED,
    OUTSIDE,
    WITHIN,
    is_unreviewed,
    small_row,
)
from evenhand.lenses.kinds import NEGATIVE, POSITIVE
from evenhand.lenses.measures import distance, look_up, nearest_value, surely_apart
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import UNTOLD_UNDER
from evenhand.stats.estimate import critical

Key = tuple[float, ...]
VERDICTS = (OUTSIDE, CANNOT_TELL, WITHIN, NOT_ASSESSED)
# Standard errors from which on evidence is as strong as any: what matters more decides then.
_BEYOND_DOUBT = 5
# Standard errors beyond its limit from which on the furthest, and not the surest, leads.
_CLEARLY_OUTSIDE = 3
_ERRORS, _SELECTION, _OTHER = 0, 1, 2


def beyond(row: Row) -> float:
    """How far a row lies beyond its nearest limit, in standard errors; negative inside.

    Examples:
        >>> row = {"measure": "accuracy_gap", "value": 0.1, "low": 0.06, "high": 0.14}
        >>> row |= {"level": 0.95, "limit_low": -0.05, "limit_high": 0.05}
        >>> round(beyond(row), 2), round(beyond(row | {"limit_low": -1, "limit_high": 0.2}), 2)
        (2.45, -4.9)
    """
    low, high = row["limit_low"], row["limit_high"]
    if nearest_value(row) is None or low is None or high is None:
        return -inf
    return max(_errors(row, float(low), up=False), _errors(row, float(high), up=True))


def strength(row: Row) -> float:
    """How far a row lies from no difference, in standard errors; 0 where nothing means that."""
    still = look_up(row["measure"]).neutral
    if nearest_value(row) is None or still is None or is_unreviewed(row):
        return 0.0
    return max(_errors(row, still, up=True), _errors(row, still, up=False), 0.0)


def _errors(row: Row, edge: float, *, up: bool) -> float:
    """How many standard errors a value lies above an edge, or below it."""
    record = look_up(row["measure"])
    value, low, high = nearest_value(row), row["low"], row["high"]
    if low is None or high is None:
        low, high = row.get("family_low"), row.get("family_high")
    if value is None or low is None or high is None or (edge == record.low and not up):
        return -inf
    near, numbers = (low if up else high), [float(value), edge]
    if record.low == 0 and record.high == inf:
        # Ratios and weights without an end: twice and half are as far.
        if min(value, edge, near) <= 0:
            return 0.0
        numbers, near = [log(number) for number in numbers], log(near)
    away = (numbers[0] - numbers[1]) * (1 if up else -1)
    error = abs(numbers[0] - float(near)) / critical(row.get("level") or 0.95)
    return away / error if error > 0 else (inf if away > 0 else -inf if away < 0 else 0.0)


def leading(rows: Sequence[Row]) -> Row | None:
    """The row that speaks for its family.

    One with few cases in either group leads only where all have few. Outside its limit the
    furthest of those clearly outside; of what is open the largest; of the rest, a proven
    difference first and then the largest.
    """
    defined = [row for row in rows if nearest_value(row) is not None]

    def weight(row: Row) -> tuple[bool, float, float]:
        sure = float(surely_apart(row))
        if row.get("verdict") == OUTSIDE:
            sure = min(_CLEARLY_OUTSIDE, float(int(min(beyond(row), _CLEARLY_OUTSIDE))))
        elif row.get("verdict") == CANNOT_TELL:
            sure = 0.0
        return not small_row(row, under=UNTOLD_UNDER), sure, _far(row)

    return max(defined, key=weight, default=None)


def foremost(judged: Sequence[Row], family: Sequence[Row]) -> Row | None:
    """The row that speaks for its family; of a comparison that turns round, overall or summed up.

    A stratum does not lead where the whole table and the summary over strata say the opposite of
    the comparison: that has to be said first.
    """
    lead = leading(judged)
    if lead is None or lead["stratum"] in (None, SUMMARY):
        return lead
    turned = [row for row in judged if _comparison(row) == _comparison(lead)]
    return leading([row for row in turned if opposed(row, family) is not None]) or lead


def opposed(row: Row, rows: Sequence[Row]) -> Row | None:
    """Of a comparison overall the one summed over strata, or of that the one overall, if opposite.

    Of the two one lies outside its limit, and the other does so on the other side or points there
    beyond doubt: what keeps the one limit breaks the other.

    Examples:
        >>> row = {"measure": "accuracy_gap", "limit_low": -0.05, "limit_high": 0.05}
        >>> row |= {"value": -0.2, "stratum": None, "verdict": "outside"}
        >>> within = {"stratum": SUMMARY, "value": 0.1, "family_low": 0.02, "family_high": 0.18}
        >>> within |= {"verdict": "cannot tell"}
        >>> opposed(row, [row | within])["value"]
        0.1
        >>> opposed(row, [row | within | {"family_low": -0.02}]) is None
        True
    """
    still = look_up(row["measure"]).neutral
    if still is None or row["stratum"] not in (None, SUMMARY):
        return None
    for other in rows:
        there = {row["stratum"], other["stratum"]} == {None, SUMMARY}
        if there and _comparison(other) == _comparison(row) and _turned(row, other, still):
            return other
    return None


def _turned(row: Row, other: Row, still: float) -> bool:
    """Whether two rows of one limit lie on opposite sides, one of them outside, both for sure."""
    low, high = row.get("limit_low"), row.get("limit_high")
    if None in (row["value"], other["value"]) or low is None or high is None:
        return False
    if not low <= still <= high:
        return False
    apart = (row["value"] - still) * (other["value"] - still)
    outside = [one.get("verdict") == OUTSIDE for one in (row, other)]
    sure = [is_ or surely_apart(one) for is_, one in zip(outside, (row, other))]
    return bool(apart < 0) and any(outside) and all(sure)


def _comparison(row: Row) -> tuple[object, ...]:
    """What a row compares, wherever in the table."""
    keys = ("lens", "attribute", "measure", "class", "group", "reference", "labeler", "norm")
    return tuple(row.get(key) for key in keys)


def _far(row: Row) -> float:
    """How far a row lies from no difference; of ratios, half is as far as twice."""
    value = nearest_value(row)
    if look_up(row["measure"]).kind == "ratio" and value is not None and value > 0:
        return abs(log(value))
    return distance(row)


def evidence(verdict: str, lead: Row, family: Sequence[Row]) -> Key:
    """Where a finding stands among all, by its lead and the rows that its verdict comes from.

    Outside its limit first, by how far beyond; then what a limit asks about; then the rest by
    strength. At equal strength errors go before selection; a small group stands last of its kind.
    """
    kind = _kind(lead)
    few = float(small_row(lead, under=UNTOLD_UNDER))
    place = float(VERDICTS.index(verdict))
    if verdict != NOT_ASSESSED:
        far = max((beyond(row) for row in family), default=-inf)
        steps = round(far) if isfinite(far) else far
        return place, few, -steps, kind, -far
    strong = strength(lead)
    return place, few, -min(int(min(strong, _BEYOND_DOUBT)), _BEYOND_DOUBT), kind, -strong


def _kind(row: Row) -> int:
    """What happens to people in error before how often they are selected, and both before others.

    Examples:
        >>> names = ("false_positive_rate_gap", "cost_ratio", "selection_rate_gap", "accuracy_gap")
        >>> [_kind({"measure": name}) for name in names]
        [0, 0, 1, 2]
    """
    record = look_up(row["measure"])
    base = record.base or record.name
    cells = look_up(base).cells
    if base in ("cost_ratio", "implied_threshold"):
        return _ERRORS
    if cells is not None and (cells.cases <= POSITIVE or cells.cases <= NEGATIVE):
        return _ERRORS
    return _SELECTION if base == "selection_rate" else _OTHER
