"""Fine-tuning of a local transformers folder as a scikit-learn classifier of texts.

A plain torch loop, the same on a GPU (bfloat16) and on a CPU. Needs the extras `text` and `torch`.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import MissingExtra, UnusableRows, UsageError, nearest
from evenhand.files.writing import new_file, refusals
from evenhand.models.linear import checked_weights
from evenhand.models.predictor import checked_texts
from evenhand.models.transformer import (
    all_threads,
    folder_fingerprint,
    longest_text,
    model_folder,
    opened,
    quiet,
)
from evenhand.stats.estimate import FloatArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtra("text", "FineTunedClassifier") from None

Progress = Callable[[float], None]
# Batches are cut out of runs of this many, sorted by length: little padding, still shuffled.
RUN = 16
# Two fits at once would share torch's one random state, and neither could be repeated.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a folder is fine-tuned; the loss is the mean over a batch of weight × cross-entropy.

    The rate rises over the first `warm_up` share of the steps and then falls to 0. Training stops
    after `patience` epochs without a better accuracy on held-out rows, and the best epoch stays.
    """

    epochs: int = 4
    learning_rate: float = 5e-5
    batch_size: int = 32
    warm_up: float = 0.1
    patience: int = 2
    clip: float = 1.0
    decay: float = 0.01
    longest: int = 256

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "longest"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}={getattr(self, name)} is not 1 or more.")
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)} is not above 0.")
        if not (0 <= self.warm_up < 1 and self.decay >= 0):
            raise UsageError(
                f"warm_up={self.warm_up} and decay={self.decay}: give a share of the steps below "
                "1, and 0 or more."
            )

    @classmethod
    def of(cls, given: Any) -> Self:
        """Settings as they were given, or made of a mapping; an unknown one is refused.

        Examples:
            >>> Training.of({"epochs": 2}).epochs
            2
        """
        if isinstance(given, cls):
            return given
        known = [each.name for each in fields(cls)]
        for name in given or {}:
            if name not in known:
                raise UsageError(
                    f"training has {name!r}, which is not a setting.{nearest(name, known)} "
                    f"They are {', '.join(known)}."
                )
        return cls(**dict(given or {}))

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of a step: up during warm-up, then down to 0 at the end.

        Examples:
            >>> [round(Training(learning_rate=1.0, warm_up=0.2).rate(k, 10), 3) for k in (0, 2, 9)]
            [0.5, 1.0, 0.125]
        """
        warm = max(1, round(self.warm_up * steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (steps - step) / max(1, steps - warm)


class FineTunedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A transformers folder trained on texts; `fit` takes strings, classes and weights.

    `held` are texts and classes that stop the training early; without it all epochs are run.
    With `checkpoints`, a folder, every finished epoch is kept there and a run that broke off goes
    on; its file goes when the fit is done. `progress` is told the share of the fit that is done.
    """

    def __init__(
        self,
        folder: Any,
        *,
        training: Any = None,
        held: tuple[Sequence[str], Sequence[Any]] | None = None,
        device: str | None = None,
        checkpoints: Any = None,
        progress: Progress | None = None,
        seed: int = 0,
    ) -> None:
        self.folder = folder
        self.training = training
        self.held = held
        self.device = device
        self.checkpoints = checkpoints
        self.progress = progress
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fine-tune on these texts; rows of weight 0 are left out."""
        texts, y = checked_texts(list(X)), np.asarray(y)
        weights = checked_weights(sample_weight, rows=len(texts))
        used = np.flatnonzero(weights > 0)
        classes, labels = np.unique(y[used], return_inverse=True)
        if classes.size < 2:
            raise UnusableRows(
                f"The training rows have one class alone, {classes[0].item()!r}. "
                "Learning needs rows of at least two classes."
            )
        settings = Training.of(self.training)
        # Of mean one, so that a step is as long whatever the scale of the weights.
        scaled = weights[used] / weights[used].mean()
        given = _Rows([texts[row] for row in used], labels, scaled)
        held = self._held_rows(classes)
        for name in ("_module", "_weights", "classes_"):
            self.__dict__.pop(name, None)  # a second fit begins from the folder again
        with _ONE_AT_A_TIME, all_threads():
            self._open(classes)
            key = self._key(given, held, settings)
            self.history_ = _Loop(self, given, held, settings, key).run()
        self.classes_ = classes
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Logits: rows × classes, or one number a row where there are two classes."""
        check_is_fitted(self)
        with _ONE_AT_A_TIME, all_threads():
            self._open(self.classes_)
            logits = self._logits(checked_texts(list(X)))
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def class_probabilities(self, X: Any) -> FloatArray:
        """Probabilities of the classes, which add to 1: they are fitted jointly."""
        logits = self.decision_function(X)
        if logits.ndim == 1:
            logits = np.stack([np.zeros_like(logits), logits], axis=1)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> FloatArray:
        """The same."""
        return self.class_probabilities(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each text."""
        return np.asarray(self.classes_[self.class_probabilities(X).argmax(axis=1)])

    def save(self, folder: str | Path) -> None:
        """Write model and tokenizer as transformers do, for `evenhand score --model FOLDER`."""
        check_is_fitted(self)
        self._open(self.classes_)
        with refusals(folder), quiet():
            self._module.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        module = state.pop("_module", None)
        for name in ("_tokenizer", "_place"):
            state.pop(name, None)
        state |= {"progress": None, "held": None}
        if module is not None and hasattr(self, "classes_"):
            # Half the bytes; the model was trained with no finer numbers on a GPU.
            state["_weights"] = {
                name: (value.half() if value.is_floating_point() else value).cpu().numpy()
                for name, value in module.state_dict().items()
            }
        return state

    def _held_rows(self, classes: NDArray[Any]) -> "_Rows | None":
        """Held-out rows of the classes that are learned; those of others tell nothing."""
        if self.held is None:
            return None
        texts, truth = checked_texts(list(self.held[0])), np.asarray(self.held[1])
        known = np.flatnonzero(np.isin(truth, classes))
        if not known.size:
            return None
        labels = np.searchsorted(classes, truth[known])
        return _Rows([texts[row] for row in known], labels, np.ones(known.size))

    def _open(self, classes: NDArray[Any]) -> None:
        """The model with a head for these classes, on its device: new, or as it was pickled."""
        if hasattr(self, "_module") and hasattr(self, "classes_"):
            return
        import torch

        names = {place: str(name) for place, name in enumerate(classes.tolist())}
        path = Path(self.folder)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self._module, self._tokenizer, self._place = opened(
                path,
                kind="AutoModelForSequenceClassification",
                device=self.device,
                num_labels=classes.size,
                id2label=names,
                label2id={name: place for place, name in names.items()},
                ignore_mismatched_sizes=True,
            )
        self._module.float()
        stored = self.__dict__.pop("_weights", None)
        if stored is not None:
            state = {name: torch.from_numpy(np.array(v)) for name, v in stored.items()}
            self._module.load_state_dict(state)
            self._module.float()
        self._module.to(self._place).eval()

    def _tokens(self, texts: Sequence[str], longest: int) -> list[list[int]]:
        most = min(longest, longest_text(self._module, self._tokenizer))
        found = self._tokenizer(list(texts), truncation=True, max_length=most)
        return [list(each) for each in found["input_ids"]]

    def _logits(self, texts: Sequence[str]) -> FloatArray:
        import torch

        settings = Training.of(self.training)
        columns = int(self._module.config.num_labels)
        logits = np.zeros((len(texts), columns))
        if not texts:
            return logits
        tokens = self._tokens(texts, settings.longest)
        order = sorted(range(len(texts)), key=lambda row: len(tokens[row]))
        self._module.eval()
        size = 4 * settings.batch_size
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            with torch.inference_mode(), _half(self._place):
                found = self._module(**self._batch(tokens, rows)).logits
            logits[rows] = found.float().cpu().numpy()
        return logits

    def _batch(self, tokens: Sequence[list[int]], rows: Sequence[int]) -> Any:
        import torch

        # By hand: a tokenizer takes ten times as long to pad as a small model to learn.
        lengths = np.array([len(tokens[row]) for row in rows])
        ids = np.full((len(rows), lengths.max()), self._tokenizer.pad_token_id or 0)
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        ids[mask] = np.concatenate([tokens[row] for row in rows])
        given = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
        return {name: torch.from_numpy(each).to(self._place) for name, each in given.items()}

    def _key(self, given: "_Rows", held: "_Rows | None", settings: Training) -> str:
        """A name for everything that the outcome depends on."""
        digest = hashlib.sha256(folder_fingerprint(model_folder(Path(self.folder))).encode())
        digest.update(json.dumps([asdict(settings), self.seed]).encode())
        for rows in (given, held):
            if rows is not None:
                for text in rows.texts:
                    digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
                digest.update(np.ascontiguousarray(rows.labels, dtype=np.int64).tobytes())
                digest.update(np.ascontiguousarray(rows.weights).tobytes())
        return digest.hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class _Rows:
    texts: list[str]
    labels: NDArray[np.intp]
    weights: FloatArray


class _Loop:
    """One fit: epochs of batches, the best of them by held-out accuracy, kept as it goes."""

    def __init__(
        self,
        owner: FineTunedClassifier,
        given: _Rows,
        held: _Rows | None,
        settings: Training,
        key: str,
    ) -> None:
        import torch

        self.owner, self.given, self.held, self.settings = owner, given, held, settings
        self.module = owner._module
        self.optimizer = torch.optim.AdamW(
            self.module.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.decay,
            fused=owner._place.startswith("cuda"),
        )
        self.tokens = owner._tokens(given.texts, settings.longest)
        self.per_epoch = -(-len(given.texts) // settings.batch_size)
        self.steps = self.per_epoch * settings.epochs
        self.history: list[dict[str, float]] = []
        self.best: dict[str, Any] | None = None
        folder = owner.checkpoints
        self.place = None if folder is None else Path(folder) / f"{key}.pt"

    def run(self) -> list[dict[str, float]]:
        """All epochs, or as many as help; one entry each."""
        import torch

        cuda = self.owner._place.startswith("cuda")
        self._resume()
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if cuda else []):
            for epoch in range(len(self.history), self.settings.epochs):
                if self._waited() >= self.settings.patience:
                    break
                # Its own seed for every epoch: one that goes on is the one that never broke off.
                torch.manual_seed(int(np.random.SeedSequence([self.owner.seed, epoch])
                                      .generate_state(1)[0]))  # fmt: skip
                loss = self._epoch(epoch)
                self._judge(loss)
                self._keep()
        if self.best is not None:
            self.module.load_state_dict(self.best)
        self.module.eval()
        if self.place is not None:
            self.place.unlink(missing_ok=True)
        return self.history

    def _epoch(self, epoch: int) -> float:
        import torch

        self.module.train()
        device = self.owner._place
        total = torch.zeros((), device=device)
        for number, rows in enumerate(self._batches(epoch)):
            step = epoch * self.per_epoch + number
            for part in self.optimizer.param_groups:
                part["lr"] = self.settings.rate(step, self.steps)
            labels = torch.as_tensor(self.given.labels[rows], device=device)
            weights = torch.as_tensor(self.given.weights[rows], device=device).float()
            with _half(device):
                logits = self.module(**self.owner._batch(self.tokens, rows)).logits
            each = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
            loss = (weights * each).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.settings.clip)
            self.optimizer.step()
            total += loss.detach()
            if self.owner.progress is not None:
                self.owner.progress((step + 1) / self.steps)
        return float(total) / self.per_epoch

    def _batches(self, epoch: int) -> Iterator[list[int]]:
        rng = np.random.default_rng([self.owner.seed, epoch])
        order = rng.permutation(len(self.tokens))
        size = self.settings.batch_size
        batches: list[list[int]] = []
        for start in range(0, order.size, RUN * size):
            run = sorted(order[start : start + RUN * size], key=lambda row: len(self.tokens[row]))
            batches += [run[at : at + size] for at in range(0, len(run), size)]
        yield from (batches[k] for k in rng.permutation(len(batches)))

    def _judge(self, loss: float) -> None:
        """Accuracy on held-out rows; the weights of the best epoch so far are put aside."""
        entry = {"loss": loss}
        if self.held is not None:
            decided = self.owner._logits(self.held.texts).argmax(axis=1)
            entry["held_accuracy"] = float((decided == self.held.labels).mean())
            if entry["held_accuracy"] > max((e["held_accuracy"] for e in self.history), default=-1):
                self.best = {k: v.detach().clone() for k, v in self.module.state_dict().items()}
        self.history.append(entry)

    def _waited(self) -> int:
        """Epochs since the best one."""
        if self.held is None or not self.history:
            return 0
        scores = [entry["held_accuracy"] for entry in self.history]
        return len(scores) - 1 - scores.index(max(scores))

    def _keep(self) -> None:
        if self.place is None:
            return
        import torch

        with refusals(self.place):
            self.place.parent.mkdir(parents=True, exist_ok=True)
        held = {
            "history": self.history,
            "module": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
        }
        with new_file(self.place) as made, refusals(self.place):
            torch.save(held, made)

    def _resume(self) -> None:
        """Go on after the last epoch that was kept; a damaged file is begun again."""
        if self.place is None or not self.place.is_file():
            return
        import torch

        try:
            held = torch.load(self.place, map_location=self.owner._place, weights_only=True)
            self.module.load_state_dict(held["module"])
            self.optimizer.load_state_dict(held["optimizer"])
            self.history, self.best = list(held["history"]), held["best"]
        except Exception:  # whatever torch says of a broken file
            self.history, self.best = [], None


def _half(device: str) -> Any:
    """Sixteen bits on a GPU, thirty-two elsewhere."""
    import torch

    return torch.autocast("cuda", dtype=torch.bfloat16, enabled=device.startswith("cuda"))
