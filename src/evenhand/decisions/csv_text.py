"""CSV files looked through byte by byte, once: what separates, encodes and breaks them.

Engines differ on what they forgive: one fills a short line with nulls, one skips a blank line, one
drops the cells beyond the header. What none of them should be given is refused here by its line.
They also differ on what is a number: a column of names is one of numbers only if every value of
it is written as numbers are, so that 01 and 1 stay apart.
"""

import csv
import gzip
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.missing_words import is_one_of
from evenhand.errors import DataError, MissingExtra

SEPARATORS = ",;\t|"
# A block is small enough to stay in the cache while it is counted.
START, BLOCK = 1 << 20, 1 << 18
WORKERS = 2
# A cell may hold a long text, but a quotation mark that is never closed must not fill the memory.
LONGEST_RECORD = 1 << 26
# Records that tell the separator, and those that tell what a column may be.
SAMPLE, HEAD = 50, 10_000
# Numbers are short, and names are few: what goes beyond either is text.
LONGEST_NUMBER, MOST_NAMES = 16, 10_000
QUOTE, LINE, RETURN = ord('"'), ord("\n"), ord("\r")
SIGNATURES = {
    b"PK\x03\x04": "is a zip archive. Unpack it and give the file inside; save a workbook as CSV.",
    b"PAR1": "is Parquet under another name. Rename it to end in .parquet.",
    b"ARROW1": "is an Arrow file under another name. Rename it to end in .arrow.",
    b"\x1f\x8b": "is gzipped. Rename it to end in .csv.gz.",
    b"\x28\xb5\x2f\xfd": "is packed with zstd. Rename it to end in .csv.zst.",
    b"\xff\xfe": "is in UTF-16. Save it as UTF-8 and try again.",
    b"\xfe\xff": "is in UTF-16. Save it as UTF-8 and try again.",
}
MARK = b"\xef\xbb\xbf"
Bytes = NDArray[np.uint8]
Places = NDArray[np.intp]
# How the values of a column are written; a column is of the first kind that all of them fit.
WHOLE, NUMBER, YES_NO, TEXT = "whole", "number", "yes or no", "text"
WRITTEN = {
    WHOLE: re.compile(r"-?(0|[1-9][0-9]{0,14})"),
    NUMBER: re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?|NaN|nan"),
    YES_NO: re.compile(r"true|false|True|False|TRUE|FALSE"),
}


def kind_of(texts: Iterable[str], *, words: Sequence[str] = ()) -> str:
    """How these values are written: as whole numbers, numbers, yes or no, or as text.

    The `words` that stand for no value are passed over.

    Examples:
        >>> [kind_of(t) for t in (["1", "-2"], ["1.0", "nan"], ["True"], ["01", "1"], ["nan"])]
        ['whole', 'number', 'yes or no', 'text', 'text']
        >>> kind_of(["1", "0", "NA"], words=["NA"])
        'whole'
    """
    values = {text for text in texts if text}
    if words:
        is_word = is_one_of(words)
        values = {text for text in values if not is_word(text)}
    if not values - {"nan", "NaN"}:
        return TEXT
    fitting = (k for k, form in WRITTEN.items() if all(map(form.fullmatch, values)))
    return next(fitting, TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvHead:
    """The beginning of a CSV file: its columns, what separates them, and how values are written."""

    path: str
    columns: tuple[str, ...]
    separator: str
    kinds: Mapping[str, str]


def read_head(path: str | Path, *, words: Sequence[str] = ()) -> CsvHead:
    """The columns of a CSV file and how their first values are written, `words` passed over.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder) / "a.csv"
        ...     _ = file.write_text("y;d\\n1;0,5\\n")
        ...     head = read_head(file)
        >>> head.separator, dict(head.kinds)
        (';', {'y': 'whole', 'd': 'text'})
    """
    with opened(path) as file:
        start = file.read(START)
    for signature, reason in SIGNATURES.items():
        if start.startswith(signature):
            raise DataError(f"'{path}' {reason}")
    if LINE not in start and RETURN in start:
        raise DataError(
            f"'{path}' ends its lines with a carriage return alone. Save it with line feeds."
        )
    final = len(start) < START
    start = start.removeprefix(MARK)
    try:
        _check_text(str(path), start, final=final)
    except _Fault as fault:
        raise DataError(fault.words(f"{_line_at(str(path), fault.place or 0):,}")) from None
    text = start.decode("utf-8", "ignore")
    separator = find_separator(text)
    records = _records(text, separator, most=HEAD)
    columns = _named(path, records[0] if records else [])
    values = [{row[i] for row in records[1:] if i < len(row)} for i in range(len(columns))]
    kinds = {name: kind_of(texts, words=words) for name, texts in zip(columns, values)}
    return CsvHead(path=str(path), columns=columns, separator=separator, kinds=kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvBody:
    """What the whole of a CSV file shows: blank lines, quoted line ends, and kinds of columns."""

    blank_lines: bool
    quoted_lines: bool
    kinds: Mapping[str, str]


def look_through(head: CsvHead, *, names: Iterable[str] = (), words: Sequence[str] = ()) -> CsvBody:
    """The kinds of columns, from all their values; refused where a line does not fit the header.

    The `words` that stand for no value are passed over.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder) / "a.csv"
        ...     _ = file.write_text("y,d\\n1,0\\n\\n2,01\\n")
        ...     body = look_through(read_head(file), names=["y", "d"])
        >>> body.blank_lines, dict(body.kinds)
        (True, {'y': 'whole', 'd': 'text'})
    """
    checker = _Checker(head, [name for name in names if head.kinds[name] != TEXT])
    waiting: deque[tuple[int, Future[None]]] = deque()
    place = 0
    try:
        with opened(head.path) as file, ThreadPoolExecutor(WORKERS) as pool:
            for records in _whole_records(head.path, file):
                waiting.append((place, pool.submit(checker.check, records, first=place == 0)))
                place += len(records)
                if len(waiting) > 2 * WORKERS:
                    # In the order of the file, so that the first fault is the one that is told.
                    start, done = waiting.popleft()
                    done.result()
            while waiting:
                start, done = waiting.popleft()
                done.result()
            start = place
    except _Fault as fault:
        place = place if fault.place is None else start + fault.place
        raise DataError(fault.words(f"{_line_at(head.path, place):,}")) from None
    kinds = {name: head.kinds[name] for name in names} | checker.kinds(words)
    return CsvBody(blank_lines=checker.blank_lines, quoted_lines=checker.quoted_lines, kinds=kinds)


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked where its name says that it is packed."""
    ending = Path(path).suffix.lower()
    try:
        if ending == ".gz":
            with gzip.open(path, "rb") as packed:
                yield packed  # type: ignore[misc]
        elif ending == ".zst":
            with _arrow().input_stream(str(path), compression="zstd") as packed:
                yield packed
        else:
            with open(path, "rb") as plain:
                yield plain
    except (OSError, EOFError) as error:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        raise DataError(
            f"'{path}' cannot be read as CSV: {reason}. "
            "It may be damaged, truncated or of another format."
        ) from error


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("duckdb", "A CSV file packed with zstd") from None
    return pyarrow


def find_separator(sample: str) -> str:
    """What separates the cells: of the usual signs the first that divides all lines alike.

    Examples:
        >>> [find_separator(text) for text in ("a,b\\n1,2\\n", "a;b\\n0,5;1\\n", "a|b\\n")]
        [',', ';', '|']
    """
    for sign in SEPARATORS:
        sizes = {len(row) for row in _records(sample, sign, most=SAMPLE) if row}
        if len(sizes) == 1 and sizes.pop() > 1:
            return sign
    header = sample.partition("\n")[0]
    return max(SEPARATORS, key=header.count)


def _records(text: str, separator: str, *, most: int) -> list[list[str]]:
    """The first records of a text, without one that its end may have cut off."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            rows.append(row)
            if len(rows) > most:
                break
    except csv.Error:
        pass  # a cell beyond what this reader takes: the records before it are enough
    whole = len(text) < START // 4 and len(rows) <= most
    return rows if whole or len(rows) < 2 else rows[:-1]


def _named(path: str | Path, names: list[str]) -> tuple[str, ...]:
    """The names of a header, refused where one stands twice: engines would rename it, each anew."""
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        raise DataError(f"'{path}' has two columns named {twice[0]!r}. Rename one of them.")
    return tuple(name or f"column{place}" for place, name in enumerate(names, start=1))


class _Fault(Exception):
    """Something wrong at a place among some bytes, or at their end; told once its line is known."""

    def __init__(self, place: int | None, words: Callable[[str], str]) -> None:
        self.place, self.words = place, words


def _line_at(path: str, place: int) -> int:
    """The line of a place in a file, counted as an editor counts."""
    with opened(path) as file:
        start = file.read(len(MARK))
        lines, left = 1 + start.count(b"\n"), place - len(start)
        if start == MARK:
            left += len(MARK)
        while left > 0 and (block := file.read(min(left, START))):
            lines += block.count(b"\n")
            left -= len(block)
    return lines


def _whole_records(path: str, file: BinaryIO) -> Iterator[bytes]:
    """The bytes of a file in blocks that end where a record ends; a last line feed is added."""
    rest = file.read(BLOCK).removeprefix(MARK)
    while True:
        # A line feed after an odd number of quotation marks lies within a cell.
        cut, marks = len(rest), rest.count(b'"')
        while (end := rest.rfind(b"\n", 0, cut)) >= 0:
            marks -= rest.count(b'"', end, cut)
            cut = end
            if marks % 2 == 0:
                break
        if end >= 0:
            yield rest[: end + 1]
            rest = rest[end + 1 :]
        block = file.read(BLOCK)
        if (not block and rest.count(b'"') % 2) or len(rest) > LONGEST_RECORD:
            raise _Fault(
                None,
                lambda line: (
                    f"'{path}' opens a quotation mark in line {line} or after it that is never "
                    "closed. Close it, or double it if it belongs to the text."
                ),
            )
        if not block:
            break
        rest += block
    if rest:
        yield rest + b"\n"


def _check_text(path: str, block: bytes, *, final: bool = True) -> None:
    """Refuse bytes that are not UTF-8 text; unless `final`, a character may be cut off."""
    if b"\0" in block:
        raise DataError(
            f"'{path}' cannot be read as CSV: it holds a zero byte. It may be in UTF-16, damaged "
            "or of another format. Save it as UTF-8 and try again."
        )
    if block.isascii():
        return
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        if not final and error.end >= len(block) - 3:
            return  # a character cut in two by the end of the block
        raise _Fault(
            error.start,
            lambda line: (
                f"'{path}' cannot be read as CSV: line {line} is not UTF-8. "
                "Save it as UTF-8 and try again."
            ),
        ) from None


class _Checker:
    """Counts the cells of records, block by block, quoted separators and line ends apart."""

    def __init__(self, head: CsvHead, names: list[str]) -> None:
        self.path, self.columns, self._head = head.path, len(head.columns), head
        self.separator = ord(head.separator)
        self.blank_lines = self.quoted_lines = False
        self._values = {head.columns.index(name): _Values() for name in names}
        # Where a quotation mark may stand: at the edge of a cell, or doubled.
        self._edge = np.zeros(256, dtype=bool)
        self._edge[[self.separator, LINE, RETURN, QUOTE]] = True

    def kinds(self, words: Sequence[str]) -> dict[str, str]:
        """How all values of the columns asked for are written, but for these words."""
        return {self._head.columns[i]: each.kind(words) for i, each in self._values.items()}

    def check(self, data: bytes, *, first: bool) -> None:
        """Take some whole records, the `first` of which may be the header."""
        _check_text(self.path, data)
        cells = np.frombuffer(data, dtype=np.uint8)
        quoted = b'"' in data
        is_sign = cells == LINE
        is_sign |= cells == self.separator
        if quoted:
            is_sign |= cells == QUOTE
        signs = np.flatnonzero(is_sign)
        kinds = cells[signs]
        if quoted:
            marks = kinds == QUOTE
            self._check_quotes(cells, signs[marks])
            # Between an odd mark and the next one nothing divides cells or records.
            outside = ~marks & (np.cumsum(marks, dtype=np.uint8) % 2 == 0)
            if ((kinds == LINE) & ~outside).any():
                self.quoted_lines = True
            signs, kinds = signs[outside], kinds[outside]
        before, stops = self._check_cells(cells, signs, kinds == LINE)
        if first:
            before, stops = before[1:], stops[1:]
        for place, values in self._values.items():
            if values.may_be_numbers and len(stops):
                start = (stops[:, place - 1] if place else before) + 1
                values.add(cells, start, stops[:, place], quoted=quoted)

    def _check_cells(
        self, cells: Bytes, signs: Places, ends: NDArray[np.bool_]
    ) -> tuple[Places, Places]:
        """Where each record begins and each of its cells ends, less one at the beginning.

        Refused where a record has more or fewer cells than the header.
        """
        every = ends[self.columns - 1 :: self.columns]
        if every.size * self.columns == ends.size and np.count_nonzero(ends) == every.sum():
            table = signs.reshape(-1, self.columns)
            return np.concatenate([[-1], table[:-1, -1]]), table
        places = np.flatnonzero(ends)
        counts = np.diff(places, prepend=-1)
        stops = signs[places]
        before = np.concatenate([[-1], stops[:-1]])
        sizes = stops - before - 1
        blank = (sizes == 0) | ((sizes == 1) & (cells[before + 1] == RETURN))
        blank &= self.columns > 1
        if blank.any():
            self.blank_lines = True
        wrong = np.flatnonzero((counts != self.columns) & ~blank)
        if wrong.size:
            first = int(wrong[0])
            size = "1 cell" if counts[first] == 1 else f"{counts[first]:,} cells"
            raise _Fault(
                int(before[first]) + 1,
                lambda line: (
                    f"'{self.path}' has {size} in line {line} and {self.columns:,} in its header. "
                    "Give every line as many cells as there are columns; quote a cell that holds a "
                    "separator or a line end."
                ),
            )
        return before[~blank], np.delete(signs, places[blank]).reshape(-1, self.columns)

    def _check_quotes(self, cells: Bytes, quotes: Places) -> None:
        """Refuse quotation marks that neither open, close nor stand doubled in a cell."""
        opening, closing = quotes[::2], quotes[1::2]
        fits = self._edge[cells[np.maximum(opening - 1, 0)]] | (opening == 0)
        wrong = [*opening[~fits][:1], *closing[~self._edge[cells[closing + 1]]][:1]]
        if wrong:
            raise _Fault(
                int(min(wrong)),
                lambda line: (
                    f"'{self.path}' has a quotation mark inside a cell in line {line}. Put the "
                    'whole cell in quotation marks and double those within it: "a 5"" pipe".'
                ),
            )


class _Values:
    """The distinct values of one column, as long as they may be numbers.

    Two threads may add at once: what one of them overlooks is then found again.
    """

    def __init__(self) -> None:
        self.may_be_numbers = True
        self._texts: set[str] = set()
        # Values of up to eight bytes as one number each; the empty one is no value.
        self._known = np.zeros(1, dtype=np.uint64)
        self._single = np.zeros(256, dtype=bool)

    def kind(self, words: Sequence[str]) -> str:
        """How the values are written; text where they are too long or too many."""
        return kind_of(self._texts, words=words) if self.may_be_numbers else TEXT

    def add(self, cells: Bytes, start: Places, stop: Places, *, quoted: bool) -> None:
        """Take in the values that start and stop at these places."""
        size = stop - start
        if cells[stop[0]] == LINE:
            size = size - ((size > 0) & (cells[np.maximum(stop - 1, 0)] == RETURN))
        if quoted:
            marks = (cells[start] == QUOTE) & (size > 0)
            start, size = start + marks, size - 2 * marks
        width = int(size.max())
        if width == 1 and int(size.min()) == 1:
            if not self._single[cells[start]].all():
                new = np.unique(cells[start])
                self._single[new] = True
                self._extend({bytes([byte]) for byte in new.tolist()})
            return
        if width > LONGEST_NUMBER:
            self.may_be_numbers = False
        elif width > 8:
            spans = zip(start.tolist(), size.tolist())
            self._extend({bytes(cells[a : a + n]) for a, n in spans} - {b""})
        elif width:
            self._add_short(cells, start, size, width)

    def _add_short(self, cells: Bytes, start: Places, size: Places, width: int) -> None:
        keys = np.zeros(len(start), dtype=np.uint64)
        for i in range(width):
            byte = np.where(i < size, cells[np.minimum(start + i, len(cells) - 1)], 0)
            keys |= byte.astype(np.uint64) << np.uint64(8 * i)
        if len(self._known) <= 8:
            for known in self._known:
                keys = keys[keys != known]
        new = np.setdiff1d(keys, self._known) if len(keys) else keys
        if len(new):
            self._known = np.union1d(self._known, new)
            self._extend({key.tobytes().rstrip(b"\0") for key in new.astype("<u8")})

    def _extend(self, values: set[bytes]) -> None:
        self._texts |= {text.decode("utf-8", "replace") for text in values}
        if len(self._texts) > MOST_NAMES:
            self.may_be_numbers = False
