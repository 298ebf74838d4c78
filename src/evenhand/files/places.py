"""What a path is, and whether an output may go there: never onto an input or another output."""

import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape, glob
from itertools import combinations
from pathlib import Path

from evenhand.errors import UsageError

Place = str | Path
_DESCRIPTOR = re.compile(r"/dev/(?:fd/(\d+)|stdout|stderr)|/proc/(?:self|thread-self)/fd/(\d+)")


def check_writable(path: Place) -> None:
    """Refuse an output path at once, before anything is computed for it."""
    why = _why_not(path)
    if why:
        raise UsageError(f"'{path}' cannot be written: {why}. Choose another place.")


def _why_not(path: Place) -> str | None:
    number = descriptor(path)
    target = real(path)
    try:
        mode = os.fstat(number).st_mode if number is not None else os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        return reason(error)
    if mode is not None and stat.S_ISDIR(mode):
        return "it is a folder"
    if mode is not None and (stat.S_ISBLK(mode) or stat.S_ISSOCK(mode)):
        return "it is a disk" if stat.S_ISBLK(mode) else "it is a socket"
    if number is not None:
        return None
    if not target.parent.is_dir():
        folder = target.parent if os.path.islink(path) else Path(path).parent
        return f"there is no folder '{folder}'"
    if mode is not None and not os.access(target, os.W_OK):
        return "permission denied"
    if not is_stream(path) and not os.access(target.parent, os.W_OK | os.X_OK):
        return "permission denied"
    return None


def is_stream(path: Place) -> bool:
    """Whether this is a device, a pipe or an open descriptor, which is written to as it is."""
    if descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def is_screen(path: Place | None) -> bool:
    """Whether this names standard output: `-`, /dev/stdout or a link to it."""
    return path is not None and (str(path) == "-" or descriptor(path) == 1)


def real(path: Place) -> Path:
    """Where a path leads: links are followed, and stay."""
    return Path(os.path.realpath(path))


def descriptor(path: Place) -> int | None:
    """The number of the open file that a path such as /dev/stdout names."""
    text = os.path.abspath(path)
    for _ in range(40):  # as many links as Linux follows
        match = _DESCRIPTOR.fullmatch(text)
        if match:
            standard = {"/dev/stdout": 1, "/dev/stderr": 2}.get(text)
            return standard if standard is not None else int(match.group(1) or match.group(2))
        try:
            text = os.path.normpath(os.path.join(os.path.dirname(text), os.readlink(text)))
        except (OSError, ValueError, AttributeError):
            return None
    return None


def reason(error: OSError) -> str:
    """What the system says is wrong."""
    return str(error.strerror or error)


def check_places(
    outputs: Mapping[str, Place],
    inputs: Mapping[str, Sequence[Place]],
    *,
    folders: Collection[str] = (),
) -> None:
    """Refuse outputs that are an input, another output, or would be read with the inputs.

    `outputs` are places by the flag that names them, `folders` the flags of those that are
    folders; `inputs` are files, folders and patterns by what they are.

    Examples:
        >>> check_places({"--json": "./c.toml"}, {"what --charter names": ["c.toml"]})
        Traceback (most recent call last):
        evenhand.errors.UsageError: --json './c.toml' would overwrite what --charter names. \
Choose another place.
    """
    places = {name: _Place.of(path) for name, path in outputs.items()}
    for what, items in inputs.items():
        for item in items:
            sources = [_Place.of(place) for place in [item, *_matching(item)]]
            for flag, place in places.items():
                why = _collision(place, sources, str(item), what, folder=flag in folders)
                if why and not place.screen:
                    subject = f"{flag} {place.text!r}".strip()
                    raise UsageError(f"{subject} {why}. Choose another place.")
    for (one, first), (other, second) in combinations(places.items(), 2):
        if (first.screen and second.screen) or (first.is_same(second) and not first.device):
            raise UsageError(
                f"{one} and {other} both name {second.text!r}. Give each a place of its own."
            )
        if (one in folders and second.within(first)) or (other in folders and first.within(second)):
            raise UsageError(f"{one} and {other} lie in each other. Give each a place of its own.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A path, where it leads, and the file that is there, looked up once."""

    text: str
    real: Path
    status: os.stat_result | None
    screen: bool

    @classmethod
    def of(cls, path: Place) -> "_Place":
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            status = None
        return cls(text=str(path), real=real(path), status=status, screen=is_screen(path))

    @property
    def device(self) -> bool:
        return self.status is not None and stat.S_ISCHR(self.status.st_mode)

    @property
    def folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    def is_same(self, other: "_Place") -> bool:
        """Whether both lead to one file: by one name, through links or as hard links."""
        if self.status is not None and other.status is not None:
            return os.path.samestat(self.status, other.status)
        return self.real == other.real

    def within(self, other: "_Place") -> bool:
        return other.real in self.real.parents


def pattern_root(pattern: Place) -> Path:
    """The folder below which a pattern looks; one that is there by its name is meant itself.

    Examples:
        >>> pattern_root("data/2026/*.csv").as_posix()
        'data/2026'
    """
    root = Path()
    for part in Path(pattern).parts:
        if _is_pattern(part) and not (root / part).exists():
            break
        root /= part
    return root


def find_matches(pattern: Place, *, recursive: bool = False) -> list[str]:
    """What a pattern finds, in order; `recursive` where two stars stand for any folders."""
    text, root = str(pattern), pattern_root(pattern)
    if _is_pattern(str(root)):
        text = os.path.join(escape(str(root)), Path(pattern).relative_to(root))
    return sorted(glob(text, recursive=recursive))


def _matching(item: Place) -> list[str]:
    return find_matches(item) if _stands_for_others(str(item)) else []


def _stands_for_others(item: str) -> bool:
    """Whether an input is a pattern: a file that is named so is read itself."""
    return _is_pattern(item) and not os.path.exists(item)


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _collision(
    output: _Place, sources: Sequence[_Place], item: str, what: str, *, folder: bool
) -> str | None:
    """What would happen to an input if this output were written."""
    for place in sources:
        if output.is_same(place):
            return f"would overwrite {what}"
        if folder and place.status is not None and place.within(output):
            return f"holds '{place.text}', which is read"
        if place.folder and output.within(place):
            return f"lies in '{place.text}', which is read: the next run would read it too"
    if _stands_for_others(item) and _matches(output.real, item):
        return f"fits '{item}', which is read: the next run would read it too"
    return None


def _matches(path: Path, pattern: str) -> bool:
    """Whether a glob pattern would find this path."""
    whole = Path(os.path.abspath(pattern))
    root = pattern_root(whole)
    home, parts = real(root), whole.relative_to(root).parts
    return home in path.parents and _fits(path.relative_to(home).parts, parts)


def _fits(names: Sequence[str], parts: Sequence[str]) -> bool:
    if not parts or not names:
        return not names and not any(part != "**" for part in parts)
    if parts[0] == "**":
        return _fits(names, parts[1:]) or _fits(names[1:], parts)
    return fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])
