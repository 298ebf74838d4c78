"""Texts to try the papers' methods on: simulated, or the public corpora from local files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.datasets.biasbios import read_biasbios
from evenhand.datasets.civil_comments import civil_comments_rules, read_civil_comments
from evenhand.decisions.paths import plain_path
from evenhand.errors import DataError, UsageError
from evenhand.papers.runs import REFERENCE
from evenhand.remedies.ledger.rows import LedgerRows, join_rows, read_people, two_parts
from evenhand.remedies.ledger.texts import LedgerTexts, prepare_texts
from evenhand.simulate.biographies import Occupation, annotate_gender, biographies, occupations

TEST_SHARE = 0.25
# Names that the column of occupations goes by, and the fewest people of each gender in one.
TITLES, FEWEST = ("truth", "title", "occupation", "profession"), 10
# Rows of the simulator: by occupation, and of comments in all.
QUICK, FULL = (120, 4000), (700, 30_000)
COMMENTS = {
    "civil": Occupation(
        female_share=0.58,
        size=6.0,
        words=("agree", "thanks", "article", "evidence", "policy", "budget", "council", "vote"),
    ),
    "toxic": Occupation(
        female_share=0.48,
        size=1.0,
        words=("idiot", "stupid", "trash", "liar", "disgusting", "moron", "pathetic", "fool"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Rows with texts, what they are in words, whether they are the paper's own or simulated.

    `agreement` is how far annotators agree on the gender of each text, where there are any.
    """

    rows: LedgerRows
    words: str
    own: bool
    planted: bool = False
    agreement: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """The representations of a reproduction: word counts, word vectors and perhaps a folder."""

    folder: Path | None = None
    fine_tune: bool = False
    training: Any = None

    def prepare(self, source: Source, *, setting: Any, seed: int) -> LedgerTexts:
        """The texts in every representation, masked as the second paper has them, or scrubbed."""
        names = ["bow", "vectors", *([str(self.folder)] if self.folder else [])]
        return prepare_texts(
            source.rows,
            setting=setting,
            representations=tuple(names),
            fine_tune=self.fine_tune,
            training=self.training,
            seed=seed,
        )

    def name(self, texts: LedgerTexts) -> str | None:
        """What the folder is called among the representations of these texts."""
        known = [each for each in texts.representations if each not in ("bow", "vectors")]
        return known[0] if known else None


def simulated_biographies(*, quick: bool, seed: int) -> Source:
    """Biographies of 28 equally large occupations with the female shares of the public corpus."""
    each = QUICK[0] if quick else FULL[0]
    chosen = {title: replace(one, size=1.0) for title, one in occupations().items()}
    n = each * len(chosen)
    made = biographies(n, occupations=chosen, leak="class_words", first_names=True, seed=seed)
    return Source(
        rows=ledger_rows(made.frame, truth="title", seed=seed),
        words=f"{n:,} simulated biographies of {len(chosen)} occupations, in which norm words and "
        "pronouns lead to the occupation by planted paths",
        own=False,
        planted=True,
    )


def simulated_comments(*, quick: bool, seed: int) -> Source:
    """Comments that are toxic or not, about women and men."""
    n = QUICK[1] if quick else FULL[1]
    made = biographies(n, occupations=COMMENTS, leak="class_words", strength=4.0, seed=seed + 1)
    seen = annotate_gender(made.frame["gender"].to_list(), seed=seed + 2)
    toxicity = pl.when(pl.col("title") == "toxic").then(1.0).otherwise(0.0)
    frame = pl.concat([made.frame.drop("gender"), seen], how="horizontal")
    frame = civil_comments_rules(frame.with_columns(toxicity=toxicity)).filter("kept")
    return Source(
        rows=ledger_rows(frame, truth="title", name=None, seed=seed),
        words=f"{len(frame):,} simulated comments, toxic or not, about a gender that most of ten "
        "simulated annotators see in them",
        own=False,
        planted=True,
        agreement=_agreement(frame),
    )


def _agreement(frame: pl.DataFrame) -> dict[str, float]:
    """How far the two shares of annotators lie apart, by text; of equal texts the first one's."""
    apart = frame.select((pl.col("female") - pl.col("male")).abs()).to_series()
    return dict(zip(reversed(frame["text"].to_list()), reversed(apart.to_list()), strict=True))


def read_source(files: Sequence[str | Path], *, kind: str, keep_first: bool, seed: int) -> Source:
    """BiasBios, Civil Comments or a plain CSV of biographies, whichever of these holds them."""
    for path in files:
        folder = Path(path)
        if not folder.exists():
            raise DataError(f"'{path}' does not exist.")
        comments = folder.is_dir() and (folder / "train.csv").is_file()
        if kind == "comments" and comments:
            frame = read_civil_comments(folder, seed=seed)
            words = f"{len(frame):,} comments of Civil Comments ({folder})"
            rows = ledger_rows(frame, truth="truth", name=None, split="split", seed=seed)
            return Source(rows=rows, words=words, own=True, agreement=_agreement(frame))
        if kind == "biographies" and folder.suffix == ".csv":
            return _plain_table(folder, seed=seed)
        if kind == "biographies" and not comments:
            frame = read_biasbios(path, keep_first=keep_first)
            split = "split" if frame["split"].null_count() == 0 else None
            name = "name" if frame["name"].null_count() < len(frame) else None
            words = f"{len(frame):,} biographies of BiasBios ({folder})"
            rows = ledger_rows(frame, truth="truth", name=name, split=split, seed=seed)
            return Source(rows=rows, words=words, own=True)
    raise UsageError(f"None of {', '.join(map(str, files))} holds {kind}.")


def _plain_table(path: Path, *, seed: int) -> Source:
    """Other biographies: a CSV file with text, gender, an occupation and perhaps a name.

    Occupations with fewer than ten people of a gender are left out, and counted.
    """
    frame = pl.read_csv(plain_path(path), glob=False, infer_schema_length=0)
    truth = next((name for name in TITLES if name in frame.columns), None)
    lacking = [name for name in ("text", "gender") if name not in frame.columns]
    if truth is None or lacking:
        raise DataError(
            f"'{path}' lacks {', '.join(lacking) or ' or '.join(TITLES)}; it has "
            f"{', '.join(frame.columns)}. Biographies need text, gender and an occupation."
        )
    frame = frame.unique("text", keep="first", maintain_order=True)
    cells = frame.group_by(truth, "gender").len().filter(pl.col("len") >= FEWEST)
    large = cells.group_by(truth).len().filter(pl.col("len") >= 2)[truth].to_list()
    kept = frame.filter(pl.col(truth).is_in(large))
    name = "name" if "name" in frame.columns else None
    words = (
        f"{len(kept):,} biographies of {len(large)} occupations in {path.name}; "
        f"{len(frame) - len(kept):,} of smaller ones are left out"
    )
    return Source(rows=ledger_rows(kept, truth=truth, name=name, seed=seed), words=words, own=False)


def holds_comments(path: str | Path) -> bool:
    """Whether a folder is that of Civil Comments."""
    return (Path(path) / "train.csv").is_file()


def ledger_rows(
    frame: Any,
    *,
    truth: str,
    seed: int,
    name: str | None = "name",
    split: str | None = None,
) -> LedgerRows:
    """The rows of a frame as the ledger deals them out; women are compared with men.

    Public splits have some texts on both sides: those to train on go.
    """
    columns: Mapping[str, Any] = {"truth": truth, "group": "gender", "text": "text", "name": name}
    people = read_people(frame, split=split, **columns)
    train, test = two_parts(people, split=split, test_share=TEST_SHARE, seed=seed)
    held = set(test.texts)
    apart = [row for row, text in enumerate(train.texts) if text not in held]
    if len(apart) < len(train):
        shared = len(train) - len(apart)
        train = train.take(apart)
        train.left_out["the same text is among the test rows"] = shared
    return join_rows(train, test, seed=seed, reference=REFERENCE)
