"""The file of a tally set: a zip of `set.json` and one Parquet table for each tally."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import polars as pl

from evenhand.decisions.read import engine_faults
from evenhand.decisions.roles import Roles
from evenhand.decisions.tallies.sets import Tallies
from evenhand.decisions.tally import Tally, encode
from evenhand.errors import DataError
from evenhand.files.documents import (
    Damage,
    anything,
    check,
    flag,
    list_of,
    map_of,
    number,
    table,
    text,
    whole,
)

SCHEMA = "evenhand.tallies/1"
FAMILY = "evenhand.tallies/"
INDEX = "set.json"
_TABLE = table(
    {"name": text, "file": text, "keys": list_of(text), "sums": list_of(text), "merges": flag}
)
_SHAPE = table(
    {
        "schema": text, "version": text, "source": text, "roles": map_of(anything),
        "columns": list_of(text), "rows": whole, "survey": map_of(number),
        "tables": list_of(_TABLE), "lost": map_of(text), "names": text, "floor": whole,
        "withheld": map_of(list_of(whole, length=2)), "settings": map_of(number), "parts": whole,
    }
)  # fmt: skip


def packed(tallies: Tallies) -> bytes:
    """The content of a set's file: the same bytes for the same set."""
    listed = []
    parts: dict[str, bytes] = {}
    held = [(tallies.tables, True), (tallies.finished, False)]
    for name, tally, merges in ((n, t, m) for tables, m in held for n, t in tables.items()):
        file = f"tables/{len(parts):04d}.parquet"
        parts[file] = _parquet(tally)
        listed.append(
            {"name": name, "file": file, "keys": list(tally.labels), "sums": list(tally.sums),
             "merges": merges}
        )  # fmt: skip
    document = {
        "schema": SCHEMA,
        "version": tallies.version,
        "source": tallies.source,
        "roles": tallies.roles.used(),
        "columns": list(tallies.columns),
        "rows": tallies.rows,
        "survey": dict(tallies.survey),
        "tables": listed,
        "lost": dict(tallies.lost),
        "names": tallies.names,
        "floor": tallies.floor,
        "withheld": {name: list(cells) for name, cells in tallies.withheld.items()},
        "settings": dict(tallies.settings),
        "parts": tallies.parts,
        "fingerprint": tallies.fingerprint(),
    }
    document["checksum"] = _checksum(document, parts)
    content = BytesIO()
    with ZipFile(content, "w") as archive:
        index = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
        # Without the time of writing, and without compressing what Parquet compressed.
        archive.writestr(ZipInfo(INDEX), index.encode("utf-8", "surrogatepass"), ZIP_DEFLATED)
        for file, part in parts.items():
            archive.writestr(ZipInfo(file), part)
    return content.getvalue()


def unpacked(content: bytes, *, source: str) -> Tallies:
    """The set in the content of a file; `source` is how messages call it."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            document = json.loads(archive.read(INDEX).decode("utf-8", "surrogatepass"))
            _check_schema(document, source)
            check(document, _SHAPE, "")
            files = [each["file"] for each in document["tables"]]
            parts = {file: archive.read(file) for file in files}
            tables = {
                each["name"]: (_tally(parts[each["file"]], each), each["merges"])
                for each in document["tables"]
            }
        found = _set(document, tables)
    except DataError:
        raise
    except (BadZipFile, KeyError) as error:
        if not content.startswith(b"PK"):
            raise DataError(
                f"'{source}' is not a tally set. Make one with: evenhand tally DATA --out "
                "week.tallies"
            ) from error
        raise _damaged(source, "a part of it is missing or changed") from error
    except Damage as error:
        raise _damaged(source, str(error)) from error
    except engine_faults() as error:  # whatever a reader makes of bytes that are not what they say
        raise _damaged(source, "its parts cannot be read") from error
    if found.fingerprint() != document.get("fingerprint"):
        raise _damaged(source, "its counts are not those it was made with")
    # Sets of the first versions have none.
    if document.get("checksum", "") not in ("", _checksum(document, parts)):
        raise _damaged(source, "it is not as it was made")
    return found


def _checksum(document: Mapping[str, Any], parts: Mapping[str, bytes]) -> str:
    """A hash of all that a set holds, whatever the order of its names."""
    held = {name: value for name, value in document.items() if name != "checksum"}
    digest = sha256(json.dumps(held, sort_keys=True).encode())
    for file in sorted(parts):
        digest.update(sha256(parts[file]).digest())
    return f"sha256:{digest.hexdigest()}"


def _check_schema(document: Any, source: str) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.startswith(FAMILY):
        raise DataError(
            f"'{source}' is a tally set of schema {schema}, and this version reads {SCHEMA}. "
            "Update Evenhand, or tally the table again."
        )
    raise DataError(f"'{source}' is not a tally set of schema {SCHEMA}.")


def _damaged(source: str, why: str) -> DataError:
    return DataError(f"'{source}' is a damaged tally set: {why}. Tally the table again.")


def _set(document: dict[str, Any], tables: Mapping[str, tuple[Tally, bool]]) -> Tallies:
    roles = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in document["roles"].items()
    }
    return Tallies(
        source=document["source"],
        roles=_roles(roles),
        columns=tuple(document["columns"]),
        rows=document["rows"],
        survey=document["survey"],
        tables={name: tally for name, (tally, merges) in tables.items() if merges},
        finished={name: tally for name, (tally, merges) in tables.items() if not merges},
        lost=document["lost"],
        names=document["names"],
        floor=document["floor"],
        withheld={name: (cells[0], cells[1]) for name, cells in document["withheld"].items()},
        settings=document["settings"],
        version=document["version"],
        parts=document["parts"],
    )


def _roles(named: Mapping[str, Any]) -> Roles:
    """Roles as they were saved: texts, maps of texts and the few others, each of its own kind."""
    maps = {"scores", "reference", "counterfactual", "norm", "norm_irrelevant"}
    lists: dict[str, Any] = {"group": str, "stratum_edges": (int, float), "missing_words": str}
    for name, value in named.items():
        if name in maps:
            fits = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        elif name in lists:
            fits = isinstance(value, tuple) and all(isinstance(v, lists[name]) for v in value)
        elif name == "threshold":
            numbers = value.values() if isinstance(value, dict) else [value]
            fits = isinstance(value, str) or all(isinstance(v, int | float) for v in numbers)
        elif name in ("crossed", "classes"):
            fits = isinstance(value, bool)
        else:
            fits = isinstance(value, str) and name in Roles.__slots__
        if not fits:
            raise Damage(f"its role {name!r} is not what a role can be")
    return Roles(**named)


def cells_frame(sets: Iterable[tuple[int, Tallies]]) -> pl.DataFrame:
    """Every cell of every period's tallies: which table it is of, its keys and its sums."""
    parts = [pl.DataFrame(schema={"period": pl.Int64, "table": pl.String})]
    for period, held in sets:
        for name, tally in {**held.tables, **held.finished}.items():
            of = pl.lit(period).cast(pl.Int64).alias("period"), pl.lit(name).alias("table")
            # A key that is a number in one period may be a word in another.
            keys = pl.col("^key:.*$").cast(pl.String)
            sums = pl.col("^sum:.*$").cast(pl.Float64)
            parts.append(_frame(tally).select(*of, keys, sums))
    return pl.concat(parts, how="diagonal")


def _frame(tally: Tally) -> pl.DataFrame:
    """A tally as columns of key values and of sums; a missing value is null."""
    columns: dict[str, pl.Series] = {}
    for key, labels in tally.labels.items():
        whole_numbers = bool(labels) and all(_is_whole(name) for name in labels)
        values = [*(map(int, labels) if whole_numbers else labels), None]
        kind = pl.Int64 if whole_numbers else pl.String
        columns[f"key:{key}"] = pl.Series(values, dtype=kind).gather(
            np.where(tally.codes[key] < 0, len(labels), tally.codes[key])
        )
    columns |= {f"sum:{name}": pl.Series(values) for name, values in tally.sums.items()}
    return pl.DataFrame(columns)


def _parquet(tally: Tally) -> bytes:
    content = BytesIO()
    _frame(tally).write_parquet(content, compression="zstd")
    return content.getvalue()


def _is_whole(name: str) -> bool:
    """Whether a label is the number itself: '01' and '1_0' are words."""
    return len(name) < 18 and name.lstrip("-").isascii() and str(name) == _as_written(name)


def _as_written(name: str) -> str | None:
    try:
        return str(int(name))
    except ValueError:
        return None


def _tally(content: bytes, about: Mapping[str, Any]) -> Tally:
    frame = pl.read_parquet(BytesIO(content))
    wanted = [f"key:{key}" for key in about["keys"]] + [f"sum:{name}" for name in about["sums"]]
    if frame.columns != wanted or not {"n", "weight"} & set(about["sums"]):
        raise Damage(f"the columns of {about['name']!r} are not those it names")
    labels, codes = {}, {}
    for key in about["keys"]:
        column = frame[f"key:{key}"]
        whole_numbers = column.dtype == pl.Int64 and not column.null_count()
        labels[key], codes[key] = encode(column.to_numpy() if whole_numbers else column.to_list())
    sums = {name: frame[f"sum:{name}"].cast(pl.Float64).to_numpy() for name in about["sums"]}
    found = Tally(labels=labels, codes=codes, sums=sums)
    n = found.sizes
    if not (np.isfinite(n).all() and (n >= 0).all() and (n <= 2**53).all()):
        raise Damage(f"{about['name']!r} counts what cannot be counted")
    return found
