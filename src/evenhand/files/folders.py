"""Folders of output: written whole or filled file by file, and replaced only where wholly ours.

A manifest lists what we wrote, with hashes. A folder that holds anything else, or anything that
was changed since, is refused and stays as it is.
"""

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from hashlib import file_digest
from pathlib import Path

from evenhand.errors import UsageError
from evenhand.files.documents import Damage, check, map_of, maybe, one_of, parse_json, table, text
from evenhand.files.places import Place, real, reason
from evenhand.files.writing import MARK, OLD, WHOLE, flush, refusals, staging, sweep, write_text

MANIFEST, FOLDER_SCHEMA = "manifest.json", "evenhand.folder/1"
_MANIFEST_SHAPE = table({"schema": one_of(FOLDER_SCHEMA), "kind": text,
                         "files": map_of(maybe(text))})  # fmt: skip


def check_folder(path: Place, *, kind: str) -> Path:
    """Where a folder goes, refused unless it is new, empty, or of this kind and as we left it."""
    mend(path)
    target = real(path)
    try:
        why = _no_folder(path, target) or (_foreign(target, kind) if target.is_dir() else None)
    except OSError as error:
        why = reason(error)
    if why:
        raise UsageError(f"'{path}' cannot be written: {why}. Choose another place.")
    return target


def _no_folder(path: Place, target: Path) -> str | None:
    here = Path.cwd()
    if target == here or target in here.parents:
        return "it is the folder you are in, or one around it"
    if target.exists() and not target.is_dir():
        return "it is a file"
    if not target.parent.is_dir():
        return f"there is no folder '{Path(path).parent}'"
    if not os.access(target.parent, os.W_OK | os.X_OK):
        return "permission denied"
    return None


def _foreign(folder: Path, kind: str) -> str | None:
    """What in a folder is not ours, or not as we left it; None where all of it is."""
    sweep(folder)
    names = sorted(_names(folder))
    if any(name.startswith(MARK) for name in names):
        return "another run is writing to it"
    try:
        manifest = parse_json((folder / MANIFEST).read_bytes())
        check(manifest, _MANIFEST_SHAPE)
    except (FileNotFoundError, ValueError, Damage):
        manifest = {"kind": kind, "files": {}}
    if manifest["kind"] != kind:
        return f"it is a folder of {manifest['kind']}, not of {kind}"
    patterns = [pattern for pattern, mark in manifest["files"].items() if mark is None]
    for name in names:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        if name not in manifest["files"] and (name != MANIFEST or not manifest["files"]):
            return f"it holds '{name}', which Evenhand did not write"
        if name != MANIFEST and _digest(folder / name) != manifest["files"][name]:
            return f"'{name}' in it was changed since Evenhand wrote it"
    return None


def _names(folder: Path) -> list[str]:
    """Everything in a folder that is not a folder with something in it, as names within it."""
    names = []
    for place, folders, files in os.walk(folder):
        inside = Path(place).relative_to(folder)
        names += [(inside / name).as_posix() for name in files]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        names += [(inside / name).as_posix() for name in links]
    return names


def _digest(path: Path) -> str:
    """A hash of a file's content; of what is no plain file, where it leads."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return "no plain file"
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def new_folder(path: Place, *, kind: str) -> Iterator[Path]:
    """Where to make a folder that then takes its place at `path`, whole or not at all.

    A manifest lists what is in it with hashes. Only a folder that is wholly ours is replaced: it
    is moved aside, the new one moved in, and a kill between the two is mended by the next run.
    """
    target = check_folder(path, kind=kind)
    with staging(target.parent, target=path) as stage:
        new = stage.folder / WHOLE
        with refusals(path):
            new.mkdir()
        yield new
        with refusals(path):
            files = {name: _digest(new / name) for name in _names(new)}
            (new / MANIFEST).write_text(_manifest(kind, files), encoding="utf-8")
            for name in (*files, MANIFEST):
                flush(new / name)
        check_folder(path, kind=kind)  # others may have written there in the meantime
        with refusals(path):
            stage.note(target.name)
            _swap(new, target, stage.folder / OLD)


def _swap(new: Path, target: Path, old: Path) -> None:
    if target.exists():
        os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        if old.exists():
            os.rename(old, target)
        raise


def _manifest(kind: str, files: Mapping[str, str | None]) -> str:
    document = {"schema": FOLDER_SCHEMA, "kind": kind, "files": dict(sorted(files.items()))}
    return json.dumps(document, indent=1)


def mend(path: Place) -> None:
    """Finish replacing a folder where that was broken off by a kill: for whoever reads it."""
    if not os.path.exists(path):
        sweep(real(path).parent)


def open_folder(path: Place, names: Sequence[str], *, kind: str) -> Path:
    """A folder to be filled file by file under these names or patterns; refused as the others.

    Until `close_folder` whatever stands under these names is taken for ours.
    """
    target = check_folder(path, kind=kind)
    with refusals(path):
        target.mkdir(exist_ok=True)
    write_text(target / MANIFEST, _manifest(kind, dict.fromkeys(names)))
    return target


def close_folder(path: Place, *, kind: str) -> None:
    """The folder is filled: from now on it is ours only as it is."""
    target = real(path)
    with refusals(path):
        files = {name: _digest(target / name) for name in _names(target) if name != MANIFEST}
    write_text(target / MANIFEST, _manifest(kind, files))


def remove_folder(path: Place, *, kind: str) -> None:
    """Remove a folder that is wholly ours."""
    if os.path.lexists(path):
        shutil.rmtree(check_folder(path, kind=kind), ignore_errors=True)
