"""The words that weigh in the classifier and in the norm: one small chart a class."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.sentences import signed
from evenhand.report.blocks import Block, as_csv, figure, table
from evenhand.report.labels import cell, short
from evenhand.report.palette import OUTSIDE, PLAIN
from evenhand.report.view import View

LENS = "norms"
MOST_CLASSES, MOST_NAMES = 4, 12
KEYS = ("word", "class", "classifier", "norm", "relevant")
LEGEND = (
    {"shape": "circle", "colour": PLAIN, "text": "Marks the class in every group"},
    {"shape": "triangle-up", "colour": OUTSIDE, "text": "Not shown to mark it in every group"},
)
Word = Mapping[str, Any]


def words_figure(view: View) -> list[Block]:
    """Words with their weight in the classifier and in the norm scorer, where the record has them.

    Read from details.norms: `words`, rows of word, class, classifier, norm and relevant, and
    `words_toward`, the group that the norm's weights point to.
    """
    known = _known(view)
    if not known:
        return []
    group = short(view.details(LENS).get("words_toward") or "the group")
    told = [one for one in known if one.get("relevant") is not None]
    classes = _classes(view, known)
    shown = [one for name in classes for one in known if one["class"] == name]
    title = _title(shown, group)
    columns = ("Class", "Word", "In the classifier", "In the norm scorer", "Marks the class")
    body = [
        [
            cell(one["class"]),
            cell(one["word"]),
            signed(one["classifier"]),
            signed(one["norm"]),
            "–" if one.get("relevant") is None else "yes" if one["relevant"] else "no",
        ]
        for one in shown
    ]
    several = len({one["class"] for one in known})
    notes = []
    if several > len(classes):
        notes.append(
            f"{len(classes)} of {several:,} classes are drawn, those in which the norm of {group} "
            "and the score go together most, either way; all are in the CSV."
        )
    return [
        figure(
            "norm-words",
            title=title,
            charts=[_chart(name, [one for one in shown if one["class"] == name], group)
                    for name in classes],
            read=f"each mark is a word. To the right it is typical of {group}, to the left of "
            "others; upwards it speaks for the class, downwards against it. A word far from "
            "both lines lets looking typical move the score; where it does not mark the class in "
            "every group, ask what it does there.",
            legend=LEGEND if told else [],
            numbers=table("Words and their weights", columns, body, numbers=columns[2:4], most=100),
            csv_text=as_csv(KEYS, ([one.get(key) for key in KEYS] for one in known)),
            notes=notes,
        )
    ]  # fmt: skip


def _known(view: View) -> list[Word]:
    held = view.details(LENS).get("words")
    rows = held if isinstance(held, list) else []
    return [
        one
        for one in rows
        if isinstance(one, Mapping)
        and all(isinstance(one.get(key), str) for key in ("word", "class"))
        and all(isinstance(one.get(key), int | float) for key in ("classifier", "norm"))
    ]


def _classes(view: View, known: list[Word]) -> list[str]:
    """The classes to draw: where score and norm go together most, half of them either way."""
    toward = view.details(LENS).get("words_toward")
    present = list(dict.fromkeys(one["class"] for one in known))
    trends = [
        one
        for one in view.details(LENS).get("trends") or []
        if one.get("stratum") is None
        and not one.get("irrelevant")
        and one.get("group") == one.get("norm") == toward
    ]
    size = {
        name: r
        for one in trends[:1]
        for name, r in zip(one["classes"], one["correlation"])
        if r is not None and name in present
    }
    if not size:
        return present[:MOST_CLASSES]
    ranked = sorted(size, key=lambda name: -size[name])
    half = MOST_CLASSES // 2
    return list(dict.fromkeys([*ranked[:half], *ranked[half:][-half:]]))


def _chart(name: str, words: list[Word], group: str) -> dict[str, Any]:
    ranked = sorted(words, key=_weight)
    # Names go first to the words that should not matter.
    ranked.sort(key=lambda one: one.get("relevant") is not False)
    return {
        "kind": "scatter",
        "title": short(name),
        "points": [
            {
                "x": one["norm"],
                "y": one["classifier"],
                "kind": "silent" if one.get("relevant") is False else "telling",
                "name": short(one["word"], most=18),
                "tip": f"{short(one['word'])}: norm {signed(one['norm'])}, "
                f"classifier {signed(one['classifier'])}",
            }
            for one in ranked
        ],
        "kinds": {"telling": (PLAIN, "circle"), "silent": (OUTSIDE, "triangle-up")},
        "x_axis": f"Weight in the norm of {group}",
        "y_axis": "Weight in the classifier",
        "x_zero": 0.0,
        "y_zero": 0.0,
        "named": MOST_NAMES,
    }


def _title(shown: list[Word], group: str) -> str:
    first = min(shown, key=_weight)
    typical = "typical" if first["norm"] > 0 else "untypical"
    way = "for" if first["classifier"] > 0 else "against"
    return (
        f"‘{short(first['word'])}’, {typical} of {group}, speaks {way} "
        f"‘{short(first['class'])}’: no word weighs more in both"
    )


def _weight(one: Word) -> float:
    return -abs(float(one["classifier"]) * float(one["norm"]))
