"""How sure and what was agreed, in words: intervals, limits, and whether they are kept."""

from math import inf

from evenhand.findings.limits import CANNOT_TELL, OUTSIDE, WITHIN, is_unreviewed
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import agreed_number, agreed_ratio, decimals, opening, percent, points


def ends(row: Row) -> tuple[float, float] | None:
    """The interval that holds for a row's whole family, or None."""
    low, high = row["family_low"], row["family_high"]
    return None if low is None or high is None else (float(low), float(high))


def unproven(row: Row) -> bool:
    """Whether its interval holds no difference, or there is none that can be held to anything."""
    pair, still = ends(row), look_up(row["measure"]).neutral
    return pair is None or is_unreviewed(row) or (still is not None and pair[0] <= still <= pair[1])


def open_(row: Row) -> bool:
    """Whether the data cannot tell the direction, and no limit is shown to be kept or broken."""
    return unproven(row) and row.get("verdict") not in (WITHIN, OUTSIDE)


def alike(row: Row) -> bool:
    """Whether a row is shown to keep its limit, and no direction is proven: nothing more to say."""
    return unproven(row) and row.get("verdict") == WITHIN


def gap_words(gap: float, places: int) -> str:
    """A difference with its direction.

    Examples:
        >>> gap_words(0.176, 1), gap_words(-0.02, 0), gap_words(0.0001, 1)
        ('17.6 points more', '2 points fewer', 'no difference')
    """
    if f"{100 * abs(gap):.{places}f}" == f"{0:.{places}f}":
        return "no difference"
    return f"{points(gap, places=places)} {'more' if gap > 0 else 'fewer'}"


def gap_range(
    low: float, high: float, places: int, *, up: str = "more", down: str = "fewer"
) -> str:
    """From one end of an interval to the other; one direction is said by what stands before it.

    Examples:
        >>> gap_range(0.162, 0.189, 1), gap_range(-0.189, -0.162, 1), gap_range(-0.02, 0.09, 0)
        ('16.2 to 18.9', '16.2 to 18.9', '2 points fewer to 9 points more')
        >>> gap_range(-0.002, 0.11, 0)
        'no difference to 11 points more'
    """
    if low <= 0 <= high:
        ends_ = [
            "no difference"
            if f"{100 * abs(end):.{places}f}" == f"{0:.{places}f}"
            else f"{points(end, places=places)} {way}"
            for end, way in ((low, down), (high, up))
        ]
        return f"{ends_[0]} to {ends_[1]}"
    near, far = sorted((abs(low), abs(high)))
    return f"{100 * near:.{places}f} to {100 * far:.{places}f}"


def limit_words(row: Row, *, unit: bool = False) -> str | None:
    """What was agreed, as a clause; `unit` where no points were said before.

    Examples:
        >>> limit = {"measure": "accuracy_gap", "limit_low": -0.05, "limit_high": 0.05}
        >>> limit_words(limit), limit_words(limit | {"limit_low": -0.02})
        ('at most 5 was agreed', 'from 2 points fewer to 5 points more was agreed')
        >>> limit_words({"measure": "accuracy_ratio", "limit_low": 0.9, "limit_high": 1 / 0.9})
        '0.9 to 1.11 was agreed'
    """
    low, high = row.get("limit_low"), row.get("limit_high")
    if low is None or high is None:
        return None
    record = look_up(row["measure"])
    in_points = record.kind in ("gap", "distance") and record.high == 1
    if record.kind == "rate":
        if low <= 0:
            return f"at most {_percent(high)} was agreed"
        if high >= 1:
            return f"at least {_percent(low)} was agreed"
        return f"{_percent(low)} to {_percent(high)} was agreed"
    if in_points:
        high_ = agreed_number(100 * high)
        if low in (0, -high):
            point = "point" if high_ == "1" else "points"
            return f"at most {high_}{f' {point}' if unit else ''} was agreed"
        if low < 0 < high:
            low_ = agreed_number(-100 * low)
            return f"from {low_} points fewer to {high_} points more was agreed"
    elif record.kind in ("correlation", "gap", "distance") and low in (0, -high):
        return f"at most {agreed_number(high)} was agreed"
    form = agreed_ratio if record.kind == "ratio" else agreed_number
    return f"{form(low)} to {form(high) if high < inf else 'more'} was agreed"


def ending(row: Row, *, unit: bool = False) -> str:
    """How a statement ends: with what was agreed and whether it is kept, and its full stop."""
    said = limit_words(row, unit=unit)
    if said is None:
        return "."
    if row["verdict"] == CANNOT_TELL:
        return f". {opening(said)}: the data cannot tell whether that is kept."
    return f"; {said}{', and that is kept' if row['verdict'] == WITHIN else ''}."


def limit_sentence(row: Row) -> str:
    """What was agreed and whether it is kept, as a sentence of its own; nothing without a limit."""
    said = limit_words(row, unit=True)
    if said is None:
        return ""
    kept = {
        CANNOT_TELL: ": the data cannot tell whether that is kept",
        WITHIN: ", and that is kept",
    }
    return f"{opening(said)}{kept.get(row['verdict'], '')}."


def plain_value(row: Row) -> str:
    """A value with its interval, as its kind is said.

    Examples:
        >>> row = {"measure": "accuracy", "value": 0.85, "family_low": 0.82, "family_high": 0.876}
        >>> plain_value(row), plain_value(row | {"measure": "norm_bias"})
        ('85.0% (82.0% to 87.6%)', '0.85 (0.82 to 0.88)')
    """
    record, value, pair = look_up(row["measure"]), float(row["value"]), ends(row)
    if record.kind == "rate":
        places = decimals(*(pair or (None, None)), value)
        return f"{percent(value, places=places)}{percent_range(row, places)}"
    if record.kind in ("gap", "distance") and record.high == 1:
        places = decimals(*(pair or (None, None)), value)
        span = f" ({gap_range(*pair, places)})" if pair else ""
        said = gap_words(value, places) if record.kind == "gap" else points(value, places=places)
        return f"{said}{span}"
    times = " times" if record.kind == "ratio" else ""
    return f"{two(value)}{times}{span_words(pair)}"


def percent_range(row: Row, places: int | None = None) -> str:
    """The interval of a share in brackets, as percentages; nothing where there is none."""
    pair = ends(row)
    if pair is None:
        return ""
    places = decimals(*pair, row["value"]) if places is None else places
    return f" ({percent(pair[0], places=places)} to {percent(pair[1], places=places)})"


def span_words(pair: tuple[float, float] | None) -> str:
    """An interval in brackets after a number that is no percentage."""
    return f" ({two(pair[0])} to {two(pair[1])})" if pair else ""


def two(value: float) -> str:
    """A number of two decimals with a real minus sign.

    Examples:
        >>> two(-0.456), two(0.001)
        ('−0.46', '0.00')
    """
    text = f"{value:,.2f}".replace("-", "−")
    return "0.00" if text == "−0.00" else text


def _percent(share: float) -> str:
    return f"{agreed_number(100 * share)}%"
