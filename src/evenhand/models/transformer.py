"""Local folders of transformers models: scores of a classifier, or mean-pooled embeddings.

Nothing is ever downloaded. torch and transformers are imported when a folder is opened.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.files.documents import check_document, list_of, read_arrays, read_json, table, text
from evenhand.files.writing import new_file, refusals
from evenhand.models.predictor import checked_scores, checked_texts
from evenhand.stats.estimate import FloatArray

TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
# RoBERTa and its relatives number positions from the padding index on, so two are lost.
OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "data2vec-text"}


def model_folder(path: Path) -> Path:
    """The folder that holds the model itself; that of a sentence-transformers folder may be inside.

    Refused, before anything heavy is imported, where the configuration or the tokenizer is missing.
    """
    if not path.is_dir():
        raise UsageError(f"{str(path)!r} is not a folder. Give the folder of a transformers model.")
    folder = path
    modules = path / "modules.json"
    if modules.is_file():
        parts = read_json(modules, noun="a list of a model's parts")
        shape = list_of(table({}, {"path": text}))
        check_document(parts, shape, source=modules, noun="list of a model's parts")
        folder = path / (parts[0].get("path", "") if parts else "")
    if not (folder / "config.json").is_file():
        raise DataError(
            f"The folder {str(folder)!r} has no config.json, so it is not a transformers model. "
            "Save the model there with save_pretrained."
        )
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise DataError(
            f"The folder {str(folder)!r} has no tokenizer. "
            "Save it beside the model with tokenizer.save_pretrained."
        )
    return folder


def opened(path: Path, *, kind: str, device: str | None, **settings: Any) -> tuple[Any, Any, str]:
    """Model and tokenizer of a local folder, and the device they belong on."""
    folder = model_folder(path)
    try:
        import torch
        import transformers
    except ImportError:
        raise MissingExtra("torch", f"The transformers folder {str(path)!r}") from None
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        load = getattr(transformers, kind).from_pretrained
        with quiet():
            # Said because transformers 4.44 warns where it is not; it is about writing texts, and
            # here they are only read.
            spaces = {"clean_up_tokenization_spaces": False}
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, **spaces
            )
            model = load(folder, local_files_only=True, **settings)
    except Exception as error:  # each file format fails in a way of its own
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"The folder {str(folder)!r} could not be opened: {first}") from error
    return model, tokenizer, place


def longest_text(model: Any, tokenizer: Any) -> int:
    """Tokens that a text may have at most."""
    positions = getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length
    if model.config.model_type in OFFSET_POSITIONS:
        positions -= 2
    return int(min(tokenizer.model_max_length, positions))


@contextmanager
def quiet() -> Iterator[None]:
    """Transformers without their word that a new head is new, and without bars of their own."""
    from transformers.utils import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def all_threads() -> Iterator[None]:
    """Torch on every core, also where linear algebra around it is held to one thread."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "A transformers folder") from None
    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(slots=True)
class Folder:
    """A model and its tokenizer on a device, with the longest text that they take."""

    model: Any
    tokenizer: Any
    device: str
    longest: int

    @classmethod
    def open(cls, path: Path, *, kind: str, device: str | None) -> "Folder":
        """The model of this kind (an Auto class of transformers) in a local folder."""
        model, tokenizer, place = opened(path, kind=kind, device=device)
        # Weights may be stored in sixteen bits, which a CPU is slow with.
        return cls(model.float().eval().to(place), tokenizer, place, longest_text(model, tokenizer))

    def outputs(self, texts: list[str], *, batch_size: int) -> Iterator[tuple[list[int], Any, Any]]:
        """Rows, model output and attention mask of each batch, texts of like length together."""
        import torch

        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            given = self.tokenizer(
                [texts[row] for row in rows],
                padding=True,
                truncation=True,
                max_length=self.longest,
                return_tensors="pt",
            ).to(self.device)
            with torch.inference_mode():
                yield rows, self.model(**given), given["attention_mask"]


@dataclass(slots=True)
class TransformerPredictor:
    """A transformers text classifier from a local folder; texts over its length are cut."""

    path: Path
    batch_size: int = 32
    device: str | None = None
    classes: tuple[str, ...] = field(init=False)
    _folder: Folder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind = "AutoModelForSequenceClassification"
        self._folder = Folder.open(Path(self.path), kind=kind, device=self.device)
        labels = self._folder.model.config.id2label
        names = tuple(str(labels[index]) for index in sorted(labels))
        # One output is the logit of a yes against a no.
        self.classes = names if len(names) > 1 else ("0", "1")

    def scores(self, texts: Sequence[str]) -> FloatArray:
        """Probabilities: softmax, or a sigmoid for each label of a multi-label model."""
        asked = checked_texts(texts)
        columns = self._folder.model.config.num_labels
        logits = np.zeros((len(asked), columns))
        for rows, output, _ in self._folder.outputs(asked, batch_size=self.batch_size):
            logits[rows] = output.logits.float().cpu().numpy()
        several = self._folder.model.config.problem_type == "multi_label_classification"
        if several or columns == 1:
            result = 1.0 / (1.0 + np.exp(-np.clip(logits, -700, 700)))
            result = result if columns > 1 else result[:, 0]
        else:
            result = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
            result /= result.sum(axis=1, keepdims=True)
        source = f"model={str(self.path)!r}"
        return checked_scores(result, rows=len(asked), classes=self.classes, source=source)[0]


@dataclass(slots=True)
class TransformerEmbedding:
    """Mean-pooled last hidden states of a local transformers or sentence-transformers folder.

    With `cache`, each text's vector is kept in a file named after the model and the text itself, so
    that a second run over the same texts opens no model at all.
    """

    path: Path
    batch_size: int = 32
    device: str | None = None
    cache: Path | None = None
    _folder: Folder | None = field(default=None, init=False, repr=False)
    _model: str = field(default="", init=False, repr=False)

    def features(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of the texts, texts × width; equal texts are embedded once."""
        asked = checked_texts(texts)
        distinct = list(dict.fromkeys(asked))
        known = self._cached(distinct)
        missing = [text for text in distinct if text not in known]
        if missing:
            made = self._embed(missing)
            self._keep(missing, made)
            known.update(zip(missing, made, strict=True))
        if not asked:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([known[text] for text in asked])

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        if self._folder is None:
            self._folder = Folder.open(Path(self.path), kind="AutoModel", device=self.device)
        vectors: NDArray[np.float32] | None = None
        for rows, output, mask in self._folder.outputs(texts, batch_size=self.batch_size):
            weight = mask.unsqueeze(-1).float()
            mean = (output.last_hidden_state.float() * weight).sum(1) / weight.sum(1).clamp(min=1)
            if vectors is None:
                vectors = np.zeros((len(texts), mean.shape[1]), dtype=np.float32)
            vectors[rows] = mean.cpu().numpy()
        assert vectors is not None
        return vectors

    def _shelf(self) -> Path | None:
        """The cache folder of this model, told from others by the content of its files."""
        if self.cache is None:
            return None
        if not self._model:
            self._model = folder_fingerprint(model_folder(Path(self.path)))
        return Path(self.cache) / self._model

    def _cached(self, texts: list[str]) -> dict[str, NDArray[np.float32]]:
        shelf = self._shelf()
        known: dict[str, NDArray[np.float32]] = {}
        if shelf is None or not shelf.is_dir():
            return known
        wanted = {text_fingerprint(text): text for text in texts}
        for pack in sorted(shelf.glob("*.npz")):
            try:
                stored = read_arrays(pack)
                pairs = zip(stored["names"].tolist(), stored["vectors"], strict=True)
                known |= {wanted[name]: vector for name, vector in pairs if name in wanted}
            except (DataError, KeyError, TypeError, ValueError):
                continue  # a damaged pack is made again
        return known

    def _keep(self, texts: list[str], vectors: NDArray[np.float32]) -> None:
        shelf = self._shelf()
        if shelf is None:
            return
        shelf.mkdir(parents=True, exist_ok=True)
        names = [text_fingerprint(text) for text in texts]
        pack = shelf / f"{text_fingerprint(''.join(names))}.npz"
        with new_file(pack) as made, refusals(pack), made.open("wb") as file:
            np.savez(file, names=np.array(names), vectors=vectors)


def text_fingerprint(text: str) -> str:
    """A short name for a text by its content."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def folder_fingerprint(folder: Path) -> str:
    """A short name for a model folder by the content of its files."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            total.update(path.name.encode())
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:16]
