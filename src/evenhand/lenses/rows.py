"""What every lens gives: rows of the same columns, and what was left out, noticed and tallied."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.roles import Roles
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError
from evenhand.speech import plural

TEXT = (
    *("lens", "measure", "class", "attribute", "group", "reference", "stratum", "labeler", "norm"),
    "period",
)
COLUMNS = (
    *TEXT,
    "value",
    "set_low",
    "set_high",
    "low",
    "high",
    "level",
    "family_low",
    "family_high",
    "n",
    "n_reference",
    "p",
    "p_adjusted",
    "method",
    "rule",
    "undefined",
    "no_interval",
    "limit_low",
    "limit_high",
    "verdict",
)
# What a lens knows of a row beside its columns: why no limit can be held against it, whatever its
# interval, and the measure in whose place it is judged. Frames leave them out; a record has them
# beside its results.
ASIDES = ("unjudged", "judged_as")
# Of rows that need a truth; which shares of whom, a lens leaves for sentences under the other name.
KNOWN_SHARES = "known_shares"
UNEQUALLY_KNOWN = "the truth is known unequally often on one side of the decision"
WORDS = frozenset((*TEXT, "method", "rule", "undefined", "no_interval", "verdict", *ASIDES))
_HELD = (*COLUMNS, *ASIDES)
Column = NDArray[Any]
# One row as a plain mapping, by its columns.
Row = Mapping[str, Any]


class Rows:
    """Result rows, held by column: words as objects or None, numbers as floats or NaN.

    Examples:
        >>> rows = Rows.block((2,), measure="selection_rate", group=["f", "m"], value=[0.5, 0.25])
        >>> [(row["group"], row["value"], row["stratum"]) for row in rows]
        [('f', 0.5, None), ('m', 0.25, None)]
        >>> len(rows.where(group="f"))
        1
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = dict(columns)

    @classmethod
    def block(cls, shape: tuple[int, ...], **columns: Any) -> Self:
        """Rows of every cell of an array; a column is one value or broadcasts to the shape."""
        size = int(np.prod(shape))
        unknown = set(columns) - set(_HELD)
        if unknown:
            raise KeyError(f"not columns of a result row: {sorted(unknown)}")
        held: dict[str, Column] = {}
        for name in _HELD:
            value = columns.get(name)
            if value is None:
                held[name] = _empty(size, words=name in WORDS)
                continue
            column = np.empty(shape, dtype=object if name in WORDS else np.float64)
            column[...] = value
            held[name] = column.reshape(-1)
        return cls(held)

    @classmethod
    def concatenate(cls, parts: Iterable["Rows"]) -> Self:
        """All rows of several blocks, in order."""
        blocks = list(parts)
        if not blocks:
            return cls.block((0,))
        return cls({c: np.concatenate([b.columns[c] for b in blocks]) for c in _HELD})

    @classmethod
    def gather(cls, parts: Iterable["Rows"]) -> Self:
        """The same of blocks that nobody needs any longer: columns are given up one by one.

        Examples:
            >>> blocks = [Rows.block((1,), value=0.1), Rows.block((2,), value=0.2)]
            >>> Rows.gather(blocks)["value"].tolist(), blocks[0].columns
            ([0.1, 0.2, 0.2], {})
        """
        blocks = list(parts)
        if not blocks:
            return cls.block((0,))
        return cls({c: np.concatenate([b.columns.pop(c) for b in blocks]) for c in _HELD})

    def __len__(self) -> int:
        return len(self.columns["value"])

    def __getitem__(self, column: str) -> Column:
        return self.columns[column]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        lists = [self.plain(name) for name in _HELD]
        for values in zip(*lists):
            yield dict(zip(_HELD, values))

    def results(self) -> list[dict[str, Any]]:
        """The rows as a record has them: their columns alone."""
        lists = [self.plain(name) for name in COLUMNS]
        return [dict(zip(COLUMNS, values)) for values in zip(*lists)]

    def asides(self) -> dict[str, dict[str, list[int]]]:
        """What lenses know of rows beside their columns: the places of the rows, by what it is.

        Examples:
            >>> Rows.block((3,), unjudged=["few errors", None, "few errors"]).asides()
            {'unjudged': {'few errors': [0, 2]}, 'judged_as': {}}
        """
        places: dict[str, dict[str, list[int]]] = {name: {} for name in ASIDES}
        for name, found in places.items():
            for place, value in enumerate(self.columns[name]):
                if value is not None:
                    found.setdefault(value, []).append(place)
        return places

    def plain(self, column: str) -> list[Any]:
        """One column as plain values, None where there is none, counts as whole numbers."""
        values = self.columns[column]
        if column in WORDS:
            return list(values.tolist())
        finite = np.isfinite(values)
        numbers: list[Any]
        if column not in {"n", "n_reference"}:
            numbers = values.tolist()
        else:
            known = np.where(finite, values, 0.0)
            if (known == np.rint(known)).all() and np.abs(known).max(initial=0.0) < 2**53:
                numbers = known.astype(np.int64).tolist()
            else:
                numbers = [int(v) if v.is_integer() else v for v in known.tolist()]
        for i in np.flatnonzero(~finite).tolist():
            numbers[i] = None
        return numbers

    def take(self, which: Any) -> Self:
        """The rows of a mask or of positions."""
        return type(self)({name: column[which] for name, column in self.columns.items()})

    def where(self, **equal: Any) -> Self:
        """The rows whose columns equal these values; `class_` stands for `class`."""
        mask = np.ones(len(self), dtype=bool)
        for name, value in equal.items():
            column = self.columns[name.rstrip("_")]
            mask &= np.array([v is None for v in column]) if value is None else column == value
        return self.take(mask)

    def replace(self, **columns: Any) -> Self:
        """The same rows with some columns changed."""
        changed = type(self).block((len(self),), **columns)
        return type(self)({**self.columns, **{name: changed.columns[name] for name in columns}})

    def __repr__(self) -> str:
        return f"<{len(self):,} result rows; .to_frame() shows them as a table>"

    def to_frame(self) -> Any:
        """The rows as a Polars data frame with fixed columns."""
        return results_frame({name: self.plain(name) for name in COLUMNS})

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


def results_frame(columns: Mapping[str, list[Any]]) -> Any:
    """Columns of plain result rows as a Polars data frame with fixed columns."""
    import polars as pl

    kinds = {name: pl.String if name in WORDS else pl.Float64 for name in COLUMNS}
    return pl.DataFrame(dict(columns), schema=kinds, strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The confidence level, the seed, and settings that only some lenses read.

    Without `keep_small` no number over several cells, such as a spread, rests on cells that are
    hidden: they could be worked out from it.
    """

    level: float = 0.95
    seed: int = 0
    keep_small: bool = True
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LensResult:
    """The rows of a lens, what it left out, what it noticed, and the tallies it read.

    `notes` are sentences for people; `details` holds curves and tables for the report.
    """

    lens: str
    rows: Rows
    excluded: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    tallies: tuple[Tally, ...] = ()


def words(values: Iterable[str | None]) -> Column:
    """Labels as an object array, ready to be broadcast."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def choose(mask: Any, yes: Any, no: Any = None) -> Column:
    """Words picked by a mask; None stands for no word.

    Examples:
        >>> choose([True, False], "no cases in the group").tolist()
        ['no cases in the group', None]
    """
    where = np.asarray(mask, dtype=bool)
    sides = [np.asarray(side, dtype=object) for side in (yes, no)]
    return np.where(where, *sides)


def of_one_group(rows: Rows) -> NDArray[np.bool_]:
    """Which rows are numbers of one group, compared with nobody.

    Examples:
        >>> of_one_group(Rows.block((3,), group=["f", "f", None], reference=["m", None, None]))
        array([False,  True, False])
    """
    alone = (rows["reference"] == None) & (rows["group"] != None)  # noqa: E711
    return np.asarray(alone, dtype=bool)


def exclusions(
    reasons: Mapping[str, Any], roles: Roles, *, remarks: Mapping[str, str] | None = None
) -> dict[str, int]:
    """The reasons that left rows out, with their rows; refused where `missing` is 'error'.

    `remarks` say of some reasons what the rows are still used for, or what they were left out of.
    """
    excluded = {reason: int(rows) for reason, rows in reasons.items() if rows}
    if excluded and roles.missing == "error":
        lacks = ", ".join(
            f"{plural(rows, 'row')} with {reason}" for reason, rows in excluded.items()
        )
        raise DataError(
            f"missing='error' and the data has {lacks}. "
            "Fill them in, or choose missing='drop' or 'group'."
        )
    told = {reason: f" ({remark})" for reason, remark in (remarks or {}).items()}
    return {f"{reason}{told.get(reason, '')}": rows for reason, rows in excluded.items()}


@lru_cache(maxsize=64)
def _empty(size: int, *, words: bool) -> Column:
    """A column without values, shared by all blocks of this size."""
    column = np.full(size, None if words else np.nan, dtype=object if words else np.float64)
    column.flags.writeable = False
    return column
