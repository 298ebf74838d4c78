"""From a tally to one two-by-two table for each class and group, whatever rule decided."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.decisions.labels import all_but, ordered
from evenhand.decisions.roles import Roles
from evenhand.decisions.tally import Tally
from evenhand.errors import UsageError, nearest
from evenhand.lenses.kinds import Cells
from evenhand.lenses.measures import cells_of
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import correlation

# States of a row's truth for a class: another class, the class, unknown.
NEGATIVE, POSITIVE, UNKNOWN = 0, 1, 2
# Beyond this many classes the joint law of a table is costly; independence is then assumed,
# which makes the family's critical value a little larger than it need be.
MOST_JOINT_CLASSES = 60
# A size over classes needs their covariance once, not draws from it; beyond this many classes a
# share of cases so small goes to each that they are as good as independent.
MOST_COVARIED_CLASSES = 400
KEPT = ("truth", "stratum")
# Keys without which a row says nothing: its weight, its scores, its cluster.
NEEDED = ("weighed", "scored", "cluster", "clustered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts by (stratum, group, class, truth state, decided): what every rate is read from.

    The first stratum, None, is the whole table; the others follow where there are any.
    `sums` has `n` and, with weights, `weight`/`weight2` and `reviewed`/`reviewed2`.
    `joint` keeps the sums by (stratum, group, truth, decision) where one decision names one
    class, so that the dependence between classes is known.
    """

    classes: tuple[str, ...]
    groups: tuple[str, ...]
    strata: tuple[str | None, ...]
    sums: dict[str, FloatArray]
    joint: dict[str, FloatArray] | None
    positive: str | None
    has_truth: bool

    def hits_and_cases(self, rate: str, sum_: str = "n") -> tuple[FloatArray, FloatArray]:
        """Sums over the hits and over the cases of a rate, by (stratum, group, class)."""
        hits, cases = cells_of(rate).masks
        cells = self.sums[sum_]
        axes = ([-2, -1], [0, 1])
        return np.tensordot(cells, hits, axes), np.tensordot(cells, cases, axes)

    def correlations(
        self,
        rate: str,
        stratum: int,
        *,
        weight: str | None = None,
        most: int = MOST_JOINT_CLASSES,
        rest: bool = False,
        groups: Sequence[int] | None = None,
    ) -> FloatArray:
        """How estimates of a rate move together over classes: (groups, classes, classes).

        `weight` is the sum that weighs the rate; with `rest`, those of all other groups together.
        `groups` are the places of some groups; by default all.
        """
        size = len(self.classes)
        cells = cells_of(rate)
        places = list(range(len(self.groups))) if groups is None else list(groups)
        if not self.covaries(rate, most=most) or self.joint is None:
            return np.broadcast_to(np.eye(size), (len(places), size, size))
        counts = self.joint[weight or "n"][stratum]
        squares = self.joint[f"{weight}2"][stratum] if weight else counts
        mine, theirs = counts[places], squares[places]
        if rest:
            mine, theirs = counts.sum(axis=0) - mine, squares.sum(axis=0) - theirs
        return correlation(class_covariance(mine, cells, squares=theirs))

    def covaries(self, rate: str, *, most: int) -> bool:
        """Whether a rate's classes share cases in a way that the table knows of."""
        joint = self.joint is not None and len(self.classes) <= most
        return joint and not cells_of(rate).disjoint


def class_covariance(
    counts: FloatArray, cells: Cells, *, squares: FloatArray | None = None
) -> FloatArray:
    """Covariance of a rate's estimates over classes, (groups, classes, classes).

    `counts` are by (group, truth, decision), the last truth being the unknown one, and `squares`
    the sums of squared weights where rows are weighted. It is the sum over rows of both classes'
    influences. A row's influence on class c depends only on whether
    its truth is c and whether c was decided, so it is a constant, plus a part where the truth is
    c, a part where the decision is c, and a part where both are: products of these sum to
    margins and to the table itself, whatever the rate's cells are.
    """
    size = counts.shape[-1]
    rows = counts if squares is None else squares
    known, unknown = rows[:, :size], rows[:, size]
    by_truth, by_decision = known.sum(axis=2), known.sum(axis=1)
    both = np.diagonal(known, axis1=1, axis2=2)
    influence = _influences(counts, cells)
    always = influence[NEGATIVE, 0]
    if_truth = influence[POSITIVE, 0] - always
    if_decided = influence[NEGATIVE, 1] - always
    if_both = influence[POSITIVE, 1] - influence[POSITIVE, 0] - if_decided
    always_unknown = influence[UNKNOWN, 0]
    if_decided_unknown = influence[UNKNOWN, 1] - always_unknown
    # What a class adds to the constant of another, summed over rows.
    added = if_truth * by_truth + if_decided * by_decision + if_both * both
    added_unknown = if_decided_unknown * unknown
    crossed = (
        _outer(always, added)
        + _outer(always_unknown, added_unknown)
        + _outer(if_truth, if_decided) * known
    )
    covariance = crossed + crossed.transpose(0, 2, 1)
    covariance += _outer(always, always) * known.sum(axis=(1, 2))[:, None, None]
    covariance += _outer(always_unknown, always_unknown) * unknown.sum(axis=1)[:, None, None]
    own = if_truth**2 * by_truth + if_decided**2 * by_decision + if_decided_unknown**2 * unknown
    own += if_both * (if_both + 2 * if_truth + 2 * if_decided) * both
    index = np.arange(size)
    covariance[:, index, index] += own
    return covariance


def _influences(counts: FloatArray, cells: Cells) -> FloatArray:
    """What a row of each cell adds to a class's rate, by (truth's state, decided, group, class)."""
    table = _per_class(counts)
    hits, cases = (np.array(mask) for mask in cells.masks)
    axes = ([-2, -1], [0, 1])
    n = np.tensordot(table, cases, axes)
    with np.errstate(all="ignore"):
        rate = np.tensordot(table, hits, axes) / n
        return np.asarray((hits[:, :, None, None] - cases[:, :, None, None] * rate) / n)


def _outer(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(left[:, :, None] * right[:, None, :])


def prepare(tally: Tally, roles: Roles) -> tuple[Tally, tuple[str, ...], str | None]:
    """The tally with truth and decision brought to the same classes, and those classes."""
    classes, positive = find_classes(tally, roles)
    tally = _usable(tally)
    if "truth" not in tally.labels:
        tally = _with_key(tally, "truth")
    if "stratum" not in tally.labels:
        tally = _with_key(tally, "stratum")
    tally = _collapse(tally, "truth", classes, positive)
    if roles.rule != "one-versus-rest":
        chosen = "1" if roles.rule == "score>=t" else positive
        tally = _collapse(tally, "decision", classes, positive, chosen=chosen)
    return tally, classes, positive


def confusion(tally: Tally, roles: Roles) -> Confusion:
    """The two-by-two tables of a tally by (group, stratum, truth, decision)."""
    tally, classes, positive = prepare(tally, roles)
    if roles.rule == "one-versus-rest":
        sums: dict[str, FloatArray] = _one_versus_rest(tally, classes)
        joint: dict[str, FloatArray] | None = None
    else:
        keys = ["stratum", "group", "truth", "decision"]
        dense = {s: _with_all(tally.dense(keys, s, keep_missing=KEPT)) for s in tally.sums}
        sums = {name: _per_class(table) for name, table in dense.items()}
        joint = dense
    return Confusion(
        classes=classes,
        groups=tally.labels["group"],
        strata=(None, *tally.labels["stratum"]),
        sums=sums,
        joint=joint,
        positive=positive,
        has_truth=bool(sums["n"][..., :2, :].sum()),
    )


def weight_column(sums: dict[str, FloatArray], rate: str) -> str | None:
    """Which sum weighs this rate: reviews stand for the unreviewed wherever truth is needed."""
    if cells_of(rate).needs_truth and "reviewed" in sums:
        return "reviewed"
    return "weight" if "weight" in sums else None


def find_classes(tally: Tally, roles: Roles) -> tuple[tuple[str, ...], str | None]:
    """The classes of a tally and, where there are two, the positive one."""
    truths = set(tally.labels.get("truth", ()))
    if roles.rule == "one-versus-rest":
        return tuple(ordered({*truths, *roles.scores})), None
    decided = set(tally.labels.get("decision", ()))
    if roles.rule == "score>=t":
        # A decision from a threshold is yes or no: the truth's own words name the classes.
        decided = {"0", "1"} if truths <= {"0", "1"} or not truths else set()
        if not decided and roles.positive is None and len(truths) != 2:
            raise UsageError(
                f"truth={roles.truth!r} has {len(truths)} values and a threshold decides between "
                "two. Say which value counts as positive (--positive)."
            )
    found = ordered(truths | decided)
    if truths and decided and truths.isdisjoint(decided) and not set(found) <= {"0", "1"}:
        raise UsageError(
            f"truth={roles.truth!r} has the values {_some(truths)} and the decisions are "
            f"{_some(decided)}: they share none. Write both in the same words."
        )
    if set(found) <= {"0", "1"}:
        chosen = roles.positive or "1"
        if chosen not in {"0", "1"}:
            raise UsageError(f"positive={chosen!r} is not a value of the data, which has 0 and 1.")
        return ("0", "1"), chosen
    if roles.positive is not None:
        if roles.positive not in found:
            raise UsageError(
                f"positive={roles.positive!r} is not a value of the data."
                f"{nearest(roles.positive, found)} It has {', '.join(found[:8])}."
            )
        others = [name for name in found if name != roles.positive]
        other = others[0] if len(others) == 1 else all_but(roles.positive)
        return (other, roles.positive), roles.positive
    if len(found) == 2:
        raise UsageError(
            f"The classes are {found[0]!r} and {found[1]!r}: say which one counts as positive "
            f"with positive={found[1]!r} (--positive)."
        )
    return tuple(found), None


def _collapse(
    tally: Tally,
    key: str,
    classes: tuple[str, ...],
    positive: str | None,
    *,
    chosen: str | None = None,
) -> Tally:
    """The tally with one key's labels brought to the classes; `chosen` is the label of a yes."""
    yes = positive if chosen is None else chosen
    if positive is None or (set(tally.labels[key]) <= set(classes) and yes == positive):
        return tally.relabel(key, classes)
    negative = next(name for name in classes if name != positive)
    target = [positive if name == yes else negative for name in tally.labels[key]]
    place = np.array([classes.index(name) for name in target] + [-1], dtype=np.int64)
    return Tally(
        labels={**tally.labels, key: classes},
        codes={**tally.codes, key: place[tally.codes[key]]},
        sums=tally.sums,
    )


def _usable(tally: Tally) -> Tally:
    """The tally without the rows that lack something needed."""
    keep = np.ones(len(tally), dtype=bool)
    for key in NEEDED:
        if key in tally.codes:
            keep &= tally.codes[key] >= 0
    if keep.all():
        return tally
    return Tally(
        labels=tally.labels,
        codes={k: v[keep] for k, v in tally.codes.items()},
        sums={k: v[keep] for k, v in tally.sums.items()},
    )


def _with_key(tally: Tally, key: str) -> Tally:
    """The tally with a key that no column gave, missing everywhere."""
    code = np.full(len(tally), -1, dtype=np.int64)
    return Tally(
        labels={**tally.labels, key: ()}, codes={**tally.codes, key: code}, sums=tally.sums
    )


def _with_all(table: FloatArray) -> FloatArray:
    """(strata and missing, …) to (all together and strata, …)."""
    return np.concatenate([table.sum(axis=0, keepdims=True), table[:-1]])


def _per_class(table: FloatArray) -> FloatArray:
    """(…, truth + unknown, decision) to (…, class, truth state, decided)."""
    size = table.shape[-1]
    known = table[..., :size, :]
    decided = known.sum(axis=-2)
    hit = np.diagonal(known, axis1=-2, axis2=-1)
    cases = known.sum(axis=-1)
    total = known.sum(axis=(-2, -1))[..., None]
    unknown = table[..., size, :]
    unknown_total = unknown.sum(axis=-1)[..., None]
    rows = [
        [total - cases - (decided - hit), decided - hit],
        [cases - hit, hit],
        [unknown_total - unknown, unknown],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _one_versus_rest(tally: Tally, classes: tuple[str, ...]) -> dict[str, FloatArray]:
    keys = ["stratum", "group", "truth"]
    kinds = [s for s in tally.sums if not s.startswith("hit:")]
    out: dict[str, FloatArray] = {}
    size = len(classes)
    for kind in kinds:
        every = _with_all(tally.dense(keys, kind, keep_missing=KEPT))
        tables = []
        for i, name in enumerate(classes):
            column = f"hit:{name}" if kind == "n" else f"hit:{name}:{kind}"
            hits = (
                _with_all(tally.dense(keys, column, keep_missing=KEPT))
                if column in tally.sums
                else np.zeros_like(every)
            )
            states = []
            for index in (np.delete(np.arange(size), i), [i], [size]):
                chosen = hits[..., index].sum(axis=-1)
                states.append(np.stack([every[..., index].sum(axis=-1) - chosen, chosen], axis=-1))
            tables.append(np.stack(states, axis=-2))
        out[kind] = np.stack(tables, axis=-3)
    return out


def _some(labels: set[str]) -> str:
    return ", ".join(ordered(labels)[:4])
