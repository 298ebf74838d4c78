"""A small table of sufficient statistics: sums by key, which can be added to those of others."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import label, ordered
from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import count_bootstrap
from evenhand.stats.weights import distinct

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sums by the values of some keys; -1 stands for a value that is missing.

    Examples:
        >>> tally = Tally.of({"group": ["f", "m", None, "f"]}, {"n": [3, 4, 1, 2]})
        >>> tally.labels["group"], tally.dense(["group"], "n")
        (('f', 'm'), array([5., 4.]))
        >>> int(tally.missing("group"))
        1
        >>> tally.merge(tally).total()
        20.0
    """

    labels: dict[str, tuple[str, ...]]
    codes: dict[str, Codes]
    sums: dict[str, FloatArray]

    @classmethod
    def of(
        cls,
        keys: Mapping[str, Sequence[Any] | NDArray[Any]],
        sums: Mapping[str, Sequence[float] | FloatArray],
    ) -> Self:
        """A tally from columns of key values and of sums."""
        labels: dict[str, tuple[str, ...]] = {}
        codes: dict[str, Codes] = {}
        for name, values in keys.items():
            labels[name], codes[name] = encode(values)
        columns = {name: np.asarray(values, dtype=np.float64) for name, values in sums.items()}
        return cls(labels=labels, codes=codes, sums=columns)

    @classmethod
    def coded(
        cls,
        keys: Mapping[str, tuple[tuple[str, ...], Codes]],
        sums: Mapping[str, FloatArray],
    ) -> Self:
        """A tally from keys that are encoded already, each as its labels and their places."""
        return cls(
            labels={name: labels for name, (labels, _) in keys.items()},
            codes={name: codes for name, (_, codes) in keys.items()},
            sums=dict(sums),
        )

    def __len__(self) -> int:
        return len(next(iter(self.sums.values())))

    def total(self, sum_: str = "n") -> float:
        """The sum over all cells."""
        return float(self.sums[sum_].sum())

    @property
    def sizes(self) -> FloatArray:
        """How many rows each cell has: counted or, of what clusters move, weighed as rows."""
        return self.sums["n"] if "n" in self.sums else self.sums["weight"]

    def missing(self, key: str) -> float:
        """Rows without a value of this key."""
        return float(self.sums["n"][self.codes[key] < 0].sum())

    def dense(
        self, keys: Sequence[str], sum_: str, *, keep_missing: Iterable[str] = ()
    ) -> FloatArray:
        """An array of sums with one axis per key.

        Cells with a missing value are left out, except for the keys in `keep_missing`, whose
        axis has one more place at its end for them.
        """
        kept = set(keep_missing)
        shape = tuple(len(self.labels[k]) + (k in kept) for k in keys)
        use = np.ones(len(self), dtype=bool)
        flat = np.zeros(len(self), dtype=np.int64)
        for key, size in zip(keys, shape):
            code = self.codes[key]
            if key in kept:
                code = np.where(code < 0, size - 1, code)
            else:
                use &= code >= 0
            flat = flat * size + code
        length = int(np.prod(shape))
        summed = np.bincount(flat[use], weights=self.sums[sum_][use], minlength=length)
        return np.asarray(summed, dtype=np.float64).reshape(shape)

    def relabel(self, key: str, labels: Sequence[str]) -> Self:
        """The same tally with the labels of one key in another order or with more of them."""
        place = {name: i for i, name in enumerate(labels)}
        moved = np.array([place.get(name, -1) for name in self.labels[key]] + [-1], dtype=np.int64)
        return type(self)(
            labels={**self.labels, key: tuple(labels)},
            codes={**self.codes, key: moved[self.codes[key]]},
            sums=self.sums,
        )

    def merge(self, other: Self) -> Self:
        """The tally of both tables together."""
        if set(self.labels) != set(other.labels) or set(self.sums) != set(other.sums):
            raise DataError(
                f"Tallies of different things cannot be merged: {sorted(self.labels)} with sums "
                f"{sorted(self.sums)}, and {sorted(other.labels)} with sums {sorted(other.sums)}."
            )
        left, right = self, other
        for key in self.labels:
            union = ordered({*self.labels[key], *other.labels[key]})
            left, right = left.relabel(key, union), right.relabel(key, union)
        together = type(self)(
            labels=left.labels,
            codes={k: np.concatenate([left.codes[k], right.codes[k]]) for k in left.codes},
            sums={k: np.concatenate([left.sums[k], right.sums[k]]) for k in left.sums},
        )
        return together.compact()

    def compact(self) -> Self:
        """The same tally with equal keys added up and cells in a fixed order."""
        if not len(self) or not self.codes:
            return self
        sizes = [len(self.labels[key]) + 1 for key in self.codes]
        if float(np.prod(np.array(sizes, dtype=np.float64))) < 2**62:
            # One number for each cell sorts much faster than a row of them.
            flat = np.ones(len(self), dtype=np.int64)
            for i, (key, size) in enumerate(zip(self.codes, sizes, strict=True)):
                if i:
                    flat *= size
                    flat += 1
                flat += self.codes[key]
            if bool(np.all(flat[1:] >= flat[:-1])):
                # In order already, as most tallies are: neighbours are added up.
                first = np.append(0, np.flatnonzero(flat[1:] != flat[:-1]) + 1)
                places = np.unravel_index(flat[first], sizes)
                return type(self)(
                    labels=self.labels,
                    codes={k: each.astype(np.int64) - 1 for k, each in zip(self.codes, places)},
                    sums={k: np.add.reduceat(v, first) for k, v in self.sums.items()},
                )
            cells, where = distinct(flat)
            places = np.unravel_index(cells, sizes)
            codes = {k: each.astype(np.int64) - 1 for k, each in zip(self.codes, places)}
        else:
            keys = np.stack([self.codes[k] for k in self.codes], axis=1)
            unique, where = np.unique(keys, axis=0, return_inverse=True)
            codes = {k: unique[:, i] for i, k in enumerate(self.codes)}
        where = where.reshape(-1)
        many = len(next(iter(codes.values())))
        return type(self)(
            labels=self.labels,
            codes=codes,
            sums={
                k: np.asarray(np.bincount(where, weights=v, minlength=many), np.float64)
                for k, v in self.sums.items()
            },
        )

    def take(self, which: Any) -> Self:
        """The cells of a mask or of places, in their order."""
        return type(self)(
            labels=self.labels,
            codes={k: v[which] for k, v in self.codes.items()},
            sums={k: v[which] for k, v in self.sums.items()},
        )

    def without(self, *keys: str) -> Self:
        """The tally summed over these keys, where it has them."""
        if not set(keys) & set(self.labels):
            return self
        return type(self)(
            labels={k: v for k, v in self.labels.items() if k not in keys},
            codes={k: v for k, v in self.codes.items() if k not in keys},
            sums=self.sums,
        ).compact()

    def pruned(self) -> Self:
        """The same tally without labels that no cell has, cells in a fixed order."""
        tally = self.compact()
        for key, labels in self.labels.items():
            used = np.unique(tally.codes[key])
            there = used[used >= 0].tolist()
            if len(there) < len(labels):
                tally = tally.relabel(key, [labels[i] for i in there])
        return tally

    def rename(self, key: str, names: Mapping[str, str]) -> Self:
        """The same tally with other labels of one key, in their order; two may become one."""
        labels = ordered(set(names.values()))
        place = {name: i for i, name in enumerate(labels)}
        moved = np.array([place[names[name]] for name in self.labels[key]] + [-1], dtype=np.int64)
        return type(self)(
            labels={**self.labels, key: tuple(labels)},
            codes={**self.codes, key: moved[self.codes[key]]},
            sums=self.sums,
        ).compact()

    def collapsed(self, key: str, name: str) -> Self:
        """The tally with whether a key has a value, under this name, in place of the value.

        Examples:
            >>> tally = Tally.of({"cluster": ["ann", None, "bob"]}, {"n": [3, 4, 1]})
            >>> found = tally.collapsed("cluster", "clustered")
            >>> found.labels, found.sums["n"].tolist()
            ({'clustered': ('1',)}, [4.0, 4.0])
        """
        if key not in self.labels:
            return self
        known = np.minimum(self.codes[key], 0)
        return type(self)(
            labels={**{k: v for k, v in self.labels.items() if k != key}, name: ("1",)},
            codes={**{k: v for k, v in self.codes.items() if k != key}, name: known},
            sums=self.sums,
        ).compact()

    def resample(self, *, draws: int = 1_000, seed: int = 0) -> FloatArray:
        """Counts (draws × cells) as if the rows had been drawn anew: cells, never rows."""
        drawn = count_bootstrap(self.sums["n"], draws=draws, seed=seed)
        return drawn.astype(np.float64)

    def fingerprint(self) -> str:
        """A hash of keys and counts: the same on every engine and in any order of rows."""
        compact = self.compact()
        digest = hashlib.sha256()
        for name in compact.labels:
            digest.update(json.dumps([name, compact.labels[name]]).encode())
            digest.update(compact.codes[name].astype("<i8").tobytes())
        digest.update(np.rint(compact.sums["n"]).astype("<i8").tobytes())
        return digest.hexdigest()[:16]


def _fits_int64(values: NDArray[Any]) -> bool:
    """Whether these are whole numbers that 64 bits with a sign hold."""
    if values.dtype.kind == "u" and values.dtype.itemsize == 8 and values.size:
        return int(values.max()) <= np.iinfo(np.int64).max
    return values.dtype.kind in "iu"


def encode(values: Sequence[Any] | NDArray[Any]) -> tuple[tuple[str, ...], Codes]:
    """Labels in order, and for each value the place of its label; -1 where missing."""
    if isinstance(values, np.ndarray):
        if _fits_int64(values):
            # Whole numbers are in their order already, and none is missing.
            unique, places = distinct(values.astype(np.int64, copy=False))
            return tuple(map(str, unique.tolist())), places
        values = values.tolist()
    # 1, 1.0 and True are equal as dictionary keys: only values of one type may be keys alone.
    kinds = set(map(type, values)) - {type(None)}
    keys = values if len(kinds) < 2 else [(type(value), value) for value in values]
    place = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    first = np.fromiter(map(place.__getitem__, keys), dtype=np.int64, count=len(values))
    if kinds == {str}:
        names: list[str | None] = list(place)
    else:
        names = [label(key if len(kinds) < 2 else key[1]) for key in place]
    labels = ordered({name for name in names if name is not None})
    order = {name: i for i, name in enumerate(labels)}
    moved = np.array([-1 if name is None else order[name] for name in names], dtype=np.int64)
    return tuple(labels), moved[first] if len(moved) else first
