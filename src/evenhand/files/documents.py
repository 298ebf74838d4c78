"""JSON documents read whole: checked against their shape at the door, trusted inside.

A shape is a function that takes a value and the place where it stands, and raises `Damage` where
the value is not what belongs there. Shapes are put together from the small ones below.
"""

import hashlib
import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from evenhand.errors import DataError
from evenhand.files.reading import read_whole

Shape = Callable[[Any, str], None]
LARGEST = 2**63 - 1
_LONGEST = 40


class Damage(Exception):
    """What is wrong with a document, as the end of a sentence about it."""


def _refuse(value: Any, where: str, expected: str) -> NoReturn:
    words = repr(value)
    if isinstance(value, dict | list):
        words = "a table" if isinstance(value, dict) else "a list"
    elif len(words) > _LONGEST:
        words = f"{words[:_LONGEST]}…"
    raise Damage(f"{where or 'it'} is {words}, not {expected}")


def anything(value: Any, where: str) -> None:
    """A value that nothing reads, or whose reader checks it."""


def text(value: Any, where: str) -> None:
    """Text, an empty one too."""
    if not isinstance(value, str):
        _refuse(value, where, "text")


def number(value: Any, where: str) -> None:
    """A finite number that arithmetic can use."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(value, where, "a number")
    if not -LARGEST <= value <= LARGEST and not (isinstance(value, float) and math.isfinite(value)):
        raise Damage(f"{where or 'it'} is a number too large to use")


def whole(value: Any, where: str) -> None:
    """A whole number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        _refuse(value, where, "a whole number of 0 or more")


def flag(value: Any, where: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        _refuse(value, where, "true or false")


def one_of(*words: Any) -> Shape:
    """One of these values.

    Examples:
        >>> check("fine", one_of("within", "outside"), "verdict")
        Traceback (most recent call last):
        evenhand.files.documents.Damage: verdict is 'fine', not one of 'within', 'outside'
    """
    listed = ", ".join(repr(word) for word in words)

    def shape(value: Any, where: str) -> None:
        if isinstance(value, dict | list) or value not in words:
            _refuse(value, where, f"one of {listed}")

    return shape


def maybe(inner: Shape) -> Shape:
    """This, or null."""

    def shape(value: Any, where: str) -> None:
        if value is not None:
            inner(value, where)

    return shape


def either(*shapes: Shape, noun: str) -> Shape:
    """One of several shapes, `noun` so in messages."""

    def shape(value: Any, where: str) -> None:
        for one in shapes:
            try:
                return one(value, where)
            except Damage:
                continue
        _refuse(value, where, noun)

    return shape


def both(*shapes: Shape) -> Shape:
    """All of these shapes at once."""

    def shape(value: Any, where: str) -> None:
        for one in shapes:
            one(value, where)

    return shape


def list_of(inner: Shape, *, length: int | None = None) -> Shape:
    """A list of such values.

    Examples:
        >>> check([1, "x"], list_of(number), "sums")
        Traceback (most recent call last):
        evenhand.files.documents.Damage: sums[1] is 'x', not a number
    """

    def shape(value: Any, where: str) -> None:
        if not isinstance(value, list):
            _refuse(value, where, "a list")
        if length is not None and len(value) != length:
            raise Damage(f"{where or 'it'} has {len(value)} entries, not {length}")
        for i, one in enumerate(value):
            inner(one, f"{where}[{i}]")

    return shape


def map_of(inner: Shape) -> Shape:
    """A table of any names, each with such a value."""

    def shape(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            _refuse(value, where, "a table")
        for name, one in value.items():
            inner(one, f"{where}.{name}" if where else str(name))

    return shape


def table(must: Mapping[str, Shape], may: Mapping[str, Shape] | None = None) -> Shape:
    """A table that has all of these names and perhaps those; others are left alone.

    Examples:
        >>> check({"n": 1}, table({"n": number, "value": number}), "results[0]")
        Traceback (most recent call last):
        evenhand.files.documents.Damage: results[0] has no 'value'
    """
    shapes_by_name = {**must, **(may or {})}

    def shape(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            _refuse(value, where, "a table")
        for name in must:
            if name not in value:
                raise Damage(f"{where or 'it'} has no {name!r}")
        for name, one in value.items():
            if name in shapes_by_name:
                shapes_by_name[name](one, f"{where}.{name}" if where else name)

    return shape


def columns(must: Mapping[str, Shape], may: Mapping[str, Shape] | None = None) -> Shape:
    """A table whose lists stand beside one another, all of one length; the rest as in `table`.

    Examples:
        >>> check({"x": [1], "y": [1, 2]}, columns({"x": list_of(number), "y": list_of(number)}))
        Traceback (most recent call last):
        evenhand.files.documents.Damage: y has 2 entries, not 1 as x has
    """
    shapes_by_name = {**must, **(may or {})}

    def shape(value: Any, where: str) -> None:
        table(must, may)(value, where)
        lists = {name: value[name] for name in shapes_by_name if isinstance(value.get(name), list)}
        first = next(iter(lists), "")
        for name, entries in lists.items():
            if len(entries) != len(lists[first]):
                at = f"{where}.{name}" if where else name
                raise Damage(
                    f"{at} has {len(entries)} entries, not {len(lists[first])} as {first} has"
                )

    return shape


def check(value: Any, shape: Shape, where: str = "") -> None:
    """Raise `Damage` where a value is not of this shape."""
    shape(value, where)


def read_json(path: str | Path, *, noun: str) -> Any:
    """What a JSON file holds, `noun` so in messages: "a record"; refused in one sentence."""
    return read_json_as_written(path, noun=noun)[0]


def read_json_as_written(path: str | Path, *, noun: str) -> tuple[Any, bytes]:
    """What a JSON file holds, and the bytes that say so: a seal is a seal of them."""
    try:
        content = read_whole(path)
        return parse_json(content), content
    except FileNotFoundError:
        raise DataError(f"There is no file '{path}'.") from None
    except OSError as error:
        raise DataError(f"'{path}' cannot be read as {noun}: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(f"'{path}' cannot be read as {noun}: {error}.") from error


def parse_json(content: bytes | str) -> Any:
    """Strict JSON; whatever is wrong with it is a ValueError in a few words.

    Examples:
        >>> parse_json('{"n": NaN}')
        Traceback (most recent call last):
        ValueError: NaN is not a number of JSON
    """
    try:
        words = content if isinstance(content, str) else content.decode("utf-8-sig")
        with _in_few_words():
            return json.loads(words, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text ({error.reason} at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None


def parse_toml(words: str) -> dict[str, Any]:
    """TOML; whatever is wrong with it is a ValueError in a few words.

    Examples:
        >>> parse_toml("a = " + "[" * 100_000)
        Traceback (most recent call last):
        ValueError: it is nested too deep
    """
    import tomllib

    with _in_few_words():
        return tomllib.loads(words)


@contextmanager
def _in_few_words() -> Iterator[None]:
    """What Python says of a document that is too deep or too long to parse, in our words."""
    try:
        yield
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError as error:
        if "int string conversion" in str(error):
            raise ValueError("it holds a number of thousands of digits") from None
        raise


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


_SEAL = ',\n "checksum": "sha256:{}"\n}}'
_SEALED = re.compile(rb',\n "checksum": "sha256:([0-9a-f]{64})"\n}\s*$')


def sealed(*parts: str) -> str:
    """A document's text with a checksum of itself as its last entry.

    Of a long text the parts are put together here, once; the last one holds its end.

    Examples:
        >>> is_sealed(sealed('{\\n "a": 1\\n}').encode())
        True
        >>> is_sealed(sealed('{\\n "a": 1\\n}').replace("1", "2").encode())
        False
    """
    body = (*parts[:-1], parts[-1].rstrip().removesuffix("}").rstrip())
    found = hashlib.sha256()
    for part in body:
        found.update(part.encode())
    return "".join((*body, _SEAL.format(found.hexdigest())))


def is_sealed(content: bytes) -> bool:
    """Whether a document is as it was written: what then fails to show is no damage.

    How lines end is left to the systems that a file goes through.
    """
    content = content.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n")
    seal = _SEALED.search(content, max(0, len(content) - 200))
    if seal is None:
        return False
    return hashlib.sha256(content[: seal.start()]).hexdigest().encode() == seal[1]


def check_seal(
    document: Mapping[str, Any], content: bytes, *, source: str | Path, noun: str, again: str
) -> None:
    """Refuse a document that is not as it was written; `again` says how it is made anew.

    Examples:
        >>> words = sealed('{\\n "a": 1\\n}').replace("1", "2", 1)
        >>> check_seal(json.loads(words), words.encode(), source="a.json", noun="record",
        ...            again="audit again")
        Traceback (most recent call last):
        evenhand.errors.DataError: 'a.json' was changed after it was written: its checksum does \
not fit. Use the record as it was written, or audit again.
    """
    if is_sealed(content):
        return
    why = "was changed after it was written: its checksum does not fit"
    if "checksum" not in document:
        why = f"has no checksum, with which every {noun} ends"
    raise DataError(f"'{source}' {why}. Use the {noun} as it was written, or {again}.")


def read_arrays(path: str | Path, *, again: str = "") -> dict[str, Any]:
    """The arrays of a NumPy archive, never a pickle; a damaged one is refused in one sentence."""
    import struct
    import zlib
    from zipfile import BadZipFile

    import numpy as np

    # By the byte that is damaged; one that claims to hold more than the memory is damaged too.
    no_archive = (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error, RuntimeError,
                  NotImplementedError, MemoryError, OverflowError, struct.error)  # fmt: skip
    try:
        # Opened here, because NumPy leaves the file open when it is no archive.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise ValueError("it is one array, not an archive of them")
            return {name: archive[name] for name in archive.files}
    except no_archive as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(f"'{path}' is damaged: {why}.{again}") from error


def check_document(
    document: Any, shape: Shape, *, source: str | Path, noun: str, again: str = ""
) -> None:
    """Refuse a damaged document in one sentence; `again` says how it is made anew.

    Examples:
        >>> check_document({}, table({"data": text}), source="a.json", noun="record")
        Traceback (most recent call last):
        evenhand.errors.DataError: 'a.json' is a damaged record: it has no 'data'.
    """
    try:
        check(document, shape)
    except Damage as damage:
        raise DataError(f"'{source}' is a damaged {noun}: {damage}.{again}") from None


def check_schema(
    document: Any, schemas: Iterable[str], *, source: str | Path, again: str = ""
) -> str:
    """The schema of a document, refused where this version does not read it."""
    readable = list(schemas)
    schema = document.get("schema") if isinstance(document, dict) else None
    if isinstance(schema, str) and schema in readable:
        return schema
    what = f"schema {str(schema)[:_LONGEST]!r}" if schema else "no schema"
    raise DataError(f"'{source}' has {what}; this version reads {' and '.join(readable)}.{again}")
