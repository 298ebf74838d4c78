"""Reader of fastText's own binary models (.bin): word vectors from a mapped matrix of subwords."""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError

MAGIC = 793_712_314
SETTINGS = "<12id"
SUPERVISED = 3


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
