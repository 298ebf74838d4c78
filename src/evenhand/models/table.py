"""A table with the decisions and scores of a model on every text, written in batches."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self, TypedDict, Unpack
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from evenhand.decisions.batches import (
    Batch,
    BatchTable,
    check_table_path,
    open_batches,
    write_batches,
)
from evenhand.decisions.keywords import describe_keywords
from evenhand.decisions.labels import spellings
from evenhand.errors import DataError, EvenhandError, UsageError
from evenhand.files.documents import Damage, check, list_of, parse_json, text
from evenhand.models.predictor import (
    FUNCTION,
    GroupPredictor,
    Predictor,
    Questions,
    load_predictor,
    working_folder_importable,
)
from evenhand.speech import without_secrets
from evenhand.stats.estimate import FloatArray

SMALL, LARGE = 32, 1_024  # texts at a time
_AT_ONCE = 500  # SQLite's older limit on variables in a statement is 999
_SECRET = re.compile("token|key|secret|pass|auth|sig|cred|session", re.IGNORECASE)
# What the system refuses, rather than what is wrong with the file.
_REFUSED = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
)


class KeptScores:
    """A side file of scores by text, one model's; texts are kept as a hash only.

    One run at a time holds it; with `fresh` what is kept there is left behind.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with KeptScores(f"{folder.name}/side", model="m") as kept:
        ...     kept.add(["He ran."], np.array([[0.25, 0.75]]), classes=("no", "yes"))
        ...     kept.unknown(["She ran.", "He ran.", "She ran."]), kept.classes
        (['She ran.'], ('no', 'yes'))
        >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, *, model: str, fresh: bool = False) -> None:
        self.path = Path(path)
        self.model = model
        self.fresh = fresh
        self.classes: tuple[str, ...] = ()
        self.before = 0

    def __enter__(self) -> Self:
        try:
            with self._errors():
                self._hold()
                self._open()
        except BaseException:
            self._close()
            raise
        return self

    def _hold(self) -> None:
        """Keep others out until this is closed, also by a kill."""
        self._file = sqlite3.connect(self.path, timeout=1.0)
        try:
            self._file.execute("PRAGMA locking_mode=EXCLUSIVE")
            # A crash of the machine may cost the last batches; they are then asked again.
            self._file.execute("PRAGMA synchronous=OFF")
            # Hashes come in no order: a log ahead of the file writes each page once, not often.
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            if not self.fresh or isinstance(error, sqlite3.OperationalError):
                raise  # what is no database belongs to no other run, all else may
        if self.fresh:
            self.fresh = False
            self._close()
            discard(self.path)
            self._hold()

    def _open(self) -> None:
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS kept (text BLOB PRIMARY KEY, scores BLOB) WITHOUT ROWID"
        )
        self._file.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value)")
        about = dict(self._file.execute("SELECT name, value FROM about"))
        self.before = self._file.execute("SELECT COUNT(*) FROM kept").fetchone()[0]
        if self.before and about.get("model") != self.model:
            raise DataError(
                f"The side file '{self.path}' has {self.before:,} texts scored by another model, "
                "or by this one before it changed. Go on with that one, or start anew with --fresh."
            )
        if not self.before:
            # A run that failed before its first answer binds nobody to its model.
            about = {}
            self._file.execute("DELETE FROM about")
            self._file.execute("INSERT INTO about VALUES ('model', ?)", [self.model])
        self._file.commit()
        self.classes = self._classes(about) if self.before else ()

    def _classes(self, about: Mapping[str, Any]) -> tuple[str, ...]:
        """The classes of what is kept, refused where the scores are not of them."""
        try:
            names = parse_json(str(about.get("classes")))
            check(names, list_of(text), "classes")
        except (ValueError, Damage) as error:
            raise self._damaged(str(error)) from None
        if not names or len(set(names)) < len(names):
            raise self._damaged("it has no classes, or one of them twice")
        other = self._file.execute(
            "SELECT COUNT(*) FROM kept WHERE typeof(scores) != 'blob' OR typeof(text) != 'blob' "
            "OR length(scores) != ?",
            [8 * len(names)],
        ).fetchone()[0]
        if other:
            raise self._damaged(f"{other:,} of its texts do not have {len(names)} scores")
        return tuple(names)

    def _damaged(self, why: str) -> DataError:
        return DataError(
            f"The side file '{self.path}' is damaged: {why}. Remove it or start anew with --fresh."
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What SQLite raises, in a sentence."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise UsageError(
                    f"Another run is writing the side file '{self.path}'. Wait for it, or choose "
                    "another --out."
                ) from None
            if code is not None and code & 0xFF in _REFUSED:
                raise UsageError(
                    f"The side file '{self.path}' cannot be written: {error}. Choose another place."
                ) from None
            raise self._damaged(str(error)) from None

    def _close(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def unknown(self, texts: Iterable[str]) -> list[str]:
        """The distinct texts that have no scores yet, in their order."""
        distinct = list(dict.fromkeys(texts))
        keys = [text_key(text) for text in distinct]
        known = self._find(keys)
        return [text for text, key in zip(distinct, keys) if key not in known]

    def add(self, texts: Sequence[str], scores: FloatArray, *, classes: tuple[str, ...]) -> None:
        """Keep the scores of these texts; refused where the classes are not those kept before."""
        self.check_classes(classes)
        rows = [(text_key(text), row.tobytes()) for text, row in zip(texts, scores.astype("<f8"))]
        with self._errors(), self._file:
            if not self.classes:
                self.classes = classes
                told = json.dumps(classes)
                self._file.execute("INSERT INTO about VALUES ('classes', ?)", [told])
            self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", rows)

    def check_classes(self, classes: tuple[str, ...]) -> None:
        """Refuse other classes than those kept before; a model may not know its own yet."""
        if self.classes and classes and classes != self.classes:
            raise DataError(
                f"The model has the classes {', '.join(classes)}; the texts scored before, in "
                f"'{self.path}', have {', '.join(self.classes)}. Start anew with --fresh."
            )

    def scores(self, texts: Sequence[str | None]) -> FloatArray:
        """Scores as texts × classes; a row of NaN where there is no text."""
        keys = [None if text is None else text_key(text) for text in texts]
        found = self._find([key for key in dict.fromkeys(keys) if key is not None])
        if any(not np.isfinite(np.frombuffer(each, dtype="<f8")).all() for each in found.values()):
            raise self._damaged("it has a score that is not a finite number")
        none = np.full(len(self.classes), np.nan).astype("<f8").tobytes()
        joined = b"".join(none if key is None else found[key] for key in keys)
        return np.frombuffer(joined, dtype="<f8").reshape(len(keys), len(self.classes))

    def _find(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._errors():
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"SELECT text, scores FROM kept WHERE text IN ({marks})"
                found.update(self._file.execute(query, part).fetchall())
        return found

    def remove(self) -> None:
        """Delete the side file, when everything is written."""
        self._close()
        discard(self.path)


def discard(path: Path) -> None:
    """Delete a side file, and what a run that was killed left beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + ending).unlink(missing_ok=True)


def text_key(text: str) -> bytes:
    """A short hash of a text; lone surrogates, which are not text, included."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def model_identity(model: str) -> str:
    """A line that changes when the model does: its name and a hash of its file where it has one.

    An address is taken at its word: what stands behind it cannot be seen. Its secrets are left
    out, so that a new password goes on with what is scored; other parts of a query are hashed.
    """
    if re.match(r"https?://", model):
        return address_identity(model)
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


def address_identity(url: str) -> str:
    """An address without its secrets, and a hash of what else tells one model from another.

    Examples:
        >>> one, other = (address_identity(f"http://h/p?model=a&token={t}") for t in ("x", "y"))
        >>> one == other, one == address_identity("http://h/p?model=b&token=x"), "token" in one
        (True, False, False)
    """
    shown = without_secrets(url)
    query = [pair for pair in parse_qsl(urlsplit(url).query, keep_blank_values=True)
             if not _SECRET.search(pair[0])]  # fmt: skip
    if not query:
        return shown
    return f"{shown} {sha256(repr(sorted(query)).encode('utf-8', 'surrogatepass')).hexdigest()}"


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


MOST_SHOWN = 8
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReport:
    """What was scored: distinct texts asked now, kept from a run before, and rows without any."""

    source: str
    out: str
    rows: int
    texts: list[str]
    classes: list[str]
    asked: int
    kept: int
    missing: int
    unknown_truth: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"schema": "evenhand.score/1", **asdict(self)}

    def __str__(self) -> str:
        kept = f", {self.kept:,} were kept from before" if self.kept else ""
        shown = ", ".join(self.classes[:MOST_SHOWN]) + ", …" * (len(self.classes) > MOST_SHOWN)
        lines = [
            f"{self.rows:,} rows of {self.source}; texts in {', '.join(self.texts)}.",
            f"{self.asked:,} distinct texts scored{kept}; {len(self.classes)} classes: {shown}.",
        ]
        if self.missing:
            lines.append(f"{self.missing:,} rows have no text and no decision.")
        if self.unknown_truth:
            names = ", ".join(repr(name) for name in list(self.unknown_truth)[:MOST_SHOWN])
            lines.append(
                f"{sum(self.unknown_truth.values()):,} rows have a truth that the model does not "
                f"know ({names}): score:truth is null there."
            )
        lines.append(f"Wrote {self.out}.")
        return "\n".join(lines)


class OpeningArguments(TypedDict, total=False):
    """How a model that is named by its place is opened."""

    trust: Annotated[bool | None, "open a joblib file, which can run any code"]
    classes: Annotated[Sequence[str] | None, "names, where the model gives scores alone"]
    device: Annotated[str | None, "cpu or cuda, for transformers"]
    timeout: Annotated[float | None, "seconds for one answer of an address (60)"]
    retries: Annotated[int | None, "further tries of a request (4)"]
    rate_limit: Annotated[float | None, "requests a second, at most"]
    headers: Annotated[Mapping[str, str] | None, "HTTP headers of requests"]


@describe_keywords("Opening a model")
def score_table(
    data: Any,
    *,
    text: str,
    model: Predictor | str | Path,
    out: str | Path,
    truth: str | None = None,
    group: str | None = None,
    batch_size: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
    **opening: Unpack[OpeningArguments],
) -> ScoreReport:
    """Adds `decision` and `score:<class>`, and both again for each counterfactual text.

    Counterfactual texts are the columns `<text>@<value>`; theirs are `decision@<value>` and so on.
    `model` is a predictor, or the place of one: a joblib file, a transformers folder, http://… or
    module:function. With a `truth`, `score:truth` is the score of the row's own class. A model
    that decides by group is told that of column `group`, and <value> of a text rewritten to it.
    Every distinct text is asked once, `batch_size` at a time. What is scored is kept beside `out`
    until all is written, under the name of the model: a run that broke off goes on where it
    stopped, unless `fresh`.
    """
    target = check_table_path(out, data=data)
    if batch_size is not None and batch_size < 1:
        raise UsageError(f"batch_size={batch_size} is not a number of texts. Give 1 or more.")
    batch_size, identity = batch_size or _batch_size(model), ""
    if isinstance(model, str | Path):
        place = str(model)
        model = _opened(place, batch_size, opening)
        identity = model_identity(place)
    _check_group(model, group)
    with open_batches(data) as table:
        columns = _texts(table, text)
        if group is not None:
            table.check_column("group", group)
        _check_free(table)
        truths = table.counts("truth", truth) if truth is not None else {}
        side = target.with_name(f"{target.name}.partial")
        with KeptScores(side, model=identity, fresh=fresh) as kept:
            kept.check_classes(tuple(model.classes))
            _check_names(model.classes, list(columns.values()), truth=truth)
            size = table.rows_at_once(list(columns))
            texts = Questions(columns=columns, group=group)
            asked, missing = _ask(table, texts, model, kept, size, batch_size, progress)
            _check_names(kept.classes, list(columns.values()), truth=truth)
            known = _truth_classes(truths, kept.classes, truth=truth)
            rows = _scored(table.read(size), texts, model, kept, truth=truth, known=known)
            write_batches(rows, target)
            kept.remove()
            return ScoreReport(
                source=table.source,
                out=str(out),
                rows=table.rows,
                texts=list(columns),
                classes=list(kept.classes),
                asked=asked,
                kept=kept.before,
                missing=missing,
                unknown_truth={name: n for name, n in truths.items() if name not in known},
            )


def _batch_size(model: Any) -> int:
    """Few texts at a time for models that hold or send them whole, many for those that count."""
    near = isinstance(model, str | Path) and not re.match(r"https?://", str(model))
    return LARGE if near and not Path(model).is_dir() else SMALL


def _opened(model: str, batch_size: int, opening: Mapping[str, Any]) -> Predictor:
    told = {name: value for name, value in opening.items() if value is not None}
    if "rate_limit" in told:
        told["rate"] = told.pop("rate_limit")
    return load_predictor(model, batch_size=batch_size, **told)


def _texts(table: BatchTable, text: str) -> dict[str, str]:
    """The text columns, each with what is added to the names of its scores."""
    table.check_texts("text", text)
    under = [column for column in table.columns if column.startswith(f"{text}@")]
    for column in under:
        table.check_texts("text", column)
    return {column: column.removeprefix(text) for column in (text, *under)}


def _check_free(table: BatchTable) -> None:
    taken = [c for c in table.columns if c.partition("@")[0] == "decision" or c[:6] == "score:"]
    if taken:
        raise UsageError(
            f"The table has a column {taken[0]!r} already. Score the table that swap wrote, or "
            "drop that column."
        )


def _check_group(model: Predictor, group: str | None) -> None:
    needed = isinstance(model, GroupPredictor)
    if needed and group is None:
        raise UsageError(
            "This model decides by group. Name the column with the group of each row (group=, "
            "--group)."
        )
    if group is not None and not needed:
        raise UsageError(
            f"group={group!r} is for models that decide by group, and this one does not. Leave it "
            "out."
        )


def _ask(
    table: BatchTable,
    questions: Questions,
    model: Predictor,
    kept: KeptScores,
    size: int,
    batch_size: int,
    progress: Progress | None,
) -> tuple[int, int]:
    """Scores of every text that has none yet; how many were asked, and rows without a text."""
    asked = missing = 0
    for batch in table.read(size):
        texts = [questions.keys(batch, column) for column in questions.columns]
        missing += texts[0].count(None)
        new = kept.unknown(t for each in texts for t in each if t is not None)
        for start in range(0, len(new), batch_size):
            part = new[start : start + batch_size]
            scores = _scores(model, part)
            kept.add(part, scores, classes=tuple(model.classes))
            asked += len(part)
            if progress is not None:
                share = (start + len(part)) / len(new)
                progress(batch.start + int(share * len(batch)), table.rows)
    return asked, missing


def _check_names(classes: Sequence[str], marks: Sequence[str], *, truth: str | None) -> None:
    """Refuse classes that would share a column: with another under a value, or with the truth's."""
    made: dict[str, str] = {}
    named = [(name, f"the class {name!r}") for name in classes]
    if truth is not None:
        named.append(("truth", "the row's own class"))
    for mark in marks:
        for name, what in named:
            told = f"{what} under {mark[1:]!r}" if mark else what
            column = f"score:{name}{mark}"
            if column in made:
                raise DataError(
                    f"The column {column!r} would hold the score of {made[column]} and that of "
                    f"{told}. Rename the class."
                )
            made[column] = told


def _scores(model: Predictor, texts: list[str]) -> Any:
    try:
        if isinstance(model, GroupPredictor):
            return model.scores(*zip(*map(Questions.parts, texts), strict=True))
        return model.scores(texts)
    except EvenhandError:
        raise
    except Exception as error:  # the model is the user's own code and may raise anything
        first = (str(error).strip() or "no message").splitlines()[0]
        raise DataError(
            f"The model failed on {len(texts)} texts, the first of which begins {texts[0][:40]!r}: "
            f"{type(error).__name__}: {first}. What is scored is kept; mend it and run again."
        ) from error


def _truth_classes(
    truths: dict[str, int], classes: Sequence[str], *, truth: str | None
) -> dict[str, int]:
    """The place among the model's classes of each truth that it knows."""
    place = {name: k for k, name in enumerate(classes)}
    known = {}
    for name in truths:
        found = [place[word] for word in spellings(name) if word in place]
        if found:
            known[name] = found[0]
    if truths and not known:
        few = ", ".join(repr(name) for name in sorted(truths)[:MOST_SHOWN])
        raise DataError(
            f"truth={truth!r} holds {few}, and the model knows {', '.join(classes[:MOST_SHOWN])}: "
            "none is the same. Name the column with the classes that the model was trained on."
        )
    return known


def _scored(
    batches: Iterator[Batch],
    questions: Questions,
    model: Predictor,
    kept: KeptScores,
    *,
    truth: str | None,
    known: dict[str, int],
) -> Iterator[Batch]:
    for batch in batches:
        added: dict[str, Any] = {}
        if truth is not None:
            own = np.array([known.get(str(name), -1) for name in batch.labels(truth)], dtype=int)
        for column, mark in questions.columns.items():
            scores = kept.scores(questions.keys(batch, column))
            there = ~np.isnan(scores[:, 0])
            # Rows without a text have no largest score; their place is never read.
            best = np.where(there[:, None], scores, 0.0).argmax(axis=1)
            if isinstance(model, GroupPredictor) and there.any():
                named = [str(name) for name in questions.groups(batch, mark)]
                best[there] = model.decide(scores[there], np.array(named)[there].tolist())
            added[f"decision{mark}"] = [
                kept.classes[k] if is_text else None
                for k, is_text in zip(best.tolist(), there.tolist())
            ]
            for k, name in enumerate(kept.classes):
                added[f"score:{name}{mark}"] = scores[:, k]
            if truth is not None:
                mine = np.take_along_axis(scores, np.maximum(own, 0)[:, None], axis=1)[:, 0]
                added[f"score:truth{mark}"] = np.where(own >= 0, mine, np.nan)
        yield batch.with_columns(added)
