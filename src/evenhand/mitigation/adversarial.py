"""Adversarial training: a classifier whose predictions an adversary cannot read the group from.

Zhang, Lemoine and Mitchell (2018), with the projection: the classifier never steps in a direction
that helps the adversary. Needs torch (extra `torch`) to train; predictions need NumPy alone.
"""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from evenhand.errors import DataError, MissingExtra, UsageError, nearest
from evenhand.mitigation.cells import cells_of
from evenhand.mitigation.estimator import Remedy, checked_weights, is_sparse
from evenhand.stats.estimate import FloatArray

Form = Literal["equalised_odds", "demographic_parity"]
Projection = Literal["whole", "tensor"]
FORMS = ("equalised_odds", "demographic_parity")
PROJECTIONS = ("whole", "tensor")


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
        group: Any,
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
        from evenhand.mitigation.adversary import Duel

        cells = cells_of(y, group=group)
        if len(cells.classes) < 2 or len(cells.groups) < 2:
            few = "class" if len(cells.classes) < 2 else "group"
            raise DataError(
                f"The training rows have one {few} alone. "
                "Adversarial training needs two classes and two groups."
            )
        weights = checked_weights(sample_weight, rows=cells.truth.size)
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
        self.n_features_in_ = self.layers_[0][0].shape[0]
        return self

    def _check_arguments(self) -> None:
        for name, known in (("form", FORMS), ("projection", PROJECTIONS)):
            given = getattr(self, name)
            if given not in known:
                raise UsageError(
                    f"{name}={given!r} is not one of {', '.join(known)}."
                    + nearest(str(given), list(known))
                )
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
        self._check_fitted()
        values: Any = X if is_sparse(X) else np.asarray(X, dtype=np.float64)
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
