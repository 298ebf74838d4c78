"""Norm scorers learned from a table on disk, and norms added to one, a batch of rows at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.batches import (
    Batch,
    BatchTable,
    batch_numbers,
    check_table_path,
    open_batches,
    write_batches,
)
from evenhand.errors import DataError, UsageError, nearest
from evenhand.files.folders import check_folder
from evenhand.models.corpus import BagOfWords, Representation
from evenhand.models.norms.card import NormCard, quality_card
from evenhand.models.norms.fit import fit_norm_scorer, fit_number_scorer
from evenhand.models.norms.names import read_names
from evenhand.models.norms.ratings import Ratings, read_ratings
from evenhand.models.norms.relevance import Rule
from evenhand.models.norms.scorer import (
    KIND,
    NormScorer,
    load_norms,
    row_hashes,
    save_norms,
)
from evenhand.models.vectors import WordVectors
from evenhand.text.compiled import Tagger, load_tagger

NUMBERS_AT_ONCE = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedNorms:
    """A scorer, its quality card on the rows held out, and how many rows went where."""

    scorer: NormScorer
    card: NormCard
    train: int
    held_out: int
    left_out: int


@dataclass(slots=True, kw_only=True)
class ScoredNorms:
    """What was added to a table: the columns, and rows that are no measurement."""

    columns: tuple[str, ...] = ()
    rows: int = 0
    leaked: int = 0
    empty: int = 0
    unscored: int = 0


def _ratings(given: Ratings | str | Path | None, toward: str | None) -> Ratings | None:
    if isinstance(given, Ratings):
        return given
    if given is None and toward is None:
        return None
    if given is None or toward is None:
        raise UsageError(
            "--ratings and --ratings-toward go together: say which group a high rating means, "
            "such as --ratings-toward female."
        )
    return read_ratings(given, toward=toward)


@dataclass(slots=True)
class _Columns:
    """The columns of the table that a fit reads."""

    truth: list[str | None] = field(default_factory=list)
    group: list[str | None] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    split: list[str | None] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)


def fit_norms(
    data: Any,
    *,
    truth: str,
    group: str,
    text: str | None = None,
    features: Sequence[str] = (),
    name: str | None = None,
    names: str | Path | Sequence[str] = (),
    tagger: Tagger | str | None = None,
    capitals: bool = False,
    vectors: str | Path | None = None,
    bag_of_words: bool = False,
    split: str | None = None,
    test_share: float = 0.25,
    groups: Sequence[str] | None = None,
    ratings: Ratings | str | Path | None = None,
    ratings_toward: str | None = None,
    scrub: bool = True,
    irrelevant: bool = True,
    relevant: float | None = None,
    relevant_of: str = "use",
    fdr: float | None = None,
    unit: str = "token",
    seed: int = 0,
    out: str | Path | None = None,
) -> FittedNorms:
    """A norm scorer of a table's texts or numbers, trained on a part of it, judged on the rest.

    `split` names a column whose rows "train" are learned from; without one, `test_share` of each
    class and group is held out. Names of the column `name` are scrubbed from all texts, as are
    `names` (a file or a list), people that a `tagger` finds ("spacy:MODEL") and, with `capitals`,
    all words that are hardly ever written small. `relevant` is the share or number of words that
    belong to a class, `fdr` the false discovery rate of the test that tells them otherwise.
    `groups` are those to tell apart, by default all large enough; `ratings` people's ratings of
    words, of which a high one means the group `ratings_toward`. With `out` the scorer and its
    card are written to that folder, which `score_norms` reads.
    """
    if out is not None:
        check_folder(out, kind=KIND)
    ratings = _ratings(ratings, ratings_toward)
    rule = Rule(relevant=relevant, of=relevant_of, fdr=fdr, unit=unit)
    listed = read_names(names) if isinstance(names, str | Path) else tuple(names)
    people = load_tagger(tagger, part="ner") if isinstance(tagger, str) else tagger
    if (text is None) == (not features):
        raise UsageError("Name either the column of texts (--text) or the --features, not both.")
    if not 0 < test_share < 1:
        raise UsageError(f"test_share={test_share} is not a share between 0 and 1, such as 0.25.")
    with open_batches(data) as table:
        held = _read(table, truth=truth, group=group, text=text, features=features, name=name,
                     split=split)  # fmt: skip
    rows = np.array(
        [t is not None and g is not None for t, g in zip(held.truth, held.group, strict=True)]
    )
    if text is not None:
        rows &= np.array([t is not None and bool(t.strip()) for t in held.texts], dtype=bool)
    if not rows.any():
        what = "text" if text is not None else "row"
        raise DataError(f"No {what} has both a truth and a group, so there is nothing to learn.")
    train = training_rows(held.truth, held.group, split=held.split or None, share=test_share,
                          seed=seed, column=split)  # fmt: skip
    train, test = train & rows, ~train & rows
    if not test.any():
        raise DataError("No row is held out, so the scorer cannot be judged. Hold out some.")
    picked = {k: _Part(held, np.flatnonzero(m)) for k, m in (("train", train), ("test", test))}
    first, rest = picked["train"], picked["test"]
    if text is None:
        scorer = fit_number_scorer(first.numbers, columns=features, group=first.group,
                                   truth=first.truth, groups=groups)  # fmt: skip
    else:
        model: Representation = BagOfWords() if bag_of_words else WordVectors(vectors, seed=seed)
        scorer = fit_norm_scorer(
            first.texts,
            group=first.group,
            truth=first.truth,
            names=first.names,
            representation=model,
            groups=groups,
            scrub=scrub,
            everybody=held.names or None,
            listed=listed,
            tagger=people,
            capitals=capitals,
            irrelevant=irrelevant,
            rule=rule,
        )
    card = quality_card(
        scorer,
        rest.numbers if text is None else rest.texts,
        group=rest.group,
        truth=rest.truth,
        names=rest.names,
        ratings=ratings,
    )
    if out is not None:
        save_norms(scorer, out, card=card.plain())
    return FittedNorms(
        scorer=scorer,
        card=card,
        train=int(train.sum()),
        held_out=int(test.sum()),
        left_out=int((~rows).sum()),
    )


class _Part:
    """The rows of one side of the split."""

    def __init__(self, held: _Columns, rows: NDArray[np.intp]) -> None:
        self.truth = [held.truth[i] for i in rows]
        self.group = [held.group[i] for i in rows]
        self.texts = [held.texts[i] for i in rows] if held.texts else []
        self.names = [held.names[i] for i in rows] if held.names else None
        self.numbers = np.concatenate(held.numbers)[rows] if held.numbers else np.zeros((0, 0))


def training_rows(
    truth: Sequence[str | None],
    group: Sequence[str | None],
    *,
    split: Sequence[str | None] | None,
    share: float,
    seed: int,
    column: str | None = None,
) -> NDArray[np.bool_]:
    """Which rows train: those marked "train", or all but a share of each class and group.

    Examples:
        >>> training_rows(["a"] * 4, ["f"] * 4, split=None, share=0.25, seed=0).sum().item()
        3
    """
    if split is not None:
        train = np.array([value == "train" for value in split], dtype=bool)
        if not train.any() or train.all():
            found = sorted({str(value) for value in split})[:5]
            raise DataError(
                f"split={column!r} must mark some rows 'train' and others otherwise; "
                f"it has {', '.join(found)}."
            )
        return train
    rng = np.random.default_rng(seed)
    cells: dict[tuple[str | None, str | None], list[int]] = {}
    for row, cell in enumerate(zip(truth, group, strict=True)):
        cells.setdefault(cell, []).append(row)
    train = np.ones(len(truth), dtype=bool)
    for cell in sorted(cells, key=str):
        rows = rng.permutation(cells[cell])
        train[rows[: round(share * len(rows))]] = False
    return train


def score_norms(
    data: Any,
    *,
    norms: str | Path,
    out: str | Path,
    text: str | None = None,
    truth: str | None = None,
    name: str | None = None,
    skip_seen: bool = False,
) -> ScoredNorms:
    """Norm columns added to a table: norm@<group>, and with a truth norm_irrelevant@<group>.

    `skip_seen` leaves the norms of rows empty that the scorer was trained on.
    """
    check_table_path(out, data=data)
    scorer, _ = load_norms(norms)
    if scorer.of_texts and text is None:
        raise UsageError("These norms were learned from texts. Name the column of them (--text).")
    done = ScoredNorms()
    with open_batches(data) as table:
        if text is not None and scorer.of_texts:
            table.check_texts("text", text)
        for role, column in (("truth", truth), ("name", name)):
            if column is not None:
                table.check_column(role, column)
        if not scorer.of_texts:
            for column in scorer.names:
                table.check_column("features", column)
        size = table.rows_at_once([text]) if scorer.of_texts and text else NUMBERS_AT_ONCE
        write_batches(
            _scored(table, scorer, done, size, text=text, truth=truth, name=name, skip=skip_seen),
            out,
        )
    return done


def _scored(
    table: BatchTable,
    scorer: NormScorer,
    done: ScoredNorms,
    size: int,
    *,
    text: str | None,
    truth: str | None,
    name: str | None,
    skip: bool,
) -> Iterator[Batch]:
    for batch in table.read(size):
        rows: Any = (
            batch.strings(str(text)) if scorer.of_texts else batch_numbers(batch, scorer.names)
        )
        found = scorer.score(
            rows,
            names=batch.strings(name) if name else None,
            truth=batch.labels(truth) if truth else None,
        )
        columns = {f"norm@{group}": value for group, value in found.norm.items()}
        columns |= {f"norm_irrelevant@{group}": v for group, v in found.irrelevant.items()}
        if skip:
            seen = np.isin(row_hashes(rows), scorer.seen)
            columns = {key: np.where(seen, np.nan, value) for key, value in columns.items()}
        done.columns = tuple(columns)
        done.rows += len(batch)
        done.leaked += found.leaked
        done.empty += found.empty
        done.unscored += found.unscored
        yield batch.with_columns(columns)


def _read(
    table: BatchTable,
    *,
    truth: str,
    group: str,
    text: str | None,
    features: Sequence[str],
    name: str | None,
    split: str | None,
) -> _Columns:
    if text is not None:
        table.check_texts("text", text)
    for role, column in (("truth", truth), ("group", group), ("name", name), ("split", split)):
        if column is not None:
            table.check_column(role, column)
    for column in features:
        if column in (truth, group):
            raise UsageError(
                f"features={column!r} is also the truth or the group, which it would give away."
                f"{nearest(column, [c for c in table.columns if c not in (truth, group)])}"
            )
        table.check_column("features", column)
    held = _Columns()
    for batch in table.read(table.rows_at_once([text]) if text else NUMBERS_AT_ONCE):
        held.truth += batch.labels(truth)
        held.group += batch.labels(group)
        if text is not None:
            held.texts += batch.strings(text)
        else:
            held.numbers.append(batch_numbers(batch, features))
        if name is not None:
            held.names += batch.strings(name)
        if split is not None:
            held.split += batch.labels(split)
    return held
