"""Rates, gaps and areas by loops over rows: slow, short, and plainly what the words say."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
Table = dict[tuple[str, str], tuple[float, float]]


def spelled(value: Any) -> str | None:
    """A class or group by the name that results give it."""
    if value is None or value != value:
        return None
    if isinstance(value, bool | int | float):
        return str(int(value)) if float(value) == int(value) else repr(value)
    return str(value)


def rows_of(columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Columns as one dict per row."""
    names = list(columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]


# Each rate: which rows are its cases, and which of those are hits. t, d and c are the truth, the
# decision and the class in question.
RATES: dict[str, tuple[Callable[..., bool], Callable[..., bool]]] = {
    "selection_rate": (lambda t, d, c: True, lambda t, d, c: d == c),
    "true_positive_rate": (lambda t, d, c: t == c, lambda t, d, c: d == c),
    "false_positive_rate": (lambda t, d, c: t is not None and t != c, lambda t, d, c: d == c),
    "false_negative_rate": (lambda t, d, c: t == c, lambda t, d, c: d != c),
    "true_negative_rate": (lambda t, d, c: t is not None and t != c, lambda t, d, c: d != c),
    "precision": (lambda t, d, c: t is not None and d == c, lambda t, d, c: t == c),
    "accuracy": (lambda t, d, c: t is not None, lambda t, d, c: (t == c) == (d == c)),
}


def rates(
    rows: Iterable[Row],
    *,
    rate: str,
    classes: Iterable[str],
    group: str = "group",
    truth: str = "truth",
    decision: str = "decision",
    weight: str | None = None,
) -> Table:
    """Hits and cases (or their weights) of every (group, class)."""
    is_case, is_hit = RATES[rate]
    found: Table = {}
    names = list(classes)
    for row in rows:
        g, t, d = spelled(row[group]), spelled(row.get(truth)), spelled(row[decision])
        amount = 1.0 if weight is None else row[weight]
        if g is None or d is None or amount is None:
            continue
        for c in names:
            hits, cases = found.get((g, c), (0.0, 0.0))
            if is_case(t, d, c):
                cases += amount
                if is_hit(t, d, c):
                    hits += amount
            found[g, c] = (hits, cases)
    return found


def share(pair: tuple[float, float]) -> float | None:
    """Hits by cases; nothing where there are no cases."""
    hits, cases = pair
    return hits / cases if cases > 0 else None


def area(rows: Iterable[Row], *, score: str, truth: str, positive: str) -> float | None:
    """Share of (positive, negative) pairs that the score puts in order, ties as half."""
    above = [r[score] for r in rows if spelled(r[truth]) == positive and r[score] is not None]
    below = [
        r[score] for r in rows if spelled(r[truth]) not in (positive, None) and r[score] is not None
    ]
    if not above or not below:
        return None
    won = 0.0
    for a in above:
        for b in below:
            won += 1.0 if a > b else 0.5 if a == b else 0.0
    return won / (len(above) * len(below))
