"""A grouped aggregation that is not asked yet, and the tally that its answer is."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.decisions.labels import MISSING, crossed_name
from evenhand.decisions.read import Frame, key_codes, number_values
from evenhand.decisions.roles import Attribute
from evenhand.decisions.tally import Tally
from evenhand.stats.weights import distinct


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A grouped aggregation of a table, not asked yet; its groups are those of the attribute.

    `rows` are what it groups; where cells are `limited`, the answer may lack some.
    """

    frame: Frame
    rows: Frame
    keys: tuple[str, ...]
    sums: tuple[str, ...]
    attribute: Attribute | None = None
    limited: bool = False


def read_tally(table: Any, keys: tuple[str, ...], sums: tuple[str, ...]) -> Tally:
    """The tally of a table in memory, with columns as questions name them."""
    names = {"n": "n", **{k: f"sum:{k}" for k in sums}}
    return Tally.coded(
        {k: key_codes(table[f"key:{k}"]) for k in keys},
        {k: number_values(table[name]) for k, name in names.items()},
    )


def group_keys(attribute: Attribute) -> list[str]:
    """The keys of an attribute's columns in a question."""
    return [f"group{i}" for i in range(len(attribute.columns))]


def join_groups(tally: Tally, attribute: Attribute, *, missing: str) -> Tally:
    """The tally with the group columns of an attribute joined into one key `group`.

    Examples:
        >>> tally = Tally.of({"group0": ["f", "m"], "group1": ["a", None]}, {"n": [2, 1]})
        >>> both = Attribute(name="sex*site", columns=("sex", "site"))
        >>> join_groups(tally, both, missing="drop").labels["group"]
        ('f*a',)
        >>> join_groups(tally, both, missing="group").labels["group"]
        ('f*a', 'm*<missing>')
    """
    parts = group_keys(attribute)
    # Rows are many and groups are few: names are joined once per group.
    sizes = [len(tally.labels[part]) + 1 for part in parts]
    flat = np.ravel_multi_index([tally.codes[part] + 1 for part in parts], sizes)
    cells, place = distinct(flat)
    names: list[list[str | None]] = []
    for part, codes in zip(parts, np.unravel_index(cells, sizes)):
        labels = [*tally.labels[part], MISSING if missing == "group" else None]
        names.append([labels[code - 1] for code in codes])
    joined = [None if None in c else crossed_name(map(str, c)) for c in zip(*names)]
    keys = Tally.of({"group": joined}, {"n": [0.0] * len(joined)})
    rest = [k for k in tally.labels if k not in parts]
    return Tally(
        labels={"group": keys.labels["group"], **{k: tally.labels[k] for k in rest}},
        codes={"group": keys.codes["group"][place], **{k: tally.codes[k] for k in rest}},
        sums=tally.sums,
    )
