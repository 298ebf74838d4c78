"""A table with the counterfactual texts of every row, written in batches, and its validity."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.decisions.batches import (
    Batch,
    BatchTable,
    check_table_path,
    open_batches,
    write_batches,
)
from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.speech import agree, listed, plural
from evenhand.stats.estimate import Estimate, critical
from evenhand.stats.rates import rate
from evenhand.text.compiled import Tagger, compiled, load_tagger
from evenhand.text.lexicon import Lexicon, add_names, load_lexicon
from evenhand.text.mask import mask_texts, scrub_texts
from evenhand.text.swap import SwappedTexts, swap_texts
from evenhand.text.tokens import TITLE_FORMS
from evenhand.text.validity import SwapValidity, judge_swap, leak_probe, placebo_changes

SCHEMA = "evenhand.swap/1"
_MEASURES = {
    "changed": "texts changed",
    "mixed": "words of both values",
    "unresolved": "with an unresolved word",
    "round_trip": "changed texts that come back",
    "articles": "changed texts with a wrong a/an",
    "placebo_changed": "texts that a placebo would change",
    "leak": "swapped texts told from originals (AUC)",
}
_FEW = 5
_WIDTH = 43


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapReport:
    """What was swapped, and how far the swap can be trusted.

    `never_found` are the entries of the lexicon, as it writes them, that stand in no text.
    """

    source: str
    out: str
    rows: int
    text: str
    lexicon: str
    attribute: str
    group: str | None
    columns: list[str]
    validity: tuple[SwapValidity, ...]
    unresolved_rows: list[dict[str, Any]] = field(default_factory=list)
    other_values: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, Estimate] = field(default_factory=dict)
    tagger: str | None = None
    never_found: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, with the first thousand unresolved rows."""
        return {"schema": SCHEMA, **asdict(self)}

    def __str__(self) -> str:
        missing = self.validity[0].missing
        null = f", {missing:,} without a text" if missing else ""
        tagger = f", his or him by {self.tagger}" if self.tagger else ""
        lines = [f"{self.rows:,} rows of {self.source}{null}; lexicon {self.lexicon}{tagger}."]
        lines += [f"  {name:<{_WIDTH}} {value}" for name, value in self.changes.items()]
        for each in self.validity:
            lines += ["", f"{self.text}@{each.to}"]
            lines += [
                f"  {told:<{_WIDTH}} {getattr(each, name)}" for name, told in _MEASURES.items()
            ]
        lines += ["", *self._told()]
        return "\n".join(lines)

    def _told(self) -> list[str]:
        """Sentences on what stayed open."""
        told = []
        words: dict[str, int] = {}
        for each in self.validity:
            for word, n in each.unresolved_words.items():
                words[word] = words.get(word, 0) + n
        if words:
            top = sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))
            open_words = listed([f"{word} ({n:,})" for word, n in top], most=_FEW)
            rows = list(dict.fromkeys(each["row"] for each in self.unresolved_rows))
            first = ", ".join(str(row) for row in rows[:_FEW])
            told.append(
                f"Unresolved words: {open_words}; rows {first}{', …' * (len(rows) > _FEW)}."
            )
        if self.never_found:
            names = listed([repr(name) for name in self.never_found], most=_FEW)
            told.append(f"Entries never found: {names}.")
        if self.other_values:
            n = sum(self.other_values.values())
            names = ", ".join(repr(name) for name in list(self.other_values)[:_FEW])
            told.append(
                f"{plural(n, 'row')} {agree(n, 'has', 'have')} another value of {self.group} "
                f"({names}); the words of {agree(n, 'its', 'their')} text say what it is rewritten "
                "from."
            )
        told += self._leaks()
        added = ", ".join(self.columns)
        told.append(f"Wrote {self.out} with {added}.")
        return told

    def _leaks(self) -> list[str]:
        """What it means that a classifier can, or cannot, tell a swapped text from an original."""
        known = [each.leak for each in self.validity if each.leak.low is not None]
        if not known:
            return []
        if any(leak.low is not None and leak.low > 0.5 for leak in known):
            return [
                "A classifier tells swapped texts from originals better than by chance (AUC 0.5): "
                "other words, such as names, contradict the swapped ones, and a model may react to "
                "that rather than to the group."
            ]
        return [
            "A classifier does not tell swapped texts from originals better than by chance (AUC "
            "0.5): the swap leaves no trace that a model could react to."
        ]


SAMPLE = 10_000  # texts on which the costly parts of the validity are measured
LONGEST_IN_SAMPLE = 20_000  # characters
MOST_LISTED = 1_000
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChanges:
    """What is done to a text besides the swap, before it: masking; and after it: scrubbing.

    Titles of the column `title`, all of them or with the `scope` "own" each row's alone, are
    masked in the text itself, so that every counterfactual text is masked too. `scrub` adds the
    column `<text>:scrubbed`, without the names in column `name`.
    """

    title: str | None = None
    forms: Mapping[str, Sequence[str]] = field(default_factory=lambda: TITLE_FORMS)
    scope: str = "all"
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
    names: Any = None,
    placebo: bool = False,
    changes: TextChanges | Mapping[str, Any] | None = None,
    tagger: Tagger | str | None = None,
    probe: bool = True,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> SwapReport:
    """Adds `<text>@<value>` for each value of the lexicon, and says how far that can be trusted.

    `group` is the column with the value of each row's person; without it, or where it is null,
    the text's own words decide. `values` says which value of the lexicon a value of the column
    is ({"F": "female"}); `tagger` tells his from him, such as "spacy:en_core_web_sm". Shares of
    changed, mixed and unresolved texts count every row; the rest of the validity is measured on a
    sample of at most 10,000. `names` is a table of names to swap too; `placebo` swaps neutral
    synonyms instead, the baseline without effect; `changes` says what else is done to a text,
    such as `{"title": "job"}` to mask titles (`TextChanges`). `progress` is told how
    many rows are done, and of how many.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report = swap_table({"bio": ["He ran."]}, text="bio", out=f"{folder}/out.parquet")
        >>> report.columns
        ['bio@female', 'bio@male']
    """
    target = check_table_path(out, data=data)
    critical(level)  # refuses what is no level before anything is rewritten
    if seed < 0:
        raise UsageError(f"seed={seed} is not a seed. Give 0 or a larger whole number.")
    if placebo:
        if names is not None or values:
            raise UsageError("--placebo swaps neutral words only. Leave out --names and --value.")
        # Wording is not the group: each text's own wording decides what it is rewritten from.
        lexicon, group = "neutral_synonyms", None
    words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)
    if names is not None:
        words = with_names(words, names)
    changes = changes if isinstance(changes, TextChanges) else TextChanges(**(changes or {}))
    with open_batches(data) as table:
        written = _checked(table, text=text, words=words, values=values, changes=changes)
        sources = _Sources(table, group, written)
        work = _Work(
            text=text,
            words=words,
            names=written,
            sources=sources,
            changes=changes,
            tagger=load_tagger(tagger) if isinstance(tagger, str) else tagger,
            titles=_every_title(table, changes),
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
        columns=[f"{text}@{name}" for name in written.values()]
        + ([f"{text}:scrubbed"] if changes.scrub else []),
        validity=work.validity(probe=probe, level=level),
        unresolved_rows=work.listed,
        other_values=sources.others,
        changes=work.changed_besides(level=level),
        tagger=tagger if tagger is None or isinstance(tagger, str) else type(tagger).__name__,
        never_found=tuple(compiled(words).unseen(work.seen)),
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
    given = words.check_groups(values or {})
    own = {value: str(name) for name, value in given.items()}
    names = {value: own.get(value, value) for value in words.values}
    if len(set(names.values())) < len(names):
        raise UsageError(f"Two values have one name ({given}). Give each value a name of its own.")
    return names


def _every_title(table: BatchTable, changes: TextChanges) -> list[str]:
    """All titles of the table, where all are masked: a batch may lack some."""
    if changes.title is None or changes.scope != "all":
        return []
    return list(table.counts("mask_titles", changes.title))


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
                f"is which, such as --value {min(counts, default='…')}={first}, or leave out the "
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
        titles: Sequence[str],
        seed: int,
    ) -> None:
        self.titles = titles
        self.text, self.words, self.names, self.tagger = text, words, names, tagger
        self.sources, self.changes, self.seed = sources, changes, seed
        self.tallied = {value: _Tallied() for value in names}
        self.sample = _Sample(SAMPLE, seed=seed)
        self.listed: list[dict[str, Any]] = []
        self.seen: set[str] = set()
        self.present = self.missing = 0
        self.masked = self.leaks = self.scrubbed = self.emptied = 0

    def batch(self, batch: Batch) -> Batch:
        texts = batch.strings(self.text)
        own = self.sources.of(batch)
        columns: dict[str, Any] = {}
        if self.changes.title is not None:
            texts = self._mask(batch, texts)
            columns[self.text] = texts
        swapped: list[SwappedTexts] = []
        for value, name in self.names.items():
            # What stands in a text is the same under every value: one look is enough.
            seen = None if swapped else self.seen
            done = swap_texts(
                texts, to=value, lexicon=self.words, sources=own, tagger=self.tagger, seen=seen
            )
            swapped.append(done)
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
        self.sample.add(texts, swapped)
        return batch.with_columns(columns)

    def _mask(self, batch: Batch, texts: list[str | None]) -> list[str | None]:
        assert self.changes.title is not None
        done = mask_texts(
            texts,
            titles=batch.labels(self.changes.title),
            forms=self.changes.forms,
            scope=self.changes.scope,
            among=self.titles,
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
        texts, swapped = self.sample.rows(list(self.names))
        leak = Estimate.none("the probe was not asked for", level=level)
        if probe:
            leak = self._leak(texts, swapped, level=level)
        # What a placebo would change does not depend on the value either.
        placebo = placebo_changes(texts)
        found = []
        for value, name in self.names.items():
            counts = self.tallied[value]
            part = judge_swap(
                texts,
                swapped[value],
                lexicon=self.words,
                leak=leak,
                placebo=placebo,
                tagger=self.tagger,
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
                )
            )
        return tuple(found)

    def _leak(
        self, texts: list[str | None], swapped: dict[str, SwappedTexts], *, level: float
    ) -> Estimate:
        # The probe is the same for every value: it exchanges each text for the next one.
        try:
            return leak_probe(
                texts,
                lexicon=self.words,
                swapped=swapped,
                level=level,
                seed=self.seed,
            )
        except MissingExtra as missing:
            return Estimate.none(str(missing), level=level)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A text of the sample, and for each value the text under it, its own value, and changed."""

    draw: float
    row: int
    text: str
    swapped: tuple[tuple[str | None, str | None, bool], ...]


class _Sample:
    """At most `size` texts as they were swapped, each row as likely as any other; seeded."""

    def __init__(self, size: int, *, seed: int) -> None:
        self.size = size
        self.generator = np.random.default_rng(seed)
        self.kept: list[_Drawn] = []
        self.seen = 0
        self.cut = 1.0

    def add(self, texts: list[str | None], swapped: Sequence[SwappedTexts]) -> None:
        draws = self.generator.random(len(texts))
        for at in np.flatnonzero(draws < self.cut).tolist():
            text = texts[at]
            if text is not None and len(text) <= LONGEST_IN_SAMPLE:
                under = tuple((d.texts[at], d.values[at], bool(d.changed[at])) for d in swapped)
                self.kept.append(_Drawn(float(draws[at]), self.seen + at, text, under))
        self.seen += len(texts)
        if len(self.kept) > 2 * self.size:
            self._prune()

    def _prune(self) -> None:
        self.kept.sort(key=lambda each: (each.draw, each.row))
        del self.kept[self.size :]
        if len(self.kept) == self.size:
            self.cut = self.kept[-1].draw

    def rows(self, values: Sequence[str]) -> tuple[list[str | None], dict[str, SwappedTexts]]:
        """The texts in the order of their rows, and as they are under each of these values."""
        self._prune()
        ordered = sorted(self.kept, key=lambda each: each.row)
        found = {}
        for place, value in enumerate(values):
            under = [each.swapped[place] for each in ordered]
            none = np.zeros(len(under), dtype=np.int64)
            found[value] = SwappedTexts(
                texts=[text for text, _, _ in under],
                to=value,
                values=[own for _, own, _ in under],
                changed=np.array([changed for _, _, changed in under], dtype=bool),
                # Counted over all rows, and not of the sample.
                mixed=none > 0,
                replaced=none,
                unresolved={},
                missing=0,
            )
        return [each.text for each in ordered], found


MOST_NAMES = 100_000


def with_names(lexicon: Lexicon, data: Any) -> Lexicon:
    """The lexicon with the names of a table.

    Either a column for each of two or more values of the lexicon, paired by row, or the columns
    `name` and `replacement`.

    Examples:
        >>> from evenhand.text.lexicon import load_lexicon
        >>> pronouns = load_lexicon("gender_pronouns")
        >>> named = with_names(pronouns, {"female": ["Alice"], "male": ["Alan"]})
        >>> named.entries["Alice"].to
        {'male': 'Alan'}
    """
    with open_batches(data) as table:
        columns = [value for value in lexicon.values if value in table.columns]
        pairs = {"name", "replacement"} <= set(table.columns)
        if len(columns) < 2 and not pairs:
            raise UsageError(
                f"names={table.source!r} has the columns {', '.join(table.columns)}. Give a column "
                f"of names for each of {', '.join(lexicon.values)}, or the columns name and "
                "replacement."
            )
        if len(columns) < 2:
            columns = ["name", "replacement"]
        lists = {column: _names(table, column) for column in columns}
    if columns == ["name", "replacement"]:
        repeated = [name for name, n in Counter(lists["name"]).items() if n > 1]
        if repeated:
            raise UsageError(f"names has {repeated[0]!r} twice. Give each name once.")
        return add_names(lexicon, names=dict(zip(lists["name"], lists["replacement"])))
    return add_names(lexicon, names=lists)


def _names(table: BatchTable, column: str) -> list[str]:
    table.check_texts("names", column)
    if table.rows > MOST_NAMES:
        raise DataError(f"names has {table.rows:,} rows; at most {MOST_NAMES:,} can be swapped.")
    found: list[str] = []
    for batch in table.read(table.rows):
        for row, name in enumerate(batch.strings(column)):
            if not name:
                raise DataError(f"names has no {column} in row {row}. Give every row all names.")
            found.append(name)
    return found
