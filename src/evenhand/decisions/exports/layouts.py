"""How each labelling tool writes what people labelled: its records as labels.

The layouts are those that the tools document: Label Studio's JSON and JSON_MIN, Argilla's records
of version 1 and 2 (nested, flattened, or as a Hugging Face dataset), doccano's JSON Lines (a file
for each annotator, or annotations with their user) and Prodigy's JSON Lines.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from evenhand.decisions.exports.stream import ExportRecord
from evenhand.errors import DataError, UsageError, nearest
from evenhand.speech import listed

CHOICE, SPANS = "choice", "spans"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What one person said of one item; `left_out` is why it does not count, `is_truth` if it is.

    `marks` are the labels given: the choices, or those of the spans.
    """

    item: str
    labeler: str | None
    marks: tuple[str, ...] = ()
    kind: str = CHOICE
    seconds: float | None = None
    time: str | None = None
    is_truth: bool = False
    left_out: str | None = None


class Layout(ABC):
    """One tool's records; `question` is the name of the control that is audited."""

    tool: ClassVar[str]
    called: ClassVar[str]
    own_keys: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, question: str | None) -> None:
        self.asked = question
        self.question = question
        self.questions: dict[str, None] = {}

    @classmethod
    @abstractmethod
    def fits(cls, content: Mapping[str, Any]) -> bool:
        """Whether a record looks as this tool writes it."""

    @abstractmethod
    def labels(self, record: ExportRecord) -> Iterator[Label]:
        """The labels in a record."""

    def fields(self, record: ExportRecord) -> Mapping[str, Any]:
        """What is known of the item, by names with dots."""
        return {k: v for k, v in record.content.items() if k not in self.own_keys}

    def choose(self, names: Sequence[str], record: ExportRecord) -> str | None:
        """The question that is audited: the one asked for, or the only one there is."""
        self.questions |= dict.fromkeys(names)
        if self.asked is not None:
            return self.asked
        if len(self.questions) > 1:
            raise UsageError(
                f"{record.place} answers {listed(list(self.questions))}. Say which one is audited: "
                f"question={next(iter(self.questions))!r} (--question)."
            )
        self.question = next(iter(self.questions), None)
        return self.question

    def check_question(self) -> None:
        """Refuse a question that no record answered."""
        if self.asked is not None and self.questions and self.asked not in self.questions:
            known = list(self.questions)
            raise UsageError(
                f"question={self.asked!r} is not answered in this export."
                f"{nearest(self.asked, known)} It has {listed(known)}."
            )


class LabelStudio(Layout):
    """Label Studio: tasks with annotations (JSON), or one flat record for each (JSON_MIN)."""

    tool, called = "label-studio", "Label Studio"
    own_keys = frozenset(
        ["id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"]
    )

    @classmethod
    def fits(cls, content: Mapping[str, Any]) -> bool:
        tasks = isinstance(content.get("annotations"), list) and "data" in content
        return tasks or "annotation_id" in content or "completions" in content

    def labels(self, record: ExportRecord) -> Iterator[Label]:
        content = record.content
        if "completions" in content:
            raise DataError(
                f"{record.place} has 'completions', as Label Studio wrote before version 1.0. "
                "Export again from a newer version."
            )
        item = _name(content.get("id"), record, "id")
        if "annotation_id" in content:
            yield self._flat(content, item, record)
            return
        for annotation in content.get("annotations") or ():
            yield self._annotation(annotation, item, record)

    def fields(self, record: ExportRecord) -> Mapping[str, Any]:
        content = record.content
        if "annotation_id" in content:
            inner = {k: v for k, v in content.items() if k not in self.own_keys | {self.question}}
            return {"data": inner}
        return {name: content.get(name) for name in ("data", "meta")}

    def _annotation(self, made: Mapping[str, Any], item: str, record: ExportRecord) -> Label:
        results = made.get("result") or []
        by_name: dict[str, list[Mapping[str, Any]]] = {}
        for result in results:
            kind = str(result.get("type"))
            if kind in {"choices", "rating", "taxonomy"} or kind.endswith("labels"):
                by_name.setdefault(str(result.get("from_name")), []).append(result)
        chosen = by_name.get(self.choose(list(by_name), record) or "", [])
        spans = any(str(result.get("type")).endswith("labels") for result in chosen)
        marks = [mark for result in chosen for mark in _studio_marks(result)]
        reviews = made.get("reviews") or []
        return Label(
            item=item,
            labeler=_person(made.get("completed_by", made.get("created_username"))),
            marks=tuple(marks),
            kind=SPANS if spans else CHOICE,
            seconds=_seconds(made.get("lead_time")),
            time=made.get("created_at"),
            is_truth=bool(made.get("ground_truth"))
            or bool(reviews and reviews[-1].get("accepted")),
            left_out="skipped or cancelled" if made.get("was_cancelled") else None,
        )

    def _flat(self, content: Mapping[str, Any], item: str, record: ExportRecord) -> Label:
        """JSON_MIN: the answer stands beside the data, under the control's name."""
        if self.asked is None:
            raise UsageError(
                f"{record.place} is of the form JSON_MIN, where answers stand among the data. Say "
                "which field holds them: question='label' (--question)."
            )
        self.questions |= dict.fromkeys(k for k in content if k not in self.own_keys)
        value = content.get(self.asked)
        kind, marks = _marks(value)
        return Label(
            item=item,
            labeler=_person(content.get("annotator")),
            marks=marks,
            kind=kind,
            seconds=_seconds(content.get("lead_time")),
            time=content.get("created_at"),
        )


def _studio_marks(result: Mapping[str, Any]) -> list[str]:
    value = result.get("value") or {}
    held = value.get(str(result.get("type")))
    if isinstance(held, list):
        return [str(part[-1] if isinstance(part, list) else part) for part in held]
    return [] if held is None else [str(held)]


class Argilla(Layout):
    """Argilla: records with responses, nested or flattened, of version 2 or 1."""

    tool, called = "argilla", "Argilla"
    LEFT_OUT: ClassVar = {"discarded": "discarded", "draft": "drafts", "pending": "pending"}

    @classmethod
    def fits(cls, content: Mapping[str, Any]) -> bool:
        flat = any(name.endswith(".responses") for name in content)
        return flat or ("fields" in content and "responses" in content) or bool(_columns(content))

    def labels(self, record: ExportRecord) -> Iterator[Label]:
        content = record.content
        answers = self._answers(content)
        question = self.choose(list(answers), record)
        known = (content.get(name) for name in ("external_id", "id", "_server_id"))
        item = _name(next((n for n in known if n is not None), None), record, "id")
        for answer in answers.get(question or "", []):
            status = answer.get("status") or "submitted"
            kind, marks = _marks(answer.get("value"))
            yield Label(
                item=item,
                labeler=_person(answer.get("user_id")),
                marks=marks,
                kind=kind,
                time=answer.get("inserted_at"),
                left_out=self.LEFT_OUT.get(str(status)),
            )

    def fields(self, record: ExportRecord) -> Mapping[str, Any]:
        import json

        kept = dict(record.content)
        if isinstance(kept.get("metadata"), str):
            # Datasets of version 1 hold the metadata as JSON text.
            try:
                kept["metadata"] = json.loads(kept["metadata"])
            except ValueError:
                kept.pop("metadata")
        return {
            k: v
            for k, v in kept.items()
            if k not in {"responses", "suggestions", "vectors", *self.questions}
            and ".responses" not in k
        }

    @staticmethod
    def _answers(content: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Answers by question, whatever way they are laid out."""
        held = content.get("responses")
        if isinstance(held, Mapping):
            return {str(name): list(given or ()) for name, given in held.items()}
        out: dict[str, list[dict[str, Any]]] = {}
        if isinstance(held, list):
            for one in held:
                for name, value in (one.get("values") or {}).items():
                    inner = value.get("value") if isinstance(value, Mapping) else value
                    out.setdefault(str(name), []).append({**one, "value": inner})
                if not one.get("values"):
                    out.setdefault("", []).append(one)
            blank = out.pop("", [])
            # A discarded response has no values: it counts as left out of every question.
            return {name: [*given, *blank] for name, given in out.items()} or {"": blank}
        for name, values in content.items():
            if name.endswith(".responses") and values:
                users = content.get(f"{name}.users") or [None] * len(values)
                states = content.get(f"{name}.status") or [None] * len(values)
                out[name.removesuffix(".responses")] = [
                    {"value": v, "user_id": u, "status": s}
                    for v, u, s in zip(values, users, states)
                ]
        return out or _columns(content)


def _columns(content: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Columns of a dataset of version 1: `[{user_id, value, status}]`, or a list for each key."""
    out: dict[str, list[dict[str, Any]]] = {}
    for name, given in content.items():
        if isinstance(given, Mapping) and {"user_id", "value"} <= set(given):
            given = [dict(zip(given, values)) for values in zip(*given.values())]
        if (
            isinstance(given, list)
            and given
            and all(isinstance(one, Mapping) and {"user_id", "value"} <= set(one) for one in given)
        ):
            out[str(name)] = [dict(one) for one in given]
    return out


class Doccano(Layout):
    """doccano: JSON Lines, a file for each annotator, or annotations that name their user."""

    tool, called = "doccano", "doccano"
    own_keys = frozenset(
        {"id", "text", "label", "labels", "cats", "entities", "relations", "annotations"}
        | {"Comments"}
    )

    @classmethod
    def fits(cls, content: Mapping[str, Any]) -> bool:
        answers = {"label", "labels", "cats", "entities", "annotations"} & set(content)
        return (
            "id" in content and bool({"text", "data", "filename"} & set(content)) and bool(answers)
        )

    def labels(self, record: ExportRecord) -> Iterator[Label]:
        content = record.content
        item = _name(content.get("id"), record, "id")
        old = content.get("annotations")
        if isinstance(old, list):
            people: dict[str | None, list[Any]] = {}
            for one in old:
                people.setdefault(_person(one.get("user")), []).append(one.get("label"))
            for person, given in people.items():
                yield Label(item=item, labeler=person, marks=tuple(map(str, given)))
            return
        names = [name for name in ("label", "labels", "cats", "entities") if name in content]
        name = self.choose(names, record)
        kind, marks = _marks(content.get(name or ""))
        # In a project that people share, one file holds everybody's labels without their names.
        shared = record.stem in {"all", "admin_all"}
        yield Label(item=item, labeler=None if shared else record.stem, marks=marks, kind=kind)


class Prodigy(Layout):
    """Prodigy: JSON Lines with an answer; the records of its `review` recipe are the truth."""

    tool, called = "prodigy", "Prodigy"
    own_keys = frozenset(
        {"answer", "accept", "options", "label", "spans", "tokens", "versions", "_is_binary"}
        | {"_input_hash", "_task_hash", "_session_id", "_view_id", "_annotator_id", "_timestamp"}
    )

    @classmethod
    def fits(cls, content: Mapping[str, Any]) -> bool:
        return "answer" in content and bool(
            {"_input_hash", "_task_hash", "_session_id", "_annotator_id"} & set(content)
        )

    def labels(self, record: ExportRecord) -> Iterator[Label]:
        content = record.content
        known = (content.get(name) for name in ("_input_hash", "_task_hash"))
        item = _name(next((n for n in known if n is not None), None), record, "_input_hash")
        answer = content.get("answer")
        marks, kind = self._marks(content, record)
        if marks is None:
            return
        binary = "label" in content and "accept" not in content and "spans" not in content
        left_out = "ignored" if answer == "ignore" else None
        if answer == "reject" and not binary:
            left_out = "rejected"
        moment = content.get("_timestamp")
        person = content.get("_annotator_id", content.get("_session_id"))
        yield Label(
            item=item,
            labeler=_person(person),
            marks=marks,
            kind=kind,
            time=None if moment is None else str(datetime.fromtimestamp(float(moment), UTC)),
            is_truth=isinstance(content.get("versions"), list),
            left_out=left_out,
        )

    def _marks(
        self, content: Mapping[str, Any], record: ExportRecord
    ) -> tuple[tuple[str, ...] | None, str]:
        if "accept" in content:
            return tuple(map(str, content["accept"] or ())), CHOICE
        if isinstance(content.get("spans"), list):
            return _marks(content["spans"])[1], SPANS
        name = content.get("label")
        if name is None:
            return (), CHOICE
        question = self.choose([str(name)], record)
        if str(name) != question:
            return None, CHOICE
        return ((str(name) if content.get("answer") == "accept" else f"not {name}",), CHOICE)


LAYOUTS: dict[str, type[Layout]] = {
    each.tool: each for each in (LabelStudio, Argilla, Doccano, Prodigy)
}


def check_layout(layout: Layout, record: ExportRecord) -> None:
    """Refuse a record of another tool, and say whose it may be."""
    if layout.fits(record.content):
        return
    keys = listed([repr(key) for key in list(record.content)[:6]])
    others = [other for other in LAYOUTS.values() if other.fits(record.content)]
    hint = (
        f"It looks like one of {others[0].called}: --from {others[0].tool}."
        if others
        else "Export again as JSON, with annotations."
    )
    raise DataError(
        f"{record.place} is not laid out as {layout.called} does it: its keys are {keys}. {hint}"
    )


def _name(value: Any, record: ExportRecord, key: str) -> str:
    if value is None:
        raise DataError(f"{record.place} has no {key!r}, so that nobody knows which item it is.")
    return str(value)


def _person(value: Any) -> str | None:
    """Who labelled: an id, or the id or address of a user that is written out."""
    if isinstance(value, Mapping):
        value = value.get("id", value.get("email"))
    return None if value is None or value == "" else str(value)


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def _marks(value: Any) -> tuple[str, tuple[str, ...]]:
    """The kind of an answer and its labels, in whichever of the common forms it is written.

    Examples:
        >>> _marks("toxic"), _marks(["a", "b"]), _marks({"choices": ["a", "b"]})
        (('choice', ('toxic',)), ('choice', ('a', 'b')), ('choice', ('a', 'b')))
        >>> _marks([[0, 5, "slur"]]), _marks([{"start": 0, "end": 5, "label": "slur"}])
        (('spans', ('slur',)), ('spans', ('slur',)))
    """
    if value is None:
        return CHOICE, ()
    if isinstance(value, Mapping):
        if "choices" in value:
            return CHOICE, tuple(map(str, value["choices"]))
        return _marks([value])
    if not isinstance(value, list):
        return CHOICE, (str(value),)
    spans: list[str] = []
    for part in value:
        if isinstance(part, Mapping):
            found = part.get("label", part.get("labels"))
            spans += map(str, found if isinstance(found, list) else [found])
        elif isinstance(part, list):
            spans.append(str(part[-1]))
    if spans:
        return SPANS, tuple(spans)
    return CHOICE, tuple(map(str, value))
