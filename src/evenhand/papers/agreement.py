"""Figures 7 and 13 of paper 2: how far annotators agree on gender, and gaps where they do.

Agreement on a comment is the share of annotators who see its gender less the share who see the
other: what the paper keeps comments by.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.papers.gap_tables import COMMENTS, hundred
from evenhand.papers.runs import FOCAL, REFERENCE, Measurement, Runs
from evenhand.papers.sheets import Absent, Cell, Figure, Part
from evenhand.stats.estimate import Estimate
from evenhand.stats.rates import gap, paired_gap

Agreement = Mapping[str, float]
# Lower ends. The paper prints two of its bins, "[0.85, 0.96)" and "≥ 0.95", which overlap.
EDGES = (0.5, 0.65, 0.75, 0.85, 0.95)
BINS = ("0.50 to 0.65", "0.65 to 0.75", "0.75 to 0.85", "0.85 to 0.95", "0.95 and more")
FEWEST = 10  # comments of a gender in a bin that a gap is shown for
NONE = "The texts have no annotators; Civil Comments does (columns female and male)."


def bins_of(shares: Sequence[float]) -> NDArray[np.intp]:
    """The number of each share's bin.

    Examples:
        >>> bins_of([0.6, 0.85, 1.0, 0.9 - 0.05]).tolist()
        [0, 3, 4, 3]
    """
    # Sums of tenths miss an edge by a rounding error.
    return np.searchsorted(EDGES, np.round(np.asarray(shares), 9), side="right") - 1


def agreement_figure(runs: Runs, agreement: Agreement | None) -> Part:
    """Figure 7: comments by agreement on their gender."""
    title = "Comments by how far annotators agree on the gender"
    if agreement is None:
        return Absent(name="figure7", title=title, reason=NONE)
    rows = runs.texts.rows
    place = bins_of([agreement[text] for text in rows.people.texts])
    marks, table = [], []
    for k, name in enumerate(BINS):
        for g, group in enumerate(rows.groups):
            n = int(((place == k) & (rows.group == g)).sum())
            marks.append({"line": name, "series": group, "value": n, "low": None, "high": None,
                          "tip": f"{name}, {group}: {n}"})  # fmt: skip
            table.append([name, group, n])
    return Figure(
        name="figure7",
        title=title,
        charts=[{"kind": "grouped", "rows": marks, "axis": "comments", "zero": 0}],
        columns=("agreement", "gender", "comments"),
        rows=table,
        read="Comments on which the two shares differ by 0.5 or less are left out.",
        legend=list(rows.groups),
    )


def agreement_gaps(runs: Runs, representation: str, agreement: Agreement | None) -> Part:
    """Figure 13: gaps of positive predictions by agreement on the gender."""
    title = "Gaps of positive predictions × 100 by agreement of the annotators"
    if agreement is None:
        return Absent(name="figure13", title=title, reason=NONE)
    texts = runs.texts.rows.people.texts
    place = bins_of([agreement[texts[row]] for row in runs.texts.rows.test])
    marks: list[dict[str, Any]] = []
    table = []
    for method, remedy in COMMENTS.items():
        for k, name in enumerate(BINS):
            for words, measured in (("SG", _statistical), ("CG", _counterfactual)):
                cell = hundred(
                    runs.cell(representation, remedy, _within(runs, place == k, measured))
                )
                table.append([method, name, words, cell.value, cell.low, cell.high, cell.n,
                              cell.reason])  # fmt: skip
                if method == "Normal" and cell.value is not None:
                    marks.append({"line": name, "series": words, "value": cell.value,
                                  "low": cell.low, "high": cell.high,
                                  "tip": f"{name}, {words}: {cell.text(2)}"})  # fmt: skip
    return Figure(
        name="figure13",
        title=title,
        charts=[{"kind": "grouped", "rows": marks, "axis": "gap × 100, women − men", "zero": 0}],
        columns=("method", "agreement", "gap", "value", "low", "high", "n", "why"),
        rows=table,
        read="Without a remedy; the numbers have every method. A bin with fewer than "
        f"{FEWEST} comments of a gender is left out.",
        legend=["SG", "CG"],
        notes=["The paper's bins overlap as printed, [0.85, 0.96) and ≥ 0.95; ours do not."],
    )


def _within(runs: Runs, chosen: NDArray[np.bool_], measured: Any) -> Any:
    def read(found: Measurement) -> Cell:
        group = np.array(runs.texts.rows.groups)[runs.texts.rows.group[runs.texts.rows.test]]
        sides = [chosen & (group == name) for name in (FOCAL, REFERENCE)]
        if min(int(side.sum()) for side in sides) < FEWEST:
            return Cell(reason=f"fewer than {FEWEST} comments of a gender")
        each: Estimate = measured(found, sides, positive=runs.texts.rows.positive)
        return Cell(value=each.value, low=each.low, high=each.high, n=int(each.n))

    return read


def _statistical(found: Measurement, sides: Sequence[Any], *, positive: int) -> Estimate:
    hits = [int((found.outcome.decided[side] == positive).sum()) for side in sides]
    women, men = (int(side.sum()) for side in sides)
    return gap(hits[0], women, hits[1], men)


def _counterfactual(found: Measurement, sides: Sequence[Any], *, positive: int) -> Estimate:
    either = sides[0] | sides[1]
    women, men = (found.outcome.do[name][either] == positive for name in (FOCAL, REFERENCE))
    return paired_gap(int((women & ~men).sum()), int((men & ~women).sum()), int(either.sum()))
