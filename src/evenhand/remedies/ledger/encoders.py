"""Local transformers folders in a ledger: frozen, as vectors of texts, or fine-tuned on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import UsageError
from evenhand.models.norms.fit import alpha_weights
from evenhand.models.transformer import (
    TransformerEmbedding,
    all_threads,
    folder_fingerprint,
    model_folder,
)
from evenhand.stats.estimate import FloatArray

FINE_TUNED = "fine-tuned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A transformers folder as a representation of whole texts.

    Frozen, `read` gives mean-pooled vectors, centred and scaled as learned from training texts,
    and the ledger's own classifier follows. Fine-tuned, `read` gives the texts themselves, and
    `classifier` the folder with a head for the classes. `cache` keeps vectors, `checkpoints`
    unfinished fits.
    """

    path: Path
    fine_tune: bool = False
    training: Any = None
    cache: Path | None = None
    checkpoints: Path | None = None
    centre: FloatArray | None = None
    scale: FloatArray | None = None

    @property
    def name(self) -> str:
        """The name of the folder, with how it is used.

        Examples:
            >>> Encoder(path=Path("models/minilm"), fine_tune=True).name
            'minilm-fine-tuned'
        """
        return f"{self.path.resolve().name}{f'-{FINE_TUNED}' if self.fine_tune else ''}"

    @property
    def fingerprint(self) -> str:
        """A short name for what is in the folder and for how it is trained."""
        how = str(self.training) if self.fine_tune else ""
        return f"{folder_fingerprint(model_folder(self.path))}{how}"

    def fit(self, texts: Sequence[str]) -> "Encoder":
        """Learn the scale of the vectors; nothing where texts are fine-tuned on."""
        if self.fine_tune:
            return self
        table = self._vectors(texts)
        spread = table.std(axis=0)
        return replace(self, centre=table.mean(axis=0), scale=np.where(spread > 0, spread, 1.0))

    def read(self, texts: Sequence[str]) -> Any:
        """What a classifier is given: a row of numbers for each text, or the texts."""
        if self.fine_tune:
            return np.array(texts, dtype=object)
        table = self._vectors(texts)
        if self.centre is None or self.scale is None:
            return table
        return ((table - self.centre) / self.scale).astype(np.float32)

    def classifier(
        self,
        *,
        held: tuple[Sequence[str], Sequence[Any]],
        seed: int,
        progress: Callable[[float], None] | None = None,
    ) -> Any:
        """The folder as a classifier that is yet to be fine-tuned."""
        from evenhand.models.fine_tuning import FineTunedClassifier

        return FineTunedClassifier(
            self.path,
            training=self.training,
            held=held,
            checkpoints=self.checkpoints,
            progress=progress,
            seed=seed,
        )

    def norms(
        self,
        train: Sequence[str],
        *,
        group: Sequence[str],
        truth: Sequence[str],
        groups: Sequence[str],
        test: Sequence[str],
        seed: int = 0,
    ) -> dict[str, FloatArray]:
        """Norms of test texts by this folder: how much each reads like a typical group's.

        Training rows weigh α, as for every norm scorer; texts are scrubbed already.
        """
        weights = alpha_weights(truth, group, groups=groups)
        known = np.flatnonzero(weights > 0).tolist()
        texts = [train[row] for row in known]
        labels = np.array([str(group[row]) for row in known])
        if self.fine_tune:
            model = self.classifier(held=((), ()), seed=seed)
            model.fit(texts, labels, sample_weight=weights[known])
            found = model.predict_proba(test)
        else:
            from evenhand.models.linear import LogisticClassifier

            scaled = self.fit(texts)
            # The penalty of the ledger's other norm scorers on scaled vectors.
            model = LogisticClassifier(C=0.1, tol=1e-6)
            model.fit(scaled.read(texts), labels, sample_weight=weights[known])
            found = model.predict_proba(scaled.read(test))
        columns = {str(name): at for at, name in enumerate(model.classes_.tolist())}
        return {name: np.asarray(found[:, columns[name]], dtype=np.float64) for name in groups}

    def _vectors(self, texts: Sequence[str]) -> Any:
        with all_threads():
            return TransformerEmbedding(self.path, cache=self.cache).features(list(texts))


def find_encoder(
    representation: str, *, known: Sequence[str], fine_tune: bool = False, **settings: Any
) -> Encoder:
    """The encoder in a folder; what is neither a folder nor a known word is refused.

    Examples:
        >>> find_encoder("bo", known=["bow", "vectors"])
        Traceback (most recent call last):
        evenhand.errors.UsageError: representation='bo' is neither bow, vectors nor a folder. Give \
one of these words, or the local folder of a transformers model.
    """
    path = Path(representation)
    if not path.is_dir():
        raise UsageError(
            f"representation={representation!r} is neither {', '.join(known)} nor a folder. "
            "Give one of these words, or the local folder of a transformers model."
        )
    model_folder(path)
    if fine_tune:
        from evenhand.models.fine_tuning import Training

        settings["training"] = Training.of(settings.get("training"))
    return Encoder(path=path, fine_tune=fine_tune, **settings)
