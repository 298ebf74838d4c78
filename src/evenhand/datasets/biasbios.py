"""Biographies with occupation and gender (BiasBios), in the three layouts they come in.

One of them is a pickle, which is read as plain data: nothing in it is ever run.
"""

import io
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from evenhand.decisions.paths import plain_path
from evenhand.errors import DataError

_PLAIN = {"dict": dict, "list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
# The parquet numbers the occupations in alphabetical order and writes 0 for men, 1 for women.
PROFESSIONS = (
    "accountant", "architect", "attorney", "chiropractor", "comedian", "composer", "dentist",
    "dietitian", "dj", "filmmaker", "interior_designer", "journalist", "model", "nurse", "painter",
    "paralegal", "pastor", "personal_trainer", "photographer", "physician", "poet", "professor",
    "psychologist", "rapper", "software_engineer", "surgeon", "teacher", "yoga_teacher",
)  # fmt: skip
_GENDERS = {
    "0": "male",
    "1": "female",
    "m": "male",
    "f": "female",
    "male": "male",
    "female": "female",
}
_SPLITS = {"train": "train", "dev": "validation", "validation": "validation", "test": "test"}
COLUMNS = ("id", "text", "truth", "gender", "name", "split")


def read_plain_pickle(path: str | Path) -> Any:
    """The value in a pickle, if it holds only containers, texts, numbers, truth values and None.

    Examples:
        >>> import pickle, tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".pkl") as file:
        ...     file.write(pickle.dumps([{"title": "poet"}])) and file.flush()
        ...     read_plain_pickle(file.name)
        [{'title': 'poet'}]
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{str(path)!r} does not exist. Give the path of the pickle.")
    try:
        # latin-1 keeps the bytes of pickles that Python 2 wrote
        return _PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="latin-1").load()
    except _Refused as problem:
        raise DataError(
            f"{str(path)!r} contains {problem}, which could run code. Only lists, dicts, tuples, "
            "texts and numbers are read: write the file again with these."
        ) from problem
    except Exception as problem:  # a damaged pickle raises almost anything
        raise DataError(f"{str(path)!r} is not a readable pickle.") from problem


def read_biasbios(path: str | Path, *, keep_first: bool = False) -> pl.DataFrame:
    """Biographies of a parquet file, a pickle or a folder with one file for each split.

    The columns are always id, text, truth (the occupation), gender, name and split; name and
    split are null where the layout lacks them. The text is the biography without its first
    sentence where the layout says where that ends (`start_pos`): that sentence has the title,
    and the first paper leaves it out. `keep_first` keeps it where the file has it, as the second
    does, which masks the title instead.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, keep_first=keep_first)
    if not path.is_file():
        raise DataError(f"{str(path)!r} does not exist. Give the path of the biographies.")
    if path.suffix == ".parquet":
        return _from_parquet(path)
    if path.suffix in (".pkl", ".pickle"):
        return _from_pickle(path, keep_first=keep_first)
    raise DataError(
        f"{str(path)!r} is neither a parquet file nor a pickle. "
        "Give .parquet, .pkl or a folder with train, dev and test files."
    )


class _Refused(Exception):
    """A class that is no plain container."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in ("builtins", "__builtin__") and name in _PLAIN:
            return _PLAIN[name]
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise _Refused("a reference outside the file")


def _read_folder(path: Path, *, keep_first: bool) -> pl.DataFrame:
    found = sorted(
        file
        for file in path.iterdir()
        if file.suffix in (".parquet", ".pkl", ".pickle") and _split_of(file) is not None
    )
    if not found:
        raise DataError(
            f"{str(path)!r} has no train, dev or test file (.parquet or .pkl). "
            "Give the folder that holds them."
        )
    frame = pl.concat([read_biasbios(file, keep_first=keep_first) for file in found])
    return frame.with_columns(id=pl.int_range(pl.len(), dtype=pl.Int64))


def _split_of(path: Path) -> str | None:
    name = path.name.split(".")[0].split("-")[0].lower()
    return _SPLITS.get(name)


def _from_parquet(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(plain_path(path), glob=False)
    except pl.exceptions.PolarsError as problem:
        raise DataError(f"{str(path)!r} is not a readable parquet file.") from problem
    _need(frame.columns, ("hard_text", "profession", "gender"), path)
    rows = frame.select("hard_text", "profession", "gender")
    return _frame(
        texts=rows["hard_text"].to_list(),
        truth=[_profession(value, path) for value in rows["profession"].to_list()],
        gender=[_gender(value, path) for value in rows["gender"].to_list()],
        names=None,
        split=_split_of(path),
    )


def _from_pickle(path: Path, *, keep_first: bool) -> pl.DataFrame:
    rows = read_plain_pickle(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        raise DataError(f"{str(path)!r} does not hold a list of biographies (dicts).")
    _need(
        rows[0],
        ("title" if "title" in rows[0] else "p", "gender" if "gender" in rows[0] else "g"),
        path,
    )
    return _frame(
        texts=[_text(row, keep_first=keep_first) for row in rows],
        truth=[_profession(row.get("title", row.get("p")), path) for row in rows],
        gender=[_gender(row.get("gender", row.get("g")), path) for row in rows],
        names=[_name(row.get("name")) for row in rows],
        split=_split_of(path),
    )


def _text(row: Mapping[str, Any], *, keep_first: bool) -> str | None:
    """The biography, by default after its first sentence: from `raw`, or ready-made."""
    if isinstance(row.get("raw"), str):
        if keep_first:
            return str(row["raw"]).strip()
        return str(row["raw"])[int(row.get("start_pos", 0)) :].strip()
    for key in ("hard_text", "bio", "text"):
        if isinstance(row.get(key), str):
            return str(row[key]).strip()
    return None


def _name(name: Any) -> str | None:
    if isinstance(name, str):
        return name
    return " ".join(part for part in name if part) if isinstance(name, list | tuple) else None


def _profession(value: Any, path: Path) -> str:
    if isinstance(value, int) and 0 <= value < len(PROFESSIONS):
        return PROFESSIONS[value]
    if isinstance(value, str) and value:
        return value.strip().lower().replace(" ", "_")
    raise DataError(
        f"{str(path)!r} has the profession {value!r}. Professions are names or numbers from 0 to "
        f"{len(PROFESSIONS) - 1}."
    )


def _gender(value: Any, path: Path) -> str:
    found = _GENDERS.get(str(value).strip().lower())
    if found is None:
        raise DataError(
            f"{str(path)!r} has the gender {value!r}. It is written 0 or 1, M or F, male or female."
        )
    return found


def _need(columns: Any, wanted: Sequence[str], path: Path) -> None:
    for column in wanted:
        if column not in columns:
            raise DataError(
                f"{str(path)!r} has no column {column!r}; it has {', '.join(map(str, columns))}."
            )


def _frame(
    *,
    texts: list[str | None],
    truth: list[str],
    gender: list[str],
    names: list[str | None] | None,
    split: str | None,
) -> pl.DataFrame:
    n = len(texts)
    return pl.DataFrame(
        {
            "id": range(n),
            "text": texts,
            "truth": truth,
            "gender": gender,
            "name": names if names is not None else [None] * n,
            "split": [split] * n,
        },
        schema=dict.fromkeys(COLUMNS, pl.String) | {"id": pl.Int64},
    )
