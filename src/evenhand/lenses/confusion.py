"""From a tally to one two-by-two table for each class and group, whatever rule decided."""

from dataclasses import dataclass

import numpy as np

from evenhand.decisions.labels import ordered
from evenhand.decisions.roles import Roles
from evenhand.decisions.tally import Tally
from evenhand.errors import UsageError, nearest
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import correlation

# Rows: truth is another class, is the class, is unknown. Columns: decided for the class or not.
NEGATIVE, POSITIVE, UNKNOWN = 0, 1, 2
_ANY = [[1, 1], [1, 1], [1, 1]]
_KNOWN = [[1, 1], [1, 1], [0, 0]]
# Each rate: the cells that count as hits and the cells that count as cases.
RATE_CELLS: dict[str, tuple[list[list[int]], list[list[int]]]] = {
    "selection_rate": ([[0, 1], [0, 1], [0, 1]], _ANY),
    "true_positive_rate": ([[0, 0], [0, 1], [0, 0]], [[0, 0], [1, 1], [0, 0]]),
    "false_positive_rate": ([[0, 1], [0, 0], [0, 0]], [[1, 1], [0, 0], [0, 0]]),
    "false_negative_rate": ([[0, 0], [1, 0], [0, 0]], [[0, 0], [1, 1], [0, 0]]),
    "true_negative_rate": ([[1, 0], [0, 0], [0, 0]], [[1, 1], [0, 0], [0, 0]]),
    "precision": ([[0, 0], [0, 1], [0, 0]], [[0, 1], [0, 1], [0, 0]]),
    "accuracy": ([[1, 0], [0, 1], [0, 0]], _KNOWN),
}
# Beyond this many classes the joint law of a table is costly; independence is then assumed,
# which makes the family's critical value a little larger than it need be.
MOST_JOINT_CLASSES = 60
# Rates of different classes that are read off different rows.
DISJOINT = frozenset({"true_positive_rate", "false_negative_rate", "precision"})
KEPT = ("truth", "stratum")
# Keys without which a row says nothing: its weight, its scores, its cluster.
NEEDED = ("weighed", "scored", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts by (stratum, group, class, truth state, decided): what every rate is read from.

    The first stratum, None, is the whole table; the others follow where there are any.
    `sums` has `n` and, with weights, `weight`/`weight2` and `reviewed`/`reviewed2`.
    `joint` keeps the counts by (stratum, group, truth, decision) where one decision names one
    class, so that the dependence between classes is known.
    """

    classes: tuple[str, ...]
    groups: tuple[str, ...]
    strata: tuple[str | None, ...]
    sums: dict[str, FloatArray]
    joint: FloatArray | None
    positive: str | None
    has_truth: bool

    def hits_and_cases(self, rate: str, sum_: str = "n") -> tuple[FloatArray, FloatArray]:
        """Sums over the hits and over the cases of a rate, by (stratum, group, class)."""
        hits, cases = RATE_CELLS[rate]
        cells = self.sums[sum_]
        axes = ([-2, -1], [0, 1])
        return np.tensordot(cells, hits, axes), np.tensordot(cells, cases, axes)

    def correlations(self, rate: str, stratum: int) -> FloatArray:
        """How estimates of a rate move together over classes: (groups, classes, classes)."""
        size = len(self.classes)
        if self.joint is None or rate in DISJOINT or size > MOST_JOINT_CLASSES:
            return np.broadcast_to(np.eye(size), (len(self.groups), size, size))
        return correlation(class_covariance(self.joint[stratum], rate))


def class_covariance(counts: FloatArray, rate: str) -> FloatArray:
    """Covariance of a rate's estimates over classes, (groups, classes, classes).

    `counts` are by (group, truth, decision), the last truth being the unknown one. It is the sum
    over rows of both classes' influences, which for one class against the rest needs only the
    margins and the table itself.
    """
    size = counts.shape[-1]
    index = np.arange(size)
    known = counts[:, :size]
    decided, cases = known.sum(axis=1), known.sum(axis=2)
    apart = known.copy()
    apart[:, index, index] = 0.0
    hit = known[:, index, index]
    with np.errstate(all="ignore"):
        if rate != "false_positive_rate":
            # Rates of one denominator: the multinomial covariance of what is counted.
            count = counts.sum(axis=1) if rate == "selection_rate" else decided + cases - 2 * hit
            total = (counts if rate == "selection_rate" else known).sum(axis=(1, 2))[:, None, None]
            both = np.zeros_like(apart)
            if rate == "accuracy":
                # Classes that were taken for each other are wrong together.
                both = apart + apart.transpose(0, 2, 1)
            both[:, index, index] = count
            return np.asarray((both - count[:, :, None] * count[:, None, :] / total) / total**2)
        wrong, n = decided - hit, cases.sum(axis=1)[:, None] - cases
        share = wrong / n
        crossed = (wrong[:, :, None] - apart.transpose(0, 2, 1)) * share[:, None, :]
        outside = n[:, :, None] - cases[:, None, :]
        outside[:, index, index] = n
        both = share[:, :, None] * share[:, None, :] * outside
        both -= crossed + crossed.transpose(0, 2, 1)
        both[:, index, index] += wrong
        return np.asarray(both / (n[:, :, None] * n[:, None, :]))


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
        sums, joint = _one_versus_rest(tally, classes), None
    else:
        keys = ["stratum", "group", "truth", "decision"]
        dense = {s: _with_all(tally.dense(keys, s, keep_missing=KEPT)) for s in tally.sums}
        sums = {name: _per_class(table) for name, table in dense.items()}
        joint = dense["n"]
    return Confusion(
        classes=classes,
        groups=tally.labels["group"],
        strata=(None, *tally.labels["stratum"]),
        sums=sums,
        joint=joint,
        positive=positive,
        has_truth=bool(sums["n"][..., :2, :].sum()),
    )


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
        other = others[0] if len(others) == 1 else f"not:{roles.positive}"
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
