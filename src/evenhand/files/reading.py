"""Files read whole: plain ones, and pipes without waiting for ever; devices are refused."""

import os
import select
import stat
import time
from pathlib import Path

from evenhand.errors import UsageError
from evenhand.files.places import Place

# Whoever writes to a pipe has this long to begin, and as long again for each part.
PATIENCE = 10.0
# A document of more than this through a pipe is none: a writer may never end.
LARGEST = 2**30


def read_whole(path: Place) -> bytes:
    """The content of a file, or what is written to a pipe until its writer closes it.

    Raises:
        UsageError: Where it is a device or a socket, or a pipe that nobody writes to.
        OSError: Where the system does not have it read.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISFIFO(mode):
        return _read_pipe(path)
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # a folder is refused by the system's own words
        return Path(path).read_bytes()
    raise UsageError(f"'{path}' is a device or a socket, not a file. Save it to a file first.")


def read_whole_text(path: Place, *, encoding: str = "utf-8") -> str:
    """The same as text, with line ends as Python knows them."""
    text = read_whole(path).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_pipe(path: Place) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        parts: list[bytes] = []
        size = 0
        while part := _next_part(handle, path, began=bool(parts)):
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                raise UsageError(f"'{path}' is a pipe without an end. Save it to a file first.")
        return b"".join(parts)
    finally:
        os.close(handle)


def _next_part(handle: int, path: Place, *, began: bool) -> bytes:
    """What stands in a pipe next; nothing once its writer has closed it."""
    until = time.monotonic() + PATIENCE
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    while (left := until - time.monotonic()) > 0:
        if not waiting.poll(left * 1_000):
            break
        try:
            return os.read(handle, 1 << 16)
        except BlockingIOError:
            continue
    what = "was not written on" if began else "is a pipe that nobody writes to, after"
    wait = f"for {PATIENCE:g} seconds" if began else f"{PATIENCE:g} seconds"
    raise UsageError(f"'{path}' {what} {wait}. Save it to a file first.")
