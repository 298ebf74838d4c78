"""Why a gap moved: parts that sum exactly to the movement, each with its interval.

The rates of a group before and after an onset differ because the mix of strata did, because rates
within strata did and, where a score and a threshold decide, because the threshold or the scores
did. What moved the reference is taken off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from evenhand.decisions.labels import MISSING, OVERALL, REST, ordered
from evenhand.decisions.roles import Roles
from evenhand.decisions.tallies.grid import AT, UNCUT, ScoreEntries
from evenhand.decisions.tallies.scores import truth_states
from evenhand.decisions.tallies.sets import table_name
from evenhand.decisions.tally import Tally
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import CATALOGUE
from evenhand.lenses.statistical.confusion import confusion
from evenhand.stats.estimate import FloatArray
from evenhand.stats.movement import (
    joined_strata,
    mix_and_rate,
    shares_and_rates,
    threshold_and_scores,
)
from evenhand.watching.lens_causes import labeler_rows, threshold_rows
from evenhand.watching.look import Look
from evenhand.watching.store import Store
from evenhand.watching.verdicts import CHANGE, Judged

DRAWS = 1_000
OTHER = "<other>"
# Rates that a threshold on a score decides alone: which truths are cases, and whether a hit is
# to reach the threshold or to miss it.
_BY_SCORE = {
    "selection_rate": ((-1, 0, 1), True),
    "true_positive_rate": ((1,), True),
    "false_negative_rate": ((1,), False),
    "false_positive_rate": ((0,), True),
    "true_negative_rate": ((0,), False),
}
_ANSWERS = {"yes", "no", "true", "false", "none", "other", "unknown"}
# With more thresholds than this around an onset, none of them is what changed.
_MOST_CUTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One group before and after: rows by (window, stratum, hit, thresholds reached).

    `cuts` is the share of each threshold by (window, threshold); a side without scores has none.
    """

    counts: FloatArray
    cuts: FloatArray
    reached: bool = True

    @property
    def cases(self) -> FloatArray:
        """Rows by (…, window, stratum)."""
        return np.asarray(self.counts.sum(axis=(-1, -2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one group's movement by (…, stratum); they sum to it."""

    mix: FloatArray
    threshold: FloatArray
    scores: FloatArray

    @property
    def rate(self) -> FloatArray:
        """What rates within strata did, whatever moved them."""
        return np.asarray(self.threshold + self.scores)


def parts_of(side: Side, counts: FloatArray | None = None) -> Parts:
    """The parts of a group's movement, exactly; `counts` are draws of the side's own."""
    table = side.counts if counts is None else counts
    cases, hits = table.sum(axis=(-1, -2)), table[..., 1, :].sum(axis=-1)
    shares, rates = shares_and_rates(hits, cases)
    moved = mix_and_rate(shares[..., 0, :], rates[..., 0, :], shares[..., 1, :], rates[..., 1, :])
    if not side.cuts.size:
        return Parts(mix=moved.mix, threshold=np.zeros_like(moved.rate), scores=moved.rate)
    levels = table.sum(axis=-2)
    with np.errstate(all="ignore"):
        beyond = np.cumsum(levels[..., ::-1], axis=-1)[..., ::-1][..., 1:] / cases[..., None]
    # By (…, stratum, window of the scores, window of the threshold).
    above = np.einsum("...wkc,jc->...kwj", beyond, side.cuts)
    threshold, _ = threshold_and_scores(above if side.reached else 1 - above)
    middle = (shares[..., 0, :] + shares[..., 1, :]) / 2
    by_threshold = np.nan_to_num(threshold) * middle
    # Scores take what the threshold leaves, so that both sum to what was decided.
    return Parts(mix=moved.mix, threshold=by_threshold, scores=moved.rate - by_threshold)


def explain(
    store: Store, look: Look, words: Words, *, since: int | None = None, seed: int = 0
) -> list[dict[str, Any]]:
    """The causes of every open alarm of a change, part by part, in the charter's words.

    With a period `since`, also what moved every rate gap from before it to what followed.
    """
    found: list[dict[str, Any]] = []
    for alarm in look.open_alarms:
        if alarm.stored.detector == CHANGE and alarm.now is not None and alarm.judged is not None:
            onset = alarm.judged.stream.places[alarm.now.onset]
            parts = _explain(store, look, alarm.judged, alarm.stored.start, onset, words, seed)
            found += [{"alarm": alarm.stored.id, **part} for part in parts]
    if since is None:
        return found
    later = [p for p in look.places if look.periods[p].period.number >= since]
    told: set[tuple[str | None, str | None]] = set()
    for judged in look.judged if later else ():
        key = judged.stream.key
        if key.lens == "labelers":
            if (key.attribute, key.group) in told:
                continue
            told.add((key.attribute, key.group))
        parts = _explain(store, look, judged, 0, later[0], words, seed)
        found += [{"alarm": None, **part} for part in parts]
    return found


def _explain(
    store: Store, look: Look, judged: Judged, start: int, onset: int, words: Words, seed: int
) -> list[dict[str, Any]]:
    """The parts of one gap's movement from the periods before an onset to those from it on."""
    key = judged.stream.key
    if key.lens == "counterfactual" or key.reference in (REST, OVERALL):
        return []
    own = [
        p
        for p in look.places
        if look.periods[p].period.number >= start and p <= judged.stream.places[-1]
    ]
    windows = [[p for p in own if p < onset], [p for p in own if p >= onset]]
    if not all(windows):
        return []
    rate = str(CATALOGUE[key.measure].base)
    name = (
        table_name("labels", str(key.attribute))
        if key.lens == "labelers"
        else table_name("scores", str(key.attribute), str(look.roles.score))
        if key.lens == "thresholds"
        else _table(look.roles, rate, str(key.attribute))
    )
    tallies = [
        reduce(Tally.merge, (store.tallies(look.periods[p]).table(name) for p in window))
        for window in windows
    ]
    about = {
        "measure": key.measure, "class": key.class_, "attribute": key.attribute,
        "group": key.group, "reference": key.reference,
    }  # fmt: skip
    if key.lens == "labelers":
        # Their bar and skill are parts of one thing: how they weigh the two mistakes.
        about |= {"measure": "cost_ratio", "reference": None}
    if key.lens != "statistical":
        return [{**about, **row} for row in _by_lens(store, look, judged, tallies, seed)]
    groups = (str(key.group), str(key.reference))
    sides, strata = _sides(tallies, look.roles, rate, str(key.class_), groups)
    split = bool(sides[0].cuts.size)
    if len(strata) == 1 and not split:
        return []
    rows = movement_rows(sides, strata, seed=seed)
    raised = _direction(tallies, look.roles, groups[0]) if split else 0
    shares = [shares_and_rates(s.counts[..., 1, :].sum(axis=-1), s.cases)[0] for s in sides]
    whose = [
        f"of the {words.subject(key.attribute, group)}"
        if words.of_things(key.attribute, group)
        else f"cases of {words.people(key.attribute, group)}"
        for group in groups
    ]
    return [
        {**about, **row,
         **_words(row, rows, strata, shares, look.roles, raised, whose)}
        for row in rows
    ]  # fmt: skip


def _by_lens(
    store: Store, look: Look, judged: Judged, tallies: Sequence[Tally], seed: int
) -> list[dict[str, Any]]:
    """What moved an implied threshold, or how labelers weigh the two mistakes."""
    key = judged.stream.key
    if key.lens == "thresholds":
        if judged.stream.logarithmic:
            return []
        groups = [str(name) for name in (key.group, key.reference) if name is not None]
        width = float(store.about["bandwidth"])
        return threshold_rows(tallies, look.roles, str(key.class_), groups, width, seed=seed)
    return labeler_rows(tallies, str(key.class_ or "1"), str(key.group), seed=seed)


def movement_rows(
    sides: Sequence[Side], strata: Sequence[str], *, seed: int = 0, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """The parts of a gap's movement with their intervals: sums first, then by stratum.

    `sides` are the group and the reference; rows are redrawn within each group and window.

    Examples:
        >>> counts = np.array([[[[60.0], [40]], [[80], [20]]], [[[60], [40]], [[30], [70]]]])
        >>> group = Side(counts=counts, cuts=np.zeros((2, 0)))
        >>> still = Side(counts=counts[[0, 0]], cuts=np.zeros((2, 0)))
        >>> for row in movement_rows([group, still], ["a", "b"]):
        ...     print(row["part"], row["stratum"], round(row["value"], 3) + 0.0)
        total None 0.25
        mix None 0.0
        rate None 0.25
        mix a 0.0
        rate a 0.0
        mix b 0.0
        rate b 0.25
    """
    exact = [parts_of(side) for side in sides]
    drawn = [parts_of(side, _redrawn(side, draws, seed + i)) for i, side in enumerate(sides)]
    split = any(side.cuts.size for side in sides)
    names = ("mix", "threshold", "scores") if split else ("mix", "rate")

    def both(name: str, parts: Sequence[Parts]) -> FloatArray:
        return np.asarray(getattr(parts[0], name) - getattr(parts[1], name))

    rows = []

    def add(part: str, stratum: str | None, value: float, values: FloatArray) -> None:
        low, high = np.nanquantile(values, [0.025, 0.975])
        rows.append(
            {"part": part, "stratum": stratum, "value": value, "low": float(low),
             "high": float(high)}
        )  # fmt: skip

    sums = {name: float(both(name, exact).sum()) for name in names}
    of_draws = {name: both(name, drawn).sum(axis=-1) for name in names}
    add("total", None, sum(sums.values()), np.sum(list(of_draws.values()), axis=0))
    for name in names:
        add(name, None, sums[name], of_draws[name])
    for k, stratum in enumerate(strata) if len(strata) > 1 else ():
        for name in names:
            add(name, stratum, float(both(name, exact)[k]), both(name, drawn)[..., k])
    return rows


def _redrawn(side: Side, draws: int, seed: int) -> FloatArray:
    """Counts as if the rows of each window had been drawn anew, by (draw, window, …)."""
    rng = np.random.default_rng([seed, 15])
    windows = []
    for table in side.counts:
        total = round(float(table.sum()))
        shares = table.reshape(-1) / max(table.sum(), 1e-300)
        windows.append(rng.multinomial(total, shares, size=draws).reshape(draws, *table.shape))
    return np.stack(windows, axis=1).astype(np.float64)


def _table(roles: Roles, rate: str, attribute: str) -> str:
    """The tally that says most of a rate: scores where a threshold decides, else counts."""
    by_score = roles.rule == "score>=t" and rate in _BY_SCORE and roles.truth is not None
    if by_score:
        return table_name("scores", attribute, str(roles.score))
    return table_name("counts", attribute)


def _sides(
    tallies: Sequence[Tally], roles: Roles, rate: str, class_: str, groups: tuple[str, str]
) -> tuple[list[Side], list[str]]:
    """Both groups before and after, with small strata joined to one."""
    by_score = "counts" if "s" not in tallies[0].sums else "scores"
    strata = ordered({name for tally in tallies for name in tally.labels.get("stratum", ())})
    names = [*strata, MISSING] if strata else [MISSING]
    read = _scored if by_score == "scores" else _counted
    counts, cuts, reached = read(tallies, roles, rate, class_, groups, names)
    joined, _ = joined_strata(counts.sum(axis=(-1, -2)))
    used = [place for place in joined if counts[:, :, place].sum() > 0]
    merged = np.stack([counts[:, :, place].sum(axis=2) for place in used], axis=2)
    labels = [names[place[0]] if len(place) == 1 else OTHER for place in used]
    return [Side(counts=merged[i], cuts=cuts[i], reached=reached) for i in (0, 1)], labels


def _counted(
    tallies: Sequence[Tally],
    roles: Roles,
    rate: str,
    class_: str,
    groups: tuple[str, str],
    names: Sequence[str],
) -> tuple[FloatArray, list[FloatArray], bool]:
    """Cases by (group, window, stratum, hit, 1) from counts of decisions."""
    both = reduce(Tally.merge, tallies)
    counts = np.zeros((2, 2, len(names), 2, 1))
    for window, tally in enumerate(tallies):
        for key in ("truth", "decision"):
            if tally.labels.get(key):
                tally = tally.relabel(key, both.labels[key])
        found = confusion(tally.without("cluster"), roles)
        hits, cases = found.hits_and_cases(rate)
        c = found.classes.index(class_)
        for g, group in enumerate(groups):
            if group not in found.groups:
                continue
            mine = found.groups.index(group)
            for k, name in enumerate(names):
                if name in found.strata:
                    s = found.strata.index(name)
                    hit, case = hits[s, mine, c], cases[s, mine, c]
                elif name == MISSING:
                    # Rows without a stratum: what the strata leave of the whole.
                    hit = hits[0, mine, c] - hits[1:, mine, c].sum()
                    case = cases[0, mine, c] - cases[1:, mine, c].sum()
                else:
                    continue
                counts[g, window, k, :, 0] = case - hit, hit
    return counts, [np.zeros((2, 0))] * 2, True


def _scored(
    tallies: Sequence[Tally],
    roles: Roles,
    rate: str,
    class_: str,
    groups: tuple[str, str],
    names: Sequence[str],
) -> tuple[FloatArray, list[FloatArray], bool]:
    """Cases by (group, window, stratum, hit, thresholds reached) from counts of scores."""
    truths, reached = _BY_SCORE[rate]
    held = [_entries(tally, roles, class_, truths) for tally in tallies]
    tables, shares = [], []
    for group in groups:
        mine = [entries.of_group(group) for entries in held]
        cuts = np.unique(np.concatenate([entries.cut for entries in mine]))
        if cuts.size > _MOST_CUTS:
            cuts = cuts[:0]
        tables.append([entries.table(names, cuts, reached) for entries in mine])
        share = np.zeros((2, cuts.size))
        for window, entries in enumerate(mine):
            for c, cut in enumerate(cuts):
                share[window, c] = entries.n[entries.cut == cut].sum() / max(entries.n.sum(), 1e-12)
        shares.append(share)
    most = max(table.shape[-1] for side in tables for table in side)
    padded = [
        [np.pad(t, [(0, 0), (0, 0), (0, most - t.shape[-1])]) for t in side] for side in tables
    ]
    shares = [np.pad(s, [(0, 0), (0, most - 1 - s.shape[1])]) for s in shares]
    return np.array(padded), shares, reached


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """Scored cells that are cases of a rate."""

    group: Any
    stratum: Any
    cut: FloatArray
    score: FloatArray
    reaches: Any
    n: FloatArray

    def of_group(self, group: str) -> "_Entries":
        """The cells of one group."""
        mine = self.group == group
        return _Entries(
            group=self.group[mine], stratum=self.stratum[mine], cut=self.cut[mine],
            score=self.score[mine], reaches=self.reaches[mine], n=self.n[mine],
        )  # fmt: skip

    def table(self, names: Sequence[str], cuts: FloatArray, reached: bool) -> FloatArray:
        """Counts by (stratum, hit, thresholds reached); its own is known exactly."""
        level = np.zeros(self.n.size, dtype=np.int64)
        for cut in cuts:
            own = self.cut == cut
            level += np.where(own, self.reaches, self.score >= cut).astype(np.int64)
        hit = (self.reaches == reached).astype(np.int64)
        places = {name: i for i, name in enumerate(names)}
        stratum = np.array([places[name] for name in self.stratum], dtype=np.int64)
        shape = (len(names), 2, cuts.size + 1)
        flat = np.ravel_multi_index((stratum, hit, level), shape) if self.n.size else stratum
        found = np.bincount(flat, self.n, minlength=int(np.prod(shape)))
        return found.astype(np.float64).reshape(shape)


def _entries(tally: Tally, roles: Roles, class_: str, truths: tuple[int, ...]) -> _Entries:
    entries = ScoreEntries.of(tally)
    use = (entries.side != UNCUT) & np.isin(truth_states(entries.tally, class_), truths)
    use &= entries.tally.codes["group"] >= 0
    entries = entries.take(use)
    held = entries.tally

    def named(key: str) -> Any:
        if key not in held.labels:
            return np.full(len(held), MISSING, dtype=object)
        return np.array([*held.labels[key], MISSING], dtype=object)[held.codes[key]]

    if "cut" in held.labels:
        cut = np.array([*map(float, held.labels["cut"]), np.nan])[held.codes["cut"]]
    else:
        cut = np.full(len(held), float(roles.threshold))  # type: ignore[arg-type]
    return _Entries(
        group=named("group"), stratum=named("stratum"), cut=cut, score=entries.score,
        reaches=entries.side >= AT, n=held.sums["n"],
    )  # fmt: skip


def _direction(tallies: Sequence[Tally], roles: Roles, group: str) -> int:
    """Whether the group's threshold rose (1) or fell (−1) on average."""
    means = []
    for tally in tallies:
        entries = _entries(tally, roles, "", (-1, 0, 1)).of_group(group)
        means.append(np.average(entries.cut, weights=entries.n) if entries.n.size else 0.0)
    return int(np.sign(means[1] - means[0]))


def _words(
    row: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    strata: Sequence[str],
    shares: Sequence[FloatArray],
    roles: Roles,
    raised: int,
    whose: Sequence[str],
) -> dict[str, str]:
    """What a part is: `words` as a sentence goes on after "because", `label` beside a bar."""
    part, stratum = row["part"], row["stratum"]
    where = f" where {roles.stratum} is {stratum}" if stratum is not None else ""
    if part == "total":
        return {"words": "the gap moved", "label": "all"}
    if part == "threshold":
        moved = {1: "raised", -1: "lowered", 0: "moved"}[raised]
        verb = "moved" if moved == "moved" else f"was {moved}"
        return {"words": f"the threshold {verb}{where}", "label": f"threshold {moved}"}
    if part == "scores":
        return {"words": f"scores moved{where}", "label": "scores moved"}
    if part == "rate":
        all_of = f"the rates within {roles.stratum} moved"
        words = f"the rate{where} moved" if where else all_of
        return {"words": words, "label": f"rates within {roles.stratum}"}
    if stratum is None:
        mixes = [r for r in rows if r["part"] == "mix" and r["stratum"] is not None]
        if not mixes:
            return {"words": "the mix moved", "label": "another mix"}
        stratum = max(mixes, key=lambda r: abs(r["value"]))["stratum"]
    k = list(strata).index(stratum)
    grown = [float(s[1, k] - s[0, k]) for s in shares]
    side = 0 if abs(grown[0]) >= abs(grown[1]) else 1
    more = "more" if grown[side] > 0 else "fewer"
    # A word says what they are; a number or an answer needs its column.
    word = str(stratum).isalpha() and str(stratum).lower() not in _ANSWERS
    what = f"are {stratum}" if word else f"have {roles.stratum} {stratum}"
    label = f"{more} {stratum} in the mix" if word and side == 0 else "another mix"
    return {"words": f"{more} {whose[side]} {what}", "label": label}
