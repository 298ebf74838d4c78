"""Rows of a table in the place of texts: numbers and words of columns as features for remedies.

What rests on rewriting or reading texts is left undefined and says so: counterfactual columns,
norms and names. Everything else of the ledger is measured as it is for texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from evenhand.decisions.batches import Batch, BatchTable
from evenhand.decisions.labels import label
from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import FloatArray

COLUMNS = "columns"
MOST_VALUES = 100
NO_SWAP = "rows of a table have no texts to rewrite"
NO_NORMS = "norms are learned from texts, and rows of a table have none"
NO_NAMES = "it reads the words of names, and rows of a table have none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEncoding:
    """Columns as features: numbers centred and scaled, words as a 0/1 feature for each value.

    Learned from training rows; a word that none of them has is 0 on every feature of its column.

    Examples:
        >>> table = {"age": [20.0, 40.0], "town": ["A", "B"]}
        >>> ColumnEncoding.of(table).features({"age": [30.0], "town": ["C"]}).tolist()
        [[0.0, 0.0, 0.0]]
    """

    centre: Mapping[str, float]
    scale: Mapping[str, float]
    values: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, table: Mapping[str, Sequence[Any]]) -> Self:
        """The encoding that training rows call for; refused where a column looks like an id."""
        centre, scale, values = {}, {}, {}
        for name, column in table.items():
            if isinstance(column[0], str):
                values[name] = tuple(sorted(set(column)))
                if len(values[name]) > MOST_VALUES:
                    raise DataError(
                        f"features={name!r} holds {len(values[name]):,} different words; at most "
                        f"{MOST_VALUES} can be told apart. Leave it out, or name it as the text."
                    )
                continue
            centre[name] = float(np.mean(column))
            scale[name] = float(np.std(column)) or 1.0
        return cls(centre=centre, scale=scale, values=values)

    def features(self, table: Mapping[str, Sequence[Any]]) -> FloatArray:
        """Rows × features of any table with these columns."""
        made = [
            (np.asarray(table[name], dtype=np.float64) - self.centre[name])[:, None] / scale
            for name, scale in self.scale.items()
        ]
        for name, values in self.values.items():
            column = np.array([label(value) for value in table[name]], dtype=object)
            made.append((column[:, None] == np.array(values, dtype=object)).astype(np.float64))
        return np.concatenate(made, axis=1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*self.scale, *self.values)


def check_features(table: BatchTable, features: Sequence[str], roles: Mapping[str, Any]) -> None:
    """Refuse feature columns that are not there, named twice, or give the answer away."""
    for column in features:
        table.check_column("features", column)
        role = next((role for role, other in roles.items() if other == column), None)
        if role is not None:
            raise UsageError(
                f"features={column!r} is also the {role}, which it would give away. Leave it out."
            )
        if list(features).count(column) > 1:
            raise UsageError(f"features={column!r} is named twice. Name each column once.")


def feature_values(batch: Batch, column: str) -> list[Any]:
    """A column's numbers, or its words where it has no numbers; None where there is no value."""
    kind = batch.frame.schema[column]
    if not (kind.is_numeric() or str(kind) == "Boolean"):
        return list(batch.labels(column))
    held = [None if value is None else float(value) for value in batch.frame[column].to_list()]
    if any(value is not None and np.isinf(value) for value in held):
        raise DataError(
            f"features={column!r} holds values that are infinite. Replace them or leave them empty."
        )
    return [None if value is None or np.isnan(value) else value for value in held]
