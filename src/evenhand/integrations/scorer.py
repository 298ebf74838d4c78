"""Gaps between groups as a score that scikit-learn searches by."""

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from evenhand.decisions.labels import label
from evenhand.decisions.table import Decisions
from evenhand.errors import MissingExtra, UsageError, nearest
from evenhand.lenses.measures import CATALOGUE, measure
from evenhand.lenses.scope import choose_reference
from evenhand.lenses.statistical.confusion import confusion
from evenhand.lenses.statistical.rates import group_rates

KINDS = ("_gap", "_gap_worst", "_ratio")
WEIGHT = "sample_weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapScorer:
    """A scorer for scikit-learn: `scorer(estimator, X, y, gender=…)`; more is more alike.

    Of a gap it is minus the widest one, of a ratio the one furthest from 1, written as at most 1.
    """

    measure: str
    group: str
    positive: Any = None
    reference: Any = None
    missing_words: Any = ()
    classes: bool = False

    @property
    def rate(self) -> str:
        """The rate whose gap or ratio is scored."""
        return str(measure(self.measure).base)

    def __call__(self, estimator: Any, X: Any, y: Any, **metadata: Any) -> float:
        """The score of an estimator's decisions on X."""
        groups = metadata.pop(self.group, None)
        weights = metadata.pop(WEIGHT, None)
        if metadata:
            raise UsageError(
                f"{min(metadata)!r} was passed to a scorer that takes {self.group!r} and "
                f"{WEIGHT!r}."
            )
        return self.score(y, estimator.predict(X), self._column(X, groups), weight=weights)

    def score(self, truth: Any, decision: Any, group: Any, *, weight: Any = None) -> float:
        """The score of decisions that were made already; NaN where fewer than two groups have any.

        Examples:
            >>> scorer = gap_scorer("selection_rate_gap", group="sex")
            >>> scorer.score([1, 0, 1, 0], [1, 1, 1, 0], ["f", "f", "m", "m"])
            -0.5
        """
        settings = {name: getattr(self, name) for name in ("positive", "missing_words", "classes")}
        arrays = {"group": {self.group: group}, "weight": weight}
        decisions = Decisions.from_arrays(truth, decision, **arrays, **settings)
        tally = decisions.count(decisions.roles.attributes[0])
        table = confusion(tally, decisions.roles)
        found = group_rates(table, self.rate)
        # The whole table, and of two classes the positive one.
        place = None if table.positive is None else table.classes.index(table.positive)
        classes = slice(None) if place is None else slice(place, place + 1)
        rates = found.value[0][:, classes]
        known = np.isfinite(rates).sum(axis=0) > 1
        if not known.any():
            return nan
        kind = measure(self.measure).kind
        if kind == "distance":
            apart = np.nanmax(rates[:, known], axis=0) - np.nanmin(rates[:, known], axis=0)
            return -float(apart.max())
        sizes = table.sums["n"][0].sum(axis=(1, 2, 3))
        asked = choose_reference(table.groups, sizes, label(self.reference), others={})
        base = rates[table.groups.index(asked)]
        if kind == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = rates / base
                alike = np.minimum(ratio, 1 / ratio)
            alike = np.where((rates == 0) & (base == 0), 1.0, alike)
            return float(np.nanmin(alike)) if np.isfinite(alike).any() else nan
        apart = np.abs(rates - base)
        return -float(np.nanmax(apart)) if np.isfinite(base).any() else nan

    def get_metadata_routing(self) -> Any:
        """What scikit-learn is to pass on: the groups by their name, and weights."""
        try:
            from sklearn.utils.metadata_routing import MetadataRequest
        except ImportError:
            raise MissingExtra("text", "A scorer for scikit-learn") from None
        request = MetadataRequest(owner=self)
        request.score.add_request(param=self.group, alias=True)
        request.score.add_request(param=WEIGHT, alias=True)
        return request

    def _column(self, X: Any, passed: Any) -> Any:
        if passed is not None:
            return passed
        columns = getattr(X, "columns", None)
        if columns is not None and self.group in list(columns):
            return X[self.group]
        raise UsageError(
            f"group={self.group!r} is neither a column of X nor was it passed. Pass it along: "
            f"sklearn.set_config(enable_metadata_routing=True) and search.fit(X, y, "
            f"{self.group}=…)."
        )


def gap_scorer(
    measure: str,
    *,
    group: str,
    positive: Any = None,
    reference: Any = None,
    missing_words: Any = (),
    classes: bool = False,
) -> GapScorer:
    """A scorer for scikit-learn's searches and cross-validation: how alike groups are treated.

    Args:
        measure: A rate's gap, widest gap or ratio, such as `true_positive_rate_gap`.
        group: The column of X that holds the groups, or the name under which they are passed to
            `fit` by metadata routing: `search.fit(X, y, gender=…)`.
        positive: The value that counts as positive, where classes are words.
        reference: The group that others are compared with; by default the largest.
        missing_words: Words that mean that nothing is known, such as NA.
        classes: Numbers of truth and decision are codes of classes, however many.

    Examples:
        >>> gap_scorer("true_positive_rate_gap", group="gender").rate
        'true_positive_rate'
        >>> gap_scorer("calibration", group="gender")
        Traceback (most recent call last):
        evenhand.errors.UsageError: measure='calibration' cannot be scored. Choose the gap, widest \
gap or ratio of a rate that decisions are counted for, such as true_positive_rate_gap.
    """
    known = {name for name, one in CATALOGUE.items() if _is_scored(name, one)}
    if measure not in known:
        raise UsageError(
            f"measure={measure!r} cannot be scored.{nearest(str(measure), sorted(known))} Choose "
            "the gap, widest gap or ratio of a rate that decisions are counted for, such as "
            "true_positive_rate_gap."
        )
    if not isinstance(group, str):
        raise UsageError(
            f"group={group!r} is not a name. Name the column of X that holds the groups, or what "
            "they are passed to fit as."
        )
    return GapScorer(
        measure=measure,
        group=group,
        positive=positive,
        reference=reference,
        missing_words=missing_words,
        classes=classes,
    )


def _is_scored(name: str, one: Any) -> bool:
    base = CATALOGUE.get(str(one.base))
    counted = base is not None and base.cells is not None
    return counted and any(name == f"{one.base}{kind}" for kind in KINDS)
