"""People's ratings of words, and how far a norm scorer agrees with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenhand.decisions.paths import plain_path
from evenhand.errors import DataError, UsageError, nearest
from evenhand.models.norms.scorer import NormScorer
from evenhand.stats.estimate import Estimate, FloatArray, critical, number
from evenhand.stats.ranks import bonett_wright, correlation_p, spearman

COLUMNS = ("mean", "rating", "score")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """A rating of each word; a high one means that people see it as the group's (`toward`)."""

    words: tuple[str, ...]
    values: FloatArray
    toward: str
    source: str = "ratings"


def read_ratings(path: str | Path, *, toward: str) -> Ratings:
    """Ratings from a CSV file with a column `word` and one called mean, rating or score."""
    import polars as pl

    if not Path(path).is_file():
        raise DataError(f"There is no file '{path}'.")
    try:
        table = pl.read_csv(plain_path(path), glob=False)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"'{path}' cannot be read as CSV: {reason}") from error
    value = next((name for name in COLUMNS if name in table.columns), None)
    if "word" not in table.columns or value is None or not table[value].dtype.is_numeric():
        raise DataError(
            f"ratings='{path}' has the columns {', '.join(table.columns)}. "
            "It needs 'word' and a number called 'mean', 'rating' or 'score'."
        )
    known = table.select("word", value).drop_nulls()
    return Ratings(
        words=tuple(known["word"].cast(pl.String).str.to_lowercase().to_list()),
        values=known[value].cast(pl.Float64).to_numpy(),
        toward=toward,
        source=str(path),
    )


def agreement(
    scorer: NormScorer, ratings: Ratings, *, name: str | None = None, level: float = 0.95
) -> Estimate:
    """Rank correlation of a scorer's word weights with people's ratings, by word.

    Positive where the scorer weighs words towards the group that people see them as. With the
    `name` of a class, of its task-irrelevant scorer over the words irrelevant to it.
    """
    if ratings.toward not in scorer.groups:
        raise UsageError(
            f"Ratings lean towards {ratings.toward!r}, which is not a group of the norm scorer."
            f"{nearest(ratings.toward, list(scorer.groups))} It has {', '.join(scorer.groups)}."
        )
    place = {word: k for k, word in enumerate(scorer.names)}
    column = np.array([place.get(word, -1) for word in ratings.words], dtype=np.int64)
    known = column >= 0
    n = int(known.sum())
    if not n:
        raise DataError(
            f"'{ratings.source}' has none of the {len(scorer.names):,} words of the norm scorer. "
            "See whether its language and its case are those of the texts."
        )
    if name is not None and scorer.relevant is not None:
        relevant = scorer.relevant[scorer.classes.index(name)]
        known[known] = ~relevant[column[known]]
        n = int(known.sum())
    weights = scorer.word_weights(ratings.toward, name=name)
    r = float(spearman(weights[column[known]], ratings.values[known]))
    if not np.isfinite(r):
        reason = f"only {n} rated words are known, or all have one weight"
        return Estimate.none(reason, level=level, n=n)
    low, high = bonett_wright(r, n, z=critical(level))
    return Estimate(
        value=r,
        low=number(float(low)),
        high=number(float(high)),
        level=level,
        n=n,
        p=float(correlation_p(r, n)),
        method=f"Spearman over rated words, high ratings mean {ratings.toward}",
    )


def mean_agreement(each: Sequence[Estimate], *, level: float = 0.95) -> Estimate:
    """Mean over classes of the task-irrelevant scorers' agreement with people's ratings.

    The scorers of two classes share most of their words, so that their mean is hardly surer than
    one of them: the interval is that of the scorer with the fewest rated words.

    Examples:
        >>> print(mean_agreement([Estimate(value=0.5, n=200), Estimate(value=0.6, n=240)]))
        0.550 [0.437, 0.646] n=200
    """
    known = [one for one in each if one.value is not None]
    if not known:
        return Estimate.none("no class has a task-irrelevant scorer", level=level)
    values = np.array([one.value for one in known], dtype=np.float64)
    n = min(one.n for one in known)
    r = float(values.mean())
    low, high = bonett_wright(r, n, z=critical(level))
    spread = f", SD {values.std(ddof=1):.2f}" if values.size > 1 else ""
    return Estimate(
        value=r,
        low=number(float(low)),
        high=number(float(high)),
        level=level,
        n=n,
        method=f"mean over {values.size} classes{spread}",
    )
