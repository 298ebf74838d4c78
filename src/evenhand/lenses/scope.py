"""What the rows of one attribute share, and the rules that hold for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.decisions.labels import OVERALL, REST, SUMMARY
from evenhand.decisions.roles import Roles
from evenhand.errors import UsageError, nearest
from evenhand.lenses.rows import Column, Rows, words
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import halved_level, sidak

# Cells with fewer cases than this, in the group or in the reference, are hidden from people;
# with fewer than that, they are shown and no limit is held against them.
HIDDEN_UNDER, UNTOLD_UNDER = 10, 50
ONE_CLUSTER = "all cases in the group are one cluster"
# References beside the groups; some lenses compare with everybody else instead of everybody,
# among whom the group's own cases would be.
REST_OR_OVERALL = {REST: REST, OVERALL: OVERALL}
REST_ALONE = {REST: REST, OVERALL: REST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the rows of one attribute share: some of their columns, and the axes of their cells.

    `positive` is the class of every row in a lens that speaks of one class alone; lenses with
    rows for each of the `classes` leave it out. `mirrored` says that one of two classes is what
    the other leaves over, no second comparison; `stratified` that other rows lie within strata;
    `keep_small` that cells of under 10 cases are shown.

    Examples:
        >>> scope = Scope(lens="statistical", attribute="sex", level=0.95, seed=0)
        >>> rows = scope.block((2,), measure="selection_rate", group=["f", "m"], value=[0.5, 0.2])
        >>> [(row["lens"], row["attribute"], row["group"], row["level"]) for row in rows]
        [('statistical', 'sex', 'f', 0.95), ('statistical', 'sex', 'm', 0.95)]
    """

    lens: str
    attribute: str
    level: float
    seed: int
    rule: str | None = None
    positive: str | None = None
    classes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    strata: tuple[str | None, ...] = (None,)
    reference: str | None = None
    mirrored: bool = False
    stratified: bool = False
    keep_small: bool = True

    @property
    def z(self) -> float:
        """Critical value of a marginal interval."""
        return critical(self.level)

    @property
    def place(self) -> int | None:
        """Which of the groups is the reference; None where it is none of them."""
        return self.groups.index(self.reference) if self.reference in self.groups else None

    @property
    def within(self) -> NDArray[np.bool_]:
        """Which of the strata are strata, and not the whole table."""
        return np.array([name is not None for name in self.strata], dtype=bool)

    @property
    def family_level(self) -> float:
        """Level at which a family holds: halved between rows within strata and rows over them.

        Examples:
            >>> from dataclasses import replace
            >>> whole = Scope(lens="statistical", attribute="sex", level=0.95, seed=0)
            >>> strata = replace(whole, strata=(None, "a", "b"))
            >>> whole.family_level, strata.family_level
            (0.95, 0.975)
        """
        shared = self.stratified or bool(self.within.any())
        return halved_level(self.level) if shared else self.level

    def hides(self, *cases: FloatArray) -> NDArray[np.bool_]:
        """Where a number is hidden for resting on cases of which there are some, and under 10.

        Examples:
            >>> scope = Scope(lens="statistical", attribute="sex", level=0.95, seed=0,
            ...               keep_small=False)
            >>> scope.hides(np.array([0.0, 9, 10]), np.array([50.0])).tolist()
            [False, True, False]
        """
        fewest = np.minimum.reduce(np.broadcast_arrays(*cases))
        return np.asarray((fewest > 0) & (fewest < HIDDEN_UNDER) & (not self.keep_small))

    def level_within(self, stratum: str | None) -> float:
        """Level at which the family of one stratum holds, so that all strata hold together.

        Examples:
            >>> from dataclasses import replace
            >>> whole = Scope(lens="thresholds", attribute="sex", level=0.95, seed=0)
            >>> strata = replace(whole, strata=(None, "a", "b"))
            >>> whole.level_within(None), strata.level_within(None)
            (0.95, 0.975)
            >>> round(strata.level_within("a"), 4)
            0.9874
        """
        count = 1 if stratum in (None, SUMMARY) else max(int(self.within.sum()), 1)
        return float(self.family_level ** (1 / count))

    def shared_critical(self, members: ArrayLike) -> FloatArray:
        """Šidák's critical value of each stratum and class, from how many rows vary in each.

        All classes are one family, but a class that mirrors the other is none of its own; the
        rows within strata are one family over all strata. (stratum, class), as `members` are.

        Examples:
            >>> from dataclasses import replace
            >>> whole = Scope(lens="statistical", attribute="sex", level=0.95, seed=0)
            >>> whole.shared_critical([[1, 1]]).round(3).tolist()
            [[2.236, 2.236]]
            >>> mirrored = replace(whole, mirrored=True, strata=(None, "a", "b"))
            >>> mirrored.shared_critical([[1, 1]] * 3).round(3)[:, 0].tolist()
            [2.241, 2.495, 2.495]
        """
        counts = np.asarray(members, dtype=np.int64)
        if not self.mirrored:
            counts = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
        within = self.within
        counts = np.where(within[:, None], counts[within].sum(axis=0), counts)
        level = self.family_level
        known = {count: sidak(level, members=count) for count in set(counts.ravel().tolist())}
        return np.array([[known[count] for count in row] for row in counts.tolist()])

    def block(self, shape: tuple[int, ...], **columns: Any) -> Rows:
        """Rows of every cell of an array, with the columns that all rows share.

        Where a row is `unjudged`, its method says so to whoever reads it.

        Examples:
            >>> scope = Scope(lens="labelers", attribute="sex", level=0.95, seed=0)
            >>> scope.block((1,), method="delta method", unjudged="few errors")["method"].item()
            'delta method; no limit is held against it: few errors'
        """
        if columns.get("unjudged") is not None:
            columns["method"] = with_reasons(shape, columns.get("method"), columns["unjudged"])
        shared = {
            "lens": self.lens,
            "class": self.positive,
            "attribute": self.attribute,
            "rule": self.rule,
            "level": self.level,
        }
        return Rows.block(shape, **{**shared, **columns})


def choose_reference(
    groups: Sequence[str],
    sizes: ArrayLike,
    asked: str | None,
    *,
    others: Mapping[str, str] = REST_OR_OVERALL,
) -> str:
    """The reference asked for, or the largest group, the first by name among equals.

    `others` are what may be asked for beside the groups, and what a lens takes it for.

    Examples:
        >>> choose_reference(("f", "m"), [10, 20], None), choose_reference(("f", "m"), [1, 2], "f")
        ('m', 'f')
        >>> choose_reference(("f", "m"), [10, 20], "<overall>", others=REST_ALONE)
        '<rest>'
    """
    if asked is None:
        return groups[int(np.argmax(sizes))]
    if asked not in (*groups, *others):
        instead = f"; or write {' or '.join(others)}" if others else ""
        raise UsageError(
            f"reference={asked!r} is not a group.{nearest(asked, list(groups))} "
            f"The groups are {', '.join(groups[:8])}{instead}."
        )
    return others.get(asked, asked)


def rule_name(roles: Roles) -> str | None:
    """The rule as the record tells it, with its threshold where it is one number.

    Examples:
        >>> rule_name(Roles(rule="score>=t", threshold=0.5)), rule_name(Roles(rule="given"))
        ('score>=0.5', 'given')
    """
    if roles.rule == "one-versus-rest":
        cut = 0.5 if roles.threshold is None else roles.threshold
        return f"one-versus-rest@{cut}"
    return threshold_rule(roles) if roles.rule == "score>=t" else roles.rule


def threshold_rule(roles: Roles) -> str:
    """The rule that a threshold on a score stands for, with the number where there is one."""
    cut = roles.threshold
    return f"score>={cut:g}" if isinstance(cut, int | float) else "score>=t"


def with_reasons(shape: tuple[int, ...], method: Any, unjudged: Any) -> Column:
    """Methods, each ended by why no limit is held against its row, where there is a reason."""
    both = np.broadcast_arrays(
        np.empty(shape), *(np.asarray(x, object) for x in (method, unjudged))
    )
    told = [
        "; ".join(filter(None, (how, f"no limit is held against it: {why}"))) if why else how
        for how, why in zip(both[1].flat, both[2].flat)
    ]
    return words(told).reshape(shape)


def with_stand_in(
    method: str, other: str, measure: str, stand_in: str, reason: str
) -> tuple[str, str]:
    """The methods, for people, of a measure's row and of the row that is judged in its place.

    Examples:
        >>> with_stand_in("Spearman", "corrected", "norm_bias", "norm_bias_corrected", "few rows")
        ('Spearman; norm_bias_corrected is judged in its place: few rows', \
'corrected; judged in place of norm_bias: few rows')
    """
    said = f"{stand_in} is judged in its place: {reason}", f"judged in place of {measure}: {reason}"
    own, standing = ("; ".join(filter(None, pair)) for pair in zip((method, other), said))
    return own, standing
