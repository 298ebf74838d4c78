"""Remedies class by class: strips of gaps, norms remedy by remedy, shares in training."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.findings.sentences.words import words
from evenhand.report.blocks import (
    Block,
    as_csv,
    axis_form,
    axis_title,
    figure,
    folded,
    slug,
    table,
)
from evenhand.report.labels import cell, listed, short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.speech import number, opening, percent, points, signed

Line = Mapping[str, Any]
QUALITY = ("accuracy", "balanced_accuracy", "macro_f1", "auc")
GAPS = (
    "true_positive_rate_gap_rms_corrected",
    "true_positive_rate_gap_rms",
    "false_positive_rate_gap_rms",
    "counterfactual_true_positive_rate_gap_rms",
)
SHARES = ("training_share", "group_share", "share")
CLASS_GAPS = ("true_positive_rate_gap", "statistical_gap", "gap")
BASELINES = ("baseline", "none", "unmitigated")
COLUMNS = (
    *QUALITY,
    *GAPS,
    "flip_rate",
    "norm_bias",
    "norm_bias_irrelevant",
    "norm_slope",
    "norm_correlation_mean",
)


def flat(row: Line) -> dict[str, Any]:
    """A row whose measures stand beside one another, each for everybody or for its first group.

    Examples:
        >>> cell = {"value": 0.8, "value_low": 0.7, "value_high": 0.9, "sd": None, "low": -0.1}
        >>> held = flat({"remedy": "augment", "measures": {"accuracy": {"all": cell}}})
        >>> held["accuracy"], held["accuracy_low"], held["accuracy_sd"]
        (0.8, 0.7, None)
    """
    found = {key: value for key, value in row.items() if key != "measures"}
    for name, groups in (row.get("measures") or {}).items():
        cell_ = groups.get("all") or next(iter(groups.values()), None)
        if isinstance(cell_, Mapping):
            found[name] = cell_.get("value")
            # A cell's low and high are those of its difference from the baseline.
            ends = {"low": "value_low", "high": "value_high", "sd": "sd"}
            found |= {f"{name}_{end}": cell_.get(key) for end, key in ends.items()}
    if "needs_group_at_decision" in row:
        found["needs_group"] = row["needs_group_at_decision"]
    return found


def by_group(rows: Iterable[Line], measure: str) -> dict[tuple[str, Any, Any], float | None]:
    """A measure of each representation, remedy and group."""
    return {
        (representation(row), row.get("remedy"), group): held.get("value")
        for row in rows
        if isinstance(row, Mapping)
        for group, held in ((row.get("measures") or {}).get(measure) or {}).items()
        if isinstance(held, Mapping)
    }


def ledger_csv(rows: Iterable[Line], columns: Sequence[str] = ()) -> str:
    """Rows as CSV: the columns asked for, or all measures."""
    held = list(rows)
    columns = columns or ["remedy", "representation", "pareto", *_measured(held)]
    return as_csv(columns, ([row.get(key) for key in columns] for row in held))


def _measured(rows: Sequence[Line]) -> list[str]:
    """The measures that some row has, each with what its interval is made of."""
    names = [f"{name}{end}" for name in COLUMNS for end in ("", "_low", "_high", "_sd")]
    return [name for name in names if any(row.get(name) is not None for row in rows)]


def class_rows(ledger: Line) -> list[Line]:
    """Every class and group of every remedy: means over runs, or an older ledger's first run."""
    means = ledger.get("class_means")
    held = [row for row in means or ledger.get("classes") or () if isinstance(row, Mapping)]
    seeds = sorted({row["seed"] for row in held if row.get("seed") is not None})
    return [row for row in held if not seeds or row.get("seed") == seeds[0]]


def runs_note(rows: Sequence[Line]) -> list[str]:
    """How many runs a mean is of, or which one is drawn where there are no means."""
    runs = max((row.get("runs") or 1 for row in rows), default=1)
    if runs > 1:
        return [f"Means over {runs} runs; their standard deviation is in the table."]
    seeds = {row["seed"] for row in rows if row.get("seed") is not None}
    return [f"Drawn for the run of seed {min(seeds)}."] if seeds and min(seeds) else []


def spread(row: Line, key: str) -> str:
    """The standard deviation of a mean over runs, or nothing of a single run."""
    held = row.get(f"{key}_sd")
    return "" if held is None else f"± {number(held)}"


def drawn_note(count: int, most: int) -> list[str]:
    """How many options are drawn, where not all are."""
    if count <= most:
        return []
    return [f"{most} of {count:,} options are drawn, those on the front first."]


def front_first(rows: Sequence[Line], front: set[Any]) -> list[Any]:
    """The options: without a remedy first, then those on the front, then the others."""
    names = list(dict.fromkeys((not is_baseline(row), row.get("remedy")) for row in rows))
    names.sort(key=lambda one: (one[0], one[1] not in front))
    return [remedy for _, remedy in names]


def first_present(rows: Sequence[Line], names: tuple[str, ...]) -> str | None:
    """The first of these columns that some row has."""
    return next((n for n in names if any(row.get(n) is not None for row in rows)), None)


def representation(row: Line) -> str:
    """The representation that a row was measured on."""
    return str(row.get("representation") or "")


def named(name: str) -> str:
    """A representation in words.

    Examples:
        >>> named("bow"), named("vectors"), named("mine")
        ('bag of words', 'word vectors', 'mine')
    """
    known = {"bow": "bag of words", "vectors": "word vectors", "wordvectors": "word vectors"}
    known["columns"] = "columns of the table"
    return known.get(name, short(name))


def is_baseline(row: Line) -> bool:
    """Whether a row is of no remedy at all."""
    return str(row.get("remedy")).lower() in BASELINES


def spelled(name: str) -> str:
    """A measure's name as a person says it.

    Examples:
        >>> spelled("true_positive_rate_gap_rms"), spelled("balanced_accuracy")
        ('typical true positive rate gap over classes', 'balanced accuracy')
    """
    return words(name)


def form_of(measure: str) -> str:
    """How an axis prints a number of a ledger, whose own measures of quality are shares.

    Examples:
        >>> form_of("balanced_accuracy"), form_of("true_positive_rate_gap_rms"), form_of("auc")
        ('%', 'size', '~g')
    """
    return "%" if measure in ("balanced_accuracy", "macro_f1") else axis_form(measure)


def said(value: float | None, measure: str) -> str:
    """A number of a ledger as a mark says it: in percent, in points or as it is.

    Examples:
        >>> said(0.81, "accuracy"), said(-0.046, "true_positive_rate_gap"), said(0.5, "norm_slope")
        ('81.0%', '−4.6 points', '0.500')
    """
    form = form_of(measure)
    if value is None:
        return "–"
    if form == "%":
        return percent(value)
    if form in ("points", "size"):
        sign = "" if form == "size" else "−" if value < 0 else "+" if value > 0 else ""
        return f"{sign}{points(value)}"
    return number(value)


Slopes = Mapping[tuple[str, Any, Any], float | None]
MOST_FOLLOWED, MOST_STRIPS, MOST_PANELS, MOST_MORE = 3, 10, 6, 9


def by_class(
    classes: Sequence[Line], shown: Sequence[str], *, front: set[Any], slopes: Slopes
) -> list[Block]:
    """The figures of the first group on the first representation, and on demand all others."""
    blocks: list[Block] = []
    more: list[Block] = []
    left = 0
    for i, name in enumerate(shown):
        held = [row for row in classes if representation(row) == name]
        groups = list(dict.fromkeys(row.get("group") for row in held))
        # A group with numbers in most classes leads: a tiny one has few, the reference no gaps.
        groups.sort(key=lambda group: -_known(held, group))
        on = f", on {named(name)}" if name and shown[1:] else ""
        for g, group in enumerate(groups):
            mine = [row for row in held if row.get("group") == group]
            drawn = [
                *strips_figure(name, mine, front, on),
                *norms_figure(name, mine, front, on, slopes),
            ]
            drawn += training_figure(name, mine, on)
            if i == g == 0:
                blocks += drawn
            elif len(more) + len(drawn) <= MOST_MORE:
                more += drawn
            else:
                left += bool(drawn)
    told = "The same for other groups" + (", and on other representations" if shown[1:] else "")
    if left:
        told += f" ({left:,} more are in the ledger alone)"
    return [*blocks, *([folded(told, more)] if more else [])]


def _known(rows: Sequence[Line], group: Any) -> int:
    """In how many classes a group has a gap."""
    gap = first_present(rows, CLASS_GAPS)
    mine = [row for row in rows if row.get("group") == group and gap and row.get(gap) is not None]
    return len({row["class"] for row in mine})


def strips_figure(name: str, rows: Sequence[Line], front: set[Any], on: str) -> list[Block]:
    """Gaps by class on each remedy's line, with the baseline's outliers followed."""
    gap = first_present(rows, CLASS_GAPS)
    if gap is None:
        return []
    mine = [row for row in rows if row.get(gap) is not None]
    base = [row for row in mine if is_baseline(row)] or [
        row for row in mine if row.get("remedy") == mine[0].get("remedy")
    ]
    ranked = sorted(base, key=lambda row: -abs(row[gap]))
    followed = list(dict.fromkeys(str(row["class"]) for row in ranked))[:MOST_FOLLOWED]
    names = {one: short(one, most=24) for one in followed}
    order = front_first(mine, front)
    count, order = len(order), order[:MOST_STRIPS]
    mine = [row for remedy in order for row in mine if row.get("remedy") == remedy]
    group = short(mine[0].get("group"), most=24) or "the group"
    title = (
        f"Gaps of {group} for {listed(list(names.values()))}, largest without a remedy, followed"
        f"{on}"
    )
    kinds = [gap]
    if any(row.get(f"counterfactual_{gap}") is not None for row in mine):
        kinds.append(f"counterfactual_{gap}")
    columns = ["Remedy", "Class"]
    for kind in kinds:
        columns += [spelled(kind), f"spread, {spelled(kind)}"]
    body = []
    for row in mine:
        cells = [cell(row.get("remedy")), cell(row["class"])]
        for kind in kinds:
            cells += [signed(row.get(kind)), spread(row, kind)]
        body.append(cells)
    return [
        figure(
            f"strips-{slug(name)}-{slug(group)}",
            title=title,
            charts=[
                {
                    "kind": "strips",
                    "rows": [
                        {
                            "line": str(row.get("remedy")),
                            "value": row[kind],
                            "followed": names.get(str(row["class"])),
                            "tip": f"{short(row['class'])}: {said(row[kind], gap)}",
                        }
                        for row in mine
                        if row.get(kind) is not None
                    ],
                    "followed": list(names.values()),
                    "axis": axis_title(opening(spelled(kind)), form_of(gap)),
                    "format": form_of(gap),
                    "title": title if kind == gap else opening(spelled(kind)),
                }
                for kind in kinds
            ],
            read="each small line is a class; the marks follow the classes with the largest gap "
            "without a remedy. A remedy that works draws the lines together around 0, and one that "
            "only shifts them does not. Counterfactual gaps are of each text against itself "
            "rewritten: where only these close, people of the two groups are still apart.",
            legend=[
                {"shape": SERIES_SHAPES[i], "colour": SERIES[i], "text": names[one]}
                for i, one in enumerate(followed)
            ],
            numbers=table(title, columns, body, numbers=columns[2:], most=120),
            csv_text=ledger_csv(
                mine, ("remedy", "class", "group", *(f"{k}{e}" for k in kinds for e in ("", "_sd")))
            ),
            notes=[*drawn_note(count, MOST_STRIPS), *runs_note(rows)],
        )
    ]


def norms_figure(
    name: str, rows: Sequence[Line], front: set[Any], on: str, slopes: Slopes
) -> list[Block]:
    """Share against correlation in every class, one small chart a remedy."""
    share, r = first_present(rows, SHARES), first_present(rows, ("norm_correlation",))
    if share is None or r is None:
        return []
    mine = [row for row in rows if row.get(share) is not None and row.get(r) is not None]
    if not mine:
        return []
    group = short(mine[0].get("group"), most=24) or "the group"
    order = front_first(mine, front)
    count, remedies = len(order), order[:MOST_PANELS]
    mine = [row for remedy in remedies for row in mine if row.get("remedy") == remedy]
    slope = {one: slopes.get((name, one, mine[0].get("group"))) for one in order}
    title = _flattest(slope, group, base={row["remedy"] for row in mine if is_baseline(row)})
    title += on
    charts = [
        {
            "kind": "scatter",
            "points": [
                {
                    "x": row[share],
                    "y": row[r],
                    **_ends(row, r),
                    "tip": f"{short(row['class'])}: {signed(row[r])}",
                }
                for row in mine
                if row.get("remedy") == one
            ],
            "x_axis": f"Share of {group} in the class",
            "x_format": "%",
            "x_domain": [0, 1],
            "y_axis": "Correlation with the norm",
            "y_domain": [-1, 1],
            "y_zero": 0.0,
            "title": short(one)
            + (f": slope {signed(slope[one])}" if slope[one] is not None else ""),
        }
        for one in remedies
    ]
    columns = ("Remedy", "Class", "Share", "Correlation", "Spread")
    body = [
        [
            cell(row.get("remedy")),
            cell(row["class"]),
            number(row[share]),
            signed(row[r]),
            spread(row, r),
        ]
        for row in mine
    ]
    return [
        figure(
            f"norms-remedies-{slug(name)}-{slug(group)}",
            title=title,
            charts=charts,
            read="as in the chart of norm bias, one for each option: the flatter the cloud, the "
            "less the norm is rewarded where the group is common. The slope is how much the "
            "correlation rises from a class without the group to one with nobody else.",
            numbers=table(title, columns, body, numbers=columns[2:], most=120),
            csv_text=ledger_csv(mine, ("remedy", "class", "group", share, r, f"{r}_sd")),
            notes=[*drawn_note(count, MOST_PANELS), *runs_note(rows)],
        )
    ]


def _ends(row: Line, key: str) -> dict[str, float]:
    """A mean over runs with its standard deviation either way, where there are several."""
    held = row.get(f"{key}_sd")
    if held is None:
        return {}
    return {"y_low": max(-1.0, row[key] - held), "y_high": min(1.0, row[key] + held)}


def _flattest(slope: Mapping[str, float | None], group: str, *, base: set[str]) -> str:
    """Which remedy brings the slope nearest to 0, in words; what is drawn where none is known."""
    known = {name: value for name, value in slope.items() if value is not None}
    before = next((value for name, value in known.items() if name in base), None)
    others = {name: value for name, value in known.items() if name not in base}
    if before is None or not others:
        return f"How far each option rewards looking typical of {group}"
    best = min(others, key=lambda name: abs(others[name]))
    if abs(others[best]) >= abs(before):
        return f"No remedy lowers the norm slope of {group} from {signed(before)}"
    return (
        f"{short(best)} brings the norm slope of {group} furthest towards 0: "
        f"from {signed(before)} to {signed(others[best])}"
    )


def training_figure(name: str, rows: Sequence[Line], on: str) -> list[Block]:
    """Gaps without a remedy against the group's share of the class in training."""
    gap = first_present(rows, CLASS_GAPS)
    base = [
        row
        for row in rows
        if is_baseline(row)
        and row.get("training_share") is not None
        and gap
        and row.get(gap) is not None
    ]
    mine = base
    if gap is None or len(mine) < 3:
        return []
    group = short(mine[0].get("group")) or "the group"
    title = f"Gaps without a remedy beside the share of {group} in training{on}"
    ranked = sorted(mine, key=lambda row: -abs(row[gap]))
    marks = [
        {
            "x": row["training_share"],
            "y": row[gap],
            **_ends(row, gap),
            "name": short(row["class"], most=22) if i < 8 else None,
            "tip": f"{short(row['class'])}: {said(row[gap], gap)}",
        }
        for i, row in enumerate(ranked)
    ]
    columns = ("Class", "Share in training", spelled(gap), "Spread")
    body = [
        [cell(r["class"]), number(r["training_share"]), signed(r[gap]), spread(r, gap)]
        for r in ranked
    ]
    return [
        figure(
            f"training-{slug(name)}-{slug(group)}",
            title=title,
            charts=[
                {
                    "kind": "scatter",
                    "points": marks,
                    "x_axis": f"Share of {group} among the training rows of the class",
                    "x_format": "%",
                    "y_axis": axis_title(opening(spelled(gap)), form_of(gap)),
                    "y_format": form_of(gap),
                    "y_zero": 0.0,
                    "title": title,
                }
            ],
            read="each mark is a class. A cloud that rises from left to right means that the group "
            "is found where it was common in training and missed where it was rare.",
            numbers=table(title, columns, body, numbers=columns[1:], most=120),
            csv_text=ledger_csv(
                mine, ("class", "group", "training_share", "training_rows", gap, f"{gap}_sd")
            ),
            notes=runs_note(rows),
        )
    ]
