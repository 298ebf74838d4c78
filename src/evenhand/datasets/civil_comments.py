"""Civil Comments (the Kaggle files): toxicity and the gender a comment speaks of."""

from pathlib import Path

import numpy as np
import polars as pl

from evenhand.decisions.paths import plain_path
from evenhand.errors import DataError, UsageError

_TOXICITY = ("target", "toxicity")
COLUMNS = ("id", "text", "truth", "gender", "toxicity", "female", "male", "split")


def civil_comments_rules(frame: pl.DataFrame, *, at_least: bool = False) -> pl.DataFrame:
    """Rows with `truth` (toxic: 1), `gender` (null where not kept) and `kept`, by Chen et al.

    Toxic above 0.5, with `at_least` from 0.5 on (the competition's rule). Kept where female and
    male differ by more than 0.5; a missing identity counts as 0.

    Examples:
        >>> rows = pl.DataFrame({"toxicity": [0.7, 0.5], "female": [1.0, 0.8], "male": [None, 0.3]})
        >>> civil_comments_rules(rows).select("truth", "gender", "kept").rows()
        [(1, 'female', True), (0, None, False)]
    """
    female, male = pl.col("female").fill_null(0.0), pl.col("male").fill_null(0.0)
    toxic = pl.col("toxicity") >= 0.5 if at_least else pl.col("toxicity") > 0.5
    kept = (female - male).abs() > 0.5
    return frame.with_columns(
        truth=toxic.cast(pl.Int8),
        kept=kept,
        gender=pl.when(kept & (female > male))
        .then(pl.lit("female"))
        .when(kept)
        .then(pl.lit("male")),
        female=female,
        male=male,
    )


def read_civil_comments(
    folder: str | Path, *, at_least: bool = False, validation: float = 0.2, seed: int = 0
) -> pl.DataFrame:
    """Comments that speak of one gender, from train.csv and the two expanded test files.

    The columns are id, text, truth, gender, toxicity, female, male and split: train.csv is
    divided into train and validation by the seed, the public and private files are the test.
    """
    folder = Path(folder)
    if not 0 < validation < 1:
        raise UsageError(f"validation={validation} is not a share between 0 and 1.")
    train = _read(folder / "train.csv", at_least=at_least)
    held = np.zeros(len(train), dtype=bool)
    rows = np.random.default_rng(seed).permutation(len(train))
    held[rows[: round(validation * len(train))]] = True
    label = pl.Series("split", np.where(held, "validation", "train"))
    parts = [train.with_columns(label)]
    for name in ("test_public_expanded.csv", "test_private_expanded.csv"):
        test = _read(folder / name, at_least=at_least)
        parts.append(test.with_columns(split=pl.lit("test")))
    return pl.concat([part.select(COLUMNS) for part in parts])


def _read(path: Path, *, at_least: bool) -> pl.DataFrame:
    if not path.is_file():
        raise DataError(
            f"{str(path)!r} does not exist. The folder needs train.csv, test_public_expanded.csv "
            "and test_private_expanded.csv."
        )
    try:
        scan = pl.scan_csv(plain_path(path), glob=False, infer_schema_length=0)
        columns = scan.collect_schema().names()
        toxicity = next((name for name in _TOXICITY if name in columns), None)
        wanted = ("id", "comment_text", "female", "male")
        lacking = [name for name in wanted if name not in columns]
        if toxicity is None or lacking:
            names = ", ".join(lacking or _TOXICITY)
            raise DataError(f"{str(path)!r} lacks the column {names}.")
        frame = scan.select(
            pl.col("id"),
            pl.col("comment_text").alias("text"),
            pl.col(toxicity).cast(pl.Float64).alias("toxicity"),
            pl.col("female").cast(pl.Float64),
            pl.col("male").cast(pl.Float64),
        ).collect()
    except pl.exceptions.PolarsError as problem:
        raise DataError(f"{str(path)!r} is not the CSV it should be: {problem}.") from problem
    ruled = civil_comments_rules(frame, at_least=at_least)
    return ruled.filter(pl.col("kept") & pl.col("toxicity").is_not_null())
