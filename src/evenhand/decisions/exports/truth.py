"""What is the case, where an export says so, and where only the labels themselves can tell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.speech import listed, plural
from evenhand.stats.noisy_truth import FEWEST_RATERS, latent_truth

# Items by raters, each cell of eight bytes, several times over while the model is fitted.
MOST_CELLS = 100_000_000
CONSENSUS = "consensus of the labels (Dawid and Skene)"
CAVEAT = (
    "Nobody says what is the case: the truth is the labels' own consensus (Dawid and Skene's "
    "model). It takes labelers to err independently of each other. What all of them get wrong "
    "looks right, a leaning that they share cannot be seen, and each is measured against a truth "
    "that their own labels helped to make, so that they look better than they are. Have an expert "
    "label a sample of items."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truths:
    """The truth of each item, and in words where it comes from."""

    by_item: Mapping[str, Any]
    source: str
    notes: tuple[str, ...] = ()


def agreed(found: Iterable[tuple[str, Any]], *, source: str) -> Truths:
    """One truth for each item; two that differ are refused.

    Examples:
        >>> agreed([("7", "toxic"), ("8", "fine"), ("7", "toxic")], source="ground truth").by_item
        {'7': 'toxic', '8': 'fine'}
        >>> agreed([("7", "toxic"), ("7", "fine")], source="ground truth")
        Traceback (most recent call last):
        evenhand.errors.DataError: Item '7' has two truths (ground truth): 'toxic' and 'fine'. \
Leave one of them in the tool, or name the person whose labels are the truth (--truth-labeler).
    """
    by_item: dict[str, Any] = {}
    for item, value in found:
        before = by_item.setdefault(item, value)
        if before != value:
            raise DataError(
                f"Item {item!r} has two truths ({source}): {before!r} and {value!r}. Leave one of "
                "them in the tool, or name the person whose labels are the truth (--truth-labeler)."
            )
    return Truths(by_item=by_item, source=source)


def consensus(
    items: Sequence[str], labelers: Sequence[str], values: Sequence[Any], *, positive: Any = None
) -> Truths:
    """The likelier truth of each item by Dawid and Skene's model, from two kinds of label.

    Examples:
        >>> items, people = ["1", "1", "1", "2", "2", "2"] * 40, ["a", "b", "c"] * 80
        >>> items = [f"{item}-{i // 6}" for i, item in enumerate(items)]
        >>> found = consensus(items, people, ["yes", "yes", "no", "no", "no", "no"] * 40)
        >>> found.by_item["1-0"], found.by_item["2-0"]
        ('yes', 'no')
    """
    classes = sorted(set(values), key=str)
    if len(classes) != 2:
        names = listed([repr(value) for value in classes], most=5)
        raise DataError(
            f"Nobody says what is the case, and these labels are {names}: "
            "a consensus can be found of two kinds of label. Name the field that holds the truth "
            "(--truth), the person whose labels it is (--truth-labeler), or one label to look for "
            "(--has)."
        )
    yes = positive if positive in classes else classes[1]
    no = next(value for value in classes if value != yes)
    rows = {name: place for place, name in enumerate(dict.fromkeys(items))}
    columns = {name: place for place, name in enumerate(dict.fromkeys(labelers))}
    if len(rows) * len(columns) > MOST_CELLS:
        raise DataError(
            f"{plural(len(rows), 'item')} by {plural(len(columns), 'labeler')} are too many "
            "to find a consensus of. Name the field that holds the truth (--truth), or the person "
            "whose labels it is (--truth-labeler)."
        )
    if len(columns) < FEWEST_RATERS:
        raise DataError(
            f"Nobody says what is the case, and {plural(len(columns), 'labeler')} cannot tell: "
            f"{FEWEST_RATERS} must have judged the same items. Name the field that holds the truth "
            "(--truth), or the person whose labels it is (--truth-labeler)."
        )
    table = np.full((len(rows), len(columns)), np.nan)
    # Of an item that somebody labelled twice, the later label counts.
    for item, labeler, value in zip(items, labelers, values):
        table[rows[item], columns[labeler]] = value == yes
    share = np.nanmean(table, axis=1, keepdims=True)
    agrees = np.where(np.isnan(table), 0.0, 1 - np.abs(table - (share > 0.5)))
    # Whoever agrees with most majorities says which of the two classes is which.
    fitted = latent_truth(table, expert=int(agrees.sum(axis=0).argmax()), draws=0)
    likely = [yes if probability >= 0.5 else no for probability in fitted.probability]
    alone = int((np.isfinite(table).sum(axis=1) < FEWEST_RATERS).sum())
    notes = [CAVEAT]
    if alone:
        notes.append(
            f"{plural(alone, 'item')} of {len(rows):,} had fewer than {FEWEST_RATERS} labelers: "
            "their truth is a guess from what is known of those."
        )
    return Truths(by_item=dict(zip(rows, likely)), source=CONSENSUS, notes=tuple(notes))
