"""Adversarial debiasing: a classifier, the adversary that reads the group from it, their tuning.

torch is imported when training begins; a trained classifier decides without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from evenhand.errors import DataError, MissingExtra, UnusableRows, UsageError
from evenhand.remedies.cells import (
    TrainingCells,
    check_choice,
    is_sparse,
    row_weights,
    take,
    training_cells,
)
from evenhand.remedies.estimator import FLOATS, NOT_ROUTED, Remedy, shares
from evenhand.stats.estimate import FloatArray

Form = Literal["equalised_odds", "demographic_parity"]
Projection = Literal["whole", "tensor"]
Layers = list[tuple[NDArray[Any], NDArray[Any]]]
Watcher = Callable[[int, Layers], bool]
FORMS: tuple[Form, ...] = ("equalised_odds", "demographic_parity")
PROJECTIONS: tuple[Projection, ...] = ("whole", "tensor")
DECAY_STEPS = 1000
# What tuning tries.
RATES, WEIGHTS, EPOCHS = (1e-3, 3e-3), (3.0, 10.0), 10
# An adversary as slow as the classifier lags behind it and asks for little.
PACE = 10.0
STEPS_PER_EPOCH, SMALLEST_BATCH = 20, 128
# A run this many budgets below the bar does not come back within it.
LOST = 2.0


class AdversarialClassifier(Remedy):
    """A softmax classifier, linear or with one hidden layer, trained against an adversary.

    The adversary reads the group from the probabilities, sharpened by a slope it learns; in the
    form "equalised_odds" it also sees the truth. The classifier moves along
    g − (g·û)û − adversary_weight·h, with g its own gradient, h the adversary's and û = h/|h|:
    the paper's on all parameters as one vector (`projection` "whole"), AIF360's tensor by tensor
    ("tensor"), which leaves a tensor of one free number, such as the level of two classes, to the
    adversary alone. The adversary learns `adversary_pace` times as fast. The other defaults are
    AIF360's; `hidden=0` is linear, and `device` None takes a GPU where there is one.

    Examples:
        >>> AdversarialClassifier(hidden=0, epochs=5).get_params()["adversary_weight"]
        0.1
    """

    stage = "in"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {
        "group": True,
        "start": NOT_ROUTED,
        "watch": NOT_ROUTED,
    }

    def __init__(
        self,
        *,
        form: Form = "equalised_odds",
        adversary_weight: float = 0.1,
        projection: Projection = "whole",
        hidden: int = 200,
        dropout: float = 0.2,
        learning_rate: float = 1e-3,
        adversary_pace: float = 1.0,
        decay: float = 0.96,
        batch_size: int = 128,
        epochs: int = 50,
        weight_decay: float = 0.0,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.form = form
        self.adversary_weight = adversary_weight
        self.projection = projection
        self.hidden = hidden
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.adversary_pace = adversary_pace
        self.decay = decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.weight_decay = weight_decay
        self.seed = seed
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        sample_weight: Any = None,
        start: Any = None,
        watch: Any = None,
    ) -> Self:
        """Train classifier and adversary together, batch by batch.

        `start` are layers to begin from, as in `layers_`; `watch` is called after every epoch
        with its number and the layers, and says whether to go on.
        """
        self._check_arguments()
        try:
            import torch
        except ImportError:
            raise MissingExtra("torch", "Adversarial training") from None
        X, y = self._checked_matrix(X, y, dtype=FLOATS)
        cells = self._checked_cells(y, group)
        if len(cells.classes) < 2 or len(cells.groups) < 2:
            few = "class" if len(cells.classes) < 2 else "group"
            raise UnusableRows(
                f"The training rows have one {few} alone. "
                "Adversarial training needs two classes and two groups."
            )
        weights = row_weights(sample_weight, rows=cells.truth.size)
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        spare = list(range(torch.cuda.device_count())) if device.startswith("cuda") else []
        # Dropout draws from torch's own generator: it is put back as it was.
        with torch.random.fork_rng(devices=spare):
            torch.manual_seed(self.seed)
            duel = Duel(self, classes=len(cells.classes), groups=len(cells.groups), device=device)
            share = weights / weights.mean()
            duel.train(X, cells=cells, weights=share, start=start, watch=watch)
        self.layers_: list[tuple[NDArray[Any], NDArray[Any]]] = duel.layers()
        self.history_ = duel.history
        self.device_ = device
        self.classes_ = np.asarray(cells.classes)
        return self

    def _check_arguments(self) -> None:
        for name, known in (("form", FORMS), ("projection", PROJECTIONS)):
            check_choice(name, getattr(self, name), known)
        for name in ("batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}={getattr(self, name)} is below 1. Give 1 or more.")
        for name in ("adversary_weight", "hidden", "weight_decay"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name}={getattr(self, name)} is negative. Give 0 or more.")
        for name in ("learning_rate", "adversary_pace"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)} is not above 0.")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout={self.dropout} is not a share below 1.")

    def _logits(self, X: Any) -> FloatArray:
        values = self._known_matrix(X)
        for number, (weight, bias) in enumerate(self.layers_):
            values = np.asarray(values @ weight + bias)
            if number + 1 < len(self.layers_):
                values = np.maximum(values, 0)
        return np.asarray(values, dtype=np.float64)

    def decision_function(self, X: Any) -> FloatArray:
        """Logits: rows × classes, or one number a row where there are two classes."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> FloatArray:
        """Softmax probabilities."""
        return np.asarray(softmax(self._logits(X), axis=1))


def projected(gradient: Any, adversary: Any, *, weight: float) -> Any:
    """g − (g·û)û − weight·h with û = h/|h|: what the classifier's tensor moves along.

    Works on NumPy arrays and torch tensors alike.

    Examples:
        >>> projected(np.array([3.0, 4.0]), np.array([2.0, 0.0]), weight=0.5).tolist()
        [-1.0, 4.0]
    """
    return projected_together([gradient], [adversary], weight=weight)[0]


def projected_together(own: Any, adversary: Any, *, weight: float) -> list[Any]:
    """The same of several tensors taken as one vector."""
    squares = sum(float((h * h).sum()) for h in adversary)
    if squares <= 1e-60:
        return list(own)
    along = sum(float((g * h).sum()) for g, h in zip(own, adversary, strict=True)) / squares
    return [g - (along + weight) * h for g, h in zip(own, adversary, strict=True)]


class FeatureBatch:
    """Rows of features with the two products of a first layer, sparse or not."""

    def __init__(self, rows: Any, torch: Any) -> None:
        self.rows, self.torch = rows, torch
        self.is_scipy = is_sparse(rows)

    def times(self, weight: Any) -> Any:
        """Rows × outputs. SciPy multiplies sparse rows ten times faster than torch on a CPU."""
        if self.is_scipy:
            return self.torch.as_tensor(self.rows @ weight.numpy())
        return self.rows @ weight

    def back(self, residuals: Any) -> Any:
        """Features × outputs."""
        if self.is_scipy:
            return self.torch.as_tensor(self.rows.T @ residuals.numpy())
        return self.rows.t() @ residuals


class Duel:
    """Classifier and adversary as plain tensors, with one optimiser each."""

    def __init__(self, settings: Any, *, classes: int, groups: int, device: str) -> None:
        import torch

        self.torch = torch
        self.settings, self.device = settings, device
        self.classes, self.groups = classes, groups
        self.weights: list[Any] = []
        self.biases: list[Any] = []
        self.history: list[tuple[float, float]] = []

    def train(
        self,
        X: Any,
        *,
        cells: TrainingCells,
        weights: FloatArray,
        start: Layers | None = None,
        watch: Watcher | None = None,
    ) -> None:
        """All epochs; refused where the loss is no longer a number.

        `start` are layers to begin from; `watch` sees the layers after every epoch and says
        whether to go on.
        """
        torch = self.torch
        widths = [X.shape[1] if hasattr(X, "shape") else len(X[0]), self.classes]
        if self.settings.hidden:
            widths.insert(1, self.settings.hidden)
        self._build(widths, start)
        rng = np.random.default_rng(self.settings.seed)
        table: Any = X.tocsr().astype(np.float32) if is_sparse(X) else None
        if table is None:
            table = torch.as_tensor(np.asarray(X, dtype=np.float32), device=self.device)
        truth = torch.as_tensor(cells.truth, device=self.device)
        group = torch.as_tensor(cells.group, device=self.device)
        c = torch.as_tensor(weights.astype(np.float32), device=self.device)
        for epoch in range(self.settings.epochs):
            order = rng.permutation(cells.truth.size)
            losses = np.zeros(2)
            for place in range(0, order.size, self.settings.batch_size):
                rows = order[place : place + self.settings.batch_size]
                at = torch.as_tensor(rows, device=self.device)
                batch = self._batch(table, rows)
                losses += self._step(batch, truth[at], group[at], c[at]) * rows.size
            own, other = losses / order.size
            if not np.isfinite(own + other):
                raise DataError(
                    f"Adversarial training diverged in epoch {epoch + 1}. "
                    "Lower learning_rate or adversary_weight, or scale the features."
                )
            self.history.append((float(own), float(other)))
            if watch is not None and not watch(epoch + 1, self.layers()):
                break

    def _build(self, widths: list[int], start: Layers | None) -> None:
        torch = self.torch

        def tensor(*shape: int, spread: float) -> Any:
            values = torch.randn(*shape) * spread if spread else torch.zeros(*shape)
            return values.to(self.device).requires_grad_()

        # Glorot's scale keeps the size of values through the layers; a linear model starts at 0.
        spreads = [(2 / (a + b)) ** 0.5 for a, b in pairwise(widths)]
        if len(widths) == 2:
            spreads = [0.0]
        for (a, b), spread in zip(pairwise(widths), spreads, strict=True):
            self.weights.append(tensor(a, b, spread=spread))
            self.biases.append(tensor(b, spread=0.0))
        pairs = list(zip(self.weights, self.biases, strict=True))
        with torch.no_grad():
            for (weight, bias), kept in zip(pairs, start or pairs, strict=True):
                for place, values in zip((weight, bias), kept, strict=True):
                    place.copy_(torch.as_tensor(values).reshape(place.shape))
        inputs = self.classes * (3 if self.settings.form == "equalised_odds" else 1)
        self.reader = tensor(inputs, self.groups, spread=(2 / (inputs + self.groups)) ** 0.5)
        self.reader_bias = tensor(self.groups, spread=0.0)
        self.slope = torch.ones(1, device=self.device, requires_grad=True)
        rate = self.settings.learning_rate
        own = [*self.weights, *self.biases]
        other = [self.reader, self.reader_bias, self.slope]
        self.own = torch.optim.Adam(own, lr=rate, weight_decay=self.settings.weight_decay)
        self.other = torch.optim.Adam(other, lr=rate * self.settings.adversary_pace)
        gamma = self.settings.decay ** (1 / DECAY_STEPS)
        self.schedules = [
            torch.optim.lr_scheduler.ExponentialLR(each, gamma) for each in (self.own, self.other)
        ]

    def _batch(self, table: Any, rows: NDArray[np.intp]) -> FeatureBatch:
        if is_sparse(table):
            part = take(table, rows)
            return FeatureBatch(part if self.device == "cpu" else self._sparse(part), self.torch)
        return FeatureBatch(table[self.torch.as_tensor(rows, device=self.device)], self.torch)

    def _sparse(self, rows: Any) -> Any:
        coordinates = rows.tocoo()
        places = np.stack([coordinates.row, coordinates.col]).astype(np.int64)
        return self.torch.sparse_coo_tensor(
            self.torch.as_tensor(places, device=self.device),
            self.torch.as_tensor(coordinates.data, device=self.device),
            size=rows.shape,
            check_invariants=False,
        )

    def _logits(self, first: Any) -> Any:
        """Logits from the values after the first layer; in a linear model they are one."""
        if len(self.weights) == 1:
            return first
        drop = self.torch.nn.functional.dropout
        return (
            drop(self.torch.relu(first), self.settings.dropout) @ self.weights[1] + self.biases[1]
        )

    def _read(self, logits: Any, truth: Any) -> Any:
        """The adversary's logits of the groups."""
        torch = self.torch
        share = torch.softmax((1 + self.slope.abs()) * logits, dim=1)
        if self.settings.form == "equalised_odds":
            own = torch.nn.functional.one_hot(truth, self.classes).to(share.dtype)
            share = torch.cat([share, share * own, own], dim=1)
        return share @ self.reader + self.reader_bias

    def _step(self, batch: Any, truth: Any, group: Any, weights: Any) -> NDArray[np.float64]:
        """One step of both; returns the two losses."""
        torch = self.torch
        entropy = torch.nn.functional.cross_entropy
        # Both gradients pass the wide first layer in one product instead of two.
        first = (batch.times(self.weights[0].detach()) + self.biases[0].detach()).requires_grad_()
        inner = [*self.weights[1:], *self.biases[1:]]
        logits = self._logits(first)
        own_loss = (weights * entropy(logits, truth, reduction="none")).mean()
        other_loss = (weights * entropy(self._read(logits, truth), group, reduction="none")).mean()
        reader = [self.reader, self.reader_bias, self.slope]
        own = torch.autograd.grad(own_loss, [first, *inner], retain_graph=True)
        both = torch.autograd.grad(other_loss, [first, *inner, *reader])
        wide = batch.back(torch.cat([own[0], both[0]], dim=1)).chunk(2, dim=1)
        count = len(inner) // 2
        tensors = [*self.weights, *self.biases]

        def ordered(k: int, found: Any) -> list[Any]:
            rest = found[1 : 1 + len(inner)]
            return [wide[k], *rest[:count], found[0].sum(dim=0), *rest[count:]]

        self._project(tensors, ordered(0, own), ordered(1, both))
        for tensor, gradient in zip(reader, both[1 + len(inner) :], strict=True):
            tensor.grad = gradient
        for each in (self.own, self.other, *self.schedules):
            each.step()
        return np.array([float(own_loss.detach()), float(other_loss.detach())])

    def _project(self, tensors: list[Any], own: Any, adversary: Any) -> None:
        """Give every tensor its projected gradient, tensor by tensor or all as one vector."""
        weight = self.settings.adversary_weight
        if self.settings.projection == "tensor":
            for tensor, g, h in zip(tensors, own, adversary, strict=True):
                tensor.grad = projected(g, h, weight=weight)
            return
        moved = projected_together(own, adversary, weight=weight)
        for tensor, part in zip(tensors, moved, strict=True):
            tensor.grad = part

    def layers(self) -> Layers:
        """Weights and biases of the classifier as NumPy arrays."""
        pairs = zip(self.weights, self.biases, strict=True)
        return [
            (w.detach().cpu().numpy().copy(), b.detach().cpu().numpy().copy()) for w, b in pairs
        ]


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


def probability_gap(probabilities: FloatArray, *, cells: TrainingCells) -> float:
    """Spread between groups of the mean probability of the own class, over classes.

    √(Σ n_cg (m_cg − m_c)² / n): the gap of true positive rates in probabilities, which held-out
    rows measure with less noise than decisions, each cell counting by its rows.

    Examples:
        >>> cells = training_cells(["a", "a", "b", "b"], group=["f", "m", "f", "m"])
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
    cells = training_cells(held_truth, group=held_group)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AdversariesByClass:
    """A classifier of each class against its rest, each with an adversary of its own."""

    classes_: NDArray[Any]
    models: tuple[AdversarialClassifier, ...]

    def class_probabilities(self, X: Any) -> FloatArray:
        """Probability of each class against its rest."""
        return np.stack([model.predict_proba(X)[:, 1] for model in self.models], axis=1)

    def predict_proba(self, X: Any) -> FloatArray:
        """The same as shares that add to 1."""
        return shares(self.class_probabilities(X))


def tune_adversaries(
    X: Any, y: Any, *, start: Any, held_truth: Any, budget: float = 0.01, **more: Any
) -> tuple[AdversariesByClass, tuple[TunedAdversary, ...]]:
    """An adversary for each class against its rest, as the first paper trains them.

    AIF360's adversary knows two classes, so the paper fits one for every occupation. `start` is a
    fitted linear classifier of three classes or more, and `more` what `tune_adversary` takes. A
    row decided wrongly is wrong for two classes, so each has 2 ÷ classes of the budget.
    """
    truth, held = np.asarray(y), np.asarray(held_truth)
    tuned = []
    for c, name in enumerate(start.classes_):
        alone = SimpleNamespace(
            coef_=np.asarray(start.coef_)[[c]],
            intercept_=np.asarray(start.intercept_)[[c]],
            classes_=np.array([False, True]),
        )
        share = 2 * budget / len(start.classes_)
        tuned.append(
            tune_adversary(
                X, truth == name, start=alone, held_truth=held == name, budget=share, **more
            )
        )
    models = tuple(each.model for each in tuned)
    return AdversariesByClass(classes_=np.asarray(start.classes_), models=models), tuple(tuned)


def _best(trials: Sequence[AdversarialTrial], *, budget: float) -> AdversarialTrial:
    bar = trials[0].accuracy - budget
    return min((t for t in trials if t.accuracy >= bar), key=lambda trial: trial.gap)


def _bare(layers: Layers, classes: Any) -> AdversarialClassifier:
    """A classifier of given layers, ready to predict."""
    model = AdversarialClassifier(hidden=0, adversary_pace=PACE)
    model.layers_, model.classes_ = layers, np.asarray(classes)
    model.n_features_in_ = layers[0][0].shape[0]
    return model
