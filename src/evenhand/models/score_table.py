"""A table with the decisions and scores of a model on every text, written in batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.decisions.batches import (
    Batch,
    BatchTable,
    check_parquet_path,
    open_batches,
    write_batches,
)
from evenhand.decisions.labels import spellings
from evenhand.errors import DataError, EvenhandError, UsageError
from evenhand.models.kept_scores import KeptScores, discard
from evenhand.models.predictor import Predictor

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


def score_table(
    data: Any,
    *,
    text: str,
    model: Predictor,
    out: str | Path,
    identity: str = "",
    truth: str | None = None,
    batch_size: int = 32,
    fresh: bool = False,
    progress: Progress | None = None,
) -> ScoreReport:
    """Adds `decision` and `score:<class>`, and both again for each counterfactual text.

    Counterfactual texts are the columns `<text>@<value>`; theirs are `decision@<value>` and so on.
    With a `truth`, `score:truth` is the score of the row's own class. Every distinct text is asked
    once. What is scored is kept beside `out` until all is written, under the model's `identity`:
    a run that broke off goes on where it stopped, unless `fresh`.
    """
    target = check_parquet_path(out, data=data)
    if batch_size < 1:
        raise UsageError(f"batch_size={batch_size} is not a number of texts. Give 1 or more.")
    with open_batches(data) as table:
        columns = _texts(table, text)
        _check_free(table)
        truths = table.counts("truth", truth) if truth is not None else {}
        side = target.with_name(f"{target.name}.partial")
        if fresh:
            discard(side)
        with KeptScores(side, model=identity) as kept:
            size = table.rows_at_once(list(columns))
            asked, missing = _ask(table, columns, model, kept, size, batch_size, progress)
            known = _truth_classes(truths, kept.classes, truth=truth)
            rows = _scored(table.read(size), columns, kept, truth=truth, known=known)
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


def _ask(
    table: BatchTable,
    columns: dict[str, str],
    model: Predictor,
    kept: KeptScores,
    size: int,
    batch_size: int,
    progress: Progress | None,
) -> tuple[int, int]:
    """Scores of every text that has none yet; how many were asked, and rows without a text."""
    asked = missing = 0
    for batch in table.read(size):
        texts = [batch.strings(column) for column in columns]
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


def _scores(model: Predictor, texts: list[str]) -> Any:
    try:
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
    columns: dict[str, str],
    kept: KeptScores,
    *,
    truth: str | None,
    known: dict[str, int],
) -> Iterator[Batch]:
    for batch in batches:
        added: dict[str, Any] = {}
        if truth is not None:
            own = np.array([known.get(str(name), -1) for name in batch.labels(truth)], dtype=int)
        for column, mark in columns.items():
            scores = kept.scores(batch.strings(column))
            there = ~np.isnan(scores[:, 0])
            # Rows without a text have no largest score; their place is never read.
            best = np.where(there[:, None], scores, 0.0).argmax(axis=1)
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
