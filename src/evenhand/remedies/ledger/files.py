"""A ledger on disk: finished parts to go on from, the document, the table, models and chart."""

import csv
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.files import write_text
from evenhand.files.documents import (
    anything,
    check_document,
    check_schema,
    check_seal,
    either,
    flag,
    list_of,
    map_of,
    maybe,
    number,
    read_arrays,
    read_json,
    read_json_as_written,
    sealed,
    table,
    text,
    whole,
)
from evenhand.files.folders import check_folder as check_our_folder
from evenhand.files.folders import mend, new_folder, open_folder, remove_folder
from evenhand.files.writing import new_file, refusals
from evenhand.models.words import LinearWords
from evenhand.remedies.ledger.columns import COLUMNS
from evenhand.remedies.ledger.measures import Measured, Outcome
from evenhand.speech import as_cell
from evenhand.stats.estimate import FloatArray
from evenhand.text.mask import mask_texts, scrub_texts

if TYPE_CHECKING:  # a ledger can be read where nothing can be trained
    from evenhand.remedies.ledger.encoders import Encoder
    from evenhand.remedies.ledger.task import Fitted, Task
    from evenhand.remedies.ledger.texts import Scaled

SCHEMA = "evenhand.ledger/1"
DOCUMENT, TABLE, PARTS, MODELS = (
    "ledger.json",
    "ledger.csv",
    "parts",
    "models",
)
# Data of charts, each a key of the document and a file of that name.
CHARTS = ("pareto", "contrast")
KIND, UNFINISHED = "ledgers", "unfinished ledgers"
_GROWING = (f"{PARTS}/*", f"{MODELS}/*")
_AGAIN = " Make it again with: evenhand compare …"
_NUMBER = maybe(number)
_CELL = map_of(either(_NUMBER, text, noun="a number or text"))
_ROW = table(
    {"remedy": text},
    {
        "representation": maybe(text),
        "status": maybe(text),
        "reason": maybe(text),
        "sentence": maybe(text),
        "pareto": flag,
        "needs_group_at_decision": flag,
        "measures": map_of(map_of(_CELL)),
    },
)
_CLASS = table({"class": text}, {"remedy": text, "representation": text, "seed": whole})
_LEDGER = table(
    {"rows": list_of(_ROW)},
    {
        "made": table({}, {"at": text, "version": text}),
        "classes": list_of(_CLASS),
        "notes": list_of(text),
    },
)
_MEASURED = ("values", "spans", "level", "undefined", "classes")
_PART = table(
    {
        "measured": table(
            {
                "values": map_of(map_of(_NUMBER)),
                "spans": map_of(map_of(list_of(_NUMBER))),
                "level": number,
                "undefined": map_of(text),
                "classes": list_of(_CLASS),
            }
        ),
        "auc": _NUMBER,
        "seconds": number,
        "chosen": map_of(anything),
        "notes": list_of(text),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPart:
    """One remedy, representation and seed that is done."""

    measured: Measured
    outcome: Outcome
    seconds: float
    chosen: dict[str, Any]
    notes: tuple[str, ...]


def fingerprint(*pieces: Any) -> str:
    """A short name for inputs and settings: the same where all of them are.

    Examples:
        >>> fingerprint("a", 1) == fingerprint("a", 1), fingerprint("a", 1) == fingerprint("a", 2)
        (True, False)
    """
    digest = sha256()
    for piece in pieces:
        text = piece if isinstance(piece, str) else json.dumps(piece, sort_keys=True, default=str)
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:20]


class PartStore:
    """Finished parts in a folder, each written whole; without a folder nothing is kept.

    Parts of a run that goes on stand beside the ledger's folder, `<folder>.partial`, and move into
    it with the finished ledger: until then the older ledger stays as it was.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder, self.places = None, []
        if folder is not None:
            self.folder = open_folder(working(folder), _GROWING, kind=UNFINISHED) / PARTS
            self.places = [self.folder, folder / PARTS]

    def keep_vectors(self) -> Path | None:
        """The folder of the parts, with the vectors of texts that an earlier ledger made."""
        if self.folder is None:
            return None
        older = self.places[-1]
        for file in sorted(older.glob("embeddings/*/*.npz")):
            if not (self.folder / file.relative_to(older)).exists():
                _carry(file, self.folder / file.relative_to(older))
        return self.folder

    def load(self, key: str) -> LedgerPart | None:
        """A part that was finished before, or None; a damaged one is made again."""
        for place in self.places:
            with suppress(DataError):
                return _read_part(place, key)
        return None

    def save(self, key: str, part: LedgerPart) -> None:
        """Keep a finished part; the JSON file comes last and says that it is whole."""
        if self.folder is None:
            return
        with refusals(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        found = part.outcome
        arrays: dict[str, Any] = {
            "decided": found.decided.astype(np.int32),
            "own": found.own,
            "one_versus_rest": found.one_versus_rest,
            "fitted": found.fitted,
            **{f"do:{name}": codes.astype(np.int32) for name, codes in found.do.items()},
            **{f"under:{name}": scores for name, scores in found.under.items()},
        }
        place = self.folder / f"{key}.npz"
        with new_file(place) as made, refusals(place), made.open("wb") as file:
            np.savez(file, **arrays)
        document = {
            "measured": {name: getattr(part.measured, name) for name in _MEASURED},
            "auc": found.auc if np.isfinite(found.auc) else None,
            "seconds": part.seconds,
            "chosen": part.chosen,
            "notes": list(part.notes),
        }
        write_text(self.folder / f"{key}.json", json.dumps(document))


def _read_part(place: Path, key: str) -> LedgerPart:
    held = read_json(place / f"{key}.json", noun="a part")
    check_document(held, _PART, source=place / f"{key}.json", noun="part")
    arrays = read_arrays(place / f"{key}.npz")
    do = {name[3:]: codes for name, codes in arrays.items() if name.startswith("do:")}
    try:
        outcome = Outcome(
            decided=arrays["decided"].astype(np.intp),
            do={name: codes.astype(np.intp) for name, codes in do.items()},
            own=arrays["own"],
            auc=float("nan") if held["auc"] is None else float(held["auc"]),
            one_versus_rest=arrays["one_versus_rest"],
            fitted=arrays["fitted"],
            under={n[6:]: held for n, held in arrays.items() if n.startswith("under:")},
        )
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"'{place / key}.npz' is damaged: {error}.") from error
    lengths = {len(one) for one in (outcome.decided, outcome.own, *outcome.do.values())}
    if len(lengths) > 1:
        raise DataError(f"'{place / key}.npz' is damaged: its arrays differ in length.")
    return LedgerPart(
        measured=Measured(**{name: held["measured"][name] for name in _MEASURED}),
        outcome=outcome,
        seconds=held["seconds"],
        chosen=held["chosen"],
        notes=tuple(held["notes"]),
    )


def working(folder: Path) -> Path:
    """Where the parts of a ledger stand until it is finished."""
    return folder.with_name(f"{folder.name}.partial")


def check_folder(path: str | Path) -> Path:
    """The folder of a ledger, refused at once where it cannot be written or is not wholly ours."""
    target = check_our_folder(path, kind=KIND)
    check_our_folder(working(target), kind=UNFINISHED)
    return target


def write_ledger(document: Mapping[str, Any], folder: Path) -> None:
    """The document, the table, the data of charts, models and parts: whole or not."""
    words = sealed(json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False))
    with new_folder(folder, kind=KIND) as made, refusals(folder):
        for part in (PARTS, MODELS):
            (made / part).mkdir()
            for place in (folder / part, working(folder) / part):
                for file in sorted(file for file in place.rglob("[!.]*") if file.is_file()):
                    _carry(file, made / part / file.relative_to(place))
        (made / DOCUMENT).write_bytes(words.encode("utf-8", "surrogatepass"))
        for name in CHARTS:
            chart = json.dumps(document[name], ensure_ascii=False, indent=1)
            (made / f"{name}.json").write_bytes(chart.encode("utf-8", "surrogatepass"))
        with (made / TABLE).open("w", encoding="utf-8", newline="") as sheet:
            lines = list(_table(document["rows"]))
            writer = csv.DictWriter(sheet, fieldnames=list(lines[0]) if lines else [])
            writer.writeheader()
            writer.writerows(
                {k: as_cell(v) if isinstance(v, str) else v for k, v in line.items()}
                for line in lines
            )
    remove_folder(working(folder), kind=UNFINISHED)


def _carry(file: Path, place: Path) -> None:
    """The same file in another folder, without a second copy of it where that can be."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    try:
        os.link(file, place)
    except OSError:
        shutil.copy2(file, place)


def _table(rows: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """One line a row; measures with a group are written measure@group."""
    plain = ("remedy", "representation", "stage", "needs_group_at_decision", "status", "reason")
    for row in rows:
        line = {name: row[name] for name in (*plain, "seeds", "pareto", "seconds")}
        for measure, cells in row["measures"].items():
            for group, cell in cells.items():
                name = measure if group == "all" else f"{measure}@{group}"
                line[name] = cell["value"]
                line |= {f"{name}:{k}": cell[k] for k in ("sd", "difference", "low", "high")}
                if measure.startswith("norm_bias"):
                    ends = ("value_low", "value_high", "p", "n")
                    line |= {f"{name}:{k}": cell[k] for k in ends}
        line["sentence"] = row["sentence"]
        yield line


def read_ledger(path: str | Path) -> dict[str, Any]:
    """A ledger's document from its folder or its file.

    Raises:
        DataError: Where it is of another schema, damaged, or not as it was written.
    """
    mend(path)
    place = Path(path)
    place = place / DOCUMENT if place.is_dir() else place
    held, content = read_json_as_written(place, noun="a ledger")
    check_schema(held, [SCHEMA], source=place)
    check_document(held, _LEDGER, source=place, noun="ledger", again=_AGAIN)
    check_seal(held, content, source=place, noun="ledger", again="compare again")
    return {name: value for name, value in held.items() if name != "checksum"}


@dataclass(frozen=True, kw_only=True)
class TextRemedy:
    """A remedy that reads texts: `predict` and `predict_proba`, as `evenhand score` asks.

    It masks titles and, in the setting "scrubbed", scrubs texts as those it was trained on; where
    `masks` is empty, each text's own title has to be masked already. Where decisions need the
    group it has to be given.
    """

    classes_: NDArray[Any]
    fitted: "Fitted"
    representation: "Scaled | Encoder"
    norm: "Scaled | None"
    setting: str
    needs_group_at_decision: bool
    masks: tuple[str, ...] = ()

    def scores(self, texts: Sequence[str], *, group: Any = None) -> FloatArray:
        """Rows × classes: probability of each class against its rest."""
        if self.needs_group_at_decision and group is None:
            raise UsageError(
                "This remedy decides by group. Give group= with the group of each text, "
                "or score with another remedy."
            )
        rows = [str(each) for each in texts]
        if self.masks:
            hidden = mask_texts(rows, titles=[None] * len(rows), forms={}, among=self.masks)
            rows = [str(each) for each in hidden.texts]
        clean = [str(each) for each in scrub_texts(rows).texts]
        shown = self.representation.read(clean if self.setting == "scrubbed" else rows)
        about = None if self.norm is None else self.norm.read(clean)
        return self.fitted.scores(shown, group=group, norm=about)

    def predict(self, texts: Sequence[str], *, group: Any = None) -> NDArray[Any]:
        """The class decided for each text."""
        decided = self.decide(self.scores(texts, group=group), group=group)
        return np.asarray(self.classes_[decided])

    def word_parts(self, of: str | None = None) -> LinearWords:
        """The linear model behind the scores and the words it reads; `of` names a group's own.

        Thresholds, residualisation and weights have one model; models by group one each.
        """
        model = getattr(self.fitted.model, "estimator_", self.fitted.model)
        by_group = getattr(model, "estimators_", None)
        if isinstance(by_group, dict):
            if of not in by_group:
                raise UsageError(
                    f"This remedy has a model for each of {', '.join(map(str, by_group))}. Say "
                    f"whose words to show, such as of={next(iter(by_group))!r} (--of)."
                )
            model = by_group[of]
        elif of is not None:
            raise UsageError(f"of={of!r} is for models by group, and this remedy has one model.")
        if not hasattr(model, "coef_"):
            raise DataError(
                f"This remedy holds {type(model).__name__}, which has no weights of words."
            )
        shown = self.representation
        if not hasattr(shown, "words"):
            raise DataError(
                f"This remedy reads texts through '{shown.name}', which has no weights of words."
            )
        # Of features that were brought to one scale, the weight on the vectors themselves.
        scale = 1.0 if shown.scale is None else shown.scale
        return LinearWords(
            coef_=np.atleast_2d(model.coef_) / scale,
            classes_=model.classes_,
            words=tuple(shown.words.words),
            embedding=shown.words.embedding,
        )

    def decide(self, scores: FloatArray, *, group: Any = None) -> NDArray[np.intp]:
        """Number of the class decided for each row of scores."""
        return self.fitted.decide(scores, group=group)

    def predict_proba(self, texts: Sequence[str], *, group: Any = None) -> FloatArray:
        """Probabilities that add to 1."""
        from evenhand.remedies.estimator import shares

        return shares(self.scores(texts, group=group))


@dataclass(frozen=True, kw_only=True)
class TableRemedy(TextRemedy):
    """A remedy that reads rows of a table: `predict` and `predict_proba` of named columns."""

    def word_parts(self, of: str | None = None) -> LinearWords:
        """Refused: columns have no words."""
        raise DataError("This remedy reads columns of a table, which have no words.")

    def scores(self, texts: Any, *, group: Any = None) -> FloatArray:
        """Rows × classes: probability of each class against its rest."""
        if self.needs_group_at_decision and group is None:
            raise UsageError(
                "This remedy decides by group. Give group= with the group of each row, "
                "or score with another remedy."
            )
        encoding: Any = self.representation
        table = {name: list(texts[name]) for name in encoding.columns}
        return self.fitted.scores(encoding.features(table), group=group)


def text_remedy(task: "Task", fitted: "Fitted", *, needs_group: bool) -> TextRemedy:
    """The remedy of one task with everything it needs to read texts, or rows of a table."""
    texts = task.texts
    kind = TableRemedy if task.representation == COLUMNS else TextRemedy
    return kind(
        classes_=np.array(texts.rows.classes),
        fitted=fitted,
        representation=texts.representations[task.representation],
        norm=texts.norm_representation if fitted.with_norm else None,
        setting=texts.setting,
        needs_group_at_decision=needs_group,
        masks=texts.masks,
    )


def save_model(model: TextRemedy, folder: Path, *, name: str) -> str:
    """Write a remedy with joblib; returns its place inside the ledger's folder."""
    try:
        import joblib
    except ImportError:
        raise MissingExtra("text", "Keeping models") from None
    place = Path(MODELS) / f"{name}.joblib"
    home = working(folder) / place
    with refusals(home):
        home.parent.mkdir(parents=True, exist_ok=True)
    with new_file(home) as made, refusals(home):
        joblib.dump(model, made, compress=3)
    return place.as_posix()
