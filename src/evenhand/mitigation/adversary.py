"""The training loop of adversarial debiasing; torch is imported by whoever trains."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, MissingExtra
from evenhand.mitigation.cells import Cells
from evenhand.mitigation.estimator import is_sparse, take
from evenhand.stats.estimate import FloatArray

DECAY_STEPS = 1000
Layers = list[tuple[NDArray[Any], NDArray[Any]]]
Watch = Callable[[int, Layers], bool]


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


class Batch:
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
        try:
            import torch
        except ImportError:
            raise MissingExtra("torch", "Adversarial training") from None
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
        cells: Cells,
        weights: FloatArray,
        start: Layers | None = None,
        watch: Watch | None = None,
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

    def _batch(self, table: Any, rows: NDArray[np.intp]) -> "Batch":
        if is_sparse(table):
            part = take(table, rows)
            return Batch(part if self.device == "cpu" else self._sparse(part), self.torch)
        return Batch(table[self.torch.as_tensor(rows, device=self.device)], self.torch)

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
