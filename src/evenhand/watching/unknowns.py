"""What a look cannot tell, in sentences: what is not judged yet, not there, or not known."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.decisions.labels import MISSING, ordered
from evenhand.lenses.scope import HIDDEN_UNDER
from evenhand.speech import agree, listed, opening, percent, plural
from evenhand.stats.sequential import BURN_IN
from evenhand.watching.look import Look, LookQuestion
from evenhand.watching.periods import Period
from evenhand.watching.streams import History, hidden_bounds, unlabelled_bounds
from evenhand.watching.verdicts import CHANGE

# Beyond this many groups and classes that come and go, they are counted.
MOST_COMINGS = 8


def unknowns(look: Look, question: LookQuestion) -> list[str]:
    """What the data cannot tell, in sentences."""
    notes: list[str] = []
    if not look.periods:
        return notes
    every = look.periods[0].period.every
    if not look.places:
        if look.stop is not None:
            return notes
        return [f"No {every} is whole and mature yet, so nothing is judged."]
    unfinished = [s for s, state in zip(look.periods, look.states) if not state.judged]
    for why, words in (
        ("unfinished", "not judged: the data do not reach over all of {it}"),
        ("not mature", "not judged yet: labels still arrive"),
    ):
        which = [
            stored.period for stored, state in zip(look.periods, look.states) if state.why == why
        ]
        if which and unfinished:
            said = words.format(it="it" if len(which) == 1 else "them")
            notes.append(f"{_spoken(which)} {'is' if len(which) == 1 else 'are'} {said}.")
    if look.stop is not None:
        which = [p.period for p, state in zip(look.periods[look.stop :], look.states[look.stop :])
                 if state.judged]  # fmt: skip
        be = agree(len(which), "is", "are")
        notes += [f"{_spoken(which)} {be} not judged: the words changed."] if which else []
    if len(look.places) < BURN_IN:
        notes.append(
            f"{plural(len(look.places), every)} of {BURN_IN} are there: until then verdicts are "
            "provisional and no detector looks."
        )
    if len(look.sequences) > 1:
        notes.append(
            f"The model, the threshold or the charter changed: this is sequence "
            f"{len(look.sequences)}, and {1 - question.settings.level:.0%} holds for each."
        )
    settings = question.settings
    if settings.horizon and len(look.places) > settings.horizon:
        notes.append(
            f"The {settings.horizon} {every}s that were planned are over: from here on alarms are "
            "spent as without a horizon, so that false ones may be twice as frequent."
        )
    if any(alarm.stored.detector == CHANGE for alarm in look.open_alarms):
        notes.append(
            f"A gap that wanders by itself or drifts slowly looks like a change, too: then the "
            f"{every} named is not a date."
        )
    notes += [*_gaps(look), *_comings(look), *_newcomers(look)]
    return notes + _undecided(look) + _hidden(look) + _unlabelled(look)


def _gaps(look: Look) -> list[str]:
    """Periods in the middle that nobody gave, or in which nothing was decided."""
    numbers = [stored.period.number for stored in look.periods]
    every, held = look.periods[0].period.every, set(numbers)
    absent = [
        Period(every=every, number=n) for n in range(numbers[0], numbers[-1]) if n not in held
    ]
    if not absent:
        return []
    verb = agree(len(absent), "has", "have")
    return [f"{_spoken(absent)} {verb} no rows: what happened there is not known."]


def _comings(look: Look) -> list[str]:
    """Groups and classes that are not there in every period: since when, or until when."""
    notes = []
    names = [look.periods[place].period.name for place in look.places]
    for attribute, history in look.histories.items():
        if attribute == "pairs" or len(names) < 2:
            continue
        counts = history.counts[list(look.places)]
        rows = counts[:, :, 0].sum(axis=(-1, -2))
        for i, group in enumerate(history.groups):
            if group != MISSING and rows[:, i].any():
                who = f"group {group}" if len(look.histories) == 1 else f"{attribute} {group}"
                notes += _coming(who, rows[:, i] > 0, names)
        # A class is there where somebody has it, by the truth or by a decision.
        table = counts.sum(axis=1)
        seen = table[..., 1, :].sum(axis=-1) + table[..., :, 1].sum(axis=-1) > 0
        for c, class_ in enumerate(history.classes):
            if len(history.classes) > 2 and seen[:, c].any() and not seen[0, c]:
                notes.append(f"Class {class_} is new in {names[int(np.argmax(seen[:, c]))]}.")
    if len(notes) > MOST_COMINGS:
        return [f"{len(notes):,} groups or classes come or go."]
    return notes


def _newcomers(look: Look) -> list[str]:
    """Classes that came later and are too rare to stop anything, where nobody named them yet."""
    said = {name for held in look.histories.values() if len(held.classes) > 2
            for name in held.classes}  # fmt: skip
    return [
        f"Class {class_} is new in {look.periods[place].period.name}, with {plural(rows, 'row')}."
        for class_, place, rows in look.vocabulary.newcomers
        if class_ not in said
    ][:MOST_COMINGS]


def _coming(who: str, there: Any, names: Sequence[str]) -> list[str]:
    """When a group came, went or was away."""
    first, last = int(np.argmax(there)), len(there) - 1 - int(np.argmax(there[::-1]))
    said = []
    if first:
        said.append(f"no rows before {names[first]}")
    if last < len(names) - 1:
        said.append(f"no rows since {names[last]}")
    away = [name for name, here in zip(names[first:last], there[first:last]) if not here]
    if away:
        said.append(f"no rows in {listed(away, most=4)}, which count with what follows")
    return [f"{opening(who)} has {listed(said)}."] if said else []


def _undecided(look: Look) -> list[str]:
    """Rows that say nothing of what was decided."""
    counts = next((h.counts for name, h in look.histories.items() if name != "pairs"), None)
    if counts is None or look.roles.weight or look.roles.review_share:
        return []
    rows = sum(look.periods[place].rows for place in look.places)
    left = rows - round(float(counts[list(look.places)][:, :, 0].sum()))
    if left <= 0:
        return []
    return [
        f"{percent(left / rows)} of the rows have no decision; they count for nothing, and could "
        "hide anything."
    ]


def _hidden(look: Look) -> list[str]:
    """What rows without a group could hide."""
    notes = []
    for name, history in look.histories.items():
        if MISSING not in history.groups or name == "pairs":
            continue
        used = _all_periods(look, name, history)
        rows = used.counts[0, :, 0].sum(axis=(-1, -2))
        share = rows[used.groups.index(MISSING)] / rows.sum()
        if not share > 0:
            continue
        moves = []
        for one in look.judged:
            bounds = hidden_bounds(used, one.stream) if one.stream.key.attribute == name else None
            if bounds is not None:
                value = one.numbers.value[-1]
                moves.append(max(value - bounds[0], bounds[1] - value))
        if moves:
            notes.append(
                f"{percent(share)} of the rows have no {name}; they could hide up to "
                f"{100 * max(moves):.1f} points either way."
            )
    return notes


def _all_periods(look: Look, attribute: str, history: History) -> History:
    """The counts of the periods that are judged, as if they were one."""
    whole = history.counts[list(look.own_places(attribute))].sum(axis=0, keepdims=True)
    return replace(history, counts=whole)


def _unlabelled(look: Look) -> list[str]:
    """Groups whose truth is missing more often than others', so that errors may look unequal."""
    if look.roles.truth is None:
        return []
    notes = []
    for name, history in look.histories.items():
        if name == "pairs":
            continue
        used = _all_periods(look, name, history)
        table = used.counts[0, :, 0]
        rows = table.sum(axis=(-1, -2))
        shares = {
            group: float(table[i, 2].sum() / rows[i])
            for i, group in enumerate(history.groups)
            if group != MISSING and rows[i] >= HIDDEN_UNDER
        }
        if shares and max(shares.values()) - min(shares.values()) > 0.01:
            named = [f"{percent(shares[g])} of {g}" for g in ordered(shares)]
            moves = [
                max(one.numbers.value[-1] - bounds[0], bounds[1] - one.numbers.value[-1])
                for one in look.judged
                if one.stream.key.attribute == name
                and (bounds := unlabelled_bounds(used, one.stream)) is not None
            ]
            could = (
                f" They could move gaps by up to {100 * max(moves):.1f} points." if moves else ""
            )
            notes.append(
                f"By {name}, {listed(named, most=6)} have no truth yet; where labels arrive later "
                f"for one group, its errors look rarer until they are there.{could}"
            )
    return notes


def _spoken(periods: Sequence[Period]) -> str:
    names = [period.name for period in periods]
    return listed(names, most=4)
