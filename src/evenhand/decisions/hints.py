"""What is worth saying of a table that was read as it is: names alike, and cuts without effect."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evenhand.decisions.roles import Roles
from evenhand.decisions.tally import Tally
from evenhand.speech import agree, plural
from evenhand.stats.estimate import FloatArray

# Pairs of names that are told; more of them are counted.
MOST_TOLD = 3
ALIKE = "differ only in case, spaces or Unicode form. If they are one, write them alike."


def reading_hints(roles: Roles, tallies: Sequence[Tally]) -> list[str]:
    """Sentences on names that differ in their spelling alone and on thresholds that divide nobody.

    Examples:
        >>> tally = Tally.of({"group": ["Female", "female ", "male"]}, {"n": [2, 1, 3]})
        >>> for hint in reading_hints(Roles(), [tally]):
        ...     print(hint)
        The groups 'Female' and 'female ' differ only in case, spaces or Unicode form. If they are \
one, write them alike.
    """
    # A crossed group is as alike to another as its parts, which are told already.
    groups = [name for name in _labels(tallies, "group") if "*" not in name]
    hints = _alike(groups, "groups")
    hints += _alike(_labels(tallies, "stratum"), "strata")
    hints += _alike([*_labels(tallies, "truth", "decision"), *roles.scores], "classes")
    # Names of labelers are their own business: they are counted, not told.
    people = len(_pairs(_labels(tallies, "labeler")))
    if people:
        hints.append(f"The names of {plural(people, 'pair')} of labelers {ALIKE}")
    return [*hints, *_without_effect(roles, tallies)]


def _labels(tallies: Iterable[Tally], *keys: str) -> list[str]:
    names = (name for tally in tallies for key in keys for name in tally.labels.get(key, ()))
    return list(dict.fromkeys(names))


def plainly(name: str) -> str:
    """A name without what the eye passes over: case, spaces around and between, Unicode form.

    Examples:
        >>> plainly(" Ｓão\\u00a0 Paulo") == plainly("são paulo")
        True
    """
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _pairs(names: Iterable[str]) -> list[list[str]]:
    """Two of the names of each set that is spelled alike."""
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(plainly(name), []).append(name)
    return [sorted(set(same))[:2] for same in spelled.values() if len(set(same)) > 1]


def _alike(names: Iterable[str], called: str) -> list[str]:
    pairs = _pairs(names)
    hints = [f"The {called} {one!r} and {other!r} {ALIKE}" for one, other in pairs[:MOST_TOLD]]
    if len(pairs) > MOST_TOLD:
        more = len(pairs) - MOST_TOLD
        verb = agree(more, "is", "are")
        hints.append(f"{plural(more, 'more pair')} of {called} {verb} as alike.")
    return hints


def _without_effect(roles: Roles, tallies: Sequence[Tally]) -> list[str]:
    """Sentences on thresholds that select nobody, or everybody: allowed, and seldom meant."""
    if roles.rule == "one-versus-rest":
        return _classes_without_effect(roles, tallies)
    if roles.rule != "score>=t":
        return []
    tally = next((t for t in tallies if "decision" in t.labels and "group" in t.labels), None)
    if tally is None:
        return []
    counts = tally.relabel("decision", ["0", "1"]).dense(["group", "decision"], "n")
    whole = _selected(counts.sum(axis=0))
    if whole is not None:
        given = roles.threshold
        which = f"threshold={given:g}" if isinstance(given, int | float) else "The threshold"
        return [f"{which} selects {whole}: every score lies {_side(whole)} it."]
    if not isinstance(roles.threshold, Mapping) or "*" in "".join(tally.labels["group"]):
        return []
    each = zip(tally.labels["group"], map(_selected, counts))
    return [
        f"threshold={roles.threshold[name]:g} selects {who} of {name!r}: every score lies "
        f"{_side(who)} it."
        for name, who in each
        if who is not None and name in roles.threshold
    ]


def _classes_without_effect(roles: Roles, tallies: Sequence[Tally]) -> list[str]:
    tally = next((t for t in tallies if "scored" in t.codes), None)
    if tally is None:
        return []
    scored = tally.codes["scored"] >= 0
    rows = tally.sums["n"][scored].sum()
    by_effect: dict[str, list[str]] = {}
    for name in roles.scores:
        hits = float(tally.sums[f"hit:{name}"][scored].sum())
        who = _selected(np.array([rows - hits, hits]))
        if who is not None:
            by_effect.setdefault(who, []).append(repr(name))
    return [
        f"The threshold selects {who} for {', '.join(names[:8])}: every score lies {_side(who)} it."
        for who, names in by_effect.items()
    ]


def _selected(counts: FloatArray) -> str | None:
    no, yes = counts
    if no + yes == 0 or (no and yes):
        return None
    return "everybody" if yes else "nobody"


def _side(who: str) -> str:
    return "below" if who == "nobody" else "at or above"
