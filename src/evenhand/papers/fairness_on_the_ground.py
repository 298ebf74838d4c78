"""Paper 3, "Fairness On The Ground": the cancer example, Figure 2, thresholds and labelers.

Needs no data: the paper has no tables, and its numbers are arithmetic. What it proposes to measure
is worked through on simulated scores and labels whose answer is known.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from evenhand.decisions.table import Decisions
from evenhand.lenses.rows import Options
from evenhand.lenses.thresholds import lens as thresholds
from evenhand.papers.sheets import Cell, Figure, PaperTable, Part
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.simulate.labelers import LabelerGroup, simulate_labelers
from evenhand.simulate.scores import ScoreGroup, simulate_scores
from evenhand.stats.labelers.signal import SignalDetection, normal_density, signal_detection
from evenhand.stats.rates import rate
from evenhand.stats.thresholds.costs import (
    CostCurve,
    cost_curve,
    cost_ratio,
    equalise,
    implied_threshold,
    margin,
)

TITLE = "Fairness On The Ground"
# The counts are not in the text: one of 18 reconstructions that give every printed number.
RISKS = (1 / 8, 1 / 6, 1 / 4, 1 / 2)
PEOPLE = {"women": (8, 6, 12, 8), "men": (8, 12, 8, 4)}
CANCERS = {"women": (1, 1, 3, 4), "men": (1, 2, 2, 2)}
ILLUSTRATIVE = (
    "Illustrative: the counts of the figure are not in the text. These are one of 18 "
    "reconstructions that give every number it prints."
)
COST = 4.0
# Hits, misses, false alarms and correct rejections of labelers, on posts of two groups.
COUNTS = {"group A": (80, 20, 90, 810), "group B": (60, 40, 45, 855)}
FLOODED = {
    "as audited": (80, 20, 90, 810),
    "900 obviously benign items more": (80, 20, 90, 1710),
    "9,000 obviously benign items more": (80, 20, 90, 9810),
    "300 obvious violations more": (380, 20, 90, 810),
}
LEVEL = 0.95


def reproduce_ground(*, quick: bool = False, seed: int = 0) -> list[Part]:
    """Every figure of the paper, its printed numbers, and its two measurements worked through."""
    n = 20_000 if quick else 100_000
    labelers = 40 if quick else 200
    return [
        _dots("figure1a", "Whom to treat: from a risk of 1/4 on, women and men alike", _treated(2)),
        _dots(
            "figure1b",
            "What equal error rates would take: men from a risk of 1/6 on",
            {"women": 2, "men": 1},
        ),
        _printed_numbers(),
        _costs(),
        _densities(),
        _worked_thresholds(n, seed),
        _worked_counts(),
        _flooded(),
        _worked_labelers(labelers, seed),
    ]


def curves() -> dict[str, CostCurve]:
    """Cost of treating from each risk on, by sex, where a missed cancer counts four times."""
    return {
        who: cost_curve(
            list(RISKS),
            negatives=[n - k for n, k in zip(PEOPLE[who], CANCERS[who], strict=True)],
            positives=list(CANCERS[who]),
            cost_ratio=COST,
        )
        for who in PEOPLE
    }


def _treated(level: int) -> dict[str, int]:
    return dict.fromkeys(PEOPLE, level)


def _dots(name: str, title: str, first: Mapping[str, int]) -> Figure:
    """One dot a person: risk from left to right, cancers first, treated from a level on."""
    charts, rows = [], []
    kinds = {
        f"{what}, {done}": (SERIES[a], SERIES_SHAPES[b])
        for a, what in enumerate(("cancer", "no cancer"))
        for b, done in enumerate(("treated", "not treated"))
    }
    ticks = {level + 1: f"1/{round(1 / risk)}" for level, risk in enumerate(RISKS)}
    for who in PEOPLE:
        points = []
        for level, risk in enumerate(RISKS):
            done = "treated" if level >= first[who] else "not treated"
            odds, n, ill = f"1/{round(1 / risk)}", PEOPLE[who][level], CANCERS[who][level]
            rows.append([who, odds, n, ill, done])
            for k in range(n):
                what = "cancer" if k < ill else "no cancer"
                tip = f"{who}, risk {odds}: {what}, {done}"
                points.append({"x": level + 1, "y": k + 1, "kind": f"{what}, {done}", "tip": tip})
        charts.append({
            "kind": "scatter", "title": who, "points": points, "kinds": kinds,
            "x_axis": f"risk of {who}", "y_axis": "people", "x_ticks": ticks,
            "x_domain": [0.5, 4.5], "y_domain": [0, 13], "named": 0,
        })  # fmt: skip
    return Figure(
        name=name,
        title=title,
        charts=charts,
        columns=("sex", "risk", "people", "cancers", "decision"),
        rows=rows,
        read=f"One mark a person; squares are not treated. {_missed(first)}",
        legend=list(kinds),
        notes=[ILLUSTRATIVE],
    )


def _missed(first: Mapping[str, int]) -> str:
    """Who goes untreated, and what it costs."""
    parts = []
    for who in PEOPLE:
        missed, cancers = sum(CANCERS[who][: first[who]]), sum(CANCERS[who])
        parts.append(f"{missed} of {cancers} cancers of {who} ({missed / cancers:.0%})")
    cost = sum(float(curves()[who].cost[first[who]]) for who in PEOPLE)
    return f"Not treated: {' and '.join(parts)}. Cost {cost:g} needless treatments in all."


def _printed_numbers() -> PaperTable:
    made = curves()
    women, men = ({"cancers": sum(CANCERS[w]), "people": sum(PEOPLE[w])} for w in PEOPLE)
    missed = {w: sum(CANCERS[w][: made[w].best]) for w in PEOPLE}
    two = margin(made["men"], index=2)

    def share(hits: int, n: int, printed: float) -> Cell:
        found = rate(hits, n, level=LEVEL)
        return Cell(value=found.value, low=found.low, high=found.high, n=n, printed=printed)

    def exact(value: float, printed: float) -> Cell:
        return Cell(value=value, printed=printed)

    cells = [
        ("share of women with cancer", share(women["cancers"], women["people"], 0.26)),
        ("share of men with cancer", share(men["cancers"], men["people"], 0.22)),
        ("women's cancers not treated", share(missed["women"], women["cancers"], 0.22)),
        ("men's cancers not treated", share(missed["men"], men["cancers"], 0.43)),
        ("risk to treat from, c = 4", exact(float(implied_threshold(COST)), 0.20)),
        ("lowest threshold with these decisions", exact(two.refused, 1 / 6)),
        ("highest threshold with these decisions", exact(two.accepted, 1 / 4)),
        ("risk to act from, c = 0.1", exact(float(implied_threshold(0.1)), 0.91)),
        ("cost ratio of acting from 0.25", exact(float(cost_ratio(0.25)), 3.0)),
        ("cost ratio of acting from 1/6 (printed 0.16)", exact(float(cost_ratio(1 / 6)), 5.0)),
    ]
    return PaperTable(
        name="scalars",
        title="Every number the paper prints",
        stub=("what",),
        columns=("value",),
        rows=[((what,), {"value": cell}) for what, cell in cells],
        notes=[
            ILLUSTRATIVE,
            "0.16 itself would give a cost ratio of 5.25; the paper rounds 1/6, which gives 5.",
        ],
        same_data=True,
        one_scale=False,
    )


def _costs() -> PaperTable:
    """What each rule costs and which cost ratios it is the cheapest for."""
    made = curves()
    rows = []
    for who, curve in made.items():
        for level in range(1, len(RISKS)):
            found = margin(curve, index=level)
            missed = rate(sum(CANCERS[who][:level]), sum(CANCERS[who]), level=LEVEL)
            rows.append((
                (who, f"from 1/{round(1 / RISKS[level])} on"),
                {
                    "cost": Cell(value=float(curve.cost[level])),
                    "not treated": _of(missed),
                    "cheapest for c from": Cell(value=found.cost_ratio_low),
                    "to": Cell(value=found.cost_ratio_high),
                },
            ))  # fmt: skip
    equal = equalise([made["women"], made["men"]], rate="false_negative_rate")
    return PaperTable(
        name="costs",
        title="What each rule costs, and the cost ratios it stands for",
        stub=("sex", "treated"),
        columns=("cost", "not treated", "cheapest for c from", "to"),
        rows=rows,
        digits={"cost": 0, "cheapest for c from": 0, "to": 0},
        notes=[
            "Four levels of risk identify a set of cost ratios, not one: the paper prints one end "
            "of each (3 and 5).",
            f"Equal misses would take men from 1/6 on and cost {equal.total_extra_cost:g} more.",
        ],
        same_data=True,
    )


def _densities() -> Figure:
    """Figure 2: the signal of benign and of violating items, and where labelers draw the line."""
    criterion, separation, prevalence = 1.0, 2.0, 0.2
    x = np.linspace(-3.5, 5.5, 181)
    series = []
    for title, centre in (("benign", 0.0), ("violating", separation)):
        series.append({"name": title, "x": x.tolist(), "y": normal_density(x - centre).tolist()})
    # At the criterion the labeler is as often wrong either way: FPR = FNR = Φ(−1).
    false = float(ndtr(-1.0))
    n = 1_000_000
    found = signal_detection(
        n * prevalence * (1 - false),
        n * prevalence * false,
        n * (1 - prevalence) * false,
        n * (1 - prevalence) * (1 - false),
        correction="none",
    )
    line = {"name": "criterion t", "x": [criterion, criterion], "y": [0.0, 0.4]}
    return Figure(
        name="figure2",
        title="Signal detection: separation d′ and criterion t",
        charts=[
            {"kind": "lines", "series": [*series, line], "x_axis": "signal", "y_axis": "density"}
        ],
        columns=("signal", "benign", "violating"),
        rows=[[float(a), float(b), float(c)] for a, b, c in zip(x, series[0]["y"], series[1]["y"])],
        read=f"Labelers say yes right of t. With t = {float(found.criterion):.2f}, "
        f"d′ = {float(found.separation):.2f} and a prevalence of {prevalence:.0%} they act from a "
        f"probability of {float(found.implied_threshold):.2f} on: one miss weighs as much as "
        f"{float(found.cost_ratio):.1f} false alarms.",
        legend=["benign", "violating", "criterion t"],
    )


def _worked_thresholds(n: int, seed: int) -> PaperTable:
    """Prevalence at the threshold by both of the paper's options, where the truth is known."""
    groups = {"A": ScoreGroup(n=n), "B": ScoreGroup(n=n, shift=0.6)}
    made = simulate_scores(groups, seed=seed)
    decisions = Decisions(made.frame, truth="truth", score="score", threshold=0.5, group="group")
    rows = thresholds.measure(decisions, Options(level=LEVEL)).rows
    out = []
    for name, group in groups.items():
        cells: dict[str, Cell] = {"planted": Cell(value=group.implied_threshold)}
        part = made.frame.filter(made.frame["group"] == name)
        near = part.filter((part["score"] - 0.5).abs() <= 0.1)["truth"].to_numpy()
        window = rate(int(near.sum()), len(near), level=LEVEL)
        cells["window of ±0.1"] = _of(window)
        for column, measure in (("local line", "implied_threshold"), ("cost ratio", "cost_ratio")):
            cells[column] = _row_cell(rows, measure, group=name)
        cells["planted cost ratio"] = Cell(value=group.cost_ratio)
        out.append(((name,), cells))
    return PaperTable(
        name="thresholds",
        title="Thresholds worked through: simulated scores whose implied threshold is known",
        stub=("group",),
        columns=("planted", "window of ±0.1", "local line", "planted cost ratio", "cost ratio"),
        rows=out,
        digits=dict.fromkeys(("planted", "window of ±0.1", "local line"), 3),
        notes=[
            "The mean in a window, the paper's first option, is too low here because scores are "
            "rarer above the threshold than below it; its interval knows nothing of that. The "
            "local line is the option the paper adopts; its bandwidth and interval are ours.",
        ],
    )


def _worked_counts() -> PaperTable:
    """Signal detection on counts, for two groups of posts that the same labelers judge."""
    rows = [((name,), _signal_cells(signal_detection(*counts))) for name, counts in COUNTS.items()]
    both = [signal_detection(*counts) for counts in COUNTS.values()]
    apart = float(both[0].log_cost_ratio - both[1].log_cost_ratio)
    error = float(np.hypot(both[0].log_cost_ratio_error, both[1].log_cost_ratio_error))
    return PaperTable(
        name="labelers",
        title="Labelers worked through: from counts to cost ratios",
        stub=("posts of",),
        columns=("hits", "misses", "false alarms", "correct", *_SIGNAL),
        rows=[((labels[0],), _count_cells(COUNTS[labels[0]]) | cells) for labels, cells in rows],
        digits=_COUNT_DIGITS | {"implied threshold": 3},
        notes=[
            f"A miss weighs {np.exp(apart):.2f} times as much in group A as in group B "
            f"({np.exp(apart - 1.96 * error):.2f} to {np.exp(apart + 1.96 * error):.2f}), taking "
            "the two groups as independent."
        ],
    )


def _flooded() -> PaperTable:
    """The same labelers at the margin, with easy items added: rates move, and so does the model."""
    rows = []
    for name, counts in FLOODED.items():
        hits, misses, alarms, correct = counts
        cells = _count_cells(counts)
        cells["false positive rate"] = _of(rate(alarms, alarms + correct, level=LEVEL))
        cells["false negative rate"] = _of(rate(misses, hits + misses, level=LEVEL))
        cells["implied threshold"] = _signal_cells(signal_detection(*counts))["implied threshold"]
        rows.append(((name,), cells))
    return PaperTable(
        name="flooded",
        title="Why not error rates, and how far signal detection is immune",
        stub=("items",),
        columns=(*_COUNT_DIGITS, *_RATES, "implied threshold"),
        rows=rows,
        digits=_COUNT_DIGITS | dict.fromkeys((*_RATES, "implied threshold"), 3),
        notes=[
            "Easy items move error rates without any change at the margin. Signal detection is a "
            "function of the same rates and moves too, less: judge within strata of difficulty.",
        ],
    )


def _worked_labelers(labelers: int, seed: int) -> PaperTable:
    """Simulated labelers whose criterion is lower for one group: what comes back."""
    groups = {"A": LabelerGroup(), "B": LabelerGroup(criterion=0.9)}
    made = simulate_labelers(groups, labelers=labelers, items_each=200, seed=seed)
    rows = []
    for name in groups:
        part = made.frame.filter(made.frame["group"] == name)
        truth, said = part["truth"].to_numpy() == 1, part["decision"].to_numpy() == 1
        counts = (
            int((truth & said).sum()),
            int((truth & ~said).sum()),
            int((~truth & said).sum()),
            int((~truth & ~said).sum()),
        )
        planted = made.planted.filter(made.planted["group"] == name)
        cells = {
            f"planted {column}": Cell(value=float(planted[key][0]))
            for column, key in (("t", "criterion"), ("d′", "separation"), ("c", "cost_ratio"))
        }
        rows.append(((name,), cells | _signal_cells(signal_detection(*counts))))
    return PaperTable(
        name="simulated",
        title=f"Labelers worked through: {labelers} simulated labelers, 200 items each",
        stub=("group",),
        columns=("planted t", "t", "planted d′", "d′", "planted c", "c", "implied threshold"),
        rows=rows,
        digits={"implied threshold": 3},
    )


_RATES = ("false positive rate", "false negative rate")
_SIGNAL = ("t", "d′", "implied threshold", "c")
_COUNT_DIGITS: dict[str, int] = dict.fromkeys(("hits", "misses", "false alarms", "correct"), 0)


def _count_cells(counts: Sequence[int]) -> dict[str, Cell]:
    return {name: Cell(value=float(n)) for name, n in zip(_COUNT_DIGITS, counts, strict=True)}


def _signal_cells(found: SignalDetection) -> dict[str, Cell]:
    """Criterion, separation, implied threshold and cost ratio with their intervals."""
    names: tuple[Any, ...] = ("criterion", "separation", "implied_threshold", "cost_ratio")
    out = {}
    for column, name in zip(_SIGNAL, names, strict=True):
        low, high = found.interval(name)
        value = float(getattr(found, name))
        out[column] = Cell(value=value, low=float(low), high=float(high), n=int(found.n))
    return out


def _of(found: Any) -> Cell:
    return Cell(value=found.value, low=found.low, high=found.high, n=found.n)


def _row_cell(rows: Any, measure: str, **keys: Any) -> Cell:
    """A row of a lens as a cell."""
    held = rows.where(measure=measure, stratum=None, **keys)
    if not len(held):
        return Cell(reason="not measured")
    value, low, high = (float(held[key][0]) for key in ("value", "low", "high"))
    if not np.isfinite(value):
        return Cell(reason=str(held["undefined"][0]))
    return Cell(value=value, low=low, high=high, n=int(held["n"][0]))
