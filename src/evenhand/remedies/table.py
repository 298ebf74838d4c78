"""The training set that a remedy makes, written as a table for anybody's own trainer.

A remedy before training is nothing but rows: drawn, weighed or copied under another group.
`remedy_table` writes them, so that whatever learns from a table with weights can use them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.decisions.batches import (
    Batch,
    BatchTable,
    check_table_path,
    open_batches,
    write_batches,
)
from evenhand.errors import DataError, UsageError
from evenhand.remedies.augment import TrainingRows, compose, counterfactual_texts
from evenhand.remedies.ledger.registry import REMEDIES, choose_remedies
from evenhand.speech import plural
from evenhand.text.lexicon import Lexicon

ADDED = ("origin", "is_counterfactual", "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyReport:
    """What was written: rows read and made, copies among them, and what was left out."""

    remedy: str
    source: str
    out: str
    rows: int
    made: int
    copies: int
    unchanged: int
    left_out: dict[str, int]
    weights: dict[str, float]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"schema": "evenhand.remedy/1", **asdict(self)}

    def __str__(self) -> str:
        lines = [
            f"{self.remedy}: {plural(self.made, 'row')} made of {self.rows:,} in {self.source}, "
            f"{self.copies:,} of them counterfactual copies."
        ]
        lines += [f"{plural(n, 'row')} left out: {why}." for why, n in self.left_out.items()]
        if self.unchanged:
            lines.append(
                f"{self.unchanged:,} of {self.copies:,} copies equal their original: no word of "
                "the lexicon."
            )
        shares = ", ".join(f"{name} {total:,.1f}" for name, total in self.weights.items())
        lines += [f"Total weight by group: {shares}.", *self.notes, f"Wrote {self.out}."]
        return "\n".join(lines)


def remedy_table(
    data: Any,
    *,
    remedy: str,
    truth: str,
    group: str,
    out: str | Path,
    text: str | None = None,
    lexicon: Lexicon | str = "gender_pronouns",
    values: Mapping[str, str] | None = None,
    seed: int = 0,
) -> RemedyReport:
    """Writes the rows that a remedy trains on, with `origin`, `is_counterfactual` and `weight`.

    Every column of the table stays. `origin` is the number of the row it comes from, the first
    being 0; a copy has its text rewritten and its group is the one it now stands for. `remedy` is
    one that acts before training, such as "augment_undersample"; CSV, JSON Lines or Parquet by
    the ending of `out`.

    Examples:
        >>> import tempfile
        >>> table = {"bio": ["He ran.", "She sang."], "job": ["a", "a"], "sex": ["male", "female"]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report = remedy_table(table, remedy="augment", text="bio", truth="job",
        ...                           group="sex", out=f"{folder}/train.csv")
        ...     print(Path(folder, "train.csv").read_text().splitlines()[3])
        She ran.,a,female,0,true,1.0
    """
    recipe = training_recipe(remedy)
    copied = recipe.get("order") != "plain"
    target = check_table_path(out, data=data)
    if copied and text is None:
        raise UsageError(
            f"remedy={remedy!r} rewrites texts. Name the column that holds them (text=, --text)."
        )
    with open_batches(data) as table:
        kept = _People(table, text=text, truth=truth, group=group)
        swapped: dict[Any, list[str]] = {}
        if copied:
            swapped = counterfactual_texts(
                kept.texts, group=kept.group, lexicon=lexicon, values=values
            )
        made = compose(
            kept.truth, group=kept.group, groups=list(swapped) or None, seed=seed, **recipe
        )
        texts = made.texts(kept.texts, counterfactual=swapped) if text else []
        copies = np.flatnonzero(made.is_counterfactual)
        unchanged = sum(texts[k] == kept.texts[made.origin[k]] for k in copies)
        write_batches(_rows(table, kept, made, texts, text=text, group=group), target)
    totals = {
        str(name): float(made.weights[made.group == name].sum())
        for name in sorted(set(made.group.tolist()))
    }
    return RemedyReport(
        remedy=remedy,
        source=table.source,
        out=str(out),
        rows=len(kept.rows),
        made=len(made),
        copies=int(copies.size),
        unchanged=int(unchanged),
        left_out=kept.left_out,
        weights=totals,
        notes=list(made.notes),
    )


def training_recipe(remedy: str) -> Mapping[str, Any]:
    """What `compose` is told for a remedy; refused where it is more than a training set.

    Examples:
        >>> training_recipe("oversample")
        {'order': 'plain', 'resampler': 'over'}
    """
    choose_remedies([remedy])
    recipe = REMEDIES[remedy].recipe
    if recipe is None:
        known = ", ".join(name for name, each in REMEDIES.items() if each.recipe is not None)
        raise UsageError(
            f"remedy={remedy!r} acts {REMEDIES[remedy].stage} training and is no training set. "
            f"These are: {known}."
        )
    return recipe


class _People:
    """The rows that a remedy can use, by their number in the table."""

    def __init__(self, table: BatchTable, *, text: str | None, truth: str, group: str) -> None:
        taken = [name for name in ADDED if name in table.columns]
        if taken:
            raise UsageError(
                f"The table has a column {taken[0]!r} already, which a remedy adds. Rename it."
            )
        if text is not None:
            table.check_texts("text", text)
        table.check_column("truth", truth)
        table.check_column("group", group)
        self.rows: list[int] = []
        self.texts: list[str] = []
        self.truth: list[str] = []
        self.group: list[str] = []
        self.left_out: dict[str, int] = {}
        columns = {text: "strings", truth: "labels", group: "labels"}
        named = {name: how for name, how in columns.items() if name is not None}
        for batch in table.read(table.rows_at_once([text] if text else [truth, group])):
            held = [getattr(batch, how)(name) for name, how in named.items()]
            for number, row in enumerate(zip(*held, strict=True), start=batch.start):
                self._keep(number, dict(zip(named, row, strict=True)), text, truth, group)
        if not self.rows:
            what = "a text, a truth and a group" if text else "a truth and a group"
            raise DataError(f"'{table.source}' has no row with {what}.")

    def _keep(
        self, number: int, row: Mapping[str, Any], text: str | None, truth: str, group: str
    ) -> None:
        for column, value in row.items():
            if value is None or not str(value).strip():
                self.left_out[f"no {column}"] = self.left_out.get(f"no {column}", 0) + 1
                return
        self.rows.append(number)
        self.truth.append(row[truth])
        self.group.append(row[group])
        if text is not None:
            self.texts.append(row[text])


def _rows(
    table: BatchTable,
    kept: _People,
    made: TrainingRows,
    texts: list[str],
    *,
    text: str | None,
    group: str,
) -> Iterator[Batch]:
    """Batches of the new set: the originals' columns, the copies' text and group, what is added."""
    origin = np.asarray(kept.rows, dtype=np.int64)[made.origin]
    for batch in table.pick(origin):
        at = slice(batch.start, batch.start + len(batch))
        columns: dict[str, Any] = {}
        if made.is_counterfactual.any():
            # Only where there are copies: labels would turn a group of numbers into texts.
            columns[group] = made.group[at].tolist()
            columns[str(text)] = texts[at]
        columns |= {
            "origin": origin[at],
            "is_counterfactual": made.is_counterfactual[at],
            "weight": made.weights[at],
        }
        yield batch.with_columns(columns)
