"""CSV files as tables: opened by every engine with the same types, found before it reads them."""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import narwhals as nw

from evenhand.decisions.csv_text import (
    NUMBER,
    TEXT,
    WHOLE,
    WRITTEN,
    YES_NO,
    CsvHead,
    look_through,
    opened,
    read_head,
)
from evenhand.decisions.missing_words import (
    means_unknown,
    plain_word,
    without_words,
    words_hint,
)
from evenhand.decisions.paths import UNEXPANDED, Files, exact_pattern, packing, plain_path
from evenhand.errors import DataError, MissingExtra

Frame = nw.LazyFrame[Any]
TYPES = {WHOLE: nw.Int64, NUMBER: nw.Float64, YES_NO: nw.Boolean, TEXT: nw.String}
DUCKDB_TYPES = {WHOLE: "BIGINT", NUMBER: "DOUBLE", YES_NO: "BOOLEAN", TEXT: "VARCHAR"}
# A line may hold a long text; DuckDB asks how long.
LONGEST_LINE = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTable:
    """CSV files of one table: their heads, what their folders stand for, every column's kind.

    In the `word_columns`, the `words` stand for no value.
    """

    heads: tuple[CsvHead, ...]
    folders: tuple[Mapping[str, str | None], ...]
    kinds: Mapping[str, str]
    blank_lines: bool = False
    quoted_lines: bool = False
    words: tuple[str, ...] = ()
    word_columns: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the first file and of its folders, which are the table's."""
        return (*self.heads[0].columns, *(n for n in self.folders[0] if n not in self.own))

    @property
    def own(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return self.heads[0].columns

    @property
    def numbers(self) -> list[str]:
        """The columns of the files that are read as numbers."""
        return [name for name in self.own if self.kinds[name] in (WHOLE, NUMBER)]

    def settle(
        self,
        *,
        labels: Collection[str],
        numbers: Mapping[str, str],
        texts: Collection[str] = (),
        words: Sequence[str] = (),
    ) -> "CsvTable":
        """The table with the kinds of its columns known: every line of every file is looked at.

        `labels` may be numbers if all their values are written so, `numbers` (each with its role)
        have to be, `texts` stay text. Other columns go by their first rows. Of labels and numbers,
        `words` are no values.
        """
        if words and not self.words:
            plain = self._passing_over(words, [*labels, *numbers])
            return plain.settle(labels=labels, numbers=numbers, texts=texts, words=words)
        open_ = [n for n in labels if n not in numbers and n not in self.folders[0]]
        bodies = [look_through(head, names=open_, words=words) for head in self.heads]
        kinds = {
            name: NUMBER if kind == WHOLE and name not in self.folders[0] else kind
            for name, kind in self.kinds.items()
        }
        for name in open_:
            kinds[name] = common_kind(body.kinds[name] for body in bodies)
        for name in texts:
            kinds[name] = TEXT
        for name, role in numbers.items():
            if kinds[name] == TEXT:
                kinds[name] = NUMBER
                self.check_cell(name, role)
        return replace(
            self,
            kinds=kinds,
            blank_lines=any(body.blank_lines for body in bodies),
            quoted_lines=any(body.quoted_lines for body in bodies),
        )

    def _passing_over(self, words: Sequence[str], columns: Sequence[str]) -> "CsvTable":
        """The table with these columns of the kinds that they are of but for these words."""
        columns = [name for name in dict.fromkeys(columns) if name not in self.folders[0]]
        heads = []
        for head in self.heads:
            anew = read_head(head.path, words=words).kinds
            heads.append(replace(head, kinds={**head.kinds, **{n: anew[n] for n in columns}}))
        kinds = {name: common_kind(head.kinds[name] for head in heads) for name in columns}
        return replace(
            self,
            heads=tuple(heads),
            kinds={**self.kinds, **kinds},
            words=tuple(words),
            word_columns=tuple(columns),
        )

    def open(self, engine: str, *, spark: Any = None) -> Frame:
        """The files as one lazy frame of the engine."""
        if engine != "polars":
            self._check_cases(engine)
        # Words among numbers are texts until they are taken out.
        number_kinds = {n: self.kinds[n] for n in self.word_columns if self.kinds[n] != TEXT}
        parts = []
        files = zip(self.heads, self.folders)
        for (names, sign, folder), alike in groupby(files, key=_make_up):
            paths = [head.path for head, _ in alike]
            kinds = {n: TEXT if n in number_kinds else self.kinds.get(n, TEXT) for n in names}
            if engine == "spark":
                native = _open_spark(paths, kinds, sign, spark, several=self.quoted_lines)
            else:
                opener = {"polars": _open_polars, "duckdb": _open_duckdb}[engine]
                native = opener(paths, kinds, sign)
            part: Frame = nw.from_native(native).lazy()
            fixed = [nw.lit(value, dtype=nw.String).alias(name) for name, value in folder]
            if fixed:
                part = as_kinds(part.with_columns(*fixed), {n: self.kinds[n] for n, _ in folder})
            parts.append(part.select(*self.columns))
        frame = parts[0] if len(parts) == 1 else nw.concat(parts)
        if self.blank_lines:
            # One engine skips a blank line and another reads a row of nulls.
            filled = [~nw.col(name).is_null() for name in self.columns]
            frame = frame.filter(nw.any_horizontal(*filled, ignore_nulls=True))
        if number_kinds:
            values = [without_words(name, self.words) for name in number_kinds]
            frame = as_kinds(frame.with_columns(*values), number_kinds)
        return frame

    def _check_cases(self, engine: str) -> None:
        """Refuse columns that an engine would take for one, since it reads no case in names."""
        seen: dict[str, str] = {}
        for name in self.columns:
            other = seen.setdefault(name.casefold(), name)
            if other != name:
                raise DataError(
                    f"'{self.heads[0].path}' has the columns {other!r} and {name!r}, which "
                    f"engine={engine!r} does not tell apart. Rename one of them, or choose "
                    "engine='polars'."
                )

    def check_cell(self, column: str, role: str) -> None:
        """Refuse a column of numbers by the first of its cells that holds none."""
        import polars as pl

        for head in self.heads:
            lazy = _open_polars([head.path], dict.fromkeys(head.columns, TEXT), head.separator)
            cell = pl.col(column).str.strip_chars()
            wrong = cell.is_not_null() & cell.cast(pl.Float64, strict=False).is_null()
            if self.kinds.get(column) == YES_NO:
                wrong = cell.is_not_null() & ~cell.str.contains(f"^({WRITTEN[YES_NO].pattern})$")
            if column in self.word_columns:
                wrong = wrong & ~cell.str.to_lowercase().is_in(list(map(plain_word, self.words)))
            first = lazy.select(cell).with_row_index("row").filter(wrong).head(1)
            for row, text in first.collect(engine="streaming").rows():
                where = f"line {_line_of(head, row):,} of '{head.path}'"
                hint = "Correct it, or leave the cell empty."
                if _decimal_comma(text):
                    hint = f"Write numbers with a point: {text.replace(',', '.')}."
                elif means_unknown(text):
                    hint = (
                        "If it means that nothing is known, leave the cell empty or say "
                        f"{words_hint([text])}."
                    )
                raise DataError(
                    f"{role}={column!r} holds {text!r} in {where}, which is not a number. {hint}"
                )


def csv_table(files: Files) -> CsvTable:
    """The CSV files of one table, which must all have the columns of the first."""
    heads = tuple(read_head(path) for path in files.paths)
    for head in heads[1:]:
        lacking = [name for name in heads[0].columns if name not in head.columns]
        if lacking:
            raise DataError(
                f"'{head.path}' has no column {lacking[0]!r}, which '{heads[0].path}' has. "
                "Give files with the same columns."
            )
    kinds = {name: common_kind(head.kinds[name] for head in heads) for name in heads[0].columns}
    return CsvTable(
        heads=heads,
        folders=tuple(files.values(place) for place in range(len(heads))),
        kinds=kinds | files.partitions,
    )


def common_kind(kinds: Iterable[str]) -> str:
    """The kind that holds for all parts of a column.

    Examples:
        >>> common_kind(["whole", "number"]), common_kind(["whole", "text"])
        ('number', 'text')
    """
    given = set(kinds)
    if len(given) == 1:
        return given.pop()
    return NUMBER if given == {WHOLE, NUMBER} else TEXT


def as_kinds(frame: Frame, kinds: Mapping[str, str]) -> Frame:
    """Columns of text as the types of their kinds."""
    made = [
        (nw.col(name).str.to_lowercase() == "true").alias(name)
        if kind == YES_NO
        else nw.col(name).cast(TYPES[kind]())
        for name, kind in kinds.items()
        if kind != TEXT
    ]
    return frame.with_columns(*made) if made else frame


def with_kinds(lazy: Any) -> Any:
    """A Polars table of texts with every column as the type that all its values are written in.

    Examples:
        >>> import polars as pl
        >>> with_kinds(pl.LazyFrame({"a": ["1", "2"], "b": ["01", "1"]})).collect().rows()
        [(1, '01'), (2, '1')]
    """
    import polars as pl

    names = lazy.collect_schema().names()
    if not names:
        return lazy
    fitting = {}
    for kind, form in WRITTEN.items():
        # Words for a missing value do not make numbers of a column that has none.
        digits = pl.all().str.contains("[0-9]" if kind != YES_NO else ".").any()
        fits = pl.all().str.contains(f"^({form.pattern})$").all() & digits
        fitting[kind] = lazy.select(fits).collect().row(0, named=True)
    kinds = {n: next((k for k in WRITTEN if fitting[k][n]), TEXT) for n in names}
    types = {WHOLE: pl.Int64, NUMBER: pl.Float64}
    return lazy.with_columns(
        *(pl.col(n).cast(types[kind]) for n, kind in kinds.items() if kind in types),
        *_yes_no(kinds),
    )


def _yes_no(kinds: Mapping[str, str]) -> list[Any]:
    """Columns of yes or no as booleans: Polars knows true and false in small letters only."""
    import polars as pl

    words = [name for name, kind in kinds.items() if kind == YES_NO]
    return [pl.col(name).str.to_lowercase() == "true" for name in words]


def _make_up(file: tuple[CsvHead, Mapping[str, str | None]]) -> tuple[Any, ...]:
    """What files must have in common to be opened as one."""
    head, folder = file
    return head.columns, head.separator, tuple(folder.items())


def _decimal_comma(text: str) -> bool:
    return WRITTEN[NUMBER].fullmatch(text.replace(",", ".", 1)) is not None


def _line_of(head: CsvHead, row: int) -> int:
    """The line on which a row begins, counted as an editor counts."""
    with opened(head.path) as file:
        lines = (line.decode("utf-8-sig", "replace") for line in file)
        reader = csv.reader(lines, delimiter=head.separator)
        last = 0
        records = -1  # the header
        for record in reader:
            if record or len(head.columns) == 1:
                if records == row:
                    return last + 1
                records += 1
            last = reader.line_num
    return last


def _open_polars(paths: list[str], kinds: Mapping[str, str], sign: str) -> Any:
    import polars as pl

    types = {WHOLE: pl.Int64, NUMBER: pl.Float64, YES_NO: pl.String, TEXT: pl.String}
    lazy = pl.scan_csv(
        list(map(plain_path, paths)),
        glob=False,
        separator=sign,
        # Columns go by their place: a header may leave one without a name, as an index is.
        has_header=False,
        skip_rows=1,
        schema={name: types[kind] for name, kind in kinds.items()},
        null_values=[""],
        raise_if_empty=False,
    )
    return lazy.with_columns(*_yes_no(kinds))


def _open_duckdb(paths: list[str], kinds: Mapping[str, str], sign: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "engine='duckdb'") from None
    return duckdb.read_csv(
        list(map(exact_pattern, paths)),
        hive_partitioning=False,
        compression=packing(paths),
        header=True,
        auto_detect=False,
        sep=sign,
        quotechar='"',
        escapechar='"',
        columns={name: DUCKDB_TYPES[kind] for name, kind in kinds.items()},
        max_line_size=LONGEST_LINE,
    )


def _open_spark(
    paths: list[str], kinds: Mapping[str, str], sign: str, session: Any, *, several: bool
) -> Any:
    """The files by Spark; `several` lines may make up one row, which forbids to split a file."""
    from pyspark.sql.types import StringType, StructField, StructType

    text = StructType([StructField(name, StringType()) for name in kinds])
    frame = session.read.options(**UNEXPANDED).csv(
        [str(Path(path).resolve()) for path in paths],
        schema=text,
        header=True,
        sep=sign,
        quote='"',
        escape='"',
        multiLine=several,
        mode="FAILFAST",
    )
    filled = [nw.when(nw.col(name) != "").then(nw.col(name)).alias(name) for name in kinds]
    return nw.to_native(as_kinds(nw.from_native(frame).with_columns(*filled), kinds))
