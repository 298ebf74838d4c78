"""Paper 2, "Addressing Both Statistical and Causal Gender Fairness in NLP Models".

Occupations of biographies and toxicity of comments, under sampling, weights, counterfactual copies
and their compositions. Gaps are printed × 100, as in the paper.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.models.words import trace_token_weights
from evenhand.papers.agreement import Agreement, agreement_figure, agreement_gaps
from evenhand.papers.gap_tables import (
    BIOGRAPHIES,
    COMMENTS,
    ORDERS,
    SCALE,
    STRATEGIES,
    TABLE_1,
    TABLE_3,
    area_table,
    count_table,
    gap_reads,
    gap_table,
    hundred,
    order_table,
    size_table,
    strategy_table,
    validity_table,
)
from evenhand.papers.printed import interval_words, printed_gaps, rank_words
from evenhand.papers.runs import FOCAL, REFERENCE, Runs
from evenhand.papers.sheets import INTERVAL, Cell, Figure, Part
from evenhand.remedies.ledger.task import Task
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.speech import listed
from evenhand.stats.ranks import spearman

TITLE = "Addressing Both Statistical and Causal Gender Fairness in NLP Models"
FEMALE_WORDS = ("she", "her", "hers", "herself", "mrs", "ms")
MALE_WORDS = ("he", "his", "him", "himself", "mr")
SWEEP, ONE_SIDED = (-3, -2, -1, 0, 1, 2, 3), (1, 2, 3, 4, 5)
# Root mean squares × 100 from the public notebook: at w = −3 … 3 of all words (Figure 3), and at
# 1 … 5 of one gender's (Figure 12).
FIGURE_3 = {
    "SG": (17.83, 17.18, 9.83, 9.83, 14.01, 18.04, 22.01),
    "CG": (17.82, 16.80, 5.80, 0.0, 5.55, 10.16, 14.88),
}
FIGURE_12 = {
    "female": {
        "SG": (14.01, 15.64, 18.14, 20.99, 24.30),
        "CG": (5.55, 8.02, 11.11, 14.06, 17.28),
    },
    "male": {
        "SG": (14.01, 16.51, 18.49, 20.48, 23.44),
        "CG": (5.55, 8.15, 10.83, 13.42, 16.48),
    },
}
GAPS_OF = {"SG": "", "CG": "counterfactual_"}
BOTH_GAPS = (
    *(name for gap in GAPS_OF for name in (gap, *(f"{gap} {each}" for each in INTERVAL))),
    *(f"{gap} printed" for gap in GAPS_OF),
)


def wanted(main: str, other: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The remedies to train on biographies and on comments, by representation."""
    both = list(dict.fromkeys([*COMMENTS.values(), *ORDERS.values(), *STRATEGIES.values()]))
    about_people = {name: list(BIOGRAPHIES.values()) for name in (main, other)}
    return about_people | {"bow": list(BIOGRAPHIES.values())}, {main: both, other: both}


def reproduce_statistical(
    people: Runs,
    comments: Runs,
    *,
    main: str,
    other: str,
    same_data: bool,
    agreement: Agreement | None = None,
) -> list[Part]:
    """Every table and figure that the method defines, in the paper's order.

    `main` stands in the place of BERT for comments and of ALBERT for biographies, the models that
    the paper prints numbers of, `other` in that of the other one. `agreement` is how far
    annotators agree on the gender of each comment.
    """
    true, false = "true_positive_rate_gap", "false_positive_rate_gap"
    return [
        gap_table("table1", comments, main, TABLE_1, same_data=same_data),
        count_table(comments),
        size_table("table3", people, main, TABLE_3, same_data=same_data),
        size_table("table4", people, other, {}, same_data=same_data),
        gap_table("table5", comments, other, {}, same_data=same_data),
        order_table(comments, main, other, same_data=same_data),
        strategy_table(comments, main),
        area_table(comments, main, other),
        validity_table(people),
        method_scatter(comments, main),
        class_scatter("figure2", people, {"ALBERT": main}, true),
        sweep_figure(people),
        strip_figure("figure4", people, {"BERT": other}, true),
        strip_figure("figure5", people, {"ALBERT": main}, true),
        people_figure(people),
        agreement_figure(comments, agreement),
        class_scatter("figure8", people, {"BERT": other}, true),
        class_scatter("figure9", people, {"ALBERT": main, "BERT": other}, false),
        strip_figure("figure10", people, {"ALBERT": main, "BERT": other}, false),
        share_figure(people, main),
        one_sided_figure(people),
        agreement_gaps(comments, main, agreement),
    ]


def method_scatter(runs: Runs, representation: str) -> Figure:
    """Figure 1: every method by its statistical and its counterfactual gap."""
    kinds = {"ours": (SERIES[0], SERIES_SHAPES[0]), "printed": (SERIES[1], SERIES_SHAPES[1])}
    points, rows = [], []
    reads = gap_reads(runs)[:2]
    for method, remedy in COMMENTS.items():
        sg, cg = (hundred(runs.cell(representation, remedy, read)) for read in reads)
        printed = [pair[0] for pair in TABLE_1[method][:2]]
        if sg.value is not None and cg.value is not None:
            points.append({"x": sg.value, "y": cg.value, "name": method, "kind": "ours",
                           "tip": f"{method}: SG {sg.value:.2f}, CG {cg.value:.2f}"})  # fmt: skip
        points.append({"x": printed[0], "y": printed[1], "name": f"{method}", "kind": "printed",
                       "tip": f"{method}, printed: SG {printed[0]}, CG {printed[1]}"})  # fmt: skip
        rows.append([method, *sg.numbers(), *cg.numbers(), *printed])
    return Figure(
        name="figure1",
        title="Statistical against counterfactual gap of positive predictions × 100, by method",
        charts=[{"kind": "scatter", "points": points, "kinds": kinds, "x_axis": "SG PPR × 100",
                 "y_axis": "CG PPR × 100", "x_zero": 0, "y_zero": 0, "named": 16}],
        columns=("method", *BOTH_GAPS),
        rows=rows,
        read="A method does well on both where it lies near the crossing of the lines.",
        legend=["circles: ours", "squares: printed, on other data and another model"],
    )  # fmt: skip


def class_scatter(name: str, runs: Runs, places: Mapping[str, str], measure: str) -> Figure:
    """Figures 2, 8 and 9: statistical against counterfactual gap of every occupation.

    `places` has the representation in the place of each of the paper's models.
    """
    charts, rows, told = [], [], []
    published = [printed_gaps(name, "Normal", gap) for gap in GAPS_OF]
    for model, where in places.items():
        cells = [
            class_gaps(runs, where, "baseline", f"{kind}{measure}") for kind in GAPS_OF.values()
        ]
        ours = [_values(held) for held in cells]
        told.append(f"{where}: {_opposite(*ours)}")
        charts.append(_opposed(*ours, words=f"{where} in the place of {model}"))
        for title in sorted(set(ours[0]) & set(ours[1])):
            printed = [held.get(title) for held in published] if model == "ALBERT" else [None, None]
            numbers = [number for held in cells for number in held[title].numbers()]
            rows.append([where, title, *numbers, *printed])
        if published[0] and model == "ALBERT":
            told.append(f"Printed: {_opposite(*published)}")
            told += [
                f"{gap} against the printed: {rank_words(mine, theirs)}."
                for gap, mine, theirs in zip(GAPS_OF, ours, published, strict=True)
            ]
            charts.append(_opposed(*published, words=f"printed, {model}"))
    rate = "true" if measure.startswith("true") else "false"
    return Figure(
        name=name,
        title=f"Statistical against counterfactual {rate} positive gap × 100 of every occupation, "
        f"{_in_place(places)}",
        charts=charts,
        columns=("representation", "occupation", *BOTH_GAPS),
        rows=rows,
        read=f"On the dashed line both gaps are alike. {' '.join(told)}",
        legend=["same sign", "opposite"],
    )


def _in_place(places: Mapping[str, str]) -> str:
    """Which representation stands for which of the paper's models."""
    return listed([f"{where} in the place of {model}" for model, where in places.items()])


def _opposed(sg: Mapping[str, float], cg: Mapping[str, float], *, words: str) -> dict[str, Any]:
    """One panel: occupations by both gaps, those of opposite signs with a mark of their own."""
    kinds = {"same sign": (SERIES[0], SERIES_SHAPES[0]), "opposite": (SERIES[1], SERIES_SHAPES[3])}
    points = [
        {
            "x": sg[title],
            "y": cg[title],
            "name": title,
            "kind": "opposite" if sg[title] * cg[title] < 0 else "same sign",
            "tip": f"{title}: SG {sg[title]:.2f}, CG {cg[title]:.2f}",
        }
        for title in sorted(set(sg) & set(cg))
    ]
    return {"kind": "scatter", "points": points, "kinds": kinds, "diagonal": True, "x_zero": 0,
            "y_zero": 0, "x_axis": f"SG × 100, {words}", "y_axis": "CG × 100"}  # fmt: skip


def _opposite(sg: Mapping[str, float], cg: Mapping[str, float]) -> str:
    titles = set(sg) & set(cg)
    found = sum(sg[title] * cg[title] < 0 for title in titles)
    return f"{found} of {len(titles)} occupations have opposite signs."


def class_gaps(runs: Runs, representation: str, remedy: str, measure: str) -> dict[str, Cell]:
    """Gaps × 100 by occupation, means over the seeds that have them."""
    held = runs.by_class(representation, remedy, measure)
    return {title: hundred(cell) for title, cell in held.items()}


def _values(cells: Mapping[str, Cell]) -> dict[str, float]:
    return {title: cell.value for title, cell in cells.items() if cell.value is not None}


def strip_figure(name: str, runs: Runs, places: Mapping[str, str], measure: str) -> Figure:
    """Figures 4, 5 and 10: one mark an occupation for each method, both kinds of gap."""
    charts, rows, told = [], [], []
    for model, where in places.items():
        for gap, kind in GAPS_OF.items():
            ours, printed = [], []
            for method, remedy in BIOGRAPHIES.items():
                held = class_gaps(runs, where, remedy, f"{kind}{measure}")
                theirs = printed_gaps(name, method, gap) if model == "ALBERT" else {}
                ours += _ticks(method, _values(held))
                printed += _ticks(method, theirs)
                rows += [
                    [where, gap, method, title, *cell.numbers(), theirs.get(title)]
                    for title, cell in held.items()
                ]
                if method == "Normal" and theirs:
                    told.append(f"{gap} of Normal: {rank_words(_values(held), theirs)}.")
            words = f"{gap} × 100, {where} in the place of {model}"
            charts.append({"kind": "strips", "rows": ours, "followed": [], "axis": words})
            if printed:
                words = f"{gap} × 100, printed, {model}"
                charts.append({"kind": "strips", "rows": printed, "followed": [], "axis": words})
    rate = "true" if measure.startswith("true") else "false"
    against = f" Occupations against the printed ones. {' '.join(told)}" if told else ""
    return Figure(
        name=name,
        title=f"{rate.capitalize()} positive gaps × 100 of every occupation by method, "
        f"{_in_place(places)}",
        charts=charts,
        columns=(
            *("representation", "gap", "method", "occupation", "value"),
            *(*INTERVAL, "printed"),
        ),
        rows=rows,
        read=f"One line an occupation, statistical and counterfactual gaps.{against}",
    )


def _ticks(method: str, gaps: Mapping[str, float]) -> list[dict[str, Any]]:
    return [
        {"line": method, "value": value, "followed": None, "tip": f"{method}, {title}: {value:.2f}"}
        for title, value in gaps.items()
    ]


def people_figure(runs: Runs) -> Figure:
    """Figure 6: women and men of every occupation."""
    rows = runs.texts.rows
    marks, table = [], []
    for c, title in enumerate(rows.classes):
        for g, group in enumerate(rows.groups):
            n = int(((rows.truth == c) & (rows.group == g)).sum())
            marks.append({"line": title, "series": group, "value": n, "low": None, "high": None,
                          "tip": f"{title}, {group}: {n}"})  # fmt: skip
            table.append([title, group, n])
    return Figure(
        name="figure6",
        title="Biographies by occupation and gender",
        charts=[{"kind": "grouped", "rows": marks, "axis": "biographies"}],
        columns=("occupation", "gender", "biographies"),
        rows=table,
        legend=list(rows.groups),
    )


def share_figure(runs: Runs, representation: str) -> Figure:
    """Figure 11: gaps against the share of women in training."""
    rows = runs.texts.rows
    train = rows.train
    place = rows.groups.index(FOCAL)
    share = {
        title: float((rows.group[train[rows.truth[train] == c]] == place).mean())
        for c, title in enumerate(rows.classes)
    }
    charts, table, told = [], [], []
    for kind, words in (("", "SG"), ("counterfactual_", "CG")):
        points = []
        methods = ("Normal", "RW", "CDA")
        kinds = {m: (SERIES[k], SERIES_SHAPES[k]) for k, m in enumerate(methods)}
        for method in methods:
            name = f"{kind}true_positive_rate_gap"
            gaps = class_gaps(runs, representation, BIOGRAPHIES[method], name)
            for title, cell in gaps.items():
                points.append({"x": share[title], "y": cell.value, "kind": method,
                               "tip": f"{title}, {method}: {cell.text(2)}"})  # fmt: skip
                table.append([words, method, title, share[title], *cell.numbers()])
            told.append(f"{words} {method} {_rank_correlation(share, _values(gaps))}")
        axes = {"x_axis": "share of women in training", "y_axis": f"{words} TPR × 100"}
        chart = {"kind": "scatter", "points": points, "kinds": kinds, "y_zero": 0, "named": 0}
        charts.append(chart | axes)
    return Figure(
        name="figure11",
        title="True positive gap against the share of women in training",
        charts=charts,
        columns=("gap", "method", "occupation", "share of women", "value", *INTERVAL),
        rows=table,
        read=f"Rank correlations with the share: {'; '.join(told)}.",
        legend=["Normal", "RW", "CDA"],
        notes=[
            "The public notebook has SG: Normal .81, RW .54, CDA .75; CG: Normal .77, CDA −.11."
        ],
    )


def _rank_correlation(share: Mapping[str, float], gaps: Mapping[str, float]) -> str:
    """Rank correlation over occupations with its interval, in words."""
    titles = [title for title in gaps if title in share]
    if len(titles) < 4:
        return "undefined"
    r = float(spearman(*([held[title] for title in titles] for held in (share, gaps))))
    return interval_words(r, len(titles)) if np.isfinite(r) else "undefined"


def _swept(runs: Runs, words: Sequence[str], weights: Sequence[float]) -> list[dict[str, Any]]:
    """Root mean squares × 100 of both gaps as the coefficients of some words are scaled."""
    first = runs.of("bow", "baseline")
    if not first:
        return []
    rows = runs.texts.rows
    task = Task(texts=runs.texts, representation="bow", rows=rows.fit, seed=runs.seeds[0])
    known = runs.texts.representations["bow"].words.words
    trace = trace_token_weights(
        first[0].fitted.model,
        features=task.features(rows.test),
        features_under={name: task.features(rows.test, do=name) for name in runs.texts.do},
        group=task.groups_of(rows.test).tolist(),
        vocabulary=list(known),
        words=[word for word in words if word in known],
        truth=task.truth_of(rows.test).tolist(),
        weights=[float(w) for w in weights],
        reference=REFERENCE,
    )
    lines = [dict(zip(trace.columns, values)) for values in zip(*trace.columns.values())]
    return [
        line
        for line in lines
        if line["measure"] == "true_positive_rate_gap_rms" and line["group"] == FOCAL
    ]


def _sweep(
    runs: Runs, words: Sequence[str], weights: Sequence[float], *, printed: Mapping[str, Any]
) -> tuple[dict[str, Any], list[list[Any]]]:
    lines = _swept(runs, words, weights)
    series, rows = [], []
    for name, column in (("SG", "statistical"), ("CG", "counterfactual")):
        values, low, high = (
            [_scaled(line[f"{column}{end}"]) for line in lines] for end in ("", "_low", "_high")
        )
        weight = [line["weight"] for line in lines]
        series.append({"name": name, "x": weight, "y": values, "low": low, "high": high})
        rows += [[name, *line] for line in zip(weight, values, low, high, strict=True)]
    for name, values in printed.items():
        series.append({"name": f"{name}, printed", "x": list(weights), "y": list(values)})
    chart = {"kind": "lines", "series": series, "x_axis": "weight of the words",
             "y_axis": "root mean square gap × 100"}  # fmt: skip
    return chart, rows


def _scaled(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else SCALE * value


def sweep_figure(runs: Runs) -> Figure:
    """Figure 3: both gaps of a bag of words as all gendered words are scaled."""
    chart, rows = _sweep(runs, [*FEMALE_WORDS, *MALE_WORDS], SWEEP, printed=FIGURE_3)
    printed = dict(zip(SWEEP, zip(*FIGURE_3.values())))
    table = [[gap, w, *held, printed[int(w)][0 if gap == "SG" else 1]] for gap, w, *held in rows]
    return Figure(
        name="figure3",
        title="Bag of words: gaps as the weights of all gendered words are multiplied",
        charts=[chart],
        columns=("gap", "weight", "value", "low", "high", "printed"),
        rows=table,
        read="At weight 0 nothing that a swap changes is read any more: the counterfactual gap is "
        "0, and the statistical one need not be.",
        legend=[series["name"] for series in chart["series"]],
    )


def one_sided_figure(runs: Runs) -> Figure:
    """Figure 12: the same for one gender's words alone."""
    charts, rows = [], []
    for words, name in ((FEMALE_WORDS, "female"), (MALE_WORDS, "male")):
        printed = FIGURE_12[name]
        chart, lines = _sweep(runs, words, ONE_SIDED, printed=printed)
        charts.append(chart | {"x_axis": f"weight of the {name} words"})
        for gap, weight, *held in lines:
            rows.append([name, gap, weight, *held, printed[gap][ONE_SIDED.index(int(weight))]])
    return Figure(
        name="figure12",
        title="Bag of words: gaps as the weights of one gender's words are multiplied",
        charts=charts,
        columns=("words", "gap", "weight", "value", "low", "high", "printed"),
        rows=rows,
        read="First the female words, then the male ones.",
        legend=["SG", "CG"],
    )
