"""The record: one versioned document that says everything, including what was left out."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from evenhand.decisions.batches import check_writable
from evenhand.errors import DataError, UsageError

SCHEMA = "evenhand.audit/1"
_KEYS = ("schema", "made", "data", "results", "findings", "verdict")


def read_record(path: str | Path) -> dict[str, Any]:
    """A record from its file; one of another schema is refused with a sentence."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"There is no file '{path}'.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"'{path}' cannot be read as a record: {error}.") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        told = f"schema {schema!r}" if schema else "no schema"
        raise DataError(
            f"'{path}' has {told}; this version reads {SCHEMA}. "
            "Make the record again with: evenhand audit … --json"
        )
    missing = [key for key in _KEYS if key not in document]
    if missing:
        raise DataError(f"'{path}' is a damaged record: it has no {missing[0]!r}.")
    return dict(document)


def write_text(path: str | Path, text: str) -> None:
    """Write a file whole or not at all: the old one survives whatever goes wrong."""
    target = Path(path)
    check_writable(target)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise UsageError(
            f"'{path}' cannot be written: {error.strerror or error}. Choose another place."
        ) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise UsageError(
            f"'{path}' cannot be written: {error.strerror or error}. The old file is unchanged."
        ) from error
