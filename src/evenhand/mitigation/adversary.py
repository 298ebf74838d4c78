"""The training loop of adversarial debiasing; torch is imported by whoever trains."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, MissingExtra
from evenhand.mitigation.cells import Cells
from evenhand.mitigation.estimator import is_sparse, take
from evenhand.stats.estimate import FloatArray

DECAY_STEPS = 1000


def projected(gradient: Any, adversary: Any, *, weight: float) -> Any:
    """g − (g·û)û − weight·h with û = h/|h|: what the classifier's tensor moves along.

    Works on NumPy arrays and torch tensors alike.

    Examples:
        >>> projected(np.array([3.0, 4.0]), np.array([2.0, 0.0]), weight=0.5).tolist()
        [-1.0, 4.0]
    """
    length = float((adversary * adversary).sum()) ** 0.5
    if length <= 1e-30:
        return gradient
    unit = adversary / length
    return gradient - (gradient * unit).sum() * unit - weight * adversary


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

    def train(self, X: Any, *, cells: Cells, weights: FloatArray) -> None:
        """All epochs; refused where the loss is no longer a number."""
        torch = self.torch
        widths = [X.shape[1] if hasattr(X, "shape") else len(X[0]), self.classes]
        if self.settings.hidden:
            widths.insert(1, self.settings.hidden)
        self._build(widths)
        rng = np.random.default_rng(self.settings.seed)
        table = X.tocsr().astype(np.float32) if is_sparse(X) else np.asarray(X, dtype=np.float32)
        truth = torch.as_tensor(cells.truth, device=self.device)
        group = torch.as_tensor(cells.group, device=self.device)
        c = torch.as_tensor(weights.astype(np.float32), device=self.device)
        fixed = None if is_sparse(table) else torch.as_tensor(table, device=self.device)
        for epoch in range(self.settings.epochs):
            order = rng.permutation(cells.truth.size)
            losses = np.zeros(2)
            for start in range(0, order.size, self.settings.batch_size):
                rows = order[start : start + self.settings.batch_size]
                at = torch.as_tensor(rows, device=self.device)
                batch = fixed[at] if fixed is not None else self._sparse(take(table, rows))
                losses += self._step(batch, truth[at], group[at], c[at]) * rows.size
            own, other = losses / order.size
            if not np.isfinite(own + other):
                raise DataError(
                    f"Adversarial training diverged in epoch {epoch + 1}. "
                    "Lower learning_rate or adversary_weight, or scale the features."
                )
            self.history.append((float(own), float(other)))

    def _build(self, widths: list[int]) -> None:
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
        inputs = self.classes * (3 if self.settings.form == "equalised_odds" else 1)
        self.reader = tensor(inputs, self.groups, spread=(2 / (inputs + self.groups)) ** 0.5)
        self.reader_bias = tensor(self.groups, spread=0.0)
        self.slope = torch.ones(1, device=self.device, requires_grad=True)
        rate = self.settings.learning_rate
        own = [*self.weights, *self.biases]
        other = [self.reader, self.reader_bias, self.slope]
        self.own = torch.optim.Adam(own, lr=rate, weight_decay=self.settings.weight_decay)
        self.other = torch.optim.Adam(other, lr=rate)
        gamma = self.settings.decay ** (1 / DECAY_STEPS)
        self.schedules = [
            torch.optim.lr_scheduler.ExponentialLR(each, gamma) for each in (self.own, self.other)
        ]

    def _sparse(self, rows: Any) -> Any:
        coordinates = rows.tocoo()
        places = np.stack([coordinates.row, coordinates.col]).astype(np.int64)
        return self.torch.sparse_coo_tensor(
            self.torch.as_tensor(places, device=self.device),
            self.torch.as_tensor(coordinates.data, device=self.device),
            size=rows.shape,
            check_invariants=False,
        )

    def _logits(self, batch: Any) -> Any:
        torch = self.torch
        values = batch
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            product = torch.sparse.mm if values.is_sparse else torch.mm
            values = product(values, weight) + bias
            if number + 1 < len(self.weights):
                values = torch.nn.functional.dropout(torch.relu(values), self.settings.dropout)
        return values

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
        logits = self._logits(batch)
        own_loss = (weights * entropy(logits, truth, reduction="none")).mean()
        other_loss = (weights * entropy(self._read(logits, truth), group, reduction="none")).mean()
        tensors = [*self.weights, *self.biases]
        reader = [self.reader, self.reader_bias, self.slope]
        own = torch.autograd.grad(own_loss, tensors, retain_graph=True)
        both = torch.autograd.grad(other_loss, [*tensors, *reader])
        self._project(tensors, own, both[: len(tensors)])
        for tensor, gradient in zip(reader, both[len(tensors) :], strict=True):
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
        flat = [self.torch.cat([each.reshape(-1) for each in side]) for side in (own, adversary)]
        moved = projected(*flat, weight=weight).split([each.numel() for each in tensors])
        for tensor, part in zip(tensors, moved, strict=True):
            tensor.grad = part.reshape(tensor.shape)

    def layers(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Weights and biases of the classifier as NumPy arrays."""
        pairs = zip(self.weights, self.biases, strict=True)
        return [(w.detach().cpu().numpy(), b.detach().cpu().numpy()) for w, b in pairs]
