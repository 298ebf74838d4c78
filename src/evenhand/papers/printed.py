"""Points of paper 2's figures, as its public notebooks hold them: gaps × 100 by occupation.

The figures themselves print no numbers. Figure 2 is one run, Figures 5 and 10 are means over runs,
all of ALBERT-large.
"""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from evenhand.papers.runs import Z
from evenhand.stats.ranks import bonett_wright, spearman

FEWEST = 4  # occupations with which a rank correlation has an interval
Gaps = Mapping[str, float]


@cache
def _lines() -> tuple[dict[str, str], ...]:
    source = files("evenhand.papers") / "printed_figures.csv"
    return tuple(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def printed_gaps(figure: str, method: str, gap: str) -> dict[str, float]:
    """Gaps of a figure by occupation; `gap` is SG or CG.

    Examples:
        >>> printed_gaps("figure5", "Normal", "SG")["paralegal"]
        25.723
        >>> printed_gaps("figure4", "Normal", "SG")
        {}
    """
    return {
        line["occupation"]: float(line[gap])
        for line in _lines()
        if (line["figure"], line["method"]) == (figure, method)
    }


def rank_words(ours: Gaps, theirs: Gaps) -> str:
    """How far two lists of occupations stand in one order, and how many signs agree, in words.

    Examples:
        >>> rank_words({"a": 1, "b": 2, "c": 3, "d": 4}, {"a": -1, "b": 5, "c": 6, "d": 7})
        'rank correlation 1.00, 3 of 4 signs'
        >>> rank_words({"a": 1}, {"a": 2})
        'too few occupations in common'
    """
    titles = [title for title in ours if title in theirs]
    if len(titles) < FEWEST:
        return "too few occupations in common"
    x, y = ([held[title] for title in titles] for held in (ours, theirs))
    known = [(a, b) for a, b in zip(x, y, strict=True) if a and b]
    signs = f"{sum((a > 0) == (b > 0) for a, b in known)} of {len(known)} signs"
    r = float(spearman(x, y))
    if not np.isfinite(r):
        return f"rank correlation undefined, {signs}"
    return f"rank correlation {interval_words(r, len(titles))}, {signs}"


def interval_words(r: float, n: int) -> str:
    """A rank correlation with its interval; none at its ends, where there is no error to see."""
    if abs(r) >= 1:
        return f"{r:.2f}"
    low, high = bonett_wright(r, n, z=Z)
    return f"{r:.2f} [{float(low):.2f}, {float(high):.2f}]"
