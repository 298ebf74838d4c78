"""Biographies with occupation and gender (BiasBios), in the three layouts they come in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.datasets.plain_pickle import read_plain_pickle
from evenhand.errors import DataError

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


def read_biasbios(path: str | Path) -> pl.DataFrame:
    """Biographies of a parquet file, a pickle or a folder with one file for each split.

    The columns are always id, text, truth (the occupation), gender, name and split; name and
    split are null where the layout lacks them. The text is the biography without its first
    sentence where the layout says where that ends (`start_pos`).
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise DataError(f"{str(path)!r} does not exist. Give the path of the biographies.")
    if path.suffix == ".parquet":
        return _from_parquet(path)
    if path.suffix in (".pkl", ".pickle"):
        return _from_pickle(path)
    raise DataError(
        f"{str(path)!r} is neither a parquet file nor a pickle. "
        "Give .parquet, .pkl or a folder with train, dev and test files."
    )


def _read_folder(path: Path) -> pl.DataFrame:
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
    frame = pl.concat([read_biasbios(file) for file in found])
    return frame.with_columns(id=pl.int_range(pl.len(), dtype=pl.Int64))


def _split_of(path: Path) -> str | None:
    name = path.name.split(".")[0].split("-")[0].lower()
    return _SPLITS.get(name)


def _from_parquet(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(path)
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


def _from_pickle(path: Path) -> pl.DataFrame:
    rows = read_plain_pickle(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        raise DataError(f"{str(path)!r} does not hold a list of biographies (dicts).")
    _need(
        rows[0],
        ("title" if "title" in rows[0] else "p", "gender" if "gender" in rows[0] else "g"),
        path,
    )
    return _frame(
        texts=[_text(row) for row in rows],
        truth=[_profession(row.get("title", row.get("p")), path) for row in rows],
        gender=[_gender(row.get("gender", row.get("g")), path) for row in rows],
        names=[_name(row.get("name")) for row in rows],
        split=_split_of(path),
    )


def _text(row: Mapping[str, Any]) -> str | None:
    """The biography after its first sentence, from `raw` and `start_pos` or ready-made."""
    if isinstance(row.get("raw"), str):
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
