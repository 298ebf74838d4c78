"""Tally sets of every period of a table, counted in one pass."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.decisions.question import Question
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.collect import Need, collect_tallies
from evenhand.decisions.tallies.privacy import with_names
from evenhand.decisions.tallies.sets import Tallies
from evenhand.decisions.tally import Tally
from evenhand.decisions.times import PERIOD, PeriodSpan, dated

_KEY = "period"


class DatedDecisions(Decisions):
    """Decisions whose every count is also by period."""

    def question(
        self,
        keys: Mapping[str, nw.Expr],
        sums: Mapping[str, nw.Expr],
        *,
        frame: Frame | None = None,
        attribute: Attribute | None = None,
    ) -> Question:
        """A grouped aggregation by these keys and the period."""
        by: dict[str, Any] = {_KEY: nw.col(PERIOD), **keys}
        return super().question(by, sums, frame=frame, attribute=attribute)


def tally_periods(
    decisions: Decisions,
    needs: Iterable[Need],
    *,
    every: str,
    tz: str | None = None,
    latest: date,
    key: bytes | None = None,
) -> tuple[list[tuple[PeriodSpan, Tallies]], int]:
    """The tally set of each period, in order, and how many rows have no time.

    With a `key`, labelers, items and clusters get keyed hashes, so that sets merge.

    Examples:
        >>> table = {"day": ["2026-03-02", "2026-03-09", "2026-03-10"], "d": [1, 0, 1]}
        >>> decisions = Decisions(table | {"g": ["f", "m", "m"]}, decision="d", group="g",
        ...                       time="day")
        >>> from evenhand.decisions.tallies.collect import group_needs
        >>> sets, _ = tally_periods(decisions, group_needs("counts", decisions.roles),
        ...                         every="week", latest=date(2026, 4, 1))
        >>> [(span.first.isoformat(), tallies.rows) for span, tallies in sets]
        [('2026-03-02', 1), ('2026-03-09', 2)]
    """
    table, spans, missing = dated(decisions, every=every, tz=tz, latest=latest)
    by_period = object.__new__(DatedDecisions)
    by_period.__dict__.update(table.__dict__)
    whole = collect_tallies(by_period, needs, in_arrays=False)
    if key is not None:
        whole = with_names(whole, key=key)
    parts = {name: _split(tally) for name, tally in whole.tables.items()}
    sets = []
    for span in spans:
        tables = {
            name: split.get(str(span.number), _empty(whole.tables[name]))
            for name, split in parts.items()
        }
        sets.append((span, replace(whole, tables=tables, rows=span.rows)))
    return sets, missing


def _split(tally: Tally) -> dict[str, Tally]:
    """A tally by period as one for each period."""
    plain = _without_period(tally)
    order = np.argsort(tally.codes[_KEY], kind="stable")
    codes = tally.codes[_KEY][order]
    edges = np.flatnonzero(np.diff(codes)) + 1
    return {
        tally.labels[_KEY][tally.codes[_KEY][places[0]]]: plain.take(places).pruned()
        for places in np.split(order, edges)
        if places.size
    }


def _empty(tally: Tally) -> Tally:
    return _without_period(tally).take(np.zeros(0, dtype=np.int64)).pruned()


def _without_period(tally: Tally) -> Tally:
    return Tally(
        labels={k: v for k, v in tally.labels.items() if k != _KEY},
        codes={k: v for k, v in tally.codes.items() if k != _KEY},
        sums=tally.sums,
    )
