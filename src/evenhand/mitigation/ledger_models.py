"""A trained remedy as one object that reads texts, to be kept with the ledger and used again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import MissingExtra, UsageError
from evenhand.mitigation.ledger_files import MODELS
from evenhand.mitigation.ledger_task import Fitted, Task
from evenhand.mitigation.ledger_texts import Scaled
from evenhand.models.corpus import Corpus
from evenhand.stats.estimate import FloatArray
from evenhand.text.scrub import scrub_texts


@dataclass(frozen=True, kw_only=True)
class TextRemedy:
    """A remedy that reads texts: `predict` and `predict_proba`, as `evenhand score` asks.

    Texts are those the remedy was trained on: titles masked, and in the setting "scrubbed" also
    scrubbed, which it does itself. Where decisions need the group it has to be given.
    """

    classes_: NDArray[Any]
    fitted: Fitted
    representation: Scaled
    norm: Scaled | None
    setting: str
    needs_group_at_decision: bool

    def scores(self, texts: Sequence[str], *, group: Any = None) -> FloatArray:
        """Rows × classes: probability of each class against its rest."""
        if self.needs_group_at_decision and group is None:
            raise UsageError(
                "This remedy decides by group. Give group= with the group of each text, "
                "or score with another remedy."
            )
        rows = [str(each) for each in texts]
        clean = [str(each) for each in scrub_texts(rows).texts]
        shown = Corpus.from_texts(clean if self.setting == "scrubbed" else rows)
        about = None if self.norm is None else self.norm.features(Corpus.from_texts(clean))
        return self.fitted.scores(self.representation.features(shown), group=group, norm=about)

    def predict(self, texts: Sequence[str], *, group: Any = None) -> NDArray[Any]:
        """The class decided for each text."""
        decided = self.fitted.decide(self.scores(texts, group=group), group=group)
        return np.asarray(self.classes_[decided])

    def predict_proba(self, texts: Sequence[str], *, group: Any = None) -> FloatArray:
        """Probabilities that add to 1."""
        found = self.scores(texts, group=group)
        total = found.sum(axis=1, keepdims=True)
        even = np.full_like(found, 1 / found.shape[1])
        return np.asarray(np.divide(found, total, out=even, where=total > 0))


def text_remedy(task: Task, fitted: Fitted, *, needs_group: bool) -> TextRemedy:
    """The remedy of one task with everything it needs to read texts."""
    texts = task.texts
    return TextRemedy(
        classes_=np.array(texts.rows.classes),
        fitted=fitted,
        representation=texts.representations[task.representation],
        norm=texts.norm_representation if fitted.with_norm else None,
        setting=texts.setting,
        needs_group_at_decision=needs_group,
    )


def save_model(model: TextRemedy, folder: Path, *, name: str) -> str:
    """Write a remedy with joblib; returns its place inside the ledger's folder."""
    try:
        import joblib
    except ImportError:
        raise MissingExtra("text", "Keeping models") from None
    place = Path(MODELS) / f"{name}.joblib"
    (folder / MODELS).mkdir(parents=True, exist_ok=True)
    joblib.dump(model, folder / place, compress=3)
    return place.as_posix()
