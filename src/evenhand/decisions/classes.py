"""Whether truth and decisions are classes, looked at once they are counted.

A word such as NA beside a few other values is a value that is missing, and many different numbers
are amounts: neither is measured as classes unless somebody says that it is meant so.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any

import numpy as np

from evenhand.decisions.csv_text import NUMBER, WHOLE, kind_of
from evenhand.decisions.labels import ordered
from evenhand.decisions.missing_words import means_unknown, plain_word, words_hint
from evenhand.decisions.roles import Roles
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.speech import listed

# Beyond so many different numbers a column holds amounts, unless it is said to hold classes.
MOST_NUMBERS = 12
# Beside more words than these, a word for a missing value may be a class like the others.
MOST_BESIDE = 2
# Values that a sentence names.
_MOST_NAMED = 3


def class_columns(roles: Roles, *, decision: str = "decision") -> dict[str, str]:
    """The keys of tallies whose values are classes, each with its column.

    Examples:
        >>> class_columns(Roles(truth="y", decision="d", rule="given"))
        {'truth': 'y', 'decision': 'd'}
    """
    named = {f"decision@{value}": column for value, column in roles.counterfactual.items()}
    if roles.decision is not None and roles.rule == "given":
        named = {decision: roles.decision, **named}
    return named if roles.truth is None else {"truth": roles.truth, **named}


def check_classes(
    tally: Tally,
    roles: Roles,
    *,
    schema: Mapping[str, Any] | None,
    by_labels: bool = False,
    decision: str = "decision",
) -> None:
    """Refuse words for a missing value, and amounts, among what is counted as classes.

    Types of columns are in the `schema`; where there is none, and where `by_labels` says so as of
    CSV files, a column is one of numbers if its labels are written as numbers.

    Examples:
        >>> tally = Tally.of({"truth": ["0", "1", "NA"]}, {"n": [5, 2, 3]})
        >>> check_classes(tally, Roles(truth="y"), schema=None)
        Traceback (most recent call last):
        evenhand.errors.DataError: 'y' holds 3 times 'NA' beside '0' and '1'. If it means that \
nothing is known, say --missing-words NA (missing_words=['NA']); if it is a class of its own, give \
it another name in the table.
    """
    columns = class_columns(roles, decision=decision)
    columns = {key: column for key, column in columns.items() if key in tally.labels}
    own = {plain_word(word) for key in columns for word in _own_classes(tally.labels[key])}
    by_labels = by_labels or schema is None or bool(roles.missing_words)
    for key, column in columns.items():
        labels = tally.labels[key]
        words = [name for name in labels if means_unknown(name) and plain_word(name) not in own]
        if words:
            raise _holds_words(column, {w: _rows(tally, key, w) for w in words}, _others(labels))
        # Numbers that score columns are named after are names of classes.
        if roles.classes or len(labels) <= MOST_NUMBERS or set(labels) <= set(roles.scores):
            continue
        if _is_numeric(schema, column) or (by_labels and _are_numbers(labels)):
            raise UsageError(
                f"{column!r} holds {len(labels):,} different numbers, and amounts cannot be "
                "audited yet. If they are codes of classes, say --classes (classes=True)."
            )


def check_truths(column: str, truths: Iterable[str]) -> None:
    """Refuse words for a missing value among truths that are read row by row.

    Examples:
        >>> check_truths("job", ["nurse", "poet", "poet", "?"])
        Traceback (most recent call last):
        evenhand.errors.DataError: 'job' holds once '?' beside 'nurse' and 'poet'. If it means \
that nothing is known, leave those cells empty; if it is a class of its own, give it another name \
in the table.
    """
    rows = Counter(truths)
    labels = ordered(rows)
    words = [name for name in labels if means_unknown(name)]
    if words and not _own_classes(labels):
        counts: dict[str, float] = {word: rows[word] for word in words}
        raise _holds_words(column, counts, _others(labels), say=False)


def _is_numeric(schema: Mapping[str, Any] | None, column: str) -> bool:
    return schema is not None and bool(schema[column].is_numeric())


def _are_numbers(labels: Sequence[str]) -> bool:
    """Whether all of these labels are written as numbers are: '01' is a word."""
    return kind_of(labels) in (WHOLE, NUMBER)


def _others(labels: Iterable[str]) -> list[str]:
    return [name for name in labels if not means_unknown(name)]


def _own_classes(labels: Sequence[str]) -> list[str]:
    """The words for a missing value that stand beside so many words that they may be classes."""
    words = [name for name in labels if means_unknown(name)]
    others = _others(labels) if words else []
    few = len(others) <= MOST_BESIDE
    return [] if few or all(map(_is_number, others)) or all(map(_is_moment, others)) else words


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _rows(tally: Tally, key: str, name: str) -> float:
    place = tally.labels[key].index(name)
    return float(np.sum(tally.sizes[tally.codes[key] == place]))


def _holds_words(
    column: str, counts: Mapping[str, float], others: Sequence[str], *, say: bool = True
) -> DataError:
    """The error of a column with words for a missing value, each with how often it is there.

    Unless somebody can `say` what they mean, cells have to be left empty.
    """
    times = [f"{_times(count)} {word!r}" for word, count in counts.items()]
    beside = "and nothing else"
    if others:
        beside = f"beside {listed([repr(name) for name in others], most=_MOST_NAMED)}"
    words: dict[str, str] = {}
    for word in counts:
        words.setdefault(plain_word(word), word)
    what_to_do = f"say {words_hint(list(words.values()))}" if say else "leave those cells empty"
    meaning, rename = "it means", "it is a class of its own, give it another name"
    if len(words) > 1:
        meaning, rename = "they mean", "they are classes, give them other names"
    return DataError(
        f"{column!r} holds {listed(times)} {beside}. If {meaning} that nothing is known, "
        f"{what_to_do}; if {rename} in the table."
    )


def _times(count: float) -> str:
    return "once" if count == 1 else f"{count:,.0f} times"
