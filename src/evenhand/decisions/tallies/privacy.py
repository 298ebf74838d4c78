"""What a tally set may show: names of people replaced, and small cells withheld."""

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from evenhand.decisions.tallies.grid import CELL, SIDES, VALUE
from evenhand.decisions.tallies.sets import NAMES, NUMBERS, PERSONAL, PSEUDONYMS, Tallies, Withheld
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.files.reading import read_whole

# A secret shorter than this could be found by trying.
FEWEST_BYTES = 16
# Digits of a pseudonym: two of a million names share one once in 30 billion sets.
DIGITS = 20


def read_key(secret: str | Path | bytes) -> bytes:
    """The secret that names are hashed with, from its file; refused where it is too short."""
    if isinstance(secret, bytes):
        key, source = secret, "The key"
    else:
        source = f"'{secret}'"
        try:
            key = read_whole(secret).strip()
        except FileNotFoundError:
            raise UsageError(
                f"There is no file '{secret}'. Make a key with: openssl rand -hex 32 > {secret}"
            ) from None
        except OSError as error:
            raise DataError(f"'{secret}' cannot be read: {error.strerror or error}.") from error
    if len(key) < FEWEST_BYTES:
        raise DataError(
            f"{source} holds {len(key)} bytes, and a secret that nobody guesses has at least "
            f"{FEWEST_BYTES}. Make one with: openssl rand -hex 32"
        )
    return key


def own_key(place: Path) -> bytes:
    """A store's own secret, under which names of people are hashed; a new one where it has none."""
    try:
        return read_whole(place).strip()
    except FileNotFoundError:
        return secrets.token_hex(32).encode("ascii")
    except OSError as error:
        raise DataError(f"'{place}' cannot be read: {error.strerror or error}.") from error


def keep_key(place: Path, key: bytes) -> bytes:
    """Keep a store's secret, unless another run kept one first: that one holds."""
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return place.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"'{place}' cannot be written: {error.strerror or error}.") from error
    with os.fdopen(handle, "wb") as file:
        file.write(key)
    return key


def with_names(tallies: Tallies, *, key: bytes | None = None, names: bool = False) -> Tallies:
    """The set with labelers, items and clusters numbered, or under keyed hashes of their names.

    The labelers of one lens are the clusters of another: one column has one list of names.
    """
    if names or not any(_personal(table) for table in _all(tallies).values()):
        return replace(tallies, names=NAMES)
    roles = tallies.roles
    columns = {"labeler": roles.labeler, "item": roles.item, "cluster": roles.together}
    labels: dict[str, set[str]] = {}
    for table in _all(tallies).values():
        for role in _personal(table):
            labels.setdefault(str(columns[role]), set()).update(table.labels[role])
    if key is None:
        renamed = {column: _numbers(known) for column, known in labels.items()}
        said = NUMBERS
    else:
        renamed = {c: {n: pseudonym(n, key, c) for n in known} for c, known in labels.items()}
        said = f"{PSEUDONYMS} {pseudonym('key', key, '')[:8]}"

    def rename(table: Tally) -> Tally:
        for role in _personal(table):
            table = table.rename(role, renamed[str(columns[role])])
        return table

    return replace(
        tallies,
        tables={name: rename(table) for name, table in tallies.tables.items()},
        finished={name: rename(table) for name, table in tallies.finished.items()},
        names=said,
    )


def pseudonym(name: str, key: bytes, column: str) -> str:
    """A keyed hash of a name in a column: the same in every set made with the key.

    Examples:
        >>> pseudonym("ann", b"0123456789abcdef", "labeler")
        'xf52aec65c3f08c0b7801'
    """
    digest = hmac.new(key, f"{column}\0{name}".encode("utf-8", "surrogatepass"), sha256)
    # A letter first: a name that reads as a number would be sorted as one.
    return f"x{digest.hexdigest()[:DIGITS]}"


def _all(tallies: Tallies) -> dict[str, Tally]:
    return {**tallies.tables, **tallies.finished}


def _personal(table: Tally) -> list[str]:
    return [key for key in PERSONAL if key in table.labels]


def _numbers(names: set[str]) -> dict[str, str]:
    """A number for each name, in an order that says nothing of the names."""
    mixed = sorted(names, key=lambda name: sha256(name.encode("utf-8", "surrogatepass")).digest())
    return {name: str(i + 1) for i, name in enumerate(mixed)}


def with_floor(tallies: Tallies, floor: int) -> Tallies:
    """The set without cells of fewer rows than this; neighbouring cells of scores are joined first.

    Ranks of small cells are withheld as well.
    """
    if floor <= 1:
        return tallies
    withheld: dict[str, Withheld] = {}

    def over(tables: Mapping[str, Tally]) -> dict[str, Tally]:
        found = {}
        for name, table in tables.items():
            joined = join_cells(table, floor)
            n = joined.sizes
            small = (n < floor) & (n > 0)
            if small.any():
                withheld[name] = (int(small.sum()), int(n[small].sum()))
            found[name] = joined.take(~small).pruned()
        return found

    return replace(
        tallies,
        tables=over(tallies.tables),
        finished=over(tallies.finished),
        floor=floor,
        withheld=withheld,
    )


def join_cells(table: Tally, floor: int) -> Tally:
    """A tally of scores with neighbouring cells joined until each truth in them has enough rows.

    Joined cells are counted in the lowest of them, so that areas still know which rows are ties.

    Examples:
        >>> table = Tally.of({"y": [1, 1, 0, 1], "cell": [3, 7, 7, 11]}, {"n": [2, 3, 5, 6]})
        >>> joined = join_cells(table, 5)
        >>> joined.labels["cell"], joined.sums["n"].tolist()
        (('3', '11'), [5.0, 5.0, 6.0])
    """
    key = next((key for key in (CELL, VALUE) if key in table.labels), None)
    if key is None or not len(table):
        return table
    truth = "y" if "y" in table.labels else "truth"
    there = table.codes[key] >= 0
    numbers = np.array([*table.labels[key], -1], dtype=np.int64)[table.codes[key]]
    side = numbers % SIDES
    # Rows on two sides of a threshold, or at it, are never joined.
    lines = [table.codes[k] for k in table.codes if k not in (key, truth)]
    line = np.unique(np.stack([*lines, side]), axis=1, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((numbers, line))
    moved = numbers.copy()
    states = table.codes[truth] + 1
    start, before, held = -1, -1, np.zeros(int(states.max()) + 1)
    for i in order[there[order]].tolist():
        full = held.sum() >= floor and (held[held > 0] >= floor).all()
        # A cell is joined whole: its rows of all truths stay together.
        beyond = before < 0 or numbers[i] != numbers[before]
        if start < 0 or line[i] != line[before] or (full and beyond):
            start, held = i, np.zeros(len(held))
        held[states[i]] += table.sums["n"][i]
        moved[i] = numbers[start]
        before = i
    labels, codes = np.unique(moved[there], return_inverse=True)
    placed = np.full(len(table), -1, dtype=np.int64)
    placed[there] = codes.reshape(-1)
    return Tally(
        labels={**table.labels, key: tuple(map(str, labels.tolist()))},
        codes={**table.codes, key: placed},
        sums=table.sums,
    ).compact()
