"""Norm scorers of paper 1's texts, and the words that they and an occupation's classifier weigh.

Figures 3, 4 and 6 of the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.models.corpus import BagOfWords
from evenhand.models.norms.fit import fit_norm_scorer
from evenhand.models.norms.ratings import Ratings, agreement
from evenhand.models.norms.scorer import NormScorer
from evenhand.models.vectors import WordVectors
from evenhand.models.words import WordWeights, word_filter, word_weights
from evenhand.papers.runs import FOCAL, REFERENCE, Runs
from evenhand.papers.sheets import Absent, Cell, Figure, Part
from evenhand.remedies.ledger.texts import LedgerTexts
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.simulate.biography_words import NORM_WORDS
from evenhand.stats.estimate import Estimate, FloatArray
from evenhand.text.mask import scrub_texts

SURGEON = "surgeon"
EXTREME = ("surgeon", "software_engineer", "composer", "nurse", "dietitian", "yoga_teacher")
THRESHOLD, RATIO = 0.5, 0.7
PLANTED = "planted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Norming:
    """Norm scorers of the training texts: of word vectors, and of word counts."""

    vectors: NormScorer
    counts: NormScorer
    test: list[str]


def learn_norms(texts: LedgerTexts, *, seed: int) -> Norming:
    """Both norm scorers, on scrubbed texts as always."""
    people, rows = texts.rows.people, texts.rows
    clean = [str(each) for each in scrub_texts(people.texts, names=people.names).texts]
    train = rows.train.tolist()

    def fit(representation: Any, *, irrelevant: bool) -> NormScorer:
        return fit_norm_scorer(
            [clean[k] for k in train],
            group=[people.group[k] for k in train],
            truth=[people.truth[k] for k in train],
            representation=representation,
            groups=rows.groups,
            scrub=False,
            irrelevant=irrelevant,
        )

    return Norming(
        vectors=fit(WordVectors(seed=seed), irrelevant=True),
        counts=fit(BagOfWords(), irrelevant=False),
        test=[clean[k] for k in rows.test.tolist()],
    )


def planted_ratings() -> Ratings:
    """What people would say of the simulator's norm words: 1 is feminine, 5 masculine."""
    words = {name: tuple(NORM_WORDS[name].split()) for name in (FOCAL, REFERENCE)}
    sizes = [len(words[name]) for name in (FOCAL, REFERENCE)]
    return Ratings(
        words=words[FOCAL] + words[REFERENCE],
        values=np.repeat([1.0, 5.0], sizes),
        toward=REFERENCE,
        source=PLANTED,
    )


def rated_words(norming: Norming, ratings: Ratings | None) -> Part:
    """Figure 3: what people say of words against their weight in the scorer."""
    title = "People's ratings of words against their weight in the norm scorer"
    if ratings is None:
        reason = "It needs people's ratings of words (--ratings FILE), and none were given."
        return Absent(name="figure3", title=title, reason=reason)
    weights = norming.vectors.word_weights(ratings.toward)
    place = {word: k for k, word in enumerate(norming.vectors.names)}
    rows: list[list[Any]] = [
        [word, float(rated), float(weights[place[word]])]
        for word, rated in zip(ratings.words, ratings.values, strict=True)
        if word in place
    ]
    points = [
        {"x": rated, "y": weight, "name": word, "tip": f"{word}: {rated:.1f}, {weight:.2f}"}
        for word, rated, weight in rows
    ]
    people = {FOCAL: "women", REFERENCE: "men"}[ratings.toward]
    simulated = ratings.source == PLANTED
    about = (
        "The ratings are planted here: each norm word belongs to one gender. "
        if simulated
        else f"A high rating means {people}. "
    )
    found = agreement(norming.vectors, ratings)
    return Figure(
        name="figure3",
        title=title,
        charts=[{"kind": "scatter", "points": points, "y_zero": 0, "x_domain": [0, 6],
                 "x_axis": "planted: 1 feminine, 5 masculine" if simulated else "people's rating",
                 "y_axis": f"weight towards {people}"}],
        columns=("word", "rating", f"weight towards {people}"),
        rows=rows,
        read=f"{about}Rank correlation {estimate_cell(found).text(2)} over {len(rows)} words; the "
        "paper prints 0.68 over the 600 words of Crawford et al.",
    )  # fmt: skip


def estimate_cell(found: Estimate, **printed: Any) -> Cell:
    if found.value is None:
        return Cell(reason=found.undefined, **printed)
    return Cell(value=found.value, low=found.low, high=found.high, n=int(found.n), **printed)


def _weights(
    runs: Runs, norming: Norming, representation: str, fitted: Any, *, classes: Sequence[str]
) -> WordWeights:
    """Weights of words in a classifier and in the norm scorer of the same representation."""
    scaled = runs.texts.representations[representation]
    table: FloatArray = np.asarray(fitted.coef_, dtype=np.float64)
    if scaled.scale is not None:
        table = table / scaled.scale
    scorer = norming.vectors if representation == "vectors" else norming.counts
    known = set(scaled.words.words) & set(scorer.names)
    words = [word for word in scaled.words.words if word in known]
    at = [k for k, word in enumerate(scaled.words.words) if word in known]
    embedding = scaled.words.embedding
    found = word_weights(
        table if embedding is not None else table[:, at],
        words=words,
        embedding=None if embedding is None else embedding[at],
        classes=classes,
    )
    place = {word: k for k, word in enumerate(scorer.names)}
    norm = scorer.word_weights(FOCAL)
    relevant = None
    if scorer.relevant is not None:
        columns = [place[word] for word in words]
        order = [scorer.classes.index(name) for name in classes]
        relevant = scorer.relevant[np.ix_(order, columns)]
    return replace(
        found,
        norm=np.array([norm[place[word]] for word in words]),
        norm_group=FOCAL,
        relevant=relevant,
    )


def _occupation(runs: Runs) -> str:
    classes = runs.texts.rows.classes
    return SURGEON if SURGEON in classes else str(classes[0])


def word_scatter(runs: Runs, norming: Norming) -> Part:
    """Figure 4: words by their weight in an occupation's classifier and in the norm scorer."""
    title = "Words by their weight in an occupation's classifier and in the norm scorer"
    held = runs.of("vectors", "baseline")
    if not held:
        why = runs.reasons.get(("vectors", "baseline"), "not run")
        return Absent(name="figure4", title=title, reason=why)
    classes = [str(c) for c in runs.texts.rows.classes]
    found = _weights(runs, norming, "vectors", held[0].fitted.model, classes=classes)
    occupation = _occupation(runs)
    c = classes.index(occupation)
    kinds = {
        "task-relevant": (SERIES[0], SERIES_SHAPES[0]),
        "task-irrelevant": (SERIES[1], SERIES_SHAPES[1]),
    }
    points: list[dict[str, Any]] = []
    rows = []
    for k, word in enumerate(found.words):
        weight, norm = float(found.weights[c, k]), float(found.norm[k])
        relevant = found.relevant is not None and bool(found.relevant[c, k])
        kind = "task-relevant" if relevant else "task-irrelevant"
        points.append({"x": norm, "y": weight, "name": word, "kind": kind,
                       "tip": f"{word}: {weight:.2f}, norm {norm:.2f}"})  # fmt: skip
        rows.append([occupation, word, norm, weight, kind])
    points.sort(key=lambda point: -abs(point["x"] * point["y"]))
    return Figure(
        name="figure4",
        title=title,
        charts=[{"kind": "scatter", "points": points[:400], "kinds": kinds, "x_zero": 0,
                 "y_zero": 0, "x_axis": "weight in the norm scorer, towards women",
                 "y_axis": f"weight for {occupation}"}],
        columns=("occupation", "word", "norm weight", "class weight", "kind"),
        rows=rows,
        read="Cosines of word vectors and coefficients; the words that weigh most in both are "
        "drawn, all are in the CSV.",
        legend=list(kinds),
    )  # fmt: skip


def filtered_words(runs: Runs, norming: Norming) -> Part:
    """Figure 6 and Appendix A: words of a bag of words, with cuts by group against decoupled."""
    title = "Bag of words: words that weigh in both, one model for all against one for women"
    plain, apart = runs.of("bow", "baseline"), runs.of("bow", "decoupled")
    if not plain or not apart:
        why = runs.reasons.get(("bow", "decoupled"), "not run")
        return Absent(name="figure6", title=title, reason=why)
    women = apart[0].fitted.model.estimators_[FOCAL]
    classes = [str(c) for c in runs.texts.rows.classes]
    post = _weights(runs, norming, "bow", plain[0].fitted.model, classes=classes)
    theirs = [str(c) for c in women.classes_]
    other = _weights(runs, norming, "bow", women, classes=theirs)
    occupation = _occupation(runs)
    kinds = {"post": (SERIES[0], SERIES_SHAPES[0]), "decoupled": (SERIES[1], SERIES_SHAPES[1])}
    points: list[dict[str, Any]] = []
    rows, told = [], []
    for name in dict.fromkeys([occupation, *EXTREME]):
        if name not in classes or name not in theirs:
            continue
        one, two = post.weights[classes.index(name)], other.weights[theirs.index(name)]
        for label, own, against in (("post", one, two), ("decoupled", two, one)):
            passed = word_filter(
                own, against, norm=post.norm, words=post.words, threshold=THRESHOLD, ratio=RATIO
            )
            if passed:
                told.append(f"{name}, {label}: {', '.join(passed[:8])}")
            if name == occupation:
                for k, word in enumerate(post.words):
                    x, y = float(post.norm[k]), float(own[k])
                    tip = f"{word}, {label}: {y:.2f}"
                    points.append({"x": x, "y": y, "name": word, "kind": label, "tip": tip})
                    rows.append([name, label, word, x, y])
    points.sort(key=lambda point: -abs(point["x"] * point["y"]))
    return Figure(
        name="figure6",
        title=title,
        charts=[{"kind": "scatter", "points": points[:400], "kinds": kinds, "x_zero": 0,
                 "y_zero": 0, "x_axis": "weight in the norm scorer, towards women",
                 "y_axis": f"weight for {occupation}"}],
        columns=("occupation", "approach", "word", "norm weight", "class weight"),
        rows=rows,
        read=f"Words above T = {THRESHOLD} in both and T′ = {RATIO} of the other model's weight: "
        f"{'; '.join(told) or 'none'}.",
        legend=list(kinds),
        notes=["The paper names, for six occupations, miss, mom, wife, mother and husband with "
               "post; girls, women, gender, loves, mother, romance, daughter, sister and female "
               "with decoupled."],
    )  # fmt: skip
