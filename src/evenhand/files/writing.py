"""Files written whole or not at all, to regular files, links, devices and pipes.

Everything is first made in a folder beside its place, `.evenhand-…`, and moved there in one last
step. Its maker holds a lock on that folder for as long as it lives: what a killed run left behind
is known by its free lock, and the next run in that place finishes or removes it.
"""

import errno
import json
import os
import select
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError
from evenhand.files.places import Place, check_writable, descriptor, is_stream, real, reason

if sys.platform != "win32":
    import fcntl

MARK, OWNER, WHOLE, OLD = ".evenhand-", "owner", "whole", "old"
# A reader of a pipe has this long to open it, and as long again whenever it is full.
PATIENCE = 10.0
# Locks of another machine are not always seen on a shared drive: what it left is left a day.
FOREIGN_SECONDS = 86_400.0
# Folders that this process has put aside: state, but of the process, which may be told to end.
_STAGES: set[Path] = set()


@contextmanager
def refusals(path: Place) -> Iterator[None]:
    """What the system refuses while this path is written, as one sentence."""
    try:
        yield
    except OSError as error:
        there = os.path.lexists(path)
        kind = "folder" if os.path.isdir(path) else "file"
        state = f"The old {kind} is unchanged." if there else "Nothing was written."
        raise UsageError(f"'{path}' cannot be written: {reason(error)}. {state}") from error


def write_text(path: Place, text: str) -> None:
    """Write a file whole or not at all: the old one survives whatever goes wrong.

    A link is followed and stays; a device or a pipe is written to as a stream.
    """
    write_bytes(path, text.encode("utf-8", "surrogatepass"))


def write_bytes(path: Place, content: bytes) -> None:
    """The same for bytes."""
    with new_file(path) as new, refusals(path):
        new.write_bytes(content)


@contextmanager
def new_file(path: Place) -> Iterator[Path]:
    """Where to make a file that then takes its place at `path` in one step.

    Examples:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with new_file(f"{folder}/a.txt") as new:
        ...         _ = new.write_text("whole")
        ...     os.listdir(folder), Path(f"{folder}/a.txt").read_text()
        (['a.txt'], 'whole')
    """
    check_writable(path)
    if is_stream(path):
        with scratch() as folder:
            yield folder / WHOLE
            _pour(folder / WHOLE, path)
        return
    target = real(path)
    with staging(target.parent, target=path) as stage:
        new = stage.folder / WHOLE
        yield new
        with refusals(path):
            flush(new)
            if target.exists():
                new.chmod(stat.S_IMODE(target.stat().st_mode))
            os.replace(new, target)


def flush(path: Path) -> None:
    """To the disk itself: a name must not point at content that a power cut takes."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _pour(source: Path, path: Place) -> None:
    """Write a file's content to a device, a pipe or an open descriptor."""
    number = descriptor(path)
    if number == 1 and sys.stdout is not None:
        sys.stdout.flush()
    handle = os.dup(number) if number is not None else _open_stream(path)
    try:
        with source.open("rb") as file:
            while part := file.read(1 << 16):
                _pour_part(handle, part, path)
    except BrokenPipeError:
        if number is not None:
            raise  # whoever reads our own output may stop when they have seen enough
        raise UsageError(f"'{path}' cannot be written: its reader has gone.") from None
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(handle)


def _unwritable(path: Place, error: OSError) -> UsageError:
    return UsageError(f"'{path}' cannot be written: {reason(error)}. Choose another place.")


def _open_stream(path: Place) -> int:
    flags = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(path, flags)
        except OSError as error:
            if error.errno != errno.ENXIO:  # a pipe that nobody has opened for reading
                raise _unwritable(path, error) from error
        if time.monotonic() > until:
            raise UsageError(
                f"'{path}' is a pipe that nobody reads, after {PATIENCE:g} seconds. Start its "
                "reader first."
            )
        time.sleep(0.02)


def _pour_part(handle: int, part: bytes, path: Place) -> None:
    view = memoryview(part)
    while view:
        try:
            view = view[os.write(handle, view) :]
        except BlockingIOError:
            if not _is_ready(handle):
                raise UsageError(
                    f"'{path}' was not read on for {PATIENCE:g} seconds. See what its reader does."
                ) from None


def _is_ready(handle: int) -> bool:
    waiting = select.poll()
    waiting.register(handle, select.POLLOUT)
    return bool(waiting.poll(PATIENCE * 1_000))


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for copies that only this process may see, removed when it ends or is replaced."""
    with ExitStack() as stack:
        try:
            stage = stack.enter_context(_staging(Path(tempfile.gettempdir())))
        except OSError as error:
            raise no_room(reason(error)) from error
        yield stage.folder


def no_room(why: str) -> UsageError:
    """The error of temporary files that cannot be written."""
    return UsageError(
        f"There is no place for temporary files: {why}. Set TMPDIR to a folder with room."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A folder of this process alone, and the lock that says so."""

    folder: Path
    lock: int

    def note(self, target: str = "") -> None:
        """Write down who owns it, and which folder it is about to replace."""
        os.lseek(self.lock, 0, os.SEEK_SET)
        os.truncate(self.lock, 0)
        os.write(self.lock, json.dumps({"host": _host(), "target": target}).encode())
        os.fsync(self.lock)


@contextmanager
def staging(place: Path, *, target: Place) -> Iterator[Staged]:
    """A folder of this process alone inside `place`, removed at the end whatever happens.

    Before that, what killed runs left in `place` is finished or removed. `target` is how messages
    name what is being written.
    """
    with ExitStack() as stack:
        with refusals(target):
            stage = stack.enter_context(_staging(place))
        yield stage


@contextmanager
def _staging(place: Path) -> Iterator[Staged]:
    sweep(place)
    stage = _own_stage(place)
    _STAGES.add(stage.folder)
    try:
        yield stage
    finally:
        _settle(stage.folder)
        _empty(stage.folder)
        os.close(stage.lock)
        _remove(stage.folder)
        _STAGES.discard(stage.folder)


def remove_stages() -> None:
    """Remove what this process has put aside, for one that ends without ending its work."""
    for folder in list(_STAGES):
        _settle(folder)
        _empty(folder)
        _remove(folder)


def _empty(folder: Path) -> None:
    """Remove what was made, before the file that says whose it is."""
    with suppress(OSError):
        for path in [one for one in folder.iterdir() if one.name != OWNER]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    with suppress(OSError):
        (folder / OWNER).unlink(missing_ok=True)
        folder.rmdir()


def _own_stage(place: Path) -> Staged:
    while True:
        folder = Path(tempfile.mkdtemp(dir=place, prefix=MARK))
        try:
            lock = _lock(folder / OWNER, make=True)
        except FileNotFoundError:
            continue  # another process took the new folder for one left behind
        except OSError:
            _remove(folder)
            raise
        if lock is not None:
            stage = Staged(folder=folder, lock=lock)
            try:
                stage.note()
            except BaseException:
                os.close(lock)
                _remove(folder)
                raise
            return stage


def _lock(path: Path, *, make: bool) -> int | None:
    """An owner file's handle that nobody else holds; None where another has it."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | (os.O_CREAT if make else 0)
    handle = os.open(path, flags, 0o600)
    if sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError:
            # A drive without locks: nobody can tell that we are gone, so nothing is swept there.
            if make:
                return handle
            os.close(handle)
            return None
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)
        return None
    return handle


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def sweep(place: Place) -> None:
    """Finish or remove what killed runs left in this folder; what others still use stays."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in [one for one in entries if one.name.startswith(MARK)]:
            with suppress(OSError):
                _sweep_one(Path(entry.path), entry.stat(follow_symlinks=False))


def _sweep_one(folder: Path, about: os.stat_result) -> None:
    if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "geteuid") and about.st_uid != os.geteuid()):
        return
    if not (folder / OWNER).exists():
        # Its maker died before it put anything in, or after it took all out; one that lives
        # finds its new folder gone and makes another.
        os.rmdir(folder)
        return
    age = time.time() - about.st_mtime
    if _owner(folder).get("host", _host()) != _host() and age < FOREIGN_SECONDS:
        return
    lock = _lock(folder / OWNER, make=False)
    if lock is None:
        return
    try:
        if sys.platform == "win32":
            owner = _owner(folder)
            os.close(lock)
            lock = -1
            os.unlink(folder / OWNER)  # refused while its owner has it open
            _settle(folder, owner=owner)
        else:
            _settle(folder)
        _empty(folder)
    finally:
        if lock >= 0:
            os.close(lock)
    _remove(folder)


def _owner(folder: Path) -> dict[str, Any]:
    try:
        note = json.loads((folder / OWNER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _settle(folder: Path, owner: Mapping[str, Any] | None = None) -> None:
    """Where a folder was being replaced and now there is none, put the new one there."""
    name = str((_owner(folder) if owner is None else owner).get("target") or "")
    if not name or os.path.lexists(folder.parent / name):
        return
    for new in (folder / WHOLE, folder / OLD):
        if new.is_dir():
            with suppress(OSError):
                os.rename(new, folder.parent / name)
                return
