"""The ledger in words: what each remedy moved, left and cost, and which one to start from.

A change is told as one only where it is neither chance nor too small for people to see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.speech import agree, listed, opening, signed

Cell = Mapping[str, Any]
# Below these a change is not told as one, however small its error: people could not see it.
LEAST = 0.005
LEAST_SHARE = 0.10
LEAST_SLOPE = 0.10
# A rise of this share of the baseline is worth a word even where chance may have made it.
LARGE_SHARE = 0.5
AIMS = (
    ("true_positive_rate_gap_rms", "true positive gaps"),
    ("counterfactual_true_positive_rate_gap_rms", "counterfactual gaps"),
)
SLOPE, SLOPES = "norm_slope", "the norm slope"


def remedy_sentence(row: Mapping[str, Any], *, groups: Sequence[str]) -> str:
    """Sentences on one row of the ledger, a verdict on nothing: what moved, what stayed.

    Examples:
        >>> row = {"remedy": "cocl", "status": "skipped", "reason": "needs names"}
        >>> remedy_sentence(row, groups=["f", "m"])
        'Not trained: needs names.'
    """
    if row["status"] == "skipped":
        return f"Not trained: {_ended(row['reason'])}"
    if row["status"] == "failed":
        return f"Training failed: {_ended(row['reason'])}"
    measures = row["measures"]
    if row["remedy"] == "baseline":
        return _baseline(measures, groups)
    moved, left, open_ = [], [], []
    for name, words in AIMS:
        cell = measures[name]["all"]
        if cell["value"] is None or cell["difference"] is None:
            continue
        way = direction(cell)
        change = f"{_points(_before(cell))} to {_points(cell['value'])} points"
        change += _interval(cell, scale=100)
        if way:
            verb = "lowered" if way < 0 else "raised"
            moved.append(f"{verb} {words} from {change}")
        elif may_rise(cell):
            open_.append(f"{words} went from {change}, which may be chance")
        else:
            left.append(f"{words} ({_points(cell['value'])} points)")
    slopes = []
    for group in groups:
        cell = measures[SLOPE][group]
        if cell["value"] is None or cell["difference"] is None:
            continue
        before, way = _before(cell), direction(cell, least=LEAST_SLOPE / 2)
        if way and abs(cell["value"]) < abs(before):
            moved.append(
                f"brought the norm slope of '{group}' from {signed(before, 2)} to "
                f"{signed(cell['value'], 2)}{_interval(cell)}"
            )
        elif way:
            moved.append(
                f"steepened the norm slope of '{group}' from {signed(before, 2)} to "
                f"{signed(cell['value'], 2)}{_interval(cell)}"
            )
        else:
            slopes.append(f"'{group}' ({signed(cell['value'], 2)})")
    if slopes:
        left.append(
            f"{agree(len(slopes), 'the norm slope', 'the norm slopes')} of {listed(slopes)}"
        )
    told = [_sentence("", moved), _sentence("", open_), _sentence("left ", left)]
    told += _warnings(measures, groups)
    told.append(_cost(measures["accuracy"]["all"]))
    if row["needs_group_at_decision"]:
        told.append("Needs the group at decision time.")
    return " ".join(each for each in told if each)


def direction(cell: Cell, *, least: float = LEAST) -> int:
    """−1 or 1 where a measure moved, 0 where the change may be chance or is too small to see.

    By the interval where there is one, else by two standard errors over seeds, and with one seed
    by size alone: in every case a tenth of the baseline.
    """
    gap = cell["difference"]
    before = _before(cell)
    if abs(gap) < max(least, LEAST_SHARE * abs(before)):
        return 0
    if cell["low"] is not None:
        return 0 if cell["low"] <= 0 <= cell["high"] else int(np.sign(gap))
    if cell["difference_sd"] is not None:
        error = cell["difference_sd"] / np.sqrt(max(cell["seeds"], 1))
        return 0 if abs(gap) < 2 * error else int(np.sign(gap))
    return int(np.sign(gap))


def may_rise(cell: Cell) -> bool:
    """Whether a measure is so much larger that it is worth a word, though it may be chance."""
    before = _before(cell)
    return bool(cell["difference"] >= max(2 * LEAST, LARGE_SHARE * abs(before)))


def recommend(rows: Sequence[Mapping[str, Any]], *, groups: Sequence[str], budget: float) -> str:
    """Which remedy to start from, by a rule that anybody can check, and what is given up for it.

    Of the remedies that no other beats on every column and that lose at most `budget` of the
    accuracy, the one that lowers most of three things: true positive gaps, counterfactual gaps and
    norm slopes; of those the one that lowers them by the largest share. One that needs no group at
    decision time goes before one that does.
    """
    tried = [row for row in rows if row["status"] == "measured" and row["remedy"] != "baseline"]
    if not tried:
        return "No remedy was trained, so there is nothing to choose from."
    within = [row for row in tried if row["pareto"] and _loss(row) <= budget + 1e-12]
    useful = [row for row in within if _gains(row, groups)[0] > 0]
    if not useful:
        return (
            f"No remedy that costs at most {_points(budget)} points of accuracy lowers what was "
            "measured here beyond chance. What remains is to look at the data and the rule."
        )
    best = max(useful, key=lambda row: (not row["needs_group_at_decision"], *_gains(row, groups)))
    changes = [aim.change for aim in _aims(best, groups) if aim.moved < 0]
    told = [f"Start from {best['remedy']}: it lowers {listed(changes)}. {_price(best)}"]
    told += _given_up(best, [row for row in within if row is not best], groups)
    if best["needs_group_at_decision"]:
        told.append(
            "It decides by the person's group, and whether that is allowed is a question of law."
        )
    if best["seeds"] == 1:
        told.append("All of it is from one training set: repeat it with --seeds 5 before choosing.")
    return " ".join(told)


def recommend_for(
    rows: Sequence[Mapping[str, Any]], aim: str, *, groups: Sequence[str], budget: float
) -> str | None:
    """The remedy to start from against one thing alone; None where none lowers it beyond chance.

    `aim` is what is to be lowered: true positive gaps, counterfactual gaps or the norm slope. Of
    the remedies that lose at most `budget` of the accuracy, the one that lowers it most.
    """

    def change(row: Mapping[str, Any]) -> list[_Aim]:
        return [one for one in _aims(row, groups) if one.words == aim and one.moved < 0]

    tried = [row for row in rows if row["status"] == "measured" and row["remedy"] != "baseline"]
    useful = [row for row in tried if _loss(row) <= budget + 1e-12 and change(row)]
    if not useful:
        return None

    def lowered(row: Mapping[str, Any]) -> tuple[bool, float]:
        shares = sum(1 - abs(one.after) / abs(one.before) for one in change(row) if one.before)
        return not row["needs_group_at_decision"], shares

    best = max(useful, key=lowered)
    told = f"Of the remedies compared, start from {best['remedy']}: it lowers "
    told += f"{listed([one.change for one in change(best)])}. {_price(best)}"
    return f"{told} Repeat it with --seeds 5 before choosing." if best["seeds"] == 1 else told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aim:
    """Something that remedies try to lower, before and after, and whether it moved (−1, 0, 1)."""

    words: str
    group: str | None
    before: float
    after: float
    moved: int
    may_have_risen: bool = False

    @property
    def change(self) -> str:
        """Its words and numbers."""
        return self._change("from")

    @property
    def change_words(self) -> str:
        """The same as what happened: it went from here to there."""
        return self._change("went from")

    def _change(self, verb: str) -> str:
        if self.group is not None:
            whose = f"{self.words} of '{self.group}'"
            return f"{whose} {verb} {signed(self.before, 2)} to {signed(self.after, 2)}"
        return f"{self.words} {verb} {_points(self.before)} to {_points(self.after)} points"


def _aims(row: Mapping[str, Any], groups: Sequence[str]) -> list[_Aim]:
    """What a remedy did to each thing that it might lower; what has no number is left out."""
    measures = row["measures"]
    cells: list[tuple[str, str | None, Cell, float]] = [
        (words, None, measures[name]["all"], LEAST) for name, words in AIMS
    ]
    cells += [(SLOPES, one, measures[SLOPE][one], LEAST_SLOPE / 2) for one in groups]
    found = []
    for words, group, cell, least in cells:
        if cell["value"] is None or cell["difference"] is None:
            continue
        before, after = _before(cell), float(cell["value"])
        way = int(np.sign(abs(after) - abs(before))) if direction(cell, least=least) else 0
        rise = group is None and may_rise(cell)
        found.append(
            _Aim(words=words, group=group, before=before, after=after, moved=way,
                 may_have_risen=rise)
        )  # fmt: skip
    return found


def _gains(row: Mapping[str, Any], groups: Sequence[str]) -> tuple[int, float]:
    """How many aims were lowered less those that rose, and the sum of the shares by which."""
    moved = [aim for aim in _aims(row, groups) if aim.moved and aim.before]
    shares = [1 - abs(aim.after) / abs(aim.before) for aim in moved]
    return -sum(aim.moved for aim in moved), sum(shares)


def _price(row: Mapping[str, Any]) -> str:
    lost = 100 * _loss(row)
    if lost >= 0.05:
        return f"It costs {lost:.1f} points of accuracy."
    return "It costs no accuracy."


def _given_up(
    best: Mapping[str, Any], others: Sequence[Mapping[str, Any]], groups: Sequence[str]
) -> list[str]:
    """What the choice does not lower, and the first other remedy that would lower some of it."""
    left = [aim for aim in _aims(best, groups) if aim.moved >= 0]
    if not left:
        return []
    raised = [aim for aim in left if aim.moved > 0]
    perhaps = [aim for aim in left if aim.moved == 0 and aim.may_have_risen]
    still = [aim for aim in left if aim not in raised and aim not in perhaps]
    told = [f"It raises {listed([aim.change for aim in raised])}."] if raised else []
    told += [f"With it {aim.change_words}, which may be chance." for aim in perhaps]
    told += [f"It does not lower {_named(still)}."] if still else []
    names = {(aim.words, aim.group) for aim in left}
    for row in others:
        lowered = [
            aim for aim in _aims(row, groups) if aim.moved < 0 and (aim.words, aim.group) in names
        ]
        if lowered:
            lost = 100 * _loss(row)
            price = f"for {lost:.1f} points of accuracy" if lost >= 0.05 else "at no accuracy"
            told.append(f"{opening(row['remedy'])} would lower {_named(lowered)}, {price}.")
            break
    return told


def _named(aims: Sequence[_Aim]) -> str:
    """The names of aims; slopes of several groups are one name."""
    whose = [f"'{aim.group}'" for aim in aims if aim.group is not None]
    names = [aim.words for aim in aims if aim.group is None]
    if whose:
        slopes = agree(len(whose), "the norm slope", "the norm slopes")
        names.append(f"{slopes} of {listed(whose)}")
    return listed(names)


def _loss(row: Mapping[str, Any]) -> float:
    """The accuracy that a remedy costs; less than 0 where it gains."""
    difference = row["measures"]["accuracy"]["all"]["difference"]
    return 0.0 if difference is None else -float(difference)


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(cell: Cell, *, scale: float = 1) -> str:
    """The interval of a change, where there are seeds enough for one."""
    if cell["low"] is None:
        return ""
    digits = 1 if scale == 100 else 2
    low, high = (signed(scale * cell[end], digits) for end in ("low", "high"))
    return f" (a change of {low} to {high})"


def _before(cell: Cell) -> float:
    return float(cell["value"] - cell["difference"])


def _warnings(measures: Mapping[str, Any], groups: Sequence[str]) -> list[str]:
    """Over-correction, bias moved to another group, and what a second scorer says."""
    told = []
    fell: list[str] = []
    rose: list[str] = []
    for group in groups:
        cell = measures[SLOPE][group]
        if cell["value"] is None or cell["difference"] is None:
            continue
        before, after = _before(cell), cell["value"]
        if before * after < 0 and abs(after) > LEAST_SLOPE / 2 and direction(cell):
            told.append(
                f"Over-corrected for '{group}': the norm slope passed 0, from "
                f"{signed(before, 2)} to {signed(after, 2)}."
            )
        change = abs(after) - abs(before)
        if abs(change) > LEAST_SLOPE / 2 and direction(cell):
            (rose if change > 0 else fell).append(group)
    if fell and rose:
        told.append(
            f"Norm bias fell for {_names(fell)} and rose for {_names(rose)}: it was moved rather "
            "than lowered."
        )
    for group in fell:
        told += _second(measures, group)
    return told


def _second(measures: Mapping[str, Any], group: str) -> list[str]:
    first, cell = measures[SLOPE][group], measures[f"{SLOPE}_second"][group]
    if cell["value"] is None or cell["difference"] is None:
        return []
    before, after = _before(cell), cell["value"]
    fall = abs(_before(first)) - abs(first["value"])
    kept = abs(before) - abs(after)
    words = f"from {signed(before, 2)} to {signed(after, 2)}"
    if kept < fall / 2:
        return [f"By a second norm scorer less is gained for '{group}': {words}."]
    return [f"A second norm scorer agrees for '{group}': {words}."]


def _cost(cell: Cell) -> str:
    if cell["difference"] is None:
        return ""
    points = 100 * cell["difference"]
    if abs(points) < 0.05:
        return "Accuracy stayed as it was."
    return f"Accuracy {'gained' if points > 0 else 'lost'} {abs(points):.1f} points."


def _baseline(measures: Mapping[str, Any], groups: Sequence[str]) -> str:
    accuracy, trivial = (measures[n]["all"]["value"] for n in ("accuracy", "trivial_accuracy"))
    told = [
        f"Right in {accuracy:.1%} of the test rows; always deciding the most common class would "
        f"be right in {trivial:.1%}."
    ]
    gaps = measures["true_positive_rate_gap_rms"]["all"]["value"]
    swap = measures["counterfactual_true_positive_rate_gap_rms"]["all"]
    if gaps is not None:
        told.append(f"True positive gaps of {_points(gaps)} points, typically over classes.")
    if swap["value"] is not None:
        told.append(f"Counterfactual gaps of {_points(swap['value'])} points.")
    elif swap["undefined"]:
        told.append(f"Counterfactual gaps: {_ended(swap['undefined'])}")
    slopes = {g: measures[SLOPE][g]["value"] for g in groups}
    known = [f"'{g}' {signed(v, 2)}" for g, v in slopes.items() if v is not None]
    if known:
        told.append(f"Norm slopes: {', '.join(known)}.")
    return " ".join(told)


def _sentence(verb: str, parts: list[str]) -> str:
    if not parts:
        return ""
    return opening(f"{verb}{'; '.join(parts)}.")


def _names(groups: Sequence[str]) -> str:
    return listed([f"'{each}'" for each in groups])


def _ended(reason: str) -> str:
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."
