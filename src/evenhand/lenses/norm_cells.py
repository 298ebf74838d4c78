"""Rank correlations of scores with norms in every cell, from the tallies of ranks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.decisions.norm_tallies import NormCounts, binary_ranks, other_ranks, own_ranks
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.lenses.rows import Column, choose
from evenhand.stats.estimate import FloatArray
from evenhand.stats.ranks import CONSTANT, spearman_from_moments

NOT = "not:"
FEWEST_ROWS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The axes of every array of cells: strata, groups and, cell by cell, classes."""

    strata: tuple[str | None, ...]
    groups: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Correlations of one population with every norm: arrays (stratum, group, class).

    `classes` are written `not:<class>` where the rows are those of another truth. `scored` says
    which classes have a score at all.
    """

    classes: tuple[str, ...]
    scored: tuple[bool, ...]
    n: FloatArray
    ties: FloatArray
    flat: FloatArray
    r: dict[str, FloatArray]

    def reason(self, norm: str) -> Column:
        """Why a correlation is undefined, or None where it is not."""
        few = [f"only {n} rows, and {FEWEST_ROWS} are needed" for n in ("0", "1", "2")]
        words = choose(np.isnan(self.r[norm]), "the norm is the same in every row of the cell")
        words = choose(self.flat > 0, "the score is the same in every row of the cell", words)
        words = choose(self.n == 2, few[2], words)
        words = choose(self.n == 1, few[1].replace("rows,", "row,"), words)
        words = choose(self.n == 0, "no cases in the group", words)
        unscored = ~np.asarray(self.scored, dtype=bool)
        return choose(np.broadcast_to(unscored, self.n.shape), "no score of this class", words)


def cells_of(
    decisions: Decisions,
    attribute: Attribute,
    places: Places,
    *,
    norms: Mapping[str, str],
    positive: str | None,
    elsewhere: bool,
    counted: NormCounts,
) -> Iterator[Cells]:
    """The cells of each class's own rows and, where asked, of the rows of all other classes."""
    wide = decisions.roles.scores
    passes = [False, True] if len(places.strata) > 1 else [False]
    shared = {"norms": norms}
    own = [
        own_ranks(decisions, attribute, stratified=s, norms=norms, counted=counted) for s in passes
    ]
    told = [tally for tally in own if tally is not None]
    if told:
        stacks = [_stack(t, places, norms, key="truth", values=places.classes) for t in told]
        scored = tuple(not wide or name in wide for name in places.classes)
        yield _cells(_joined(stacks), places.classes, scored, norms)
    elif positive is not None:
        both = [
            binary_ranks(decisions, attribute, positive, stratified=s, **shared) for s in passes
        ]
        for value, name in (("1", positive), ("0", f"{NOT}{positive}")):
            if value == "1" or elsewhere:
                stacks = [_stack(t, places, norms, key="y", values=(value,)) for t in both]
                yield _cells(_joined(stacks), (name,), (True,), norms)
        return
    if not elsewhere or not wide:
        return
    parts = []
    for name in wide:
        tallies = [other_ranks(decisions, attribute, name, stratified=s, **shared) for s in passes]
        parts.append(_joined([_stack(t, places, norms, key=None, values=()) for t in tallies]))
    together = {k: np.concatenate([part[k] for part in parts], axis=-1) for k in parts[0]}
    names = tuple(f"{NOT}{name}" for name in wide)
    yield _cells(together, names, (True,) * len(names), norms)


def _stack(
    tally: Tally,
    places: Places,
    norms: Mapping[str, str],
    *,
    key: str | None,
    values: Sequence[str],
) -> dict[str, FloatArray]:
    """The sums of a tally as arrays (stratum, group, class)."""
    tally = tally.relabel("group", places.groups)
    keys = ["group"]
    if key is not None:
        tally = tally.relabel(key, values)
        keys.append(key)
    strata = [name for name in places.strata if name is not None]
    if "stratum" in tally.labels:
        tally = tally.relabel("stratum", strata)
        keys.insert(0, "stratum")
    names = ["n", "tied", "x", "xx", *(f"{m}:{k}" for k in norms for m in ("y", "yy", "xy"))]
    found = {name: tally.dense(keys, name) for name in names}
    if key is None:
        found = {name: array[..., None] for name, array in found.items()}
    if "stratum" not in tally.labels:
        found = {name: array[None] for name, array in found.items()}
    return found


def _joined(stacks: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    """Everybody first, then stratum by stratum, as the places have them."""
    return {name: np.concatenate([stack[name] for stack in stacks]) for name in stacks[0]}


def _cells(
    sums: Mapping[str, FloatArray],
    classes: tuple[str, ...],
    scored: tuple[bool, ...],
    norms: Mapping[str, str],
) -> Cells:
    n = sums["n"]
    with np.errstate(all="ignore"):
        spread = sums["xx"] - sums["x"] * sums["x"] / n
        ties = np.where(n > 0, sums["tied"] / n, np.nan)
        flat = (n >= FEWEST_ROWS) & ~(spread > CONSTANT * sums["xx"])
    r = {
        name: spearman_from_moments(
            n,
            x=sums["x"],
            xx=sums["xx"],
            y=sums[f"y:{name}"],
            yy=sums[f"yy:{name}"],
            xy=sums[f"xy:{name}"],
        )
        for name in norms
    }
    return Cells(classes=classes, scored=scored, n=n, ties=ties, flat=flat.astype(np.float64), r=r)
