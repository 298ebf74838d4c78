"""Tables of paper 2: gaps of comments and of biographies by method, × 100 as it prints them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import hypot
from typing import Any

from evenhand.papers.runs import FOCAL, REFERENCE, Measurement, Runs, Z
from evenhand.papers.sheets import Cell, PaperTable
from evenhand.text.validity import swap_validity

SCALE = 100.0
# The paper's names for what the ledger calls otherwise. Of biographies rows are resampled and then
# copied; of comments copies are made first, and weigh one where there are weights.
BIOGRAPHIES = {
    "Normal": "baseline",
    "OS": "oversample",
    "US": "undersample",
    "RW": "kamiran_calders",
    "CDA": "augment",
    "OS-CDA": "oversample_augment",
    "US-CDA": "undersample_augment",
    "RW-CDA": "reweigh_augment",
}
COMMENTS = {
    "Normal": "baseline",
    "CDA": "augment",
    "OS": "oversample",
    "US": "undersample",
    "RW": "kamiran_calders",
    "OS-CDA": "augment_oversample",
    "US-CDA": "augment_undersample",
    "RW-CDA": "reweigh_augment_one",
}
ORDERS = {
    ("Resample→CDA", "OS-CDA"): "oversample_augment",
    ("Resample→CDA", "US-CDA"): "undersample_augment",
    ("CDA→Resample", "OS-CDA"): "augment_oversample",
    ("CDA→Resample", "US-CDA"): "augment_undersample",
}
STRATEGIES = {
    "same as the original": "reweigh_augment",
    "of the counterfactual gender": "reweigh_augment_other",
    "one": "reweigh_augment_one",
}
IMAGE = "The paper's table is an image; its numbers are not known here."
NOT_TRAINED = "Zari is a model of its own, pre-trained with copies; it is not public as a package"
# Mean and standard deviation over runs, × 100: SG and CG of PPR, TPR₁, TPR₀ (Table 1, BERT).
TABLE_1 = {
    "Normal": ((-2.79, .28), (0.89, .10), (-2.77, .67), (2.33, 1.06), (1.28, .30), (-0.73, .11)),
    "CDA": ((-3.02, .23), (0.25, .08), (-2.62, 2.07), (0.36, .57), (1.52, .29), (-0.24, .06)),
    "OS": ((-1.21, .22), (1.33, .31), (2.21, .35), (5.24, .42), (0.20, .17), (-0.88, .30)),
    "US": ((-1.54, .26), (1.67, .29), (1.61, 1.11), (4.56, .63), (0.37, .24), (-1.34, .26)),
    "RW": ((-1.44, .31), (1.44, .24), (2.09, .85), (4.92, .53), (0.39, .26), (-1.05, .25)),
    "OS-CDA": ((-2.09, .30), (0.18, .16), (-1.11, .99), (0.39, .46), (0.79, .28), (-0.15, .15)),
    "US-CDA": ((-1.90, .19), (0.11, .11), (-1.66, 1.88), (0.14, .70), (0.57, .26), (-0.11, .06)),
    "RW-CDA": ((-1.76, .36), (0.33, .11), (0.56, 1.27), (1.08, .74), (0.62, .40), (-0.24, .10)),
}  # fmt: skip
# Accuracy in %, and root mean squares over occupations × 100 (Table 3, ALBERT-large).
TABLE_3 = {
    "Normal": ((95.49, .13), (7.853, .761), (.127, .009), (2.569, .509), (.051, .005)),
    "OS": ((95.50, .04), (6.430, .172), (.115, .004), (1.590, .035), (.041, .003)),
    "US": ((94.79, .08), (5.600, .422), (.097, .005), (.529, .402), (.011, .005)),
    "RW": ((95.26, .06), (4.269, .427), (.085, .011), (.391, .094), (.010, .001)),
    "CDA": ((95.47, .09), (7.266, .870), (.113, .007), (.207, .043), (.003, .000)),
    "Zari": ((95.23, .09), (8.353, .550), (.132, .006), (2.849, .341), (.067, .005)),
    "Zari w/CDA": ((95.20, .01), (7.559, .787), (.119, .008), (.216, .048), (.004, .001)),
    "OS-CDA": ((95.39, .13), (5.403, .176), (.109, .006), (.130, .020), (.013, .011)),
    "US-CDA": ((94.73, .09), (4.969, .230), (.096, .015), (.174, .051), (.007, .009)),
    "RW-CDA": ((95.43, .11), (4.300, .424), (.095, .011), (.137, .020), (.008, .004)),
}  # fmt: skip
# SG and CG × 100 of BERT, then of ALBERT (Table 6).
TABLE_6 = {
    ("Resample→CDA", "OS-CDA"): ((-2.73, .72), (.011, .086), (-2.51, .49), (.004, .082)),
    ("Resample→CDA", "US-CDA"): ((-2.12, .51), (.117, .114), (-2.88, .78), (.022, .134)),
    ("CDA→Resample", "OS-CDA"): ((-2.09, .30), (.176, .160), (-2.29, .42), (.015, .107)),
    ("CDA→Resample", "US-CDA"): ((-1.90, .19), (.114, .113), (-2.22, .23), (.084, .096)),
}  # fmt: skip
GAPS = ("SG PPR", "CG PPR", "SG TPR1", "CG TPR1", "SG TPR0", "CG TPR0")
SIZES = ("Acc %", "SG TPR", "SG FPR", "CG TPR", "CG FPR")
Read = Callable[[Measurement], Cell]


def hundred(cell: Cell) -> Cell:
    """A cell × 100; what is printed is so already.

    Examples:
        >>> hundred(Cell(value=0.025, printed=2.3)).value
        2.5
    """
    names = ("value", "low", "high", "spread")
    held: dict[str, Any] = {name: getattr(cell, name) for name in names}
    scaled: dict[str, Any] = {k: None if v is None else SCALE * v for k, v in held.items()}
    return replace(cell, stars="", **scaled)  # the paper sets none


def read_row(measure: str, **keys: Any) -> Read:
    """A cell of a measurement."""
    return lambda found: found.cell(measure, **keys)


def _printed(pair: Sequence[float] | None) -> dict[str, Any]:
    return {} if pair is None else {"printed": pair[0], "printed_spread": pair[1]}


def gap_reads(runs: Runs) -> tuple[Read, ...]:
    negative, positive = runs.texts.rows.classes
    pairs = (("selection_rate_gap", positive), ("true_positive_rate_gap", positive))
    return tuple(
        read_row(f"{kind}{name}", **{"class": title})
        for name, title in (*pairs, ("true_positive_rate_gap", negative))
        for kind in ("", "counterfactual_")
    )


def gap_table(
    name: str, runs: Runs, representation: str, printed: Mapping[str, Any], *, same_data: bool
) -> PaperTable:
    """Tables 1 and 5: signed gaps of a binary decision, statistical beside counterfactual."""
    rows = []
    for method, remedy in COMMENTS.items():
        values = printed.get(method, (None,) * len(GAPS))
        cells = {
            column: hundred(runs.cell(representation, remedy, read, **_printed(pair)))
            for column, read, pair in zip(GAPS, gap_reads(runs), values, strict=True)
        }
        rows.append(((method,), cells))
    number = name.removeprefix("table")
    model = "BERT" if number == "1" else "ALBERT"
    return PaperTable(
        name=name,
        title=f"Comments: statistical (SG) and counterfactual (CG) gaps × 100, women − men, "
        f"{representation} in the place of {model}",
        stub=("method",),
        columns=GAPS,
        rows=rows,
        notes=[*_raised(rows, GAPS), *(() if printed else (IMAGE,)), *runs.notes()],
        same_data=same_data and bool(printed),
    )  # fmt: skip


def _raised(rows: Sequence[Any], columns: Sequence[str]) -> list[str]:
    """Methods that lower one kind of gap and raise the other, beyond what training sets differ by.

    Both are held against the first row, which has no remedy.
    """
    sentences = []
    first = rows[0][1]
    for pair in zip(columns[::2], columns[1::2], strict=True):
        for (method,), cells in rows[1:]:
            lowered, raised = (
                [c for c in pair if _moved(first[c], cells[c]) == way] for way in (-1, 1)
            )
            if lowered and raised:
                sentences.append(f"{method} lowers {lowered[0]} and raises {raised[0]}.")
    return sentences


def _moved(before: Cell, after: Cell) -> int:
    """−1 where the size of a gap fell, 1 where it rose, 0 where that may be chance.

    Examples:
        >>> _moved(Cell(value=-5.0, spread=0.1), Cell(value=-3.0, spread=0.2))
        -1
        >>> _moved(Cell(value=0.06, spread=0.08), Cell(value=0.18, spread=0.08))
        0
    """
    if None in (before.value, after.value, before.spread, after.spread):
        return 0
    change = abs(after.value or 0.0) - abs(before.value or 0.0)
    if abs(change) <= Z * hypot(before.spread or 0.0, after.spread or 0.0):
        return 0
    return 1 if change > 0 else -1


def count_table(runs: Runs) -> PaperTable:
    """Table 2: training rows by gender and label."""
    rows = runs.texts.rows
    train = rows.train
    out = []
    for g, group in enumerate(rows.groups):
        mine = train[rows.group[train] == g]
        cells = {
            title: Cell(value=float((rows.truth[mine] == c).sum()))
            for c, title in enumerate(rows.classes)
        }
        out.append(((group,), cells))
    return PaperTable(
        name="table2",
        title="Training comments by gender and label",
        stub=("gender",),
        columns=tuple(rows.classes),
        rows=out,
        digits=dict.fromkeys(rows.classes, 0),
        notes=[IMAGE],
    )


def size_table(
    name: str, runs: Runs, representation: str, printed: Mapping[str, Any], *, same_data: bool
) -> PaperTable:
    """Tables 3 and 4: accuracy and root mean squares of gaps over occupations."""
    reads: tuple[Read, ...] = (
        lambda found: found.accuracy,
        read_row("true_positive_rate_gap_rms"),
        read_row("false_positive_rate_gap_rms"),
        read_row("counterfactual_true_positive_rate_gap_rms"),
        read_row("counterfactual_false_positive_rate_gap_rms"),
    )
    rows = []
    for method in TABLE_3:
        values = printed.get(method, (None,) * len(SIZES))
        remedy = BIOGRAPHIES.get(method)
        cells = {}
        for column, read, pair in zip(SIZES, reads, values, strict=True):
            if remedy is None:
                cells[column] = Cell(reason="not trained", **_printed(pair))
            else:
                cells[column] = hundred(runs.cell(representation, remedy, read, **_printed(pair)))
        rows.append(((method,), cells))
    model = "ALBERT-large" if name == "table3" else "BERT"
    return PaperTable(
        name=name,
        title=f"Biographies: accuracy and root mean square gaps × 100 over occupations, "
        f"{representation} in the place of {model}",
        stub=("method",),
        columns=SIZES,
        rows=rows,
        digits=dict.fromkeys(SIZES[1:], 3),
        notes=[f"{NOT_TRAINED}.", *(() if printed else (IMAGE,)), *runs.notes()],
        same_data=same_data and bool(printed),
    )


def order_table(runs: Runs, main: str, other: str, *, same_data: bool) -> PaperTable:
    """Table 6: resampling before or after the copies."""
    columns = (f"SG {main}", f"CG {main}", f"SG {other}", f"CG {other}")
    selection = gap_reads(runs)[:2]
    rows = []
    for key, remedy in ORDERS.items():
        cells = {
            column: hundred(runs.cell(where, remedy, read, **_printed(pair)))
            for column, where, read, pair in zip(
                columns, (main, main, other, other), selection * 2, TABLE_6[key], strict=True
            )
        }
        rows.append((key, cells))
    return PaperTable(
        name="table6",
        title="Comments: resampling before or after the copies, gaps of positive predictions × 100",
        stub=("order", "method"),
        columns=columns,
        rows=rows,
        digits={c: 3 for c in columns if c.startswith("CG")},
        notes=["The caption says BERT only; the columns have both models."],
        same_data=same_data,
    )


def strategy_table(runs: Runs, representation: str) -> PaperTable:
    """Table 7: what a copy weighs."""
    rows = []
    for strategy, remedy in STRATEGIES.items():
        cells = {
            column: hundred(runs.cell(representation, remedy, read))
            for column, read in zip(GAPS, gap_reads(runs), strict=True)
        }
        rows.append(((strategy,), cells))
    return PaperTable(
        name="table7",
        title="Comments: what a copy weighs in RW-CDA, gaps × 100",
        stub=("a copy weighs",),
        columns=GAPS,
        rows=rows,
        notes=[
            "The paper's numbers are not known here. Its text: the same weight has the best CG and "
            "a poor SG, the counterfactual gender's a better SG and a worse CG, one the best "
            "balance.",
        ],
    )


def area_table(runs: Runs, main: str, other: str) -> PaperTable:
    """Table 8: area under the curve by method."""
    rows = []
    for method, remedy in COMMENTS.items():
        both = {name: runs.cell(name, remedy, _area) for name in (main, other)}
        rows.append(((method,), both))
    return PaperTable(
        name="table8",
        title="Comments: area under the curve",
        stub=("method",),
        columns=(main, other),
        rows=rows,
        digits={main: 4, other: 4},
        notes=[IMAGE],
    )


def _area(found: Measurement) -> Cell:
    return found.auc


def validity_table(runs: Runs, *, seed: int = 0) -> PaperTable:
    """How far swapping the gendered words of the texts is what it claims to be."""
    people = runs.texts.rows.people
    columns = ("changed", "mixed", "unresolved", "placebo changed", "AUC of telling")
    rows = []
    for to in (FOCAL, REFERENCE):
        found = swap_validity(people.texts, to=to, sources=people.group, seed=seed)
        held = (found.changed, found.mixed, found.unresolved, found.placebo_changed, found.leak)
        cells = {
            column: Cell(reason=each.undefined)
            if each.value is None
            else Cell(value=each.value, low=each.low, high=each.high, n=int(each.n))
            for column, each in zip(columns, held, strict=True)
        }
        rows.append(((to,), cells))
    return PaperTable(
        name="validity",
        title="Biographies: validity of the swap",
        stub=("swapped to",),
        columns=columns,
        rows=rows,
        digits=dict.fromkeys(columns, 3),
        notes=[
            "Shares of texts: changed by the swap, with words of both genders, with a word it "
            "could not resolve, changed by a placebo of synonyms. The last column is how well a "
            "classifier tells swapped from original texts; 0.5 is a swap without traces.",
        ],
    )
