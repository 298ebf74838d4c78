"""One training set in one representation, and what a remedy makes of it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.remedies.adversarial import EPOCHS, RATES, WEIGHTS
from evenhand.remedies.augment import TrainingRows
from evenhand.remedies.cells import Codes
from evenhand.remedies.estimator import class_scores, fit_weighted
from evenhand.remedies.ledger.texts import LedgerTexts
from evenhand.remedies.thresholds import GroupThresholds
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """What remedies can be told: budget of accuracy, folds, steps of the costly ones."""

    budget: float = 0.01
    reductions_iterations: int = 10
    adversarial_epochs: int = EPOCHS
    adversary_weights: tuple[float, ...] = WEIGHTS
    adversary_rates: tuple[float, ...] = RATES
    tolerance: float = 1e-4
    # Of the remedies with a penalty of their own: at 1e-3 gaps still moved by 0.05, here by 0.01.
    penalty_tolerance: float = 3e-4


class Shared:
    """Something made once, however many threads ask for it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: list[Any] = []
        self.seconds = 0.0

    def get(self, make: Callable[[], Any]) -> Any:
        """What was made; the first to ask makes it, and the others wait."""
        with self._lock:
            if not self._made:
                began = time.perf_counter()
                self._made.append(make())
                self.seconds = time.perf_counter() - began
            return self._made[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """Features, truth and groups of the rows drawn for one seed; made when first asked for."""

    texts: LedgerTexts
    representation: str
    rows: Codes
    seed: int
    settings: LedgerSettings = field(default_factory=LedgerSettings)
    progress: Callable[[float], None] | None = None
    _shared: dict[str, "Shared"] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gives, made by the first remedy that asks and shared by all others."""
        return self._shared.setdefault(name, Shared()).get(make)

    def seconds(self, name: str) -> float:
        """How long it took to make something that remedies share."""
        return self._shared[name].seconds

    def baseline(self) -> Any:
        """The classifier without a remedy, which several remedies begin from or build on."""
        return self.once("baseline", lambda: self.classifier().fit(self.table, self.y))

    @cached_property
    def table(self) -> Any:
        """Features of the rows to fit on."""
        return self.features(self.rows)

    @cached_property
    def do(self) -> dict[str, Any]:
        """Features of the same rows rewritten to each group."""
        return {name: self.features(self.rows, do=name) for name in self.texts.do}

    @property
    def y(self) -> NDArray[Any]:
        """Classes of the rows to fit on, by name."""
        return self.truth_of(self.rows)

    @property
    def group(self) -> NDArray[Any]:
        """Groups of the rows to fit on, by name."""
        return self.groups_of(self.rows)

    @property
    def norm(self) -> Any:
        """Features that norms are learned from, of the rows to fit on."""
        return self.texts.norm_features[self.rows]

    @property
    def is_counts(self) -> bool:
        """Whether features are word counts, sparse and wide."""
        return hasattr(self.texts.features[self.representation], "toarray")

    @property
    def is_texts(self) -> bool:
        """Whether features are the texts themselves, for a model that is fine-tuned on them."""
        return bool(getattr(self.texts.representations[self.representation], "fine_tune", False))

    def groups_of(self, rows: Codes) -> NDArray[Any]:
        """Names of the groups of any rows."""
        return np.array(self.texts.rows.groups)[self.texts.rows.group[rows]]

    def truth_of(self, rows: Codes) -> NDArray[Any]:
        """Names of the classes of any training rows."""
        return np.array(self.texts.rows.classes)[self.texts.rows.truth[rows]]

    def features(self, rows: Codes, *, do: str | None = None) -> Any:
        """Features of any rows, as they are or rewritten to a group."""
        places = self.texts.own if do is None else self.texts.do[do]
        return self.texts.features[self.representation][places[rows]]

    def classifier(self, **settings: Any) -> Any:
        """The classifier that every remedy starts from."""
        from evenhand.models.linear import LogisticClassifier

        if self.is_texts:
            # Validation rows say when to stop, and then where cuts by group lie.
            rows = self.texts.rows.validation
            encoder = self.texts.representations[self.representation]
            return encoder.classifier(
                held=(self.features(rows).tolist(), self.truth_of(rows).tolist()),
                seed=self.seed,
                progress=self.progress,
            )
        return LogisticClassifier(tol=self.settings.tolerance, threads=1, **settings)

    def fitted(self, made: TrainingRows) -> "Fitted":
        """The classifier trained on originals and counterfactual copies, with their weights."""
        weights = None if np.all(made.weights == made.weights[0]) else made.weights
        copies = self.do if made.is_counterfactual.any() else {}
        X = made.features(self.table, counterfactual=copies)
        model = fit_weighted(self.classifier(), X, made.pick(self.y), weights)
        return Fitted(model=model, notes=made.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A trained model with the way its scores become decisions.

    `by_group` models ask for the group, `with_norm` ones for the features of the norm; `cuts`
    decide in the place of the largest score. `seconds` are told where the fit is shared with
    other remedies, one of which may have made it.
    """

    model: Any
    by_group: bool = False
    with_norm: bool = False
    cuts: GroupThresholds | None = None
    seconds: float | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def scores(self, X: Any, *, group: Any = None, norm: Any = None) -> FloatArray:
        """Rows × classes: probability of each class against its rest."""
        if self.by_group:
            found = self.model.class_probabilities(X, group=group)
        elif self.with_norm:
            found = self.model.class_probabilities(X, norm_features=norm)
        else:
            found = class_scores(self.model, X)
        table = np.asarray(found, dtype=np.float64)
        if not np.isfinite(table).all():
            raise DataError("The scores are not finite: training has diverged.")
        return table

    def decide(self, scores: FloatArray, *, group: Any = None) -> Codes:
        """Number of the class decided for: the largest score, of those above their cuts if any."""
        if self.cuts is None:
            return np.asarray(scores.argmax(axis=1), dtype=np.intp)
        taken = self.accepts(scores, group=group) >= 0.5
        return np.asarray(np.where(taken, 1 + scores, scores).argmax(axis=1), dtype=np.intp)

    def accepts(self, scores: FloatArray, *, group: Any = None) -> FloatArray:
        """Probability of accepting each row for each class, class by class."""
        if self.cuts is None:
            return (scores >= 0.5).astype(np.float64)
        return self.cuts.accepted_scores(scores, group=group)
