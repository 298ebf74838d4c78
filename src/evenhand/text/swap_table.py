"""A table with the counterfactual texts of every row, written in batches, and its validity."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.stats.estimate import Estimate, critical
from evenhand.stats.rates import rate
from evenhand.text.compiled import Tagger
from evenhand.text.leak import leak_probe
from evenhand.text.lexicon import Lexicon, load_lexicon
from evenhand.text.mask import mask_texts
from evenhand.text.scrub import scrub_texts
from evenhand.text.swap import swap_texts
from evenhand.text.swap_report import SwapReport
from evenhand.text.tagger import load_tagger
from evenhand.text.titles import TITLE_FORMS
from evenhand.text.validity import SwapValidity, swap_validity

SAMPLE = 10_000  # texts on which the costly parts of the validity are measured
LONGEST_IN_SAMPLE = 20_000  # characters
MOST_LISTED = 1_000
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChanges:
    """What is done to a text besides the swap, before it: masking; and after it: scrubbing.

    Titles of the column `title` are masked in the text itself, so that every counterfactual text
    is masked too. `scrub` adds the column `<text>:scrubbed`, without the names in column `name`.
    """

    title: str | None = None
    forms: Mapping[str, Sequence[str]] = field(default_factory=lambda: TITLE_FORMS)
    scope: str = "own"
    scrub: bool = False
    name: str | None = None


def swap_table(
    data: Any,
    *,
    text: str,
    out: str | Path,
    group: str | None = None,
    lexicon: Lexicon | str = "gender_pronouns",
    values: Mapping[str, str] | None = None,
    changes: TextChanges | None = None,
    tagger: Tagger | str | None = None,
    probe: bool = True,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> SwapReport:
    """Adds `<text>@<value>` for each value of the lexicon, and says how far that can be trusted.

    `group` is the column with the value of each row's person; without it, or where it is null,
    the text's own words decide. `values` names the lexicon's values as the column writes them
    ({"female": "F"}); `tagger` tells his from him, such as "spacy:en_core_web_sm". Shares of
    changed, mixed and unresolved texts count every row; the rest of the validity is measured on a
    sample of at most 10,000. `progress` is told how many rows are done, and of how many.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report = swap_table({"bio": ["He ran."]}, text="bio", out=f"{folder}/out.parquet")
        >>> report.columns
        ['bio@female', 'bio@male']
    """
    target = check_parquet_path(out, data=data)
    critical(level)  # refuses what is no level before anything is rewritten
    if seed < 0:
        raise UsageError(f"seed={seed} is not a seed. Give 0 or a larger whole number.")
    words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)
    changes = changes or TextChanges()
    with open_batches(data) as table:
        names = _checked(table, text=text, words=words, values=values, changes=changes)
        sources = _Sources(table, group, names)
        work = _Work(
            text=text,
            words=words,
            names=names,
            sources=sources,
            changes=changes,
            tagger=load_tagger(tagger) if isinstance(tagger, str) else tagger,
            seed=seed,
        )
        size = table.rows_at_once([text])
        write_batches(_watched(map(work.batch, table.read(size)), table.rows, progress), target)
        source, rows = table.source, table.rows
    return SwapReport(
        source=source,
        out=str(out),
        rows=rows,
        text=text,
        lexicon=words.name,
        attribute=words.attribute,
        group=group,
        columns=[f"{text}@{name}" for name in names.values()],
        validity=work.validity(probe=probe, level=level),
        unresolved_rows=work.listed,
        other_values=sources.others,
        changes=work.changed_besides(level=level),
        tagger=tagger if tagger is None or isinstance(tagger, str) else type(tagger).__name__,
    )


def _watched(batches: Iterator[Batch], rows: int, progress: Progress | None) -> Iterator[Batch]:
    for batch in batches:
        yield batch
        if progress is not None:
            progress(batch.start + len(batch), rows)


def _checked(
    table: BatchTable,
    *,
    text: str,
    words: Lexicon,
    values: Mapping[str, str] | None,
    changes: TextChanges,
) -> dict[str, str]:
    """The name of each value in the table's own words, after refusing what cannot be swapped."""
    table.check_texts("text", text)
    swapped = [column for column in table.columns if column.startswith(f"{text}@")]
    if swapped or "@" in text:
        told = f"text={text!r} is" if "@" in text else f"The table has {swapped[0]!r}, so it was"
        raise UsageError(
            f"{told} swapped already. Swap the original table: a swapped text does not lead back "
            "(mrs, mr, ms)."
        )
    for role, column in (("mask_titles", changes.title), ("name", changes.name)):
        if column is not None:
            table.check_column(role, column)
    if changes.name is not None and not changes.scrub:
        raise UsageError(
            f"name={changes.name!r} is only used when scrubbing. Ask for it with scrub=True "
            "(--scrub)."
        )
    given = dict(values or {})
    for value in given:
        words.check_value(value, argument="value")
    names = {value: given.get(value, value) for value in words.values}
    if len(set(names.values())) < len(names):
        raise UsageError(f"Two values have one name ({given}). Give each value a name of its own.")
    return names


class _Sources:
    """Each row's own value in the words of the lexicon, by the group column."""

    def __init__(self, table: BatchTable, group: str | None, names: Mapping[str, str]) -> None:
        self.group = group
        self.known = {name: value for value, name in names.items()}
        self.others: dict[str, int] = {}
        if group is None:
            return
        counts = table.counts("group", group)
        self.others = {name: n for name, n in counts.items() if name not in self.known}
        if not set(counts) & set(self.known):
            found = ", ".join(repr(name) for name in sorted(counts)[:8]) or "only nulls"
            first = next(iter(names))
            raise DataError(
                f"group={group!r} holds {found}; the lexicon knows {', '.join(names)}. Say which "
                f"is which, such as --value {first}={min(counts, default='…')}, or leave out the "
                "group: the words of each text then decide."
            )

    def of(self, batch: Batch) -> list[str | None]:
        if self.group is None:
            return [None] * len(batch)
        return [None if v is None else self.known.get(v) for v in batch.labels(self.group)]


@dataclass(slots=True, kw_only=True)
class _Tallied:
    """Rows of one value so far."""

    changed: int = 0
    mixed: int = 0
    unresolved: int = 0
    words: Counter[str] = field(default_factory=Counter)


class _Work:
    """Batch after batch rewritten, with the counts and the sample that validity needs."""

    def __init__(
        self,
        *,
        text: str,
        words: Lexicon,
        names: Mapping[str, str],
        sources: _Sources,
        changes: TextChanges,
        tagger: Tagger | None,
        seed: int,
    ) -> None:
        self.text, self.words, self.names, self.tagger = text, words, names, tagger
        self.sources, self.changes, self.seed = sources, changes, seed
        self.tallied = {value: _Tallied() for value in names}
        self.sample = _Sample(SAMPLE, seed=seed)
        self.listed: list[dict[str, Any]] = []
        self.present = self.missing = 0
        self.masked = self.leaks = self.scrubbed = self.emptied = 0

    def batch(self, batch: Batch) -> Batch:
        texts = batch.strings(self.text)
        own = self.sources.of(batch)
        columns: dict[str, Any] = {}
        if self.changes.title is not None:
            texts = self._mask(batch, texts)
            columns[self.text] = texts
        for value, name in self.names.items():
            done = swap_texts(texts, to=value, lexicon=self.words, sources=own, tagger=self.tagger)
            columns[f"{self.text}@{name}"] = done.texts
            counts = self.tallied[value]
            counts.changed += int(done.changed.sum())
            counts.mixed += int(done.mixed.sum())
            counts.unresolved += len(done.unresolved)
            for row, left in done.unresolved.items():
                counts.words.update(word.lower() for word in left)
                if len(self.listed) < MOST_LISTED:
                    found = {"row": batch.start + row, "to": name, "words": list(left)}
                    self.listed.append(found)
        if self.changes.scrub:
            columns[f"{self.text}:scrubbed"] = self._scrub(batch, texts)
        self.missing += texts.count(None)
        self.present += len(texts) - texts.count(None)
        self.sample.add(texts, own)
        return batch.with_columns(columns)

    def _mask(self, batch: Batch, texts: list[str | None]) -> list[str | None]:
        assert self.changes.title is not None
        done = mask_texts(
            texts,
            titles=batch.labels(self.changes.title),
            forms=self.changes.forms,
            scope=self.changes.scope,
        )
        self.masked += int((done.masked > 0).sum())
        self.leaks += int(done.article_leak.sum())
        return done.texts

    def _scrub(self, batch: Batch, texts: list[str | None]) -> list[str | None]:
        names = None if self.changes.name is None else batch.labels(self.changes.name)
        done = scrub_texts(texts, names=names)
        self.scrubbed += int((done.removed > 0).sum())
        self.emptied += int(done.empty.sum())
        return done.texts

    def changed_besides(self, *, level: float) -> dict[str, Estimate]:
        """Shares of texts masked and scrubbed, where that was asked for."""
        n, found = self.present, {}
        if self.changes.title is not None:
            found["masked"] = rate(self.masked, n, level=level)
            found["article before a mask"] = rate(self.leaks, n, level=level)
        if self.changes.scrub:
            found["scrubbed"] = rate(self.scrubbed, n, level=level)
            found["empty after scrubbing"] = rate(self.emptied, n, level=level)
        return found

    def validity(self, *, probe: bool, level: float) -> tuple[SwapValidity, ...]:
        """Validity of each value: counts over all rows, the rest from the sample."""
        texts, own = self.sample.rows()
        leak = self._leak(texts, own, level=level) if probe else None
        found = []
        for value, name in self.names.items():
            counts = self.tallied[value]
            part = swap_validity(
                texts,
                to=value,
                lexicon=self.words,
                sources=own,
                tagger=self.tagger,
                probe=False,
                level=level,
            )
            found.append(
                replace(
                    part,
                    to=name,
                    missing=self.missing,
                    changed=rate(counts.changed, self.present, level=level),
                    mixed=rate(counts.mixed, self.present, level=level),
                    unresolved=rate(counts.unresolved, self.present, level=level),
                    unresolved_words=dict(counts.words.most_common()),
                    leak=part.leak if leak is None else leak,
                )
            )
        return tuple(found)

    def _leak(self, texts: list[str | None], own: list[str | None], *, level: float) -> Estimate:
        # The probe is the same for every value: it exchanges each text for the next one.
        try:
            return leak_probe(
                texts,
                lexicon=self.words,
                sources=own,
                tagger=self.tagger,
                level=level,
                seed=self.seed,
            )
        except MissingExtra as missing:
            return Estimate.none(str(missing), level=level)


class _Sample:
    """At most `size` texts with their sources, each row as likely as any other; seeded."""

    def __init__(self, size: int, *, seed: int) -> None:
        self.size = size
        self.generator = np.random.default_rng(seed)
        self.kept: list[tuple[float, int, str, str | None]] = []
        self.seen = 0
        self.cut = 1.0

    def add(self, texts: list[str | None], sources: list[str | None]) -> None:
        draws = self.generator.random(len(texts))
        for at in np.flatnonzero(draws < self.cut).tolist():
            text = texts[at]
            if text is not None and len(text) <= LONGEST_IN_SAMPLE:
                self.kept.append((float(draws[at]), self.seen + at, text, sources[at]))
        self.seen += len(texts)
        if len(self.kept) > 2 * self.size:
            self._prune()

    def _prune(self) -> None:
        self.kept.sort()
        del self.kept[self.size :]
        if len(self.kept) == self.size:
            self.cut = self.kept[-1][0]

    def rows(self) -> tuple[list[str | None], list[str | None]]:
        self._prune()
        ordered = sorted(self.kept, key=lambda each: each[1])
        return [each[2] for each in ordered], [each[3] for each in ordered]
