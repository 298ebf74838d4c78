"""Number columns read into memory once, with the cell of each row: for ranks, on Polars.

Words are the dearest part of a table to group by. They are counted once, which tells which cells
there are; from then on 16 bits of a hash that tells all of them apart stand for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.read import Frame, unreadable
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.rank_cells import CHUNK, CHUNK_BY_CELL, MOST_CELLS, Part, moments_of_parts

# Numbers held at once. A row of two takes 45 bytes while it is ranked: 20M rows, 0.9 GB.
MOST_NUMBERS = 40_000_000
# With 500 cells one seed in seven tells all of them apart; with 1,000, one in two thousand.
SEEDS, BITS = 200, 16
FEWEST_ROWS_IN_A_PART = 2**14


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldColumns:
    """The rows of a table in parts: 16 bits that tell the cell of each, and the number columns.

    `cells` holds the value of every key by cell, `bits` the 16 bits of every cell.
    """

    cells: Mapping[str, Sequence[Any]]
    bits: NDArray[np.uint16]
    rows: Sequence[NDArray[np.uint16]]
    numbers: Mapping[str, Sequence[FloatArray]]

    def rank_moments(
        self, keys: Sequence[str], *, score: str, norms: Mapping[str, str]
    ) -> Tally | None:
        """By these keys: moments of the average ranks of the score and norms, by number column.

        None where there are more cells than can be numbered.
        """
        values = {key: list(dict.fromkeys(self.cells[key])) for key in keys}
        sizes = [len(told) for told in values.values()]
        cells = prod(sizes)
        if cells > MOST_CELLS:
            return None
        place = {key: {value: i for i, value in enumerate(told)} for key, told in values.items()}
        codes = [[place[key][value] for value in self.cells[key]] for key in keys]
        cell_of = np.zeros(2**BITS, dtype=np.uint8 if cells <= 2**8 else np.uint16)
        cell_of[self.bits] = np.ravel_multi_index(codes, sizes)
        columns = [self.numbers[name] for name in (score, *norms.values())]

        def part(chunk: int, start: int) -> Part:
            rows = slice(start, min(start + size, len(self.rows[chunk])))
            held = [column[chunk][rows] for column in columns]
            return Part(
                rows=rows.stop - start,
                read=lambda: (cell_of.take(self.rows[chunk][rows], mode="clip"), held),
            )

        size = max(CHUNK, CHUNK_BY_CELL * cells)
        parts = [
            part(chunk, start)
            for chunk, rows in enumerate(self.rows)
            for start in range(0, len(rows), size)
        ]
        sums = moments_of_parts(parts, list(norms), cells=cells)
        there = np.flatnonzero(sums["n"] > 0)
        told: dict[str, Sequence[Any]] = {
            key: [values[key][i] for i in places.tolist()]
            for key, places in zip(keys, np.unravel_index(there, sizes), strict=True)
        }
        return Tally.of(told, {name: value[there].tolist() for name, value in sums.items()})


def hold_columns(
    frame: Frame,
    *,
    source: str,
    keys: Mapping[str, nw.Expr],
    cells: Mapping[str, Sequence[Any]],
    numbers: Mapping[str, nw.Expr],
) -> HeldColumns | None:
    """The columns of a Polars table, read once; `cells` holds the value of each key by cell.

    None where a number is missing or not finite, and where the keys are of a kind, or so many,
    that 16 bits do not tell the cells apart: the engine's own ways serve those.
    """
    import polars as pl

    native: pl.LazyFrame = nw.to_native(
        frame.select(
            *(expression.alias(f"key:{name}") for name, expression in keys.items()),
            *(expression.alias(f"number:{name}") for name, expression in numbers.items()),
        )
    )
    marks = [f"number:{name}" for name in numbers]
    try:
        kinds = native.collect_schema()
        if not all(_plain(kinds[f"key:{name}"]) for name in keys):
            return None
        known = pl.DataFrame(
            {f"key:{k}": pl.Series(cells[k], dtype=kinds[f"key:{k}"]) for k in keys}
        )
        found = _told_apart(known)
        if found is None:
            return None
        seed, bits = found
        table = native.select(_low_bits(known.columns, seed), *marks).collect(engine="streaming")
    except Exception as error:
        raise unreadable(source, "a table", error) from error
    if not _whole(table, marks):
        return None
    small = table.height < FEWEST_ROWS_IN_A_PART * table.n_chunks()
    lengths = {tuple(len(chunk) for chunk in column.get_chunks()) for column in table}
    # Computed columns may come in other chunks than those that were merely read.
    if small or len(lengths) > 1:
        table = table.rechunk()

    def chunks(column: str) -> list[NDArray[Any]]:
        return [chunk.to_numpy() for chunk in table[column].get_chunks()]

    return HeldColumns(
        cells=cells,
        bits=bits,
        rows=chunks("bits"),
        numbers={name: chunks(f"number:{name}") for name in numbers},
    )


def _whole(table: Any, marks: Sequence[str]) -> bool:
    """Whether every number is there and finite."""
    import polars as pl

    if not table.height or any(table[mark].null_count() for mark in marks):
        return False
    # A sum is finite only if its terms are; where it is not, it may just be too large.
    sums = table.select(pl.col(marks).sum()).row(0)
    return all(
        np.isfinite(total) or table[mark].is_finite().all()
        for mark, total in zip(marks, sums, strict=True)
    )


def _plain(kind: Any) -> bool:
    """Whether equal values of this type always have equal hashes, in a column or on their own."""
    import polars as pl

    return kind in (pl.String, pl.Boolean) or bool(kind.is_integer())


def _low_bits(columns: Sequence[str], seed: int) -> Any:
    """Of each row the lowest bits of its keys' hashes together."""
    import polars as pl

    hashes = [pl.col(name).hash(seed + i) for i, name in enumerate(columns)]
    together = reduce(lambda one, other: one ^ other, hashes)
    return together.cast(pl.UInt16, wrap_numerical=True).alias("bits")


def _told_apart(cells: Any) -> tuple[int, NDArray[np.uint16]] | None:
    """A seed with which no two cells share their 16 bits, and the bits of each cell."""
    for seed in range(SEEDS):
        bits = cells.select(_low_bits(cells.columns, seed))["bits"].to_numpy()
        if len(np.unique(bits)) == len(bits):
            return seed, bits
    return None
