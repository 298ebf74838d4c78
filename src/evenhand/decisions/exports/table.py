"""Labels of a labelling tool as one table: a row for each label, and what was left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.decisions.exports.layouts import LAYOUTS, SPANS, Label, Layout, check_layout
from evenhand.decisions.exports.stream import ExportRecord, export_records
from evenhand.decisions.exports.truth import Truths, agreed, consensus
from evenhand.decisions.table import Decisions
from evenhand.errors import DataError, EvenhandError, UsageError, nearest
from evenhand.speech import listed, plural

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("item", "labeler", "decision", "truth", "seconds", "time")
TOLD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTable:
    """Labels as a table that an audit reads.

    Attributes:
        frame: A Polars frame with item, labeler, decision, truth, seconds, time, and one column for
            each field of the items.
        source: The export and its tool, in words.
        truth_from: Where the truth comes from, in words.
        left_out: Labels that do not count, by reason.
        notes: What is worth saying beside the numbers.
    """

    frame: "pl.DataFrame"
    source: str
    truth_from: str
    left_out: dict[str, int]
    notes: tuple[str, ...]

    def decisions(self, **roles: Any) -> Decisions:
        """The table with its roles; those of the labels are known, the group is yours to name."""
        known = {name: name for name in COLUMNS if self.frame[name].null_count() < len(self.frame)}
        made = Decisions(self.frame, **{**known, **roles})
        made.source, made.notes, made.left_out = self.source, self.notes, self.left_out
        return made

    def __str__(self) -> str:
        people = self.frame["labeler"].n_unique()
        counts = (
            f"{plural(len(self.frame), 'label')} of {plural(self.frame['item'].n_unique(), 'item')}"
        )
        lines = [f"{self.source}: {counts} by {plural(people, 'labeler')}."]
        lines += [f"Truth: {self.truth_from}."]
        lines += [f"{plural(n, 'label')} left out: {why}." for why, n in self.left_out.items()]
        return "\n".join([*lines, *self.notes])


def read_labels(
    path: str | Path | Sequence[str | Path],
    *,
    tool: str,
    question: str | None = None,
    has: str | None = None,
    truth: str | None = None,
    truth_labeler: str | None = None,
    columns: Iterable[str] | None = None,
) -> LabelTable:
    """Labels from the export of a labelling tool: one row for each label.

    Where neither a field, a person nor the tool says what is the case, the truth is the labels' own
    consensus (Dawid and Skene), and the audit says so.

    Args:
        path: The export as the tool wrote it: .json, .jsonl, a zip of them, or several files.
        tool: `label-studio`, `argilla`, `doccano` or `prodigy`.
        question: The control or question that is audited, where there are several.
        has: Audit whether a label was given (1) or not (0): for spans, or several choices.
        truth: The field of the item that holds the truth, such as `data.gold`.
        truth_labeler: The person whose labels are the truth, and are not audited.
        columns: Only these fields of the items, such as `data.dialect`; by default all.

    Examples:
        >>> import json, tempfile
        >>> said = {"label": "SPAM", "_input_hash": 7, "meta": {"gold": "SPAM", "region": "north"}}
        >>> said |= {"answer": "reject", "_annotator_id": "al"}
        >>> with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        ...     _ = file.write(json.dumps(said)); file.flush()
        ...     read_labels(file.name, tool="prodigy", truth="meta.gold").frame.row(0)[:4]
        ('7', 'al', 'not SPAM', 'SPAM')
    """
    if tool not in LAYOUTS:
        hint = nearest(str(tool), list(LAYOUTS))
        raise UsageError(
            f"tool={tool!r} is not a labelling tool that is known.{hint} "
            f"Choose one of {', '.join(LAYOUTS)}."
        )
    if truth is not None and truth_labeler is not None:
        raise UsageError("truth and truth_labeler are both given. Give one of them.")
    paths = [path] if isinstance(path, str | Path) else list(path)
    wanted = None if columns is None else list(dict.fromkeys(columns))
    if wanted is not None and truth is not None:
        wanted.append(truth)
    layout = LAYOUTS[tool](question)
    gathered = _Gathered(has=has, truth_labeler=truth_labeler)
    for record in export_records(paths):
        with _in_its_form(layout, record):
            check_layout(layout, record)
            labels = list(layout.labels(record))
            if labels:
                gathered.add(labels, dict(_fields(layout.fields(record), wanted)), record.place)
    layout.check_question()
    named = ", ".join(map(str, paths))
    gathered.check(named, layout)
    truths = gathered.truths(truth, tool=layout.called)
    return gathered.table(truths, source=f"{named} ({layout.called})", wanted=wanted)


@contextmanager
def _in_its_form(layout: Layout, record: ExportRecord) -> Iterator[None]:
    """A record in which something stands that the tool never puts there is refused by its place."""
    try:
        yield
    except EvenhandError:
        raise
    except (AttributeError, TypeError, LookupError, ValueError, ArithmeticError) as error:
        raise DataError(
            f"{record.place} is not as {layout.called} writes it ({error}). Give the export as the "
            "tool wrote it."
        ) from error


def _fields(given: Mapping[str, Any], wanted: list[str] | None) -> Iterator[tuple[str, Any]]:
    """Single values among what is known of an item, by names with dots."""
    if wanted is None:
        yield from _flat(given, "")
        return
    for name in wanted:
        value: Any = given.get(name)
        if value is None:
            value = given
            for part in name.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
        yield name, value if _is_single(value) or isinstance(value, list) else None


def _flat(given: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        whole = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{whole}.")
        elif _is_single(value):
            # A field of an item gives way to what is known of its labels.
            yield (f"meta.{whole}" if whole in COLUMNS else whole), value


def _is_single(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


@dataclass(slots=True, kw_only=True)
class _Gathered:
    """Labels as they are read: columns of single values, so that large exports fit."""

    has: str | None
    truth_labeler: str | None
    items: list[str] = field(default_factory=list)
    labelers: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)
    times: list[str | None] = field(default_factory=list)
    known: list[tuple[str, Any]] = field(default_factory=list)
    people: dict[str, str] = field(default_factory=dict)
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    nameless: int = 0

    def add(self, labels: list[Label], known: dict[str, Any], place: str) -> None:
        """Take the labels of one record, and what is known of their items."""
        for label in labels:
            self.fields.setdefault(label.item, known)
            if label.left_out:
                self._leave(label.left_out)
                continue
            if label.labeler is None:
                self.nameless += 1
                self._leave("no annotator")
                continue
            value = self._value(label, place)
            if value is None:
                self._leave("no label given")
                continue
            _check_types(label, value)
            person = self.people.setdefault(label.labeler, label.labeler)
            if label.is_truth or person == self.truth_labeler:
                self.known.append((label.item, value))
                continue
            self.items.append(label.item)
            self.labelers.append(person)
            self.values.append(value)
            self.seconds.append(label.seconds)
            self.times.append(label.time)

    def _leave(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def _value(self, label: Label, place: str) -> Any:
        """The decision in a label: the choice, or whether it holds the label looked for."""
        if self.has is not None:
            return int(self.has in label.marks)
        if label.kind == SPANS:
            raise DataError(
                f"{place} has spans ({listed(sorted(set(label.marks)), most=5)}) where one choice "
                "is expected. Say which label to look for, and an item counts as 1 where somebody "
                f"marked it: has={label.marks[0]!r} (--has)."
            )
        if len(label.marks) > 1:
            raise DataError(
                f"{place} has several choices ({listed(sorted(label.marks), most=5)}) where one is "
                "expected. Say which label to look for, and an item counts as 1 where somebody "
                f"chose it: has={label.marks[0]!r} (--has)."
            )
        return label.marks[0] if label.marks else None

    def check(self, source: str, layout: Layout) -> None:
        """Refuse an export without labels that can be audited."""
        if not self.items and self.nameless:
            raise DataError(
                f"'{source}' does not say who labelled what, so that labelers cannot be compared. "
                + (
                    "In doccano, turn off shared annotation or give the zip with a file for each "
                    "annotator."
                    if layout.tool == "doccano"
                    else "Export again with the annotators."
                )
            )
        if not self.items:
            told = listed([f"{n:,} {why}" for why, n in self.left_out.items()])
            raise DataError(
                f"'{source}' has no label to audit" + (f": {told}." if told else ".")
                + (f" {len(self.known):,} are the truth itself." if self.known else "")
            )  # fmt: skip
        if self.truth_labeler is not None and not self.known:
            names = sorted(self.people)
            raise UsageError(
                f"truth_labeler={self.truth_labeler!r} has labelled nothing in this export."
                f"{nearest(self.truth_labeler, names)} It has {listed(names, most=TOLD)}."
            )
        if self.has is not None and not any(self.values):
            raise UsageError(f"has={self.has!r} was given to no item of this export.")

    def truths(self, name: str | None, *, tool: str) -> Truths:
        """What is the case, by what the export offers: a field, a person, the tool, the labels."""
        if name is not None:
            return self._from_field(name)
        if self.truth_labeler is not None:
            return agreed(self.known, source=f"labels of {self.truth_labeler}")
        if self.known:
            return agreed(self.known, source=f"ground truth or review in {tool}")
        positive = 1 if self.has is not None else None
        return consensus(self.items, self.labelers, self.values, positive=positive)

    def _from_field(self, name: str) -> Truths:
        pairs = [(item, known.get(name)) for item, known in self.fields.items()]
        found = [(item, self._truth(value)) for item, value in pairs if value is not None]
        if not found:
            names = sorted({key for known in self.fields.values() for key in known})
            raise UsageError(
                f"truth={name!r} is not a field of the items.{nearest(name, names)} "
                f"They have {listed(names, most=TOLD) or 'none'}."
            )
        return agreed(found, source=f"field {name}")

    def _truth(self, value: Any) -> Any:
        if self.has is None:
            return value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, bool | int | float):
            return int(bool(value))
        return int(self.has in value if isinstance(value, list) else value == self.has)

    def table(self, truths: Truths, *, source: str, wanted: list[str] | None) -> LabelTable:
        """The labels as one table, each item's truth and fields beside them."""
        import polars as pl

        every = (name for known in self.fields.values() for name in known)
        names = list(dict.fromkeys(every)) if wanted is None else wanted
        absent = [n for n in names if all(self.fields[i].get(n) is None for i in self.fields)]
        if wanted is not None and absent:
            there = sorted({key for known in self.fields.values() for key in known} - set(absent))
            raise UsageError(
                f"{absent[0]!r} is not a field of the items.{nearest(absent[0], there)} Fields are "
                "named with dots, such as data.dialect in Label Studio and meta.dialect in Prodigy."
            )
        columns: dict[str, Any] = {
            "item": pl.Series(self.items, dtype=pl.String),
            "labeler": pl.Series(self.labelers, dtype=pl.String),
            "decision": _column(self.values),
            "truth": _column([truths.by_item.get(item) for item in self.items]),
            "seconds": pl.Series(self.seconds, dtype=pl.Float64),
            "time": pl.Series(self.times, dtype=pl.String),
        }
        for name in names:
            if name not in columns:
                columns[name] = _column([self.fields[item].get(name) for item in self.items])
        return LabelTable(
            frame=pl.DataFrame(columns),
            source=source,
            truth_from=truths.source,
            left_out=dict(self.left_out),
            notes=truths.notes or (f"The truth of the items: {truths.source}.",),
        )


def _check_types(label: Label, value: Any) -> None:
    """Raises where a label holds what no label can be."""
    if not isinstance(value, str | int | float):
        raise TypeError(f"a label is {type(value).__name__}")
    if not isinstance(label.labeler, str) or not isinstance(label.item, str):
        raise TypeError("an item or an annotator has no name")
    if not isinstance(label.seconds, int | float | None):
        raise TypeError("a time that a label took is no number")
    if not isinstance(label.time, str | None):
        raise TypeError("a time is no text")


def _column(values: list[Any]) -> "pl.Series":
    """Values as one column; those of several types, and classes, as the text they are written."""
    import polars as pl

    types = {type(value) for value in values if value is not None}
    small = all(abs(value) < 2**63 for value in values if type(value) is int)
    if small and (types <= {int} or types <= {int, float} or types == {bool}):
        return pl.Series(values)
    return pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)
