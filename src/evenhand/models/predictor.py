"""The model under audit, whatever it is: one question, scores of texts for each class.

`load_predictor` tells by the form of its argument what it is given: an http(s) address, a folder
of a transformers model, a joblib file, `module:function`, or a Python callable.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import label
from evenhand.errors import DataError, MissingExtra, UsageError, nearest
from evenhand.models.moved import old_names
from evenhand.stats.estimate import FloatArray

if TYPE_CHECKING:
    from evenhand.decisions.batches import Batch

FORMS = "Give a joblib file, a folder of a transformers model, http://… or module:function."
FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@runtime_checkable
class Predictor(Protocol):
    """What Evenhand asks of a model: its classes, and a score of every text for each of them.

    `classes` may be empty until the first scores where only the model knows them.
    """

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the columns of `scores`."""

    def scores(self, texts: Sequence[str]) -> FloatArray:
        """Scores as an array of texts × classes; higher means more likely."""


def checked_scores(
    result: Any, *, rows: int, classes: tuple[str, ...], source: str
) -> tuple[FloatArray, tuple[str, ...]]:
    """Scores as a finite array of rows × classes, with the names of the classes.

    One score a row is taken as that of the second of two classes. Without names, classes are
    numbered from 0.
    """
    try:
        scores = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{source} returned {type(result).__name__} that is not a table of numbers. "
            "It must return one row of scores for each text, all of the same length."
        ) from None
    if rows == 0 and scores.size == 0:
        return np.zeros((0, len(classes))), classes
    if scores.ndim not in (1, 2) or len(scores) != rows:
        given = " × ".join(str(size) for size in scores.shape) or "a single number"
        raise DataError(
            f"{source} returned {given} scores for {rows} texts. "
            "It must return one row for each text, in the same order."
        )
    if scores.ndim == 1:
        scores = np.stack([1.0 - scores, scores], axis=1)
    names = classes or tuple(str(k) for k in range(scores.shape[1]))
    if scores.shape[1] != len(names):
        raise DataError(
            f"{source} returned {scores.shape[1]} scores a text and has {len(names)} classes. "
            "There must be one score for each class."
        )
    if not np.isfinite(scores).all():
        row = int(np.argwhere(~np.isfinite(scores))[0, 0])
        raise DataError(
            f"{source} returned a score that is not a finite number for text {row} of {rows}. "
            "Every score must be finite."
        )
    return scores, names


def checked_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list, after checking that each is a string."""
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(
                f"Text {row} is {text!r}, not a string. Drop or fill rows without text first."
            )
    return list(texts)


@dataclass(slots=True)
class CallablePredictor:
    """A Python function from texts to scores, as a predictor.

    The function returns rows of scores, one score a text, or a dict of `classes` and `scores`.

    Examples:
        >>> length = CallablePredictor(lambda texts: [len(t) / 10 for t in texts])
        >>> length.scores(["abc"]).tolist(), length.classes
        ([[0.7, 0.3]], ('0', '1'))
    """

    function: Callable[[list[str]], Any]
    classes: tuple[str, ...] = ()
    source: str = "The model"

    def scores(self, texts: Sequence[str]) -> FloatArray:
        """Scores of the texts; refused where the function does not return one row a text."""
        asked = checked_texts(texts)
        result = self.function(asked)
        if isinstance(result, dict) and {"classes", "scores"} <= set(result):
            self.classes = merged_classes(self.classes, result["classes"], source=self.source)
            result = result["scores"]
        scores, self.classes = checked_scores(
            result, rows=len(asked), classes=self.classes, source=self.source
        )
        return scores


def merged_classes(known: tuple[str, ...], given: Any, *, source: str) -> tuple[str, ...]:
    """The classes of an answer, refused where they differ from those known before."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise DataError(f"{source} returned classes={given!r}. It must return a list of names.")
    names = tuple(str(label(name)) for name in given)
    if len(set(names)) != len(names):
        raise DataError(f"{source} returned a class twice: {', '.join(names)}.")
    if known and names != known:
        raise DataError(
            f"{source} returned the classes {', '.join(names)} after {', '.join(known)}. "
            "They must stay the same, in the same order."
        )
    return names


@dataclass(slots=True)
class ScikitPredictor:
    """A scikit-learn pipeline that takes raw texts, as a predictor."""

    model: Any
    source: str = "The model"
    classes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        methods = ("predict_proba", "decision_function")
        if not hasattr(self.model, "classes_") or not any(hasattr(self.model, m) for m in methods):
            raise DataError(
                f"{self.source} holds {type(self.model).__name__}, not a fitted classifier. "
                "It must have classes_ and predict_proba or decision_function."
            )
        # As everywhere a class is named: True and 1.0 are "1", as the truth column will have it.
        self.classes = tuple(str(label(name)) for name in self.model.classes_)

    def scores(self, texts: Sequence[str]) -> FloatArray:
        """Probabilities where the model has them, else its decision function."""
        asked = checked_texts(texts)
        if not asked:
            return np.zeros((0, len(self.classes)))
        try:
            if hasattr(self.model, "predict_proba"):
                result = self.model.predict_proba(asked)
            else:
                result = np.asarray(self.model.decision_function(asked))
                if result.ndim == 1:
                    result = np.stack([-result, result], axis=1)
        except (TypeError, ValueError, AttributeError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise DataError(
                f"{self.source} does not take raw texts: {first} "
                "Save the whole pipeline, from text to classes."
            ) from error
        scores, _ = checked_scores(
            result, rows=len(asked), classes=self.classes, source=self.source
        )
        return scores


@dataclass(slots=True)
class GroupPredictor:
    """A model that has to know the group to decide, such as thresholds by group.

    It is asked for scores of texts of people of given groups, and decides by both.
    """

    model: Any
    source: str = "The model"
    classes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.classes = tuple(str(label(name)) for name in self.model.classes_)

    def scores(self, texts: Sequence[str], group: Sequence[str] = ()) -> FloatArray:
        """Probability of each class against its rest, by the group of each text's person."""
        asked = checked_texts(texts)
        if not asked:
            return np.zeros((0, len(self.classes)))
        found = self.model.scores(asked, group=np.array(group))
        scores, _ = checked_scores(found, rows=len(asked), classes=self.classes, source=self.source)
        return scores

    def decide(self, scores: FloatArray, group: Sequence[str]) -> NDArray[np.intp]:
        """Number of the class that is decided for each row of scores."""
        return np.asarray(self.model.decide(scores, group=np.array(group)), dtype=np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What a model is asked: texts, or texts of people of a group, each as one key.

    A text rewritten to a value is that of a person of this group.

    Examples:
        >>> Questions.parts(Questions.key("He ran.", "male"))
        ('He ran.', 'male')
    """

    columns: Mapping[str, str]
    group: str | None

    def groups(self, batch: "Batch", mark: str) -> list[str | None]:
        """The group of each row's text in a column."""
        if self.group is None or mark:
            return [mark[1:] or None] * len(batch)
        return batch.labels(self.group)

    def keys(self, batch: "Batch", column: str) -> list[str | None]:
        """What is asked of each row in a column; nothing where the text or the group is null."""
        texts = batch.strings(column)
        if self.group is None:
            return texts
        groups = self.groups(batch, self.columns[column])
        return [
            None if text is None or name is None else self.key(text, name)
            for text, name in zip(texts, groups, strict=True)
        ]

    @staticmethod
    def key(text: str, group: str) -> str:
        """Text and group as one."""
        return f"{group}\0{text}"

    @staticmethod
    def parts(key: str) -> tuple[str, str]:
        """Text and group of a key."""
        group, _, text = key.partition("\0")
        return text, group


def load_predictor(
    model: Any,
    *,
    trust: bool = False,
    classes: Sequence[str] = (),
    batch_size: int = 32,
    device: str | None = None,
    timeout: float = 60.0,
    retries: int = 4,
    rate: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Predictor:
    """The predictor that this model is: an address, folder, joblib file, module:function, callable.

    `trust` allows opening a joblib file, which can run any code. `timeout` (seconds), `retries`,
    `rate` (requests a second) and `headers` are for addresses; `batch_size` also for transformers;
    `device` for transformers alone ("cpu", "cuda"; the GPU if there is one when None).

    Examples:
        >>> load_predictor(lambda texts: [0.5] * len(texts), classes=["no", "yes"]).classes
        ('no', 'yes')
    """
    names = tuple(str(name) for name in classes)
    if batch_size < 1:
        raise UsageError(f"batch_size={batch_size} is not a number of texts. Give 1 or more.")
    if isinstance(model, Path):
        model = str(model)
    if not isinstance(model, str):
        return from_object(model, classes=names)
    if re.match(r"https?://", model):
        from evenhand.models.endpoint import EndpointPredictor

        return EndpointPredictor(
            model,
            batch_size=batch_size,
            timeout=timeout,
            retries=retries,
            rate=rate,
            classes=names,
            headers=dict(headers or {}),
        )
    if headers:
        raise UsageError(f"Headers go to an http address, and model={model!r} is none.")
    path = Path(model)
    if path.is_dir():
        from evenhand.models.transformer import TransformerPredictor

        return TransformerPredictor(path, batch_size=batch_size, device=device)
    if path.is_file():
        return _fitted(open_pickle(path, trust=trust), source=f"model={model!r}")
    if FUNCTION.fullmatch(model):
        return from_object(imported(model), classes=names, source=f"model={model!r}")
    raise UsageError(f"model={model!r} is no file or folder that exists. {FORMS}")


def from_object(model: Any, *, classes: tuple[str, ...], source: str = "The model") -> Predictor:
    """A predictor as it is, a fitted scikit-learn model, or any callable, wrapped."""
    if isinstance(model, Predictor) and not isinstance(model, type):
        return model
    if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
        return _fitted(model, source=source)
    if not callable(model):
        raise UsageError(
            f"{source} is {type(model).__name__}, which cannot be called on texts. {FORMS}"
        )
    known = classes or tuple(str(name) for name in getattr(model, "classes", ()))
    return CallablePredictor(model, classes=known, source=source)


def _fitted(model: Any, *, source: str) -> Predictor:
    """A fitted model as a predictor; one that decides by group is asked for it."""
    if getattr(model, "needs_group_at_decision", False) and hasattr(model, "decide"):
        return GroupPredictor(model, source=source)
    return ScikitPredictor(model, source=source)


def open_pickle(path: Path, *, trust: bool) -> Any:
    """What a joblib file holds; only with trust, because opening it can run any code."""
    if not trust:
        raise UsageError(
            f"model={str(path)!r} is a pickle, which can run any code when it is opened. "
            "Pass trust=True (--trust) if you know where it comes from."
        )
    try:
        import joblib
    except ImportError:
        raise MissingExtra("text", f"model={str(path)!r}") from None
    try:
        with old_names():
            return joblib.load(path)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("evenhand."):
            raise DataError(
                f"model={str(path)!r} was saved by another version of Evenhand: this one has no "
                f"{error.name!r}. Train it again with this version, or open it with that one."
            ) from error
        raise DataError(
            f"model={str(path)!r} needs the module {error.name!r}, which is not installed. "
            "Install what the model was made with."
        ) from error
    except Exception as error:  # unpickling raises whatever the bytes make it raise
        raise DataError(
            f"model={str(path)!r} could not be opened as a joblib file "
            f"({type(error).__name__}: {error}). Save the model with joblib.dump."
        ) from error


@contextmanager
def working_folder_importable() -> Iterator[None]:
    """The working folder on the import path, as `python -m` has it, for one import."""
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")


def imported(reference: str) -> Any:
    """The object that module:function names."""
    module_name, _, attribute = reference.partition(":")
    with working_folder_importable():
        try:
            found: Any = import_module(module_name)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"model={reference!r} needs the module {error.name!r}, which cannot be found. "
                "Run from the folder that holds it, or install it."
            ) from error
        except Exception as error:  # a module of the user's own may raise anything
            raise UsageError(
                f"model={reference!r}: {module_name} cannot be imported "
                f"({type(error).__name__}: {error}). Mend it and run again."
            ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            known = [known for known in vars(found) if not known.startswith("_")]
            raise UsageError(
                f"model={reference!r}: {module_name} has no {name!r}.{nearest(name, known)}"
            )
        found = getattr(found, name)
    return found
