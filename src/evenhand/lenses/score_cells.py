"""Tallies of scores as arrays: cells are (stratum, group), the whole table being one stratum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import ordered
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCells:
    """A tally of scored rows by (stratum, group, truth…), and how its rows count.

    `kind` is `counted`, `weighted` or `clustered`; clusters may be weighted too.
    """

    tally: Tally
    strata: tuple[str | None, ...]
    groups: tuple[str, ...]
    kind: str
    weighted: bool

    @classmethod
    def of(cls, *tallies: Tally) -> "list[ScoreCells]":
        """The cells of several tallies, brought to the same groups and strata."""
        for key in ("group", "stratum"):
            if key in tallies[0].labels:
                every = ordered({name for tally in tallies for name in tally.labels[key]})
                tallies = tuple(tally.relabel(key, every) for tally in tallies)
        return [cls._of(tally.relabel("y", ["0", "1"])) for tally in tallies]

    @classmethod
    def _of(cls, tally: Tally) -> "ScoreCells":
        weighted, clustered = "w" in tally.sums, "cluster" in tally.labels
        return cls(
            tally=tally,
            strata=tally.labels.get("stratum", (None,)),
            groups=tally.labels["group"],
            kind="clustered" if clustered else "weighted" if weighted else "counted",
            weighted=weighted,
        )

    def dense(self, keys: list[str], sum_: str) -> FloatArray:
        """Sums by (stratum, group, …keys)."""
        by = ["stratum"] if "stratum" in self.tally.labels else []
        found = self.tally.dense([*by, "group", *keys], sum_)
        return found if by else found[None]

    def weight(self, keys: list[str]) -> FloatArray:
        """Weight by (stratum, group, …keys): rows where none have weights."""
        return self.dense(keys, "w" if self.weighted else "n")

    def places(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which rows of the tally lie in a cell, and each one's cell number."""
        codes = self.tally.codes
        layer = codes.get("stratum", np.zeros(len(self.tally), dtype=np.int64))
        needed = [codes["group"], codes["y"], layer, codes.get("cluster", layer)]
        use = np.all([code >= 0 for code in needed], axis=0)
        return use, layer * len(self.groups) + codes["group"]

    def method(self, name: str) -> str:
        """The name of a method, with how rows count."""
        return name if self.kind == "counted" else f"{name}, {self.kind}"
