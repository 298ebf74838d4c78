"""Scores kept on disk while a table is being scored, so that nothing is asked twice."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b, sha256
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from evenhand.errors import DataError
from evenhand.models.predictor import FUNCTION, working_folder_importable
from evenhand.stats.estimate import FloatArray

_AT_ONCE = 500  # SQLite's older limit on variables in a statement is 999


class KeptScores:
    """A side file of scores by text, one model's; texts are kept as a hash only.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with KeptScores(f"{folder.name}/side", model="m") as kept:
        ...     kept.add(["He ran."], np.array([[0.25, 0.75]]), classes=("no", "yes"))
        ...     kept.unknown(["She ran.", "He ran.", "She ran."]), kept.classes
        (['She ran.'], ('no', 'yes'))
        >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, *, model: str) -> None:
        self.path = Path(path)
        self.model = model
        self.classes: tuple[str, ...] = ()
        self.before = 0

    def __enter__(self) -> Self:
        self._file = sqlite3.connect(self.path, timeout=1.0)
        try:
            # A crash of the machine may cost the last batches; they are then asked again.
            self._file.execute("PRAGMA synchronous=OFF")
            # Hashes come in no order: a log ahead of the file writes each page once, not often.
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS kept (text BLOB PRIMARY KEY, scores BLOB) WITHOUT ROWID"
            )
            self._file.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value)")
            about = dict(self._file.execute("SELECT name, value FROM about"))
            self.before = self._file.execute("SELECT COUNT(*) FROM kept").fetchone()[0]
            if "model" not in about:
                self._file.execute("INSERT INTO about VALUES ('model', ?)", [self.model])
                self._file.commit()
        except sqlite3.Error as error:
            self._file.close()
            raise DataError(
                f"The side file '{self.path}' cannot be used: {error}. Another run may be writing "
                "it; if not, remove it or start anew with --fresh."
            ) from error
        if self.before == 0 and about.get("model", self.model) != self.model:
            # A run that failed before its first answer binds nobody to its model.
            with self._file:
                self._file.execute("DELETE FROM about")
                self._file.execute("INSERT INTO about VALUES ('model', ?)", [self.model])
            about = {}
        if about.get("model", self.model) != self.model:
            self._file.close()
            raise DataError(
                f"The side file '{self.path}' has {self.before:,} texts scored by another model, "
                "or by this one before it changed. Go on with that one, or start anew with --fresh."
            )
        self.classes = tuple(json.loads(about["classes"])) if "classes" in about else ()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def unknown(self, texts: Iterable[str]) -> list[str]:
        """The distinct texts that have no scores yet, in their order."""
        distinct = list(dict.fromkeys(texts))
        keys = [text_key(text) for text in distinct]
        known = self._find(keys)
        return [text for text, key in zip(distinct, keys) if key not in known]

    def add(self, texts: Sequence[str], scores: FloatArray, *, classes: tuple[str, ...]) -> None:
        """Keep the scores of these texts; refused where the classes are not those kept before."""
        if self.classes and classes != self.classes:
            raise DataError(
                f"The model has the classes {', '.join(classes)}; the texts scored before, in "
                f"'{self.path}', have {', '.join(self.classes)}. Start anew with --fresh."
            )
        rows = [(text_key(text), row.tobytes()) for text, row in zip(texts, scores.astype("<f8"))]
        with self._file:
            if not self.classes:
                self.classes = classes
                told = json.dumps(classes)
                self._file.execute("INSERT INTO about VALUES ('classes', ?)", [told])
            self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", rows)

    def scores(self, texts: Sequence[str | None]) -> FloatArray:
        """Scores as texts × classes; a row of NaN where there is no text."""
        keys = [None if text is None else text_key(text) for text in texts]
        found = self._find([key for key in dict.fromkeys(keys) if key is not None])
        none = np.full(len(self.classes), np.nan).astype("<f8").tobytes()
        joined = b"".join(none if key is None else found[key] for key in keys)
        return np.frombuffer(joined, dtype="<f8").reshape(len(keys), len(self.classes))

    def _find(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT text, scores FROM kept WHERE text IN ({marks})"
            found.update(self._file.execute(query, part).fetchall())
        return found

    def remove(self) -> None:
        """Delete the side file, when everything is written."""
        self._file.close()
        discard(self.path)


def discard(path: Path) -> None:
    """Delete a side file, and what a run that was killed left beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def text_key(text: str) -> bytes:
    """A short hash of a text; lone surrogates, which are not text, included."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def model_identity(model: str) -> str:
    """A line that changes when the model does: its name and a hash of its file where it has one.

    An address is taken at its word: what stands behind it cannot be seen.
    """
    path = Path(model)
    if path.is_file():
        return f"{path.name} {_hash(path)}"
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        told = [(str(f.relative_to(path)), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
        return f"{path.name} {sha256(repr(told).encode()).hexdigest()}"
    if FUNCTION.fullmatch(model):
        with working_folder_importable():
            spec = find_spec(model.partition(":")[0])
        if spec is not None and spec.origin and Path(spec.origin).is_file():
            return f"{model} {_hash(Path(spec.origin))}"
    return model


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
