"""Readers of word-vector files: text (GloVe, word2vec, fastText .vec), and both binary formats.

The format is told from the content, not from the name; gzip is undone on the way. Only the words
asked for are parsed. Binary files that are not compressed are mapped into memory, not read.
"""

import gzip
import mmap
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError
from evenhand.speech import plural

MAGIC = 793_712_314
SETTINGS = "<12id"
SUPERVISED = 3
Vectors = tuple[tuple[str, ...], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subwords:
    """How fastText cuts a word into pieces and finds their rows in the matrix."""

    words: int
    bucket: int
    shortest: int
    longest: int

    def rows(self, word: bytes) -> list[int]:
        """Rows of the pieces of a word; none for the end of a sentence."""
        if word == b"</s>" or self.longest <= 0 or self.bucket <= 0:
            return []
        whole = b"<" + word + b">"
        # Pieces are cut between characters of UTF-8, never inside one.
        cuts = [k for k, byte in enumerate(whole) if byte & 0xC0 != 0x80] + [len(whole)]
        last = len(cuts) - 1
        rows = []
        for start in range(last):
            for stop in range(start + self.shortest, min(start + self.longest, last) + 1):
                if stop - start == 1 and (start == 0 or stop == last):
                    continue
                piece = whole[cuts[start] : cuts[stop]]
                rows.append(self.words + piece_hash(piece) % self.bucket)
        return rows


def piece_hash(piece: bytes) -> int:
    """FNV-1a of 32 bits as fastText has it, which takes bytes as signed.

    Examples:
        >>> hex(piece_hash(b"a"))
        '0xe40c292c'
    """
    total = 2_166_136_261
    for byte in piece:
        signed = byte | 0xFFFFFF00 if byte > 127 else byte
        total = ((total ^ signed) * 16_777_619) & 0xFFFFFFFF
    return total


def read_fasttext(path: Path, *, wanted: set[bytes] | None) -> dict[bytes, NDArray[np.float32]]:
    """Vectors of the words of a fastText model: the mean of their own row and their pieces'."""
    with path.open("rb") as file:
        if file.read(4) != MAGIC.to_bytes(4, "little"):
            raise DataError(
                f"vectors={str(path)!r} is a compressed fastText model. "
                "Unpack it first: its matrix is mapped, not read."
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                names, subwords, at, width = read_dictionary(content, path)
                rows, columns = struct.unpack_from("<qq", content, at)
            except (struct.error, IndexError, ValueError):
                raise broken(path) from None
            at, length = at + 16, len(content)
    if columns != width or at + 4 * rows * columns > length:
        raise broken(path)
    matrix = np.memmap(path, dtype="<f4", mode="r", offset=at, shape=(rows, columns))
    chosen = {
        name: row
        for name, row in names.items()
        if (wanted is None or name in wanted) and row < subwords.words
    }
    return {
        name: matrix[[row, *subwords.rows(name)]].mean(axis=0, dtype=np.float64).astype(np.float32)
        for name, row in chosen.items()
    }


def broken(path: Path) -> DataError:
    """The error for a model that ends too early."""
    return DataError(
        f"vectors={str(path)!r} is truncated: its fastText matrix breaks off. "
        "Download or copy it again."
    )


def read_dictionary(content: mmap.mmap, path: Path) -> tuple[dict[bytes, int], Subwords, int, int]:
    """Words with their rows, the cutting rule, where the matrix starts, and its width."""
    version = struct.unpack_from("<i", content, 4)[0]
    settings = struct.unpack_from(SETTINGS, content, 8)
    width, kind, bucket, shortest, longest = (settings[k] for k in (0, 7, 8, 9, 10))
    if version == 11 and kind == SUPERVISED:
        longest = 0  # models of that version were trained without pieces
    at = 8 + struct.calcsize(SETTINGS)
    size, words, _, _, pruned = struct.unpack_from("<iiiqq", content, at)
    at += struct.calcsize("<iiiqq")
    names: dict[bytes, int] = {}
    for row in range(size):
        stop = content.find(b"\0", at)
        if stop < 0:
            raise broken(path)
        names.setdefault(content[at:stop], row)
        at = stop + 10  # the closing zero, a count of eight bytes, a type of one
    if pruned > 0 or content[at]:
        raise DataError(
            f"vectors={str(path)!r} is a quantised fastText model, which has no plain matrix. "
            "Give the .bin before quantisation, or its .vec."
        )
    rule = Subwords(words=words, bucket=bucket, shortest=shortest, longest=longest)
    return names, rule, at + 1, width


def read_vectors(path: Path | str, *, wanted: Collection[str] | None = None) -> Vectors:
    """Words and their vectors (words × width, float32), sorted; only those wanted, if given.

    Of a word that stands in the file twice, the first vector counts.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(
            f"vectors={str(path)!r} is not a file. Give a .vec, .txt, .bin or .gz file."
        )
    words = None if wanted is None else {word.encode() for word in wanted}
    try:
        with opened(path) as file:
            start = file.read(4)
        if len(start) == 4 and int.from_bytes(start, "little") == MAGIC:
            found = read_fasttext(path, wanted=words)
        else:
            found = read_plain(path, wanted=words)
    except (EOFError, gzip.BadGzipFile):
        raise truncated(path, "its compressed content breaks off") from None
    return in_word_order(found)


def in_word_order(found: dict[bytes, NDArray[np.float32]]) -> Vectors:
    """The vectors as one array, in the order of the words."""
    words = sorted((name.decode("utf-8", "replace"), name) for name in found)
    if not words:
        return (), np.zeros((0, 0), dtype=np.float32)
    table = np.stack([found[name] for _, name in words]).astype(np.float32, copy=False)
    return tuple(word for word, _ in words), table


def truncated(path: Path, how: str) -> DataError:
    """The error for a file that ends too early."""
    return DataError(f"vectors={str(path)!r} is truncated: {how}. Download or copy it again.")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file for reading, decompressed where it is gzip."""
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            file.seek(0)
            yield file
            return
    with gzip.open(path, "rb") as unpacked:
        yield unpacked  # type: ignore[misc]


def read_plain(path: Path, *, wanted: set[bytes] | None) -> dict[bytes, NDArray[np.float32]]:
    """Vectors of a text file or of a word2vec binary file, which begin alike."""
    with opened(path) as file:
        first = file.readline(4096)
        rows, width = header(first)
        if width and not textual(file.readline(65_536 + 32 * width)):
            return read_word2vec_binary(
                path, skip=len(first), rows=rows, width=width, wanted=wanted
            )
        file.seek(len(first) if width else 0)
        return read_text(path, file, rows=rows, width=width, wanted=wanted)


def header(line: bytes) -> tuple[int, int]:
    """Rows and width that a first line promises; zeros where it is a row already."""
    parts = line.split()
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        return int(parts[0]), int(parts[1])
    return 0, 0


def numeric(line: bytes, width: int) -> bool:
    """Whether a line is a word with so many finite numbers in text."""
    parts = line.rstrip().rsplit(b" ", width)
    if len(parts) != width + 1 or not all(is_number(part) for part in parts[1:]):
        return False
    return bool(np.isfinite([float(part) for part in parts[1:]]).all())


def textual(line: bytes) -> bool:
    """Whether a line is text rather than the bytes of numbers, right or wrong as it may be."""
    try:
        return line.decode().rstrip().isprintable()
    except UnicodeDecodeError:
        return False


def split_blanks(row: bytes, width: int) -> tuple[bytes, bytes]:
    """A word, with whatever blanks it holds, and its last `width` numbers."""
    parts = row.rsplit(b" ", width)
    return parts[0], b" ".join(parts[1:])


def is_number(part: bytes) -> bool:
    """Whether these bytes are a number."""
    try:
        float(part)
    except ValueError:
        return False
    return True


def read_text(
    path: Path, file: IO[bytes], *, rows: int, width: int, wanted: set[bytes] | None
) -> dict[bytes, NDArray[np.float32]]:
    """Vectors of lines "word number number …"."""
    names: dict[bytes, int] = {}
    numbers: list[bytes] = []
    lines = bad = found = 0
    for line in file:
        lines += 1
        if bad:
            break
        row = line.rstrip()
        width = width or row.count(b" ")
        name, _, rest = row.partition(b" ")
        if rest.count(b" ") != width - 1:
            # A few words of GloVe hold blanks themselves: the numbers are the last ones.
            *first_parts, rest = [row] if row.count(b" ") < width else split_blanks(row, width)
            name = b"".join(first_parts)
            if not name or is_number(name.rpartition(b" ")[2]):
                bad, found = lines, row.count(b" ")
                continue
        if (wanted is None or name in wanted) and name not in names:
            names[name] = lines
            numbers.append(rest)
    first = 1 if rows else 0
    if bad:
        many = plural(found, "number")
        if lines == bad:
            raise truncated(path, f"its last line has {many} instead of {width}")
        raise DataError(
            f"vectors={str(path)!r} has {many} in line {bad + first} and {width} before. "
            "Every line must hold one word and the same number of numbers."
        )
    if lines < rows:
        raise truncated(path, f"it promises {rows} words and has {lines}")
    if not lines:
        raise DataError(f"vectors={str(path)!r} is empty. Give a file with word vectors.")
    return dict(zip(names, parsed(path, numbers, width, list(names.values()), first), strict=True))


def numbers_in(text: bytes) -> NDArray[np.float32]:
    """Numbers between blanks, NaN for anything else; ten times as fast as NumPy's own parser."""
    column = pl.read_csv(
        text.replace(b" ", b"\n"),
        has_header=False,
        schema={"number": pl.Float32},
        quote_char=None,
        ignore_errors=True,
    )
    values: NDArray[np.float32] = column["number"].to_numpy()
    return values


def parsed(
    path: Path, numbers: list[bytes], width: int, lines: list[int], first: int
) -> NDArray[np.float32]:
    """The kept lines as one array, or the error that names the line that is not numbers."""
    table = np.empty((len(numbers), width), dtype=np.float32)
    step = 4096
    for start in range(0, len(numbers), step):
        part = numbers[start : start + step]
        flat = numbers_in(b"\n".join(part))
        if flat.size != len(part) * width or not np.isfinite(flat).all():
            wrong = next((k for k, row in enumerate(part) if not numeric(b"x " + row, width)), 0)
            raise DataError(
                f"vectors={str(path)!r} has something that is not a finite number in line "
                f"{lines[start + wrong] + first}. Every line must hold a word and its numbers."
            )
        table[start : start + step] = flat.reshape(len(part), width)
    return table


@contextmanager
def mapped(path: Path) -> Iterator[Any]:
    """The bytes of a file: mapped where it is plain, read where it is compressed."""
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            try:
                yield content
            finally:
                content.close()
            return
    with gzip.open(path, "rb") as unpacked:
        yield unpacked.read()


def read_word2vec_binary(
    path: Path, *, skip: int, rows: int, width: int, wanted: set[bytes] | None
) -> dict[bytes, NDArray[np.float32]]:
    """Vectors of records "word blank bytes", with or without a line break between them."""
    found: dict[bytes, NDArray[np.float32]] = {}
    size = 4 * width
    with mapped(path) as content:
        at, end = skip, len(content)
        for row in range(rows):
            blank = content.find(b" ", at)
            if blank < 0 or blank + 1 + size > end:
                raise truncated(path, f"it promises {rows} words and breaks off in word {row + 1}")
            name = content[at:blank].lstrip(b"\n")
            if (wanted is None or name in wanted) and name not in found:
                found[name] = np.frombuffer(content[blank + 1 : blank + 1 + size], dtype="<f4")
            at = blank + 1 + size
    return found
