"""Training of the his-or-him classifier from any English corpus, without labels.

Every "his" stands where a possessive "her" could, every "him" where an object "her" could; the
other pairs (my and me, their and them) add examples, and so do sentences made from tables of
constructions that such corpora lack. Texts of folds 0 and 1 (a hash of the text) are held out
for the measurement that is printed.

    cd tools && python -m her.train corpus.csv more.parquet --text text \\
        --vectors glove.vec.gz --out ../src/evenhand/text/his_or_him.tsv.gz

Word vectors are optional: a direction in them is learned for each position around the pronoun and
then written out as one number a word, so that words the corpus lacks are judged by their likes.
"""

import gzip
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from evenhand.errors import DataError, MissingExtra
from evenhand.stats.estimate import FloatArray
from evenhand.text.his_or_him import POSITIONS, STEP, Context, HerModel, features
from evenhand.text.wordclasses import word_class
from her.constructions import constructed
from her.examples import (
    LOOSE_FORMS,
    OBJECT_AFTER,
    OTHER_FORMS,
    POSSESSIVE_FORMS,
    examples,
    fold_of,
    induce_classes,
)

HELD_OUT = frozenset({0, 1})
_MADE = 0.6  # weight of a constructed sentence
_AT = (1, 2, 3)  # positions p1, n1 and n2 whose vectors are used
_FEWEST = 500  # words with a class before the classes of others are learned from their vectors
_COMMON = (6_000, 20_000, 6_000)  # words written out at each of them beyond those of the corpus

_Row = tuple[Context, bool, float]  # what stands around, whether it is a possessive, its weight


def train(
    texts: list[str],
    *,
    vectors: Mapping[str, FloatArray] | None = None,
    held_out: frozenset[int] = HELD_OUT,
    min_count: int = 2,
    object_weight: float = 2.0,
    strength: float = 0.2,
    made: int = 30_000,
) -> HerModel:
    """Classifier learned from the contexts of his and him (and my, me, their, them …).

    Objects are rarer than possessives and count `object_weight` times; reflexives count half.
    Up to `made` sentences of `constructions` teach what the corpus lacks.

    Examples:
        >>> texts = ["I saw his dog.", "I saw his cat.", "Ask him.", "We told him."] * 5
        >>> model = train(texts, held_out=frozenset(), made=0)
        >>> model.possessive("Ask her.", 4, 7) < 0.5 < model.possessive("I saw her dog.", 6, 9)
        True
    """
    kept_texts = [text for text in texts if fold_of(text) not in held_out]
    rows = _pronouns(kept_texts)
    if len({kind for _, kind, _ in rows}) < 2:
        raise DataError(
            f"The corpus of {len(texts)} texts has no contexts to learn from: "
            "it needs both possessives (his) and objects (him). Give a larger English corpus."
        )
    try:
        from scipy.sparse import csr_matrix, hstack
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError as problem:
        raise MissingExtra("text", "Training the his-or-him classifier") from problem
    rows += [(found, kind, _MADE) for kind, found in constructed(made)]
    pronouns = len(rows)
    rows += _articles(kept_texts, most=pronouns)
    contexts = [found for found, _, _ in rows]
    possessive = [kind for _, kind, _ in rows]
    weights = [weight if kind else weight * object_weight for _, kind, weight in rows]
    classes = induce_classes(kept_texts)
    if vectors:
        classes = _extended(classes, vectors)
    names = DictVectorizer(dtype=np.float32)
    table = names.fit_transform(
        _features(found, classes=classes, article=row >= pronouns)
        for row, found in enumerate(contexts)
    )
    kept = np.asarray(table.sum(axis=0)).ravel() >= min_count
    blocks = [table[:, kept]]
    blocks += (
        [csr_matrix(_directions(contexts, at, vectors, pronouns)) for at in _AT] if vectors else []
    )
    model = LogisticRegression(C=strength, max_iter=1000, solver="liblinear")
    model.fit(hstack(blocks).tocsr(), possessive, sample_weight=weights)
    values = dict(zip(names.get_feature_names_out()[kept].tolist(), model.coef_[0].tolist()))
    if vectors:
        _spread(values, model.coef_[0][kept.sum() :], contexts=contexts, vectors=vectors)
    return _quantised(values, intercept=float(model.intercept_[0]), classes=classes)


def _extended(classes: dict[str, str], vectors: Mapping[str, FloatArray]) -> dict[str, str]:
    """Classes of common words that the corpus is too small for, from words with like vectors."""
    from sklearn.linear_model import LogisticRegression

    known = [word for word in classes if word in vectors]
    missing = [word for word in list(vectors)[: max(_COMMON)] if word.isalpha()]
    missing = [word for word in missing if word not in classes]
    if len(known) < _FEWEST or not missing:
        return classes
    seen, unseen = (np.array([vectors[word] for word in each]) for each in (known, missing))
    letters = [""] * len(missing)
    for letter in "acnv":
        has = [letter in classes[word] for word in known]
        if 0 < sum(has) < len(has):
            likely = LogisticRegression(max_iter=1000).fit(seen, has).predict(unseen)
            letters = [old + letter * int(new) for old, new in zip(letters, likely)]
    return dict(
        sorted((classes | {word: kind for word, kind in zip(missing, letters) if kind}).items())
    )


def _directions(
    contexts: list[Context], at: int, vectors: Mapping[str, FloatArray], pronouns: int
) -> FloatArray:
    nothing = np.zeros(len(next(iter(vectors.values()))))
    table = np.array([vectors.get(found[at].lower(), nothing) for found in contexts])
    if at < 2:
        table[pronouns:] = 0.0
    return table


def _spread(
    values: dict[str, float],
    directions: FloatArray,
    *,
    contexts: list[Context],
    vectors: Mapping[str, FloatArray],
) -> None:
    """Adds to each word's weight what its vector says, for common words and those of the corpus."""
    common = dict(zip(_AT, _COMMON))
    for at, direction in zip(_AT, directions.reshape(len(_AT), -1)):
        words = dict.fromkeys(list(vectors)[: common[at]])
        words |= dict.fromkeys(found[at].lower() for found in contexts)
        for word in words:
            if word in vectors:
                name = f"{POSITIONS[at]}={word}"
                values[name] = values.get(name, 0.0) + float(direction @ vectors[word])


def read_vectors(path: Path) -> dict[str, FloatArray]:
    """Word vectors in word2vec's text layout, centred; the first line holds their number."""
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode()
    rows = [line.rstrip().split(" ") for line in text.split("\n")[1:] if line]
    table = np.array([row[1:] for row in rows], dtype=np.float64)
    table -= table.mean(axis=0)
    return {row[0]: vector for row, vector in zip(rows, table)}


def _pronouns(texts: list[str]) -> list[_Row]:
    """Contexts of all pronouns that tell a possessive from an object, surest ones weighing most."""
    reflexive = {form: kind for form, kind in OTHER_FORMS.items() if "sel" in form}
    others = {form: kind for form, kind in OTHER_FORMS.items() if form not in reflexive}
    sources = ((POSSESSIVE_FORMS | others, 1.0), (reflexive, 0.5), (LOOSE_FORMS, 0.3))
    return [
        (found, kind, weight)
        for forms, weight in sources
        for _, kind, found in examples(texts, forms=forms)
        if forms is not LOOSE_FORMS or kind or _takes_object(found[1])
    ]


def _articles(texts: list[str], *, most: int) -> list[_Row]:
    """Contexts of the and a, which open the noun phrases a possessive opens: nouns it lacks."""
    forms = dict.fromkeys(("the", "a", "an"), True)
    found = [around for _, _, around in examples(texts, forms=forms)]
    return [(around, True, 0.3) for around in found[:: max(1, len(found) // max(most, 1))]]


def _takes_object(before: str) -> bool:
    return word_class(before, induced={}, before=True) in OBJECT_AFTER


def _features(found: Context, *, classes: Mapping[str, str], article: bool) -> dict[str, float]:
    """Features of one example; what stands before an article is not what stands before "her"."""
    if article:
        found = ("<none>", "<none>", *found[2:])
    names = features(found, induced=classes)
    if article:
        names = [name for name in names if "<none>" not in name and not name.startswith("own")]
    return dict.fromkeys(names, 1.0)


def _quantised(values: dict[str, float], *, intercept: float, classes: dict[str, str]) -> HerModel:
    """The same weights in whole steps, without those that round to nothing."""
    weights = {name: round(value / STEP) * STEP for name, value in values.items()}
    return HerModel(
        {name: value for name, value in weights.items() if abs(value) > 1.5 * STEP},
        intercept=round(intercept / STEP) * STEP,
        classes=classes,
    )


def accuracy(
    model: HerModel, texts: list[str], *, folds: frozenset[int] = HELD_OUT
) -> dict[str, tuple[int, int]]:
    """Right answers and cases in the his/him contexts of these folds, for each of the two.

    Examples:
        >>> model = HerModel({"n1=.": -2.0}, intercept=1.0)
        >>> accuracy(model, ["Ask him.", "his dog"], folds=frozenset(range(10)))
        {'possessive': (1, 1), 'object': (1, 1)}
    """
    right = {True: 0, False: 0}
    cases = {True: 0, False: 0}
    for fold, kind, found in examples(texts, forms=POSSESSIVE_FORMS):
        if fold in folds:
            cases[kind] += 1
            right[kind] += (model.score(found) > 0) == kind
    return {"possessive": (right[True], cases[True]), "object": (right[False], cases[False])}


def read_texts(path: Path, *, column: str) -> list[str]:
    """Texts of one corpus: a column of a CSV or Parquet file, or each line of any other file."""
    if path.suffix in {".csv", ".parquet"}:
        frame = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
        return [text for text in frame[column].to_list() if text]
    return path.read_text(encoding="utf-8").splitlines()


def main(arguments: list[str] | None = None) -> None:
    """Command line of the training."""
    parser = ArgumentParser(prog="python -m her.train", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--text", default="text", help="column of a CSV or Parquet corpus")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--constructed", type=int, default=30_000, help="sentences made from patterns, beside it"
    )
    parser.add_argument("--vectors", type=Path, help="word vectors in word2vec's text layout")
    options = parser.parse_args(arguments)
    texts = [t for path in options.corpora for t in read_texts(path, column=options.text)]
    vectors = read_vectors(options.vectors) if options.vectors else None
    model = train(texts, vectors=vectors, made=options.constructed)
    options.out.write_bytes(model.to_bytes())
    print(f"{len(model)} features, {options.out.stat().st_size:,} bytes")
    for kind, (right, cases) in accuracy(model, texts).items():
        share = f"{right / cases:.4f}" if cases else "undefined"
        print(f"{kind}: {share} of {cases} held out")


if __name__ == "__main__":
    main()
