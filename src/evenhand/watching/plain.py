"""A look as plain values: its result rows, its series as the page draws them, its periods."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenhand.lenses.rows import Rows
from evenhand.lenses.scope import rule_name
from evenhand.stats.estimate import FloatArray
from evenhand.stats.sequential import half_width
from evenhand.watching.look import MOST_SERIES, Look
from evenhand.watching.numbers import Settings
from evenhand.watching.streams import Stream
from evenhand.watching.verdicts import Judged


def result_rows(look: Look, settings: Settings) -> Rows:
    """The result row of every stream at the last look: the average so far and its sequence."""
    many = len(look.judged)
    if not many:
        return Rows.block((0,))
    keys = [one.stream.key for one in look.judged]
    names = {end: look.periods[end].period.name for end in {_end(one) for one in look.judged}}
    n, n_reference = np.array([_cases(one.stream) for one in look.judged]).T
    bands = np.array([one.stream.band or (np.nan, np.nan) for one in look.judged])
    value, low, high, family_low, family_high = _last_look(look.judged)
    shown = partial(_shown, [one.stream.logarithmic for one in look.judged])
    return Rows.block(
        (many,), lens=[key.lens for key in keys], measure=[key.measure for key in keys],
        attribute=[key.attribute for key in keys], group=[key.group for key in keys],
        reference=[key.reference for key in keys], value=shown(value), low=shown(low),
        high=shown(high), level=settings.level, family_low=shown(family_low),
        family_high=shown(family_high), n=n, n_reference=n_reference,
        period=[names[_end(one)] for one in look.judged],
        method=[one.method for one in look.judged], rule=rule_name(look.roles),
        limit_low=shown(bands[:, 0]), limit_high=shown(bands[:, 1]),
        verdict=[one.verdict for one in look.judged], **{"class": [key.class_ for key in keys]},
    )  # fmt: skip


def _end(one: Judged) -> int:
    return one.stream.places[-1]


def _cases(stream: Stream) -> tuple[float, float]:
    """Cases of the group and of the reference over all periods; NaN where there is no second."""
    if stream.whole:
        return stream.whole[2], stream.whole[3] or np.nan
    first, second = stream.sizes
    return float(first.sum()), np.nan if second is None else float(second.sum())


def _last_look(judged: Sequence[Judged]) -> list[FloatArray]:
    """Value, sequence and family's sequence of streams at the last look."""
    value, error, tau = np.array(
        [(one.numbers.value[-1], one.numbers.error[-1], one.numbers.tau) for one in judged]
    ).T
    found = [value]
    for alpha in (judged[0].alpha, judged[0].alpha / judged[0].members):
        half = half_width(error, tau=tau, alpha=alpha)
        found += [value - half, value + half]
    return found


def _shown(logarithmic: Sequence[bool], values: FloatArray) -> FloatArray:
    """Values on the scale on which people see them."""
    return np.where(logarithmic, np.exp(np.where(logarithmic, values, 0.0)), values)


def shown_series(look: Look) -> list[dict[str, Any]]:
    """The streams that are drawn: those with an alarm, and the widest apart of the others."""
    names = [stored.period.name for stored in look.periods]
    chosen: Sequence[Judged] = look.judged
    if len(chosen) > MOST_SERIES:
        alarmed = {alarm.stored.stream for alarm in (*look.open_alarms, *look.still_outside)}
        value, _, _, low, high = _last_look(chosen)
        apart = np.abs(value) / np.maximum(high - low, 1e-12)
        open_ = np.array([bool(alarmed) and one.stream.key.text in alarmed for one in chosen])
        order = np.lexsort((-apart, ~open_))[:MOST_SERIES]
        chosen = [chosen[i] for i in order]
    return [series_of(one, names) for one in chosen]


def series_of(one: Judged, names: Sequence[str]) -> dict[str, Any]:
    """A stream's numbers by period, as the page draws them; `names` are of all periods."""
    first, second = one.stream.sizes
    n = first if second is None else first + second
    shown = one.stream.shown

    def plain(values: FloatArray) -> list[float | None]:
        numbers: list[float | None] = values.tolist()
        for place in np.flatnonzero(~np.isfinite(values)).tolist():
            numbers[place] = None
        return numbers

    key = one.stream.key
    return {
        "lens": key.lens, "measure": key.measure, "class": key.class_,
        "attribute": key.attribute, "group": key.group, "reference": key.reference,
        "periods": [names[place] for place in one.stream.places],
        "gap": plain(shown(one.numbers.gaps)), "n": plain(n),
        "value": plain(shown(one.numbers.value)),
        "low": plain(shown(one.family_low)), "high": plain(shown(one.family_high)),
        "ready": one.numbers.ready.tolist(),
        "limit": [float(shown(end)) for end in one.stream.band] if one.stream.band else None,
        "verdict": one.verdict, "provisional": one.provisional,
    }  # fmt: skip


def shown_periods(look: Look) -> list[dict[str, Any]]:
    """Every period: when, how many rows, whether it is judged, and whose truth is missing."""
    of = {place: run.number for run in look.sequences for place in run.places}
    named = look.roles.truth is not None
    lacking = {
        name: (history.groups, history.unlabelled())
        for name, history in look.histories.items()
        if named and name != "pairs"
    }
    found = []
    for place, (stored, state) in enumerate(zip(look.periods, look.states)):
        stopped = look.stop is not None and place >= look.stop
        unlabelled = {
            name: {
                group: round(float(share), 6)
                for group, share in zip(groups, shares[place])
                if share == share
            }
            for name, (groups, shares) in lacking.items()
        }
        found.append(
            {"period": stored.period.name, "start": stored.period.start.isoformat(),
             "end": stored.period.end.isoformat(), "rows": stored.rows,
             "fingerprint": stored.fingerprint, "sequence": of[place],
             "judged": state.judged and not stopped,
             "why": "the words changed" if state.judged and stopped else state.why,
             "unlabelled": unlabelled}
        )  # fmt: skip
    return found
