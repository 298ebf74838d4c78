"""What is watched: for each measure, class and group, its counts period by period.

Counts are read from a period's tally set once and kept in the store as a small array, so that a
store of ten years is read as quickly as one of ten weeks.
"""

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.decisions.labels import MISSING, OVERALL, REST, excepted, ordered
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.tallies.sets import Tallies, table_name
from evenhand.decisions.tally import Tally
from evenhand.errors import UsageError, nearest
from evenhand.findings.limits import Limit
from evenhand.lenses.counterfactual.pairs import pair_table, paired_gaps
from evenhand.lenses.measures import CATALOGUE, cells_of, counted_rates, look_up
from evenhand.lenses.scope import choose_reference
from evenhand.lenses.statistical.confusion import confusion
from evenhand.stats.estimate import FloatArray
from evenhand.stats.sequential import BURN_IN
from evenhand.watching.store import Store, StoredPeriod

# How counts are kept, by the least that is too many.
_WHOLE = (("<u1", 1 << 8), ("<u2", 1 << 16), ("<u4", 1 << 32), ("<i8", np.inf))
PAIRED = ("selection_rate", "true_positive_rate", "false_positive_rate")
_PAIRED_PREFIX = "counterfactual_"
# Measures of these lenses are watched by what their lens says of each period and of all.
LENS_MEASURES = {
    "thresholds": ("implied_threshold", "implied_threshold_gap", "cost_ratio", "cost_ratio_ratio"),
    "labelers": ("criterion_gap", "separation_gap", "cost_ratio_ratio"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A measure that is watched: its limit, if any, and whether detectors look at it."""

    measure: str
    limits: tuple[Limit, ...] = ()
    detected: bool = True

    def band(self, attribute: str | None, group: str | None) -> tuple[float, float] | None:
        """The band that holds for a group, the last one given that speaks of it."""
        found = None
        for limit in self.limits:
            if limit.group in (None, group) and limit.attribute in (None, attribute):
                found = (limit.low, limit.high)
        return None if found is None or not all(map(isfinite, found)) else found


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamKey:
    """Which number a stream is of."""

    lens: str
    measure: str
    class_: str | None
    attribute: str | None
    group: str | None
    reference: str | None

    @property
    def text(self) -> str:
        """The key as one text, for the store."""
        return json.dumps([self.lens, self.measure, self.class_, self.attribute, self.group,
                           self.reference], ensure_ascii=False)  # fmt: skip

    @classmethod
    def of(cls, text: str) -> "StreamKey":
        """The key that a text stands for."""
        lens, measure, class_, attribute, group, reference = json.loads(text)
        return cls(
            lens=lens, measure=measure, class_=class_, attribute=attribute, group=group,
            reference=reference,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A number over the periods of one sequence.

    `places` says which period each column ends in: a period in which a side has no cases is
    carried into the next. `counts` are, for `rates`, hits and cases of the group and of the
    reference; for `pairs`, pairs gained, lost and all; for what a lens says (`normal`,
    `labelers`) values, their errors, n and the reference's n. `whole` is what all periods
    together say then, and `looks` how many they are. One that is `stopped` is not judged after
    its last period, since the words changed.
    """

    key: StreamKey
    watched: Watched
    counts: FloatArray
    places: tuple[int, ...]
    kind: str = "rates"
    whole: tuple[float, float, float, float] | None = None
    looks: int = 0
    logarithmic: bool = False
    stopped: bool = False

    @property
    def paired(self) -> bool:
        """Whether it compares two decisions on the same rows."""
        return self.kind == "pairs"

    @property
    def band(self) -> tuple[float, float] | None:
        """The band agreed on for it, on the scale on which it varies."""
        found = self.watched.band(self.key.attribute, self.key.group)
        if found is None or not self.logarithmic:
            return found
        return (float(np.log(found[0])), float(np.log(found[1]))) if found[0] > 0 else None

    @property
    def sizes(self) -> tuple[FloatArray, FloatArray | None]:
        """Cases of the group and of the reference by column; pairs have one number."""
        if self.kind == "rates":
            return self.counts[1], self.counts[3]
        return self.counts[2], None if self.paired else self.counts[3]

    def shown(self, value: Any) -> Any:
        """A value on the scale on which people see it."""
        return np.exp(value) if self.logarithmic else value


def choose_measures(
    limits: Iterable[Limit], named: Iterable[str], *, has_truth: bool, has_pairs: bool
) -> tuple[list[Watched], list[str]]:
    """The measures to watch, and sentences on limits that cannot be watched.

    Those with a limit and those named get detectors; where there are neither, the usual gaps are
    shown without.

    Examples:
        >>> found, _ = choose_measures([], ["selection_rate_gap"], has_truth=True, has_pairs=False)
        >>> [(one.measure, one.detected) for one in found]
        [('selection_rate_gap', True)]
        >>> found, _ = choose_measures([], [], has_truth=False, has_pairs=False)
        >>> [(one.measure, one.detected) for one in found]
        [('selection_rate_gap', False)]
    """
    known = watchable()
    asked: dict[str, list[Limit]] = {name: [] for name in check_measures(named)}
    notes = []
    for limit in limits:
        if limit.measure in known:
            asked.setdefault(limit.measure, []).append(limit)
        else:
            instead = f" Set one on {limit.measure.rpartition('_')[0]}_gap." * (
                f"{limit.measure.rpartition('_')[0]}_gap" in known
            )
            notes.append(f"The limit on {limit.measure} is not watched.{instead}")
    if asked:
        return [Watched(measure=m, limits=tuple(held)) for m, held in asked.items()], notes
    usual = ["selection_rate_gap"]
    if has_truth:
        usual += ["true_positive_rate_gap", "false_positive_rate_gap"]
    if has_pairs:
        usual += [f"{_PAIRED_PREFIX}selection_rate_gap"]
    return [Watched(measure=m, detected=False) for m in usual], notes


def check_measures(named: Iterable[str]) -> list[str]:
    """The measures that somebody names, refused where one cannot be watched."""
    known, given = watchable(), list(named)
    for name in given:
        if name not in known:
            look_up(name)
            raise UsageError(
                f"measure={name!r} cannot be watched.{nearest(name, known)} Watched can be gaps "
                f"of rates, such as {known[0]}, counterfactual gaps, implied thresholds, cost "
                "ratios and the labelers' criterion and separation."
            )
    return given


def watchable() -> list[str]:
    """Every measure that can be watched."""
    rates = [f"{rate}_gap" for rate in counted_rates() if _is_watched(rate)]
    pairs = [f"{_PAIRED_PREFIX}{rate}_gap" for rate in PAIRED]
    return [*rates, *pairs, *dict.fromkeys(m for ms in LENS_MEASURES.values() for m in ms)]


def _is_watched(rate: str) -> bool:
    """Whether sequences are known for a rate's gap: for shares, not for odds."""
    return CATALOGUE[rate].kind == "rate" and f"{rate}_gap" in CATALOGUE


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCounts:
    """Counts of one period by (group, class, …).

    For rates the rest is the truth's state and whether the class was decided, and the last group
    is of rows that name none; weighted rows count as many as would vary as much. For pairs the
    groups are pairs of values, and the rest is the rate, and pairs gained, lost and all.
    """

    groups: tuple[str, ...]
    classes: tuple[str, ...]
    positive: str | None
    counts: FloatArray

    def packed(self) -> bytes:
        """The counts as few bytes.

        Examples:
            >>> cells = PeriodCounts(groups=("f",), classes=("1",), positive="1",
            ...               counts=np.arange(6.0).reshape(1, 1, 3, 2))
            >>> bool((PeriodCounts.unpacked(cells.packed()).counts == cells.counts).all())
            True
        """
        kind = "<f8"
        if np.array_equal(np.rint(self.counts), self.counts):
            most = self.counts.max(initial=0)
            kind = next(k for k, end in _WHOLE if most < end)
        head = [self.groups, self.classes, self.positive, self.counts.shape, kind]
        text = json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogatepass")
        body = self.counts.astype(kind).tobytes()
        return zlib.compress(len(text).to_bytes(4, "little") + text + body)

    @classmethod
    def unpacked(cls, content: bytes) -> "PeriodCounts":
        """The counts that `packed` made."""
        raw = zlib.decompress(content)
        size = int.from_bytes(raw[:4], "little")
        head = json.loads(raw[4 : 4 + size].decode("utf-8", "surrogatepass"))
        groups, classes, positive, shape, kind = head
        body = np.frombuffer(raw, kind, offset=4 + size).astype(np.float64)
        return cls(
            groups=tuple(groups), classes=tuple(classes), positive=positive,
            counts=body.reshape(shape),
        )  # fmt: skip


def read_counts(
    tallies: Tallies, attribute: Attribute, *, labels: Iterable[str] = ()
) -> PeriodCounts:
    """The counts of a period's tally set for an attribute; `labels` are all classes there are."""
    tally = _with_unknown(tallies.table(table_name("counts", attribute.name)))
    tally = tally.without("cluster", "stratum")
    for key in ("truth", "decision"):
        if key in tally.labels and (tally.labels[key] or key == "decision"):
            tally = tally.relabel(key, ordered({*tally.labels[key], *labels}))
    found = confusion(tally, tallies.roles)
    counts = found.sums["n"][0]
    weight = "reviewed" if "reviewed" in found.sums else "weight"
    if weight in found.sums:
        total, squares = found.sums[weight][0], found.sums[f"{weight}2"][0]
        with np.errstate(all="ignore"):
            scale = total.sum(axis=(-1, -2)) / squares.sum(axis=(-1, -2))
        counts = total * np.nan_to_num(scale)[..., None, None]
    return PeriodCounts(
        groups=found.groups, classes=found.classes, positive=found.positive, counts=counts
    )


def read_pairs(tallies: Tallies, attribute: Attribute | None) -> PeriodCounts:
    """Pairs gained, lost and all by (value|reference, class, rate) of a period's tally set."""
    name = table_name("pairs", *([attribute.name] if attribute else []))
    values = ordered(tallies.roles.counterfactual)
    table = pair_table(tallies.table(name).without("cluster"), tallies.roles, values)
    by_rate = []
    for rate in PAIRED:
        gaps = paired_gaps(table, rate)
        by_rate.append(np.stack([gaps.gained[0], gaps.lost[0], gaps.n[0]], axis=-1))
    return PeriodCounts(
        groups=tuple(f"{table.values[a]}|{table.values[b]}" for a, b in table.pairs),
        classes=table.classes,
        positive=table.positive,
        counts=np.nan_to_num(np.stack(by_rate, axis=-2)),
    )


def _with_unknown(tally: Tally) -> Tally:
    """The tally with rows that name no group under a name of their own, the last one."""
    known = [name for name in tally.labels["group"] if name != MISSING]
    labels = (*known, MISSING)
    place = {name: i for i, name in enumerate(labels)}
    moved = np.array([place[name] for name in tally.labels["group"]] + [len(known)], dtype=np.int64)
    return Tally(
        labels={**tally.labels, "group": labels},
        codes={**tally.codes, "group": moved[tally.codes["group"]]},
        sums=tally.sums,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Counts of all periods of a store by (period, group, class, …), groups and classes aligned."""

    groups: tuple[str, ...]
    classes: tuple[str, ...]
    positive: str | None
    counts: FloatArray

    @classmethod
    def of(
        cls, cells: Sequence[PeriodCounts], *, known: Collection[str] | None = None
    ) -> "History":
        """The counts of periods side by side; what a period does not name counts nothing there.

        Classes that are not `known` are left out: they are of a period that was replaced.
        """
        groups = ordered({name for each in cells for name in each.groups if name != MISSING})
        if any(MISSING in each.groups for each in cells):
            groups = [*groups, MISSING]
        positive = next((each.positive for each in cells if each.positive is not None), None)
        named = {name for each in cells for name in each.classes if excepted(name) is None}
        named = named if known is None else named & set(known)
        classes = ordered(named) or ["1"]
        first = cells[0]
        if (
            list(first.classes) == classes
            and list(first.groups) == groups
            and all((each.classes, each.groups) == (first.classes, first.groups) for each in cells)
        ):
            counts = np.stack([each.counts for each in cells])
            return cls(
                groups=tuple(groups), classes=tuple(classes), positive=positive, counts=counts
            )
        counts = np.zeros((len(cells), len(groups), len(classes), *cells[0].counts.shape[2:]))
        for i, each in enumerate(cells):
            rows = [groups.index(name) for name in each.groups]
            if counts.shape[-2:] == (3, 2):
                # A class that a period does not name is another class of all its rows.
                states = each.counts[:, 0].sum(axis=-1)
                counts[i, rows, :, 0, 0] = (states[:, 0] + states[:, 1])[:, None]
                counts[i, rows, :, 2, 0] = states[:, 2][:, None]
            for j, name in enumerate(each.classes):
                if name in classes:
                    counts[i, rows, classes.index(name)] = each.counts[:, j]
        return cls(groups=tuple(groups), classes=tuple(classes), positive=positive, counts=counts)

    @property
    def watched_classes(self) -> list[int]:
        """The classes that are watched: of two the positive one, whose mirror the other is."""
        if self.positive in self.classes:
            return [self.classes.index(str(self.positive))]
        return list(range(len(self.classes)))

    def hits_and_cases(self, rate: str) -> tuple[FloatArray, FloatArray]:
        """Hits and cases of a rate by (period, group, class)."""
        hits, cases = (self._counted(mask) for mask in cells_of(rate).masks)
        return hits, cases

    def _counted(self, mask: ArrayLike) -> FloatArray:
        """The counts of the cells that a mask names, summed in their order."""
        found = np.zeros(self.counts.shape[:-2])
        for state, decided in zip(*np.nonzero(np.asarray(mask))):
            found += self.counts[..., state, decided]
        return found

    def unlabelled(self) -> FloatArray:
        """The share of rows without a truth by (period, group); NaN where there are no rows."""
        table = self.counts[:, :, 0]
        with np.errstate(all="ignore"):
            return np.asarray(table[:, :, 2].sum(axis=-1) / table.sum(axis=(-1, -2)))


def load_history(
    store: Store,
    periods: Sequence[StoredPeriod],
    held: Mapping[int, PeriodCounts],
    read: Callable[[Tallies], PeriodCounts],
    *,
    stop: int | None = None,
    known: Collection[str] | None = None,
) -> tuple[History | None, dict[int, bytes]]:
    """The counts of all periods, those that are not kept yet read from tally sets; and these.

    Those from the place `stop` on are not read: nothing is there. `known` are all classes.
    """
    own = periods[:stop]
    new = {stored.id: read(store.tallies(stored)) for stored in own if stored.id not in held}
    cells = [new[stored.id] if stored.id in new else held[stored.id] for stored in own]
    packed = {place: each.packed() for place, each in new.items()}
    if not cells:
        return None, packed
    history = History.of(cells, known=known)
    nothing = np.zeros((len(periods) - len(own), *history.counts.shape[1:]))
    return replace(history, counts=np.concatenate([history.counts, nothing])), packed


def reference_group(history: History, roles: Roles, attribute: str, places: Sequence[int]) -> str:
    """The group that others are compared with: the one asked for, or the largest.

    The largest of the first periods of a sequence, before any detector looks: were it the largest
    so far, two groups of much the same size would turn into each other's reference, and what was
    found and answered of one comparison would begin anew as the other.
    """
    groups = tuple(name for name in history.groups if name != MISSING)
    sizes = history.counts[list(places[:BURN_IN]), : len(groups), 0].sum(axis=(0, 2, 3))
    return choose_reference(groups, sizes, roles.reference.get(attribute))


def rate_streams(
    history: History,
    watched: Sequence[Watched],
    *,
    attribute: str,
    roles: Roles,
    places: Sequence[int],
) -> list[Stream]:
    """Streams of rate gaps over these periods, for every class and group but the reference."""
    reference = reference_group(history, roles, attribute, places)
    groups = [name for name in history.groups if name not in (reference, MISSING)]
    chosen, ends = list(places), tuple(places)
    same: dict[tuple[int, ...], tuple[int, ...]] = {ends: ends}
    found = []
    for one in watched:
        rate = CATALOGUE[one.measure].base
        if rate not in counted_rates() or one.measure != f"{rate}_gap" or not _is_watched(rate):
            continue
        # By (class, group, hits and cases of both sides, period): a stream's lie side by side.
        counts = _both_sides(history, str(rate), groups, reference, chosen)
        whole = np.asarray((counts[:, :, [1, 3]] > 0).all(axis=(2, 3)))
        for c, class_ in enumerate(history.watched_classes):
            for g, group in enumerate(groups):
                key = StreamKey(
                    lens="statistical", measure=one.measure, class_=history.classes[class_],
                    attribute=attribute, group=group, reference=reference,
                )  # fmt: skip
                found.append(
                    Stream(key=key, watched=one, counts=counts[c, g], places=ends)
                    if whole[c, g]
                    else _carried(key, one, counts[c, g], chosen, (1, 3), same=same)
                )
    return [stream for stream in found if stream.places]


def _both_sides(
    history: History, rate: str, groups: Sequence[str], reference: str, places: Sequence[int]
) -> FloatArray:
    """Hits and cases of groups and of their reference, by (class, group, which, period)."""
    mine = [history.groups.index(group) for group in groups]
    classes = history.watched_classes
    parts = [part[places][..., classes] for part in history.hits_and_cases(rate)]
    found = np.empty((len(classes), len(groups), 4, len(places)))
    for which, part in enumerate(parts):
        found[:, :, which] = part[:, mine].transpose(2, 1, 0)
    for g, own in enumerate(mine):
        others = _others(history, reference, own)
        for which, part in enumerate(parts):
            found[:, g, 2 + which] = part[:, others].sum(axis=1).T
    return found


def _others(history: History, reference: str, mine: int) -> list[int]:
    """The groups that one is compared with: a group, the rest, or everybody."""
    if reference not in (REST, OVERALL):
        return [history.groups.index(reference)]
    # Everybody has the group's own cases among them: the gap to the rest is what varies.
    return [i for i, name in enumerate(history.groups) if name != MISSING and i != mine]


def pair_streams(
    history: History, watched: Sequence[Watched], *, attribute: str | None, places: Sequence[int]
) -> list[Stream]:
    """Streams of counterfactual gaps over these periods, for every pair of values and class."""
    chosen = list(places)
    found = []
    for one in watched:
        rate = one.measure.removeprefix(_PAIRED_PREFIX).removesuffix("_gap")
        if not one.measure.startswith(_PAIRED_PREFIX) or rate not in PAIRED:
            continue
        for c in history.watched_classes:
            for g, pair in enumerate(history.groups):
                counts = history.counts[chosen, g, c, PAIRED.index(rate)].T
                value, _, reference = pair.partition("|")
                key = StreamKey(
                    lens="counterfactual", measure=one.measure, class_=history.classes[c],
                    attribute=attribute, group=value, reference=reference,
                )  # fmt: skip
                found.append(_carried(key, one, counts, chosen, (2,), kind="pairs"))
    return [stream for stream in found if stream.places]


def _carried(
    key: StreamKey,
    watched: Watched,
    counts: FloatArray,
    places: Sequence[int],
    needed: Sequence[int],
    *,
    kind: str = "rates",
    same: dict[tuple[int, ...], tuple[int, ...]] | None = None,
) -> Stream:
    """The stream with periods that lack a side's cases carried into the next; the last waits.

    Streams with the same places have them in `same` once.
    """
    if (counts[list(needed)] > 0).all():
        return Stream(key=key, watched=watched, counts=counts, places=tuple(places), kind=kind)
    starts, ends, first = [], [], 0
    waiting = [0.0] * len(needed)
    for i, values in enumerate(zip(*(counts[row].tolist() for row in needed))):
        waiting = [held + value for held, value in zip(waiting, values)]
        if min(waiting) > 0:
            starts.append(first)
            ends.append(places[i])
            first, waiting = i + 1, [0.0] * len(needed)
    held = np.zeros((len(counts), 0))
    if starts:
        held = np.add.reduceat(counts[:, :first], starts, axis=1)
    found = tuple(ends)
    if same is not None:
        found = same.setdefault(found, found)
    return Stream(key=key, watched=watched, counts=held, places=found, kind=kind)


def hidden_bounds(history: History, stream: Stream) -> tuple[float, float] | None:
    """How far the gap of all rows together could lie if rows without a group had one.

    At the extremes every such hit belongs to one side and every other to the other side.

    Examples:
        >>> counts = np.zeros((1, 3, 1, 3, 2))
        >>> counts[0, :, 0, 2] = [[80, 20], [90, 10], [5, 5]]
        >>> history = History(groups=("f", "m", MISSING), classes=("1",), positive="1",
        ...                   counts=counts)
        >>> watched = Watched(measure="selection_rate_gap")
        >>> stream = rate_streams(history, [watched], attribute="sex",
        ...                       roles=Roles(reference={"sex": "m"}), places=[0])[0]
        >>> [round(bound, 3) for bound in hidden_bounds(history, stream)]
        [0.048, 0.143]
    """
    if MISSING not in history.groups or stream.kind != "rates":
        return None
    rate = str(CATALOGUE[stream.key.measure].base)
    hits, cases = (part.sum(axis=0) for part in history.hits_and_cases(rate))
    c = history.classes.index(str(stream.key.class_))
    last = history.groups.index(MISSING)
    yes, no = hits[last, c], cases[last, c] - hits[last, c]
    if not yes + no:
        return None
    k1, n1, k2, n2 = stream.counts.sum(axis=1)
    low = k1 / (n1 + no) - (k2 + yes) / (n2 + yes)
    high = (k1 + yes) / (n1 + yes) - k2 / (n2 + no)
    return float(low), float(high)


def unlabelled_bounds(history: History, stream: Stream) -> tuple[float, float] | None:
    """How far the gap of all rows together could lie once every row has a truth.

    Of rows decided alike, all may turn out to be so or all not: the ends lie at such corners.

    Examples:
        >>> counts = np.zeros((1, 2, 1, 3, 2))
        >>> counts[0, :, 0, 1] = [[20, 80], [20, 80]]
        >>> counts[0, 0, 0, 2] = [10, 0]
        >>> history = History(groups=("f", "m"), classes=("1",), positive="1", counts=counts)
        >>> stream = rate_streams(history, [Watched(measure="true_positive_rate_gap")],
        ...                       attribute="sex", roles=Roles(reference={"sex": "m"}),
        ...                       places=[0])[0]
        >>> [round(bound, 3) for bound in unlabelled_bounds(history, stream)]
        [-0.073, 0.0]
    """
    if stream.kind != "rates" or stream.key.reference not in history.groups:
        return None
    rate = cells_of(str(CATALOGUE[stream.key.measure].base))
    if not rate.needs_truth:
        return None
    c = history.classes.index(str(stream.key.class_))
    ends = []
    for group in (str(stream.key.group), str(stream.key.reference)):
        table = history.counts[:, history.groups.index(group), c].sum(axis=0)
        ends.append(_corners(table, rate.masks))
    (low, high), (low_reference, high_reference) = ends
    return low - high_reference, high - low_reference


def _corners(table: FloatArray, masks: Any) -> tuple[float, float]:
    """The least and the most a rate can be, wherever rows without a truth belong."""
    hits, cases = (np.asarray(mask)[:2] for mask in masks)
    values = []
    for states in product((0, 1), repeat=2):
        known = table[:2].copy()
        for decided, state in enumerate(states):
            known[state, decided] += table[2, decided]
        n = (known * cases).sum()
        values.append(float((known * hits).sum() / n) if n else float("nan"))
    return min(values), max(values)
