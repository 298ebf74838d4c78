"""Adversarial training tuned: rate, weight and epochs by the accuracy that may be given up.

Every run begins from a trained linear model, so that what it changes is the adversary's doing and
not that of another optimiser, and is looked at after every epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.mitigation.adversarial import AdversarialClassifier
from evenhand.mitigation.adversary import Layers
from evenhand.mitigation.cells import Cells, cells_of
from evenhand.stats.estimate import FloatArray

RATES, WEIGHTS, EPOCHS = (1e-3, 3e-3), (3.0, 10.0), 10
# An adversary as slow as the classifier lags behind it and asks for little.
PACE = 10.0
STEPS_PER_EPOCH, SMALLEST_BATCH = 20, 128
# A run this many budgets below the bar does not come back within it.
LOST = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdversarialTrial:
    """One epoch of one run on held-out rows; epoch 0 is the model that all runs begin from."""

    learning_rate: float
    adversary_weight: float
    epoch: int
    accuracy: float
    gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedAdversary:
    """The model chosen, its trial, and all trials in the order they were made."""

    model: AdversarialClassifier
    chosen: AdversarialTrial
    trials: tuple[AdversarialTrial, ...]


def probability_gap(probabilities: FloatArray, *, cells: Cells) -> float:
    """Spread between groups of the mean probability of the own class, over classes.

    √(Σ n_cg (m_cg − m_c)² / n): the gap of true positive rates in probabilities, which held-out
    rows measure with less noise than decisions, each cell counting by its rows.

    Examples:
        >>> cells = cells_of(["a", "a", "b", "b"], group=["f", "m", "f", "m"])
        >>> table = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.4, 0.6]])
        >>> round(probability_gap(table, cells=cells), 4)
        0.0707
    """
    own = probabilities[np.arange(cells.truth.size), cells.truth]
    counts = cells.counts.astype(np.float64)
    sums = np.bincount(cells.index, own, minlength=counts.size).reshape(counts.shape)
    cell = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    level = sums.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return float(np.sqrt((counts * (cell - level[:, None]) ** 2).sum() / counts.sum()))


def linear_start(model: Any) -> Layers:
    """Layers of a fitted linear classifier; of two classes each has half of the one logit."""
    weight, bias = np.asarray(model.coef_), np.asarray(model.intercept_)
    if weight.shape[0] == 1:
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return [(weight.T.astype(np.float32), bias.astype(np.float32))]


def tune_adversary(
    X: Any,
    y: Any,
    *,
    group: Any,
    start: Any,
    held: Any,
    held_truth: Any,
    held_group: Any,
    budget: float = 0.01,
    rates: Sequence[float] = RATES,
    weights: Sequence[float] = WEIGHTS,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> TunedAdversary:
    """The run and epoch with the smallest gap on held-out rows among those within the budget.

    `start` is a fitted linear classifier of the same features; accuracy is counted from its own,
    and it is kept where no epoch of any run is better within the budget.
    """
    layers = linear_start(start)
    cells = cells_of(held_truth, group=held_group)
    place = np.searchsorted(start.classes_, np.asarray(cells.classes))
    rows = int(np.asarray(y).size)
    trials: list[AdversarialTrial] = []
    kept: list[Layers] = []

    def look(rate: float, weight: float, epoch: int, now: Layers) -> AdversarialTrial:
        probabilities = _bare(now, start.classes_).predict_proba(held)
        right = probabilities.argmax(axis=1) == place[cells.truth]
        trial = AdversarialTrial(
            learning_rate=rate,
            adversary_weight=weight,
            epoch=epoch,
            accuracy=float(right.mean()),
            gap=probability_gap(probabilities[:, place], cells=cells),
        )
        trials.append(trial)
        best = _best(trials, budget=budget)
        if best is trial:
            kept[:] = [now]
        return trial

    first = look(0.0, 0.0, 0, layers)
    for rate in rates:
        for weight in weights:

            def watch(epoch: int, now: Layers, rate: float = rate, weight: float = weight) -> bool:
                found = look(rate, weight, epoch, now)
                return first.accuracy - found.accuracy <= LOST * budget

            model = AdversarialClassifier(
                adversary_weight=weight,
                hidden=0,
                learning_rate=rate,
                adversary_pace=PACE,
                batch_size=max(SMALLEST_BATCH, -(-rows // STEPS_PER_EPOCH)),
                epochs=epochs,
                seed=seed,
            )
            try:
                model.fit(X, y, group=group, start=layers, watch=watch)
            except DataError:
                # A run that diverges has lost; the others go on.
                continue
    chosen = _best(trials, budget=budget)
    found = _bare(kept[0], start.classes_)
    found.set_params(
        adversary_weight=chosen.adversary_weight,
        learning_rate=chosen.learning_rate or RATES[0],
        epochs=max(1, chosen.epoch),
        seed=seed,
    )
    return TunedAdversary(model=found, chosen=chosen, trials=tuple(trials))


def _best(trials: Sequence[AdversarialTrial], *, budget: float) -> AdversarialTrial:
    bar = trials[0].accuracy - budget
    return min((t for t in trials if t.accuracy >= bar), key=lambda trial: trial.gap)


def _bare(layers: Layers, classes: Any) -> AdversarialClassifier:
    """A classifier of given layers, ready to predict."""
    model = AdversarialClassifier(hidden=0, adversary_pace=PACE)
    model.layers_, model.classes_ = layers, np.asarray(classes)
    model.n_features_in_ = layers[0][0].shape[0]
    return model
