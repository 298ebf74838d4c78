"""Groups that were inferred: rates corrected for a known confusion of groups, and bounds."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.scope import choose_reference
from evenhand.lenses.statistical.confusion import confusion as two_by_two
from evenhand.stats.estimate import FloatArray, critical, number
from evenhand.stats.noisy_truth import LARGEST_CONDITION, group_rate_bounds, true_given_assigned

RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredRate:
    """A rate of a true group, or its gap to the reference.

    `observed` is what the assigned group shows. `value`, `low` and `high` assume that wrong
    assignment does not depend on the decision; from `bound_low` to `bound_high` the rate lies
    whatever it depends on (`outer_low`, `outer_high` with sampling error). `share` is the part
    of the cases that truly belong to the group, `n` the cases assigned to it.
    """

    measure: str
    group: str
    reference: str | None
    observed: float | None
    value: float | None
    low: float | None
    high: float | None
    bound_low: float | None
    bound_high: float | None
    outer_low: float | None
    outer_high: float | None
    share: float | None
    n: float
    undefined: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredGroups:
    """Corrected rates of all groups and their gaps; `condition` is how much noise is blown up."""

    rates: tuple[InferredRate, ...]
    gaps: tuple[InferredRate, ...]
    condition: float
    level: float
    method: str

    def to_frame(self) -> Any:
        """Rates and gaps as a Polars data frame."""
        import polars as pl

        return pl.DataFrame([asdict(row) for row in (*self.rates, *self.gaps)])

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, allow_nan=False)

    def __str__(self) -> str:
        return "\n".join(_line(row) for row in (*self.rates, *self.gaps))

    def _repr_html_(self) -> str:
        from html import escape

        return "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())


def inferred_groups(
    data: Decisions | Tally,
    *,
    confusion: Mapping[str, Mapping[str, float]],
    attribute: str | None = None,
    positive: str | None = None,
    reference: str | None = None,
    level: float = 0.95,
) -> InferredGroups:
    """Selection, true and false positive rates of true groups behind inferred ones.

    Args:
        data: A table of decisions, or its tally by (group, truth, decision), groups as assigned.
        confusion: P(assigned | true) as {true group: {assigned group: probability}}, known.
        attribute: Which group column, where the table has several.
        positive: The class that counts as positive, for a tally of words.
        reference: Group that gaps are taken to; by default the one with most cases.
        level: Confidence level.

    Examples:
        >>> counts = {"n": [10390, 4110, 4810, 690]}
        >>> tally = Tally.of({"group": ["a", "a", "b", "b"], "decision": [0, 1, 0, 1]}, counts)
        >>> known = {"a": {"a": 0.95, "b": 0.05}, "b": {"a": 0.2, "b": 0.8}}
        >>> gap = inferred_groups(tally, confusion=known).gaps[0]
        >>> print(f"{gap.observed:.3f} observed, {gap.value:.3f} [{gap.low:.3f}, {gap.high:.3f}]")
        -0.158 observed, -0.200 [-0.214, -0.186]
    """
    tally, roles = _tally(data, attribute, positive)
    table = two_by_two(tally, roles)
    if table.positive is None:
        raise UsageError(
            "Inferred groups are corrected for one class against the rest. "
            "Say which one counts as positive with positive=."
        )
    matrix = _matrix(confusion, table.groups)
    condition = float(np.linalg.cond(matrix))
    if not condition < LARGEST_CONDITION:
        raise DataError(
            "The confusion of groups cannot be undone: two true groups are assigned alike. "
            "Merge them."
        )
    counted = table.sums["n"][0].sum(axis=(1, 2, 3))
    asked = reference or roles.reference.get(roles.group[0] if roles.group else "")
    base = table.groups.index(choose_reference(table.groups, counted, asked, others={}))
    place = table.classes.index(table.positive)
    rates: list[InferredRate] = []
    gaps: list[InferredRate] = []
    for rate in RATES if table.has_truth else RATES[:1]:
        hits, cases = (side[0, :, place] for side in table.hits_and_cases(rate))
        found = _unmix(rate, table.groups, hits, cases, matrix, level)
        for g in range(len(table.groups)):
            rates.append(found.of_group(g, z=critical(level)))
            if g != base:
                gaps.append(found.gap(g, base, z=critical(level)))
    return InferredGroups(
        rates=tuple(rates),
        gaps=tuple(gaps),
        condition=condition,
        level=level,
        method="inversion of P(assigned | true), delta method; counts without weights",
    )


def _tally(
    data: Decisions | Tally, attribute: str | None, positive: str | None
) -> tuple[Tally, Roles]:
    if isinstance(data, Tally):
        missing = [key for key in ("group", "decision") if key not in data.labels]
        if missing:
            raise DataError(f"The tally has no {missing[0]}. Count by group, truth and decision.")
        return data, Roles(rule="given", positive=positive)
    known: dict[str, Attribute] = {item.name: item for item in data.roles.attributes}
    if attribute is None and len(known) == 1:
        attribute = next(iter(known))
    if attribute not in known:
        hint = nearest(attribute, list(known)) if attribute else ""
        raise UsageError(
            f"attribute={attribute!r} is not one of the group columns {', '.join(known)}.{hint}"
        )
    chosen = data if positive is None else data.with_roles(positive=positive)
    chosen.check()
    return chosen.count(known[attribute]), chosen.roles


def _matrix(confusion: Mapping[str, Mapping[str, float]], groups: tuple[str, ...]) -> FloatArray:
    """P(assigned | true), rows true, in the order of the groups."""
    given = {
        str(true): {str(k): float(v) for k, v in row.items()} for true, row in confusion.items()
    }
    named = set(given) | {name for row in given.values() for name in row}
    for name in sorted(named):
        if name not in groups:
            raise UsageError(
                f"confusion names {name!r}, which is not a group.{nearest(name, list(groups))} "
                f"The groups are {', '.join(groups[:8])}."
            )
    for name in groups:
        if name not in given:
            raise UsageError(
                f"confusion says nothing of group {name!r}. Give P(assigned | true) for every "
                "group."
            )
    matrix = np.array([[given[true].get(name, 0.0) for name in groups] for true in groups])
    for name, row in zip(groups, matrix):
        if np.any(row < 0) or abs(row.sum() - 1) > 1e-6:
            raise UsageError(
                f"confusion of group {name!r} adds up to {row.sum():g}. The probabilities of the "
                "groups it is assigned to must add up to 1, none below 0."
            )
    return matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unmixed:
    """A rate of every true group from counts by assigned group, and how far it can be told."""

    rate: str
    groups: tuple[str, ...]
    cases: FloatArray
    size: FloatArray
    observed: FloatArray
    value: FloatArray
    covariance: FloatArray
    bounds: Mapping[str, FloatArray]
    reason: str | None

    def of_group(self, g: int, *, z: float) -> InferredRate:
        """The rate of one group."""
        value, reason = self.value[g], self.reason
        if reason is None and not 0 <= value <= 1:
            reason = (
                f"the corrected rate {value:.3f} is no probability, which speaks against "
                "assignment that does not depend on the decision"
            )
        half = z * float(np.sqrt(self.covariance[g, g]))
        return InferredRate(
            measure=self.rate,
            group=self.groups[g],
            reference=None,
            observed=number(self.observed[g]),
            value=None if reason else number(value),
            low=None if reason else number(max(value - half, 0.0)),
            high=None if reason else number(min(value + half, 1.0)),
            bound_low=number(self.bounds["low"][g]),
            bound_high=number(self.bounds["high"][g]),
            outer_low=number(self.bounds["outer_low"][g]),
            outer_high=number(self.bounds["outer_high"][g]),
            share=None if self.reason else number(self.size[g] / self.size.sum()),
            undefined=reason,
            n=float(self.cases[g]),
        )

    def gap(self, g: int, base: int, *, z: float) -> InferredRate:
        """The rate of one group − that of the reference."""
        reason, gap = self.reason, self.value[g] - self.value[base]
        spread = self.covariance
        half = z * float(np.sqrt(spread[g, g] + spread[base, base] - 2 * spread[g, base]))

        def bound(end: str, other: str) -> float | None:
            return number(self.bounds[end][g] - self.bounds[other][base])

        return InferredRate(
            measure=f"{self.rate}_gap",
            group=self.groups[g],
            reference=self.groups[base],
            observed=number(self.observed[g] - self.observed[base]),
            value=None if reason else number(gap),
            low=None if reason else number(max(gap - half, -1.0)),
            high=None if reason else number(min(gap + half, 1.0)),
            bound_low=bound("low", "high"),
            bound_high=bound("high", "low"),
            outer_low=bound("outer_low", "outer_high"),
            outer_high=bound("outer_high", "outer_low"),
            share=None,
            undefined=reason,
            n=float(self.cases[g]),
        )


def _unmix(
    rate: str,
    groups: tuple[str, ...],
    hits: FloatArray,
    cases: FloatArray,
    matrix: FloatArray,
    level: float,
) -> _Unmixed:
    """One rate of all true groups, by undoing the confusion of groups."""
    inverse = np.linalg.inv(matrix.T)
    size, yes = inverse @ cases, inverse @ hits
    reason = None
    if cases.sum() == 0:
        reason = "no cases"
    elif np.any(size <= 0) or np.any(cases <= 0):
        reason = "the numbers assigned to each group cannot come from this confusion of groups"
    with np.errstate(all="ignore"):
        observed, value = hits / cases, yes / size
    covariance = np.full((len(groups), len(groups)), np.nan)
    bounds = dict.fromkeys(("low", "high", "outer_low", "outer_high"), np.full(len(groups), np.nan))
    if reason is None:
        # Both the mix of groups and their decisions are sampled: the ratio's influence, squared.
        up, down = inverse * (1 - value)[:, None], inverse * value[:, None]
        spread = (up * (hits + 0.5)) @ up.T + (down * (cases - hits + 0.5)) @ down.T
        covariance = spread / np.outer(size, size)
        members = true_given_assigned(matrix, shares=size / size.sum())
        found = group_rate_bounds(hits, cases, membership=members, level=level)
        bounds = {name: getattr(found, name) for name in bounds}
    return _Unmixed(
        rate=rate,
        groups=groups,
        cases=cases,
        size=size,
        observed=observed,
        value=value,
        covariance=covariance,
        bounds=bounds,
        reason=reason,
    )


def _line(row: InferredRate) -> str:
    against = f" against {row.reference}" if row.reference else ""
    what = f"{row.measure.replace('_', ' ').capitalize()} of {row.group}{against}"
    if row.value is None:
        return f"{what}: undefined, {row.undefined}."
    return (
        f"{what}: {row.value:.3f} [{row.low:.3f}, {row.high:.3f}] where {row.observed:.3f} is "
        f"observed; between {row.bound_low:.3f} and {row.bound_high:.3f} whatever the assignment "
        f"depends on, n = {row.n:,.0f}."
    )
