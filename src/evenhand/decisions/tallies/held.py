"""Scores in memory, sorted for exact areas.

Sorting every group once is several times faster than an engine's window functions. Spark's rows
stay in Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.decisions.cuts import as_number
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.coding import Coder
from evenhand.decisions.tally import Codes, Tally
from evenhand.stats.auc import row_placements, rows_by_cell, sorted_placements
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import distinct

# Rows that are read at a time, and that are counted at a time.
BATCH, PART = 2**18, 2**16


def key_columns(decisions: Decisions) -> dict[str, nw.Expr]:
    """The keys that scores are compared by: every group column, stratum, truth and cluster."""
    roles = decisions.roles
    keys = {f"group:{column}": nw.col(column) for column in roles.group}
    keys |= decisions.stratum_key()
    keys["truth"] = nw.col(str(roles.truth))
    if roles.together:
        keys["cluster"] = nw.col(roles.together)
    return keys


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldScores:
    """All scored rows in memory: keys as labels and codes, and score columns.

    Columns become arrays one at a time, in the same place: fresh memory costs more than copying.
    """

    keys: Mapping[str, tuple[tuple[str, ...], Codes]]
    scores: Mapping[str, pl.Series]
    omega: FloatArray | None
    # Lines that were asked for last: every score column wants the same; rows are asked for twice.
    lines: "dict[tuple[str, bool], _Lines]" = field(default_factory=dict)
    rows: "dict[tuple[str, str, str, bool], _Rows]" = field(default_factory=dict)

    def placements(self, attribute: Attribute, score: str, name: str, *, within: bool) -> Tally:
        """Sums of placements, as `tallies.scores.placements` defines them, by sorting."""
        rows = self._rows(attribute, score, name, within)
        if self.omega is None and "cluster" not in self.keys:
            by_line = self._lines(attribute, within).in_order if rows.complete else None
            d, d2 = sorted_placements(rows.score, rows.cell, lines=rows.lines, by_line=by_line)
            n = np.bincount(rows.cell, minlength=2 * rows.lines).astype(np.float64)
            return rows.tally({"n": n, "d": d, "d2": d2})
        d = row_placements(rows.score, rows.cell, rows.omega, lines=rows.lines)
        sums: dict[str, FloatArray | None] = {"n": None, "d": d, "d2": d * d}
        if rows.omega is not None:
            w, w2 = rows.omega, rows.omega**2
            sums = {"n": None, "w": w, "w2": w2, "w4": w2 * w2, "wd": w * d}
            sums |= {"wd2": w * d * d, "w2d": w2 * d, "w2d2": w2 * d * d}
        return rows.summed(sums)

    def bins(
        self, attribute: Attribute, score: str, name: str, *, within: bool, bins: int
    ) -> Tally:
        """A histogram of scores, as `tallies.scores.score_bins` defines it."""
        rows = self._rows(attribute, score, name, within)
        plain = rows.omega is None and rows.cluster is None
        if plain and 2 * rows.lines * bins <= rows.score.size:
            return rows.counted(bins)
        place = _bins(rows.score, bins).astype(np.int64)
        sums: dict[str, FloatArray | None] = {"n": None, "s": rows.score}
        if rows.omega is not None:
            w = rows.omega
            sums = {"n": None, "w": w, "w2": w * w, "s": w * rows.score}
        return rows.summed(sums, bins=place, many=bins)

    def _rows(self, attribute: Attribute, score: str, name: str, within: bool) -> "_Rows":
        asked = (attribute.name, score, name, within)
        if asked not in self.rows:
            self.rows.clear()
            self.rows[asked] = self._chosen(attribute, score, name, within)
        return self.rows[asked]

    def _chosen(self, attribute: Attribute, score: str, name: str, within: bool) -> "_Rows":
        lines = self._lines(attribute, within)
        truths, truth = self.keys["truth"]
        values = floats(self.scores[score])
        use = truth >= 0
        if self.scores[score].null_count():
            use &= ~np.isnan(values)
        for key in (["stratum"] if within else []) + (
            ["cluster"] if "cluster" in self.keys else []
        ):
            use &= self.keys[key][1] >= 0
        if self.omega is not None:
            use &= ~np.isnan(self.omega)
        everything = bool(use.all())

        def chosen(values: NDArray[Any]) -> NDArray[Any]:
            return values if everything else values[use]

        # The last state is that of rows without a truth, none of which is chosen.
        is_name = np.array([*(label == name for label in truths), False], dtype=np.int64)
        return _Rows(
            labels=lines.labels,
            places=lines.places,
            complete=everything,
            cell=chosen(lines.number) * 2 + is_name[chosen(truth)],
            score=chosen(values),
            omega=None if self.omega is None else chosen(self.omega),
            cluster=(
                (self.keys["cluster"][0], chosen(self.keys["cluster"][1]))
                if "cluster" in self.keys
                else None
            ),
        )

    def _lines(self, attribute: Attribute, within: bool) -> "_Lines":
        """The line of every row, a combination of group and, within strata, stratum."""
        asked = (attribute.name, within)
        if asked not in self.lines:
            keys = {f"group{i}": f"group:{column}" for i, column in enumerate(attribute.columns)}
            keys |= {"stratum": "stratum"} if within else {}
            sizes = [len(self.keys[key][0]) + 1 for key in keys.values()]
            flat = np.zeros(len(self.keys["truth"][1]), dtype=np.int64)
            for key, size in zip(keys.values(), sizes, strict=True):
                flat = flat * size + self.keys[key][1] + 1
            many_more = prod(sizes) > 4 * max(len(flat), 2**14)
            lines, flat = distinct(flat) if many_more else (np.arange(prod(sizes)), flat)
            self.lines.clear()
            self.lines[asked] = _Lines(
                labels={name: self.keys[key][0] for name, key in keys.items()},
                places=[each.astype(np.int64) - 1 for each in np.unravel_index(lines, sizes)],
                number=flat.reshape(-1),
            )
        return self.lines[asked]


@dataclass(frozen=True, kw_only=True)
class _Lines:
    """The line of every row, and the keys of every line."""

    labels: dict[str, tuple[str, ...]]
    places: list[Codes]
    number: Codes

    @cached_property
    def in_order(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows in the order of their lines, and where each line begins."""
        return rows_by_cell(self.number, len(self.places[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Scored rows of one attribute: their cell, 2·line + truth, and the keys of every line.

    `complete` says whether every row of the table is among them.
    """

    labels: dict[str, tuple[str, ...]]
    places: list[Codes]
    complete: bool
    cell: Codes
    score: FloatArray
    omega: FloatArray | None
    cluster: tuple[tuple[str, ...], Codes] | None

    @property
    def lines(self) -> int:
        return len(self.places[0])

    def tally(self, sums: Mapping[str, FloatArray]) -> Tally:
        """Sums by cell as a tally, cells without a row left out."""
        return self._tally_of(sums, np.arange(2 * self.lines), [])

    def counted(self, bins: int) -> Tally:
        """Rows and the sum of their scores by cell and bin, a part at a time near the processor."""
        size = 2 * self.lines * bins
        found = {name: np.zeros(size) for name in ("n", "s")}
        step = max(PART, size)
        for start in range(0, self.score.size, step):
            score = self.score[start : start + step]
            flat = self.cell[start : start + step] * bins + _bins(score, bins)
            found["n"] += np.bincount(flat, minlength=size)
            found["s"] += np.bincount(flat, score, minlength=size)
        return self._tally_of(found, np.arange(size), [("bin", tuple(map(str, range(bins))), bins)])

    def summed(
        self, sums: Mapping[str, FloatArray | None], *, bins: Codes | None = None, many: int = 1
    ) -> Tally:
        """Sums of these values by cell and, where there are any, bin and cluster; None counts."""
        flat, more = self.cell, []
        if bins is not None:
            flat = flat * many + bins
            more.append(("bin", tuple(map(str, range(many))), many))
        if self.cluster is not None:
            names, codes = self.cluster
            flat = flat * len(names) + codes
            more.append(("cluster", names, len(names)))
        size = 2 * self.lines * prod(length for _, _, length in more)
        many_more = size > 4 * max(len(flat), 2**14)
        cells, flat = distinct(flat) if many_more else (np.arange(size), flat)
        found = {
            name: np.bincount(flat.reshape(-1), values, minlength=len(cells)).astype(np.float64)
            for name, values in sums.items()
        }
        return self._tally_of(found, cells, more)

    def _tally_of(
        self,
        found: Mapping[str, FloatArray],
        cells: Codes,
        more: Sequence[tuple[str, tuple[str, ...], int]],
    ) -> Tally:
        """Sums by cell and further keys, each with its labels and how many, as a tally."""
        there = np.flatnonzero(found["n"] > 0)
        left = cells[there]
        keys: dict[str, Codes] = {}
        for name, _, length in reversed(more):
            left, keys[name] = left // length, left % length
        return Tally(
            labels={**self.labels, "y": ("0", "1"), **{name: names for name, names, _ in more}},
            codes={
                **{
                    key: each[left // 2] for key, each in zip(self.labels, self.places, strict=True)
                },
                "y": left % 2,
                **{name: keys[name] for name, _, _ in more},
            },
            sums={name: values[there] for name, values in found.items()},
        )


def _bins(score: FloatArray, bins: int) -> NDArray[np.int32]:
    """The bin of each probability, the last one with its upper end."""
    return np.minimum((score * bins).astype(np.int32), np.int32(bins - 1))


def hold_scores(decisions: Decisions, columns: Sequence[str], omega: nw.Expr | None) -> HeldScores:
    """Every row of these score columns, read once."""
    keys = key_columns(decisions)
    coders = {name: Coder() for name in keys}
    codes = {name: [np.zeros(0, dtype=np.int32)] for name in keys}
    numbers = [f"score:{column}" for column in columns] + ([] if omega is None else ["omega"])
    held = {name: [pl.Series(dtype=pl.Float64)] for name in numbers}
    for batch in decisions.batches(selected(decisions, keys, columns, omega), rows=BATCH):
        for name, coder in coders.items():
            codes[name].append(coder.codes(batch[f"key:{name}"]))
        for name, parts in held.items():
            parts.append(batch[name].cast(pl.Float64))
    series = {name: pl.concat(parts, rechunk=False) for name, parts in held.items()}
    return HeldScores(
        keys={name: coders[name].settled(np.concatenate(codes[name])) for name in keys},
        scores={column: series[f"score:{column}"] for column in columns},
        omega=None if omega is None else floats(series["omega"]),
    )


def selected(
    decisions: Decisions, keys: Mapping[str, nw.Expr], columns: Sequence[str], omega: nw.Expr | None
) -> Frame:
    """The keys, scores and weights of every row."""
    return decisions.at_hand.select(
        *(e.alias(f"key:{name}") for name, e in keys.items()),
        *(as_number(decisions.schema, c).alias(f"score:{c}") for c in columns),
        *([] if omega is None else [omega.alias("omega")]),
    )


def floats(column: pl.Series) -> FloatArray:
    filled = column.fill_null(np.nan) if column.null_count() else column
    return np.asarray(filled.to_numpy(), dtype=np.float64)
