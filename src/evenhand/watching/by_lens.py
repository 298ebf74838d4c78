"""Streams of what a lens says of each period and of all together: thresholds and labelers.

Implied thresholds are estimated in every period at one bandwidth, fixed by the first periods, and
over all periods from their merged tallies. Labelers recur from period to period, so only all
periods together are judged, with errors clustered by labeler, and no detector looks.
"""

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from evenhand.decisions.labels import REST
from evenhand.decisions.roles import Roles
from evenhand.decisions.tallied import TalliedDecisions
from evenhand.decisions.tallies.sets import Tallies, merge_all
from evenhand.errors import EvenhandError
from evenhand.findings.registry import LENSES
from evenhand.lenses.rows import Options
from evenhand.stats.estimate import critical
from evenhand.stats.sequential import BURN_IN
from evenhand.watching.store import Store, StoredPeriod
from evenhand.watching.streams import LENS_MEASURES, Stream, StreamKey, Watched

# Ratios vary as their logarithms do.
LOGARITHMIC = ("cost_ratio", "cost_ratio_ratio")
_LEVEL = 0.95
Told = dict[str, tuple[float, float, float, float]]


def lens_streams(
    store: Store,
    periods: Sequence[StoredPeriod],
    watched: Sequence[Watched],
    roles: Roles,
    places: Sequence[int],
) -> tuple[list[Stream], dict[str, dict[int, bytes]], dict[str, Any]]:
    """Streams of the thresholds and labelers lenses, what is new of them, and their settings."""
    asked = {one.measure: one for one in watched}
    if "implied_threshold" in asked:
        # The cost ratio says the same on another scale: one of them is enough.
        asked.pop("cost_ratio", None)
    streams: list[Stream] = []
    kept: dict[str, dict[int, bytes]] = {}
    settings: dict[str, Any] = {}
    for lens, measures in LENS_MEASURES.items():
        mine = {name: asked[name] for name in measures if name in asked}
        if not mine or len(places) < 1 or not _runs(lens, roles):
            continue
        options: dict[str, Any] = {}
        if lens == "thresholds":
            options["bandwidth"] = _bandwidth(store, periods, places)
            if options["bandwidth"] is None:
                continue
            settings["bandwidth"] = options["bandwidth"]
        last = periods[places[-1]]
        whole, kept[f"all/{lens}"] = _read(
            store, f"all/{lens}", [last], lens, options, of=[periods[p] for p in places]
        )
        single: dict[int, Told] = {}
        if lens == "thresholds":
            single, kept[lens] = _read(
                store, lens, [periods[p] for p in places], lens, options, of=None
            )
        for text, told in whole[last.id].items():
            key = StreamKey.of(text)
            if key.measure in mine:
                streams.append(_stream(key, mine[key.measure], told, single, periods, places, lens))
    return streams, kept, settings


def _runs(lens: str, roles: Roles) -> bool:
    if lens == "labelers":
        return roles.labeler is not None and roles.truth is not None and bool(roles.group)
    return roles.score is not None and roles.threshold is not None and roles.truth is not None


def _bandwidth(
    store: Store, periods: Sequence[StoredPeriod], places: Sequence[int]
) -> float | None:
    """The bandwidth of all periods: the one kept, or what the first periods together choose."""
    held = store.about.get("bandwidth")
    if held is not None:
        return float(held)
    first = merge_all(store.tallies(periods[p]) for p in places[:BURN_IN])
    try:
        found = LENSES["thresholds"].measure(TalliedDecisions(first), Options())
    except EvenhandError:
        return None
    widths = [
        group["bandwidth"]
        for attribute in found.details.get("attributes", ())
        for group in attribute["groups"]
        if group.get("bandwidth")
    ]
    return float(median(widths)) if widths else None


def _read(
    store: Store,
    name: str,
    periods: Sequence[StoredPeriod],
    lens: str,
    options: Mapping[str, Any],
    *,
    of: Sequence[StoredPeriod] | None,
) -> tuple[dict[int, Told], dict[int, bytes]]:
    """What a lens says of each period, or of all of them together; and what of it is new."""
    held = store.series(name)
    found: dict[int, Told] = {}
    new: dict[int, bytes] = {}
    mark = None if of is None else [stored.fingerprint for stored in of]
    for stored in periods:
        content = held.get(stored.id)
        if content is not None:
            document = json.loads(content)
            if document["of"] == mark:
                found[stored.id] = {k: tuple(v) for k, v in document["told"].items()}
                continue
        tallies = merge_all(store.tallies(one) for one in of) if of else store.tallies(stored)
        found[stored.id] = _measure(tallies, lens, options)
        new[stored.id] = json.dumps({"of": mark, "told": found[stored.id]}).encode()
    return found, new


def _measure(tallies: Tallies, lens: str, options: Mapping[str, Any]) -> Told:
    """Value, error, n and the reference's n by key; on the scale on which they vary."""
    try:
        rows = (
            LENSES[lens]
            .measure(TalliedDecisions(tallies), Options(level=_LEVEL, settings=dict(options)))
            .rows
        )
    except EvenhandError:
        # A period may have nothing that the lens can measure: it is no part of the stream.
        return {}
    found: Told = {}
    for row in rows:
        plain = row["stratum"] is None and row["labeler"] is None and row["reference"] != REST
        known = None not in (row["value"], row["low"], row["high"])
        if not (plain and known and row["measure"] in LENS_MEASURES[lens]):
            continue
        value, low, high = (row[name] for name in ("value", "low", "high"))
        if row["measure"] in LOGARITHMIC:
            if low <= 0:
                continue
            value, low, high = (float(np.log(x)) for x in (value, low, high))
        error = (high - low) / (2 * critical(_LEVEL))
        if not np.isfinite(error) or error <= 0:
            continue
        key = StreamKey(
            lens=lens, measure=row["measure"], class_=row["class"], attribute=row["attribute"],
            group=row["group"], reference=row["reference"],
        )  # fmt: skip
        found[key.text] = (value, error, float(row["n"] or 0), float(row["n_reference"] or 0))
    return found


def _stream(
    key: StreamKey,
    watched: Watched,
    whole: tuple[float, float, float, float],
    single: Mapping[int, Told],
    periods: Sequence[StoredPeriod],
    places: Sequence[int],
    lens: str,
) -> Stream:
    """A stream of values and errors by period, ended by what all of them together say."""
    known = [p for p in places if key.text in single.get(periods[p].id, {})]
    if lens == "labelers" or not known:
        columns, ends = [whole], [places[-1]]
        watched = Watched(measure=watched.measure, limits=watched.limits, detected=False)
    else:
        columns, ends = [single[periods[p].id][key.text] for p in known], known
    return Stream(
        key=key,
        watched=watched,
        counts=np.array(columns).T,
        places=tuple(ends),
        kind="labelers" if lens == "labelers" else "normal",
        whole=whole,
        looks=len(places),
        logarithmic=key.measure in LOGARITHMIC,
    )
