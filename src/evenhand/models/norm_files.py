"""Norm scorers on disk: a folder with one JSON document and plain arrays, nothing executable."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from evenhand.errors import DataError, UsageError
from evenhand.models.norm_scorer import Linear, NormScorer

SCHEMA = "evenhand.norms/1"
DOCUMENT, ARRAYS = "norms.json", "arrays.npz"


def check_norm_folder(path: str | Path) -> Path:
    """The folder to write to, refused at once where it would bury something else."""
    target = Path(path)
    if target.is_file():
        why = "it is a file"
    elif target.is_dir() and any(target.iterdir()) and not (target / DOCUMENT).is_file():
        why = "it is a folder of other things"
    elif not target.parent.is_dir():
        why = f"there is no folder '{target.parent}'"
    elif not os.access(target.parent, os.W_OK):
        why = "permission denied"
    else:
        return target
    raise UsageError(f"'{path}' cannot be written: {why}. Choose another place.")


def save_norms(scorer: NormScorer, path: str | Path, *, card: dict[str, Any] | None = None) -> None:
    """Write the scorer and its quality card whole or not at all."""
    target = check_norm_folder(path)
    arrays: dict[str, Any] = {
        "weights": scorer.linear.weights,
        "intercepts": scorer.linear.intercepts,
        "seen": scorer.seen,
    }
    for name in ("embedding", "centre", "scale"):
        if getattr(scorer, name) is not None:
            arrays[name] = getattr(scorer, name)
    if scorer.relevant is not None:
        arrays["relevant"] = np.packbits(scorer.relevant, axis=1)
    if scorer.by_class:
        arrays["class_weights"] = np.stack([each.weights for each in scorer.by_class.values()])
        arrays["class_intercepts"] = np.stack([m.intercepts for m in scorer.by_class.values()])
    document = {
        "schema": SCHEMA,
        "groups": scorer.groups,
        "names": scorer.names,
        "classes": scorer.classes,
        "by_class": list(scorer.by_class),
        "settings": dict(scorer.settings),
        "facts": dict(scorer.facts),
        "card": card,
    }
    try:
        folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
        (folder / DOCUMENT).write_text(text, encoding="utf-8")
        np.savez(folder / ARRAYS, **arrays)
        folder.chmod(0o755)
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(folder, target)
    except OSError as error:
        raise UsageError(
            f"'{path}' cannot be written: {error.strerror or error}. Choose another place."
        ) from error


def load_norms(path: str | Path) -> tuple[NormScorer, dict[str, Any] | None]:
    """A scorer from its folder, with its quality card; one of another schema is refused."""
    folder = Path(path)
    if not (folder / DOCUMENT).is_file():
        raise DataError(
            f"'{path}' is not a folder of norms. Make one with: evenhand norms fit … --out {path}"
        )
    try:
        document = json.loads((folder / DOCUMENT).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"'{folder / DOCUMENT}' cannot be read: {error}.") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        told = f"schema {schema!r}" if schema else "no schema"
        raise DataError(
            f"'{path}' has {told}; this version reads {SCHEMA}. "
            f"Make it again with: evenhand norms fit … --out {path}"
        )
    try:
        # Opened here, because NumPy leaves the file open when it is no archive.
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        return _scorer(document, arrays), document.get("card")
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise DataError(
            f"'{folder / ARRAYS}' is damaged: {error}. "
            f"Make it again with: evenhand norms fit … --out {path}"
        ) from error


def _scorer(document: dict[str, Any], arrays: dict[str, Any]) -> NormScorer:
    relevant = arrays.get("relevant")
    if relevant is not None:
        width = len(document["names"])
        relevant = np.unpackbits(relevant, axis=1, count=width).astype(bool)
    by_class = {
        name: Linear(weights=arrays["class_weights"][k], intercepts=arrays["class_intercepts"][k])
        for k, name in enumerate(document["by_class"])
    }
    return NormScorer(
        groups=tuple(document["groups"]),
        names=tuple(document["names"]),
        linear=Linear(weights=arrays["weights"], intercepts=arrays["intercepts"]),
        embedding=arrays.get("embedding"),
        centre=arrays.get("centre"),
        scale=arrays.get("scale"),
        classes=tuple(document["classes"]),
        relevant=relevant,
        by_class=by_class,
        seen=arrays["seen"],
        settings=document["settings"],
        facts=document["facts"],
    )
