"""A ledger on disk: finished parts to go on from, the document, the table, models and chart."""

import csv
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.ledger_measures import Measured, Outcome

SCHEMA = "evenhand.ledger/1"
DOCUMENT, TABLE, CHART, PARTS, MODELS = (
    "ledger.json",
    "ledger.csv",
    "pareto.json",
    "parts",
    "models",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
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
    """Finished parts in a folder, each written whole; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder / PARTS

    def load(self, key: str) -> Part | None:
        """A part that was finished before, or None; a damaged one is made again."""
        if self.folder is None:
            return None
        try:
            held = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            with np.load(self.folder / f"{key}.npz", allow_pickle=False) as arrays:
                do = {n[3:]: arrays[n] for n in arrays.files if n.startswith("do:")}
                outcome = Outcome(
                    decided=arrays["decided"].astype(np.intp),
                    do={name: codes.astype(np.intp) for name, codes in do.items()},
                    own=arrays["own"],
                    auc=float(held["auc"]),
                    one_versus_rest=arrays["one_versus_rest"],
                )
            return Part(
                measured=Measured(**held["measured"]),
                outcome=outcome,
                seconds=held["seconds"],
                chosen=held["chosen"],
                notes=tuple(held["notes"]),
            )
        except (OSError, ValueError, KeyError, TypeError, EOFError):
            return None

    def save(self, key: str, part: Part) -> None:
        """Keep a finished part; the JSON file comes last and says that it is whole."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        found = part.outcome
        arrays = {
            "decided": found.decided.astype(np.int32),
            "own": found.own,
            "one_versus_rest": found.one_versus_rest,
            **{f"do:{name}": codes.astype(np.int32) for name, codes in found.do.items()},
        }
        waiting = self.folder / f".{key}.npz"
        with waiting.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(waiting, self.folder / f"{key}.npz")
        document = {
            "measured": {
                "values": part.measured.values,
                "undefined": part.measured.undefined,
                "classes": part.measured.classes,
            },
            "auc": found.auc,
            "seconds": part.seconds,
            "chosen": part.chosen,
            "notes": list(part.notes),
        }
        write_whole(self.folder / f"{key}.json", json.dumps(document))


def check_folder(path: str | Path) -> Path:
    """The folder of a ledger, made or found; refused at once where it cannot be written."""
    target = Path(path)
    if target.is_file():
        why = "it is a file"
    elif target.is_dir() and any(target.iterdir()) and not _is_ledger(target):
        why = "it is a folder of other things"
    else:
        try:
            target.mkdir(parents=True, exist_ok=True)
            probe = target / ".writable"
            probe.write_text("", encoding="utf-8")
            probe.unlink()
            return target
        except OSError as error:
            why = str(error.strerror or error).lower()
    raise UsageError(f"'{path}' cannot be written: {why}. Choose another folder.")


def _is_ledger(folder: Path) -> bool:
    return (folder / DOCUMENT).is_file() or (folder / PARTS).is_dir()


def write_whole(path: Path, text: str) -> None:
    """A file written whole or not at all."""
    waiting = path.with_name(f".{path.name}.part")
    waiting.write_text(text, encoding="utf-8")
    os.replace(waiting, path)


def write_ledger(document: Mapping[str, Any], folder: Path) -> None:
    """The document, the table and the data of the Pareto chart."""
    text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
    write_whole(folder / DOCUMENT, text)
    write_whole(folder / CHART, json.dumps(document["pareto"], ensure_ascii=False, indent=1))
    waiting = folder / f".{TABLE}.part"
    with waiting.open("w", encoding="utf-8", newline="") as file:
        table = list(_table(document["rows"]))
        writer = csv.DictWriter(file, fieldnames=list(table[0]) if table else [])
        writer.writeheader()
        writer.writerows(table)
    os.replace(waiting, folder / TABLE)


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
        line["sentence"] = row["sentence"]
        yield line


def read_ledger(path: str | Path) -> dict[str, Any]:
    """A ledger's document from its folder or its file; one of another schema is refused."""
    place = Path(path)
    place = place / DOCUMENT if place.is_dir() else place
    try:
        held = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"'{place}' cannot be read as a ledger: {error}.") from error
    schema = held.get("schema") if isinstance(held, dict) else None
    if schema != SCHEMA:
        told = f"schema {schema!r}" if schema else "no schema"
        raise DataError(f"'{place}' has {told}; this version reads {SCHEMA}.")
    return dict(held)
