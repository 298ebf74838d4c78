"""People's names to swap, from a table that the caller gives."""

from collections import Counter
from typing import Any

from evenhand.decisions.batches import BatchTable, open_batches
from evenhand.errors import DataError, UsageError
from evenhand.text.lexicon import Lexicon, add_names

MOST_NAMES = 100_000


def with_names(lexicon: Lexicon, data: Any) -> Lexicon:
    """The lexicon with the names of a table.

    Either a column for each of two or more values of the lexicon, paired by row, or the columns
    `name` and `replacement`.

    Examples:
        >>> from evenhand.text.lexicon import load_lexicon
        >>> pronouns = load_lexicon("gender_pronouns")
        >>> named = with_names(pronouns, {"female": ["Alice"], "male": ["Alan"]})
        >>> named.entries["Alice"].to
        {'male': 'Alan'}
    """
    with open_batches(data) as table:
        columns = [value for value in lexicon.values if value in table.columns]
        pairs = {"name", "replacement"} <= set(table.columns)
        if len(columns) < 2 and not pairs:
            raise UsageError(
                f"names={table.source!r} has the columns {', '.join(table.columns)}. Give a column "
                f"of names for each of {', '.join(lexicon.values)}, or the columns name and "
                "replacement."
            )
        if len(columns) < 2:
            columns = ["name", "replacement"]
        lists = {column: _names(table, column) for column in columns}
    if columns == ["name", "replacement"]:
        repeated = [name for name, n in Counter(lists["name"]).items() if n > 1]
        if repeated:
            raise UsageError(f"names has {repeated[0]!r} twice. Give each name once.")
        return add_names(lexicon, names=dict(zip(lists["name"], lists["replacement"])))
    return add_names(lexicon, names=lists)


def _names(table: BatchTable, column: str) -> list[str]:
    table.check_texts("names", column)
    if table.rows > MOST_NAMES:
        raise DataError(f"names has {table.rows:,} rows; at most {MOST_NAMES:,} can be swapped.")
    found: list[str] = []
    for batch in table.read(table.rows):
        for row, name in enumerate(batch.strings(column)):
            if not name:
                raise DataError(f"names has no {column} in row {row}. Give every row all names.")
            found.append(name)
    return found
