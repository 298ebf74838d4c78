"""Fitting of norm scorers: of texts, with one more for each class, and of any numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from evenhand.decisions.tally import Codes, encode
from evenhand.errors import DataError, UsageError, nearest
from evenhand.models.corpus import Corpus, Representation, pooled
from evenhand.models.logistic import fit_logistic
from evenhand.models.norms.names import NameWords, name_words
from evenhand.models.norms.relevance import Relevance, Rule, task_relevance
from evenhand.models.norms.scorer import Linear, Names, NormScorer, Texts, numbers, row_hashes
from evenhand.models.vectors import WordVectors
from evenhand.stats.estimate import FloatArray, number
from evenhand.text.compiled import Tagger
from evenhand.text.mask import SCRUBBED_WORDS, scrub_texts

LEAST_ROWS, LEAST_IN_CLASS, LEAST_CLASSES = 200, 20, 5


def cell_counts(
    truth: Sequence[object], group: Sequence[object]
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...], Codes, Codes]:
    """Rows by (class, group), the names of both, and the codes of every row (-1: missing)."""
    if len(truth) != len(group):
        raise UsageError(
            f"truth has {len(truth):,} values and group {len(group):,}. Give one of each a row."
        )
    classes, c = encode(truth)
    groups, g = encode(group)
    known = (c >= 0) & (g >= 0)
    flat = np.bincount(c[known] * len(groups) + g[known], minlength=len(classes) * len(groups))
    return flat.reshape(len(classes), len(groups)).astype(np.float64), classes, groups, c, g


def training_groups(truth: Sequence[object], group: Sequence[object]) -> tuple[str, ...]:
    """Groups large enough to train a norm scorer: 200 rows, and 20 in at least five classes.

    Without this floor one rare group would set the weight of every class to almost nothing.

    Examples:
        >>> truth, group = ["a", "b", "c", "d", "e"] * 80, ["f"] * 200 + ["m"] * 195 + ["x"] * 5
        >>> training_groups(truth, group)
        Traceback (most recent call last):
        evenhand.errors.DataError: Only 'f' has 200 rows and 20 in at least 5 classes; a norm \
scorer needs two such groups. Give more rows, or name the groups to learn from (--norm-group).
    """
    counts, classes, groups, _, _ = cell_counts(truth, group)
    if len(groups) < 2:
        only = f"'{groups[0]}'" if groups else "none"
        raise DataError(
            f"The group column has one value alone, {only}. "
            "A norm scorer tells groups apart: it needs rows of two or more."
        )
    needed = min(LEAST_CLASSES, len(classes))
    large = (counts.sum(0) >= LEAST_ROWS) & ((counts >= LEAST_IN_CLASS).sum(0) >= needed)
    found = tuple(name for name, kept in zip(groups, large, strict=True) if kept)
    if len(found) < 2:
        told = f"Only {found[0]!r} has" if found else "No group has"
        raise DataError(
            f"{told} {LEAST_ROWS} rows and {LEAST_IN_CLASS} in at least {needed} classes; a norm "
            "scorer needs two such groups. Give more rows, or name the groups to learn from "
            "(--norm-group)."
        )
    return found


def alpha_table(counts: ArrayLike, *, used: Sequence[bool]) -> FloatArray:
    """Weights α of classes × groups: the rows of a class's smallest used group ÷ those of each.

    0 for a group that is not used or not there, and for a class with fewer than two that are.

    Examples:
        >>> alpha_table([[1, 4, 2], [3, 0, 5]], used=[True, True, False]).tolist()
        [[1.0, 0.25, 0.0], [0.0, 0.0, 0.0]]
    """
    rows = np.asarray(counts, dtype=np.float64)
    there = (rows > 0) & np.asarray(used, dtype=bool)
    least = np.where(there, rows, np.inf).min(axis=1, initial=np.inf)
    least[there.sum(axis=1) < 2] = 0.0
    return np.where(there, least[:, None], 0.0) / np.maximum(rows, 1)


def alpha_weights(
    truth: Sequence[object], group: Sequence[object], *, groups: Sequence[str] | None = None
) -> FloatArray:
    """Weight of each row, so that within every class all groups weigh what the smallest does.

    α = min_k n_ck ÷ n_cl over the groups present in the class. A class with fewer than two of them
    weighs nothing, and so does a row of no class or of another group.

    Examples:
        >>> alpha_weights(["c"] * 4, ["she", "he", "he", "he"]).round(3).tolist()
        [1.0, 0.333, 0.333, 0.333]
    """
    counts, _, names, c, g = cell_counts(truth, group)
    chosen = names if groups is None else tuple(groups)
    for name in chosen:
        if name not in names:
            raise UsageError(
                f"{name!r} is not a group of the training rows.{nearest(name, list(names))} "
                f"They have {', '.join(names[:8])}."
            )
    table = alpha_table(counts, used=[name in chosen for name in names])
    weights = np.zeros(len(c))
    known = (c >= 0) & (g >= 0)
    weights[known] = table[c[known], g[known]]
    return weights


# Ten times finer than a classifier's: the order of the norms matters, not only their side of ½.
TOLERANCE = 1e-6


def fit_norm_scorer(
    texts: Texts,
    *,
    group: Sequence[object],
    truth: Sequence[object],
    names: Names = None,
    representation: Representation | None = None,
    groups: Sequence[str] | None = None,
    scrub: bool = True,
    everybody: Names = None,
    listed: Sequence[str] = (),
    tagger: Tagger | None = None,
    capitals: bool = False,
    irrelevant: bool = True,
    rule: Rule | None = None,
    penalty: float = 1.0,
) -> NormScorer:
    """A norm scorer learned from the training rows alone.

    Args:
        texts: Training texts.
        group: Group of each; `groups` names those to learn from, by default all large enough.
        truth: Class of each.
        names: The person's name of each, scrubbed from their own text in any case.
        representation: Bag of words or vectors; by default vectors learned from these texts.
        groups: The groups to tell apart.
        scrub: Remove pronouns, titles and names first. Without it the scorer reads pronouns.
        everybody: Names of people, also of other rows, scrubbed from every text; else `names`.
        listed, tagger, capitals: What else tells names; see `names.name_words`.
        irrelevant: Also fit a scorer for each class on the words irrelevant to it.
        rule: When a word is relevant to a class; by default the paper's test.
        penalty: Ridge penalty.

    Examples:
        >>> from evenhand.models.corpus import BagOfWords
        >>> texts = ["She writes on roses."] * 30 + ["He writes on oaks."] * 30
        >>> scorer = fit_norm_scorer(texts, group=["f"] * 30 + ["m"] * 30, truth=list("ab") * 30,
        ...                          representation=BagOfWords(), groups=["f", "m"])
        >>> [w for w, b in zip(scorer.names, scorer.word_weights("f")) if b > 0.1]
        ['roses']
    """
    chosen = tuple(groups) if groups is not None else training_groups(truth, group)
    weights = checked_weights(truth, group, chosen, rows=len(texts))
    removed: dict[str, int] = {}
    clean: Texts = texts
    others = NameWords()
    if scrub:
        known = names if everybody is None else everybody
        others = name_words(texts, names=known, listed=listed, tagger=tagger, capitals=capitals)
        done = scrub_texts(
            texts,
            names=names,
            words=others.everywhere.union(SCRUBBED_WORDS),
            capitalised=others.capitalised,
        )
        clean, removed = done.texts, removals(texts, int(done.removed.sum()))
    corpus = Corpus.from_texts(clean)
    if not corpus.tokens.size:
        raise DataError(
            f"All {len(texts):,} training texts are empty. Name the column that holds the texts."
        )
    model = (representation if representation is not None else WordVectors()).fit(corpus)
    counts, embedding = model.counts(corpus), model.embedding
    used = np.flatnonzero(weights > 0)
    labels = labels_of(group, chosen)
    part = counts[used]
    sums = None if embedding is None else part @ embedding
    fit = fit_linear(
        pooled(part, embedding, sums=sums), labels[used], weights[used], chosen, penalty=penalty
    )
    relevance, by_class = None, {}
    rule = Rule() if rule is None else rule
    if irrelevant:
        classes, truths = encode(truth)
        relevance = task_relevance(
            counts,
            truth=truths,
            group=labels,
            classes=classes,
            groups=chosen,
            rule=rule,
        )
        by_class = irrelevant_scorers(
            part,
            embedding,
            sums,
            relevance,
            labels[used],
            weights[used],
            start=fit,
            penalty=penalty,
        )
    return NormScorer(
        groups=chosen,
        names=model.words,
        embedding=embedding,
        linear=fit,
        classes=relevance.classes if relevance else (),
        relevant=relevance.relevant if relevance else None,
        by_class=by_class,
        seen=np.unique(row_hashes(texts)),
        settings={
            "scrub": scrub,
            "scrubbed_words": list(SCRUBBED_WORDS),
            # Other names are no longer among the scorer's words; these still are, as words.
            "capitalised_names": sorted(others.capitalised),
            "rule": asdict(rule),
            "penalty": penalty,
        },
        facts={
            "rows": len(texts),
            "removed": removed,
            "name_words": dict(others.sources),
            "relevant": rule.words if relevance else None,
            "irrelevant_shares": plain_shares(relevance.irrelevant_shares if relevance else {}),
            "irrelevant_use": plain_shares(relevance.irrelevant_use if relevance else {}),
            "cells": cells_of(truth, group),
        },
    )


def fit_number_scorer(
    table: Any,
    *,
    columns: Sequence[str],
    group: Sequence[object],
    truth: Sequence[object],
    groups: Sequence[str] | None = None,
    penalty: float = 1.0,
) -> NormScorer:
    """A norm scorer of any numbers (rows × columns): norm bias of a model without texts.

    Examples:
        >>> hours = np.array([[30.0], [32.0], [40.0], [42.0]] * 20)
        >>> scorer = fit_number_scorer(hours, columns=["hours"], group=["f", "f", "m", "m"] * 20,
        ...                            truth=["a"] * 80, groups=["f", "m"])
        >>> bool(scorer.score(np.array([[31.0]])).norm["f"][0] > 0.8)
        True
    """
    features = numbers(table, columns=len(columns))
    chosen = tuple(groups) if groups is not None else training_groups(truth, group)
    weights = checked_weights(truth, group, chosen, rows=len(features))
    weights = np.where(np.isfinite(features).all(axis=1), weights, 0.0)
    used = np.flatnonzero(weights > 0)
    if not used.size:
        raise DataError(
            f"No training row has a value of every one of {', '.join(columns[:8])}. "
            "Fill them in, or name other columns."
        )
    centre, scale = features[used].mean(axis=0), features[used].std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    labels = labels_of(group, chosen)
    standard = (features[used] - centre) / scale
    fit = fit_linear(standard, labels[used], weights[used], chosen, penalty=penalty)
    return NormScorer(
        groups=chosen,
        names=tuple(columns),
        linear=fit,
        centre=centre,
        scale=scale,
        seen=np.unique(row_hashes(features)),
        settings={"penalty": penalty},
        facts={
            "rows": len(features),
            "removed": {},
            "irrelevant_shares": {},
            "irrelevant_use": {},
            "cells": cells_of(truth, group),
        },
    )


def fit_linear(
    features: Any,
    labels: NDArray[np.intp],
    weights: FloatArray,
    groups: Sequence[str],
    *,
    penalty: float,
    start: Linear | None = None,
) -> Linear:
    """Ridge logistic regression of two groups or more, as weights whose softmax is the answer."""
    two = len(groups) == 2
    begin = None
    if start is not None:
        table, level = start.weights, start.intercepts
        begin = (table[1:] * 2, level[1:] * 2) if two else (table, level)
    fit = fit_logistic(
        features,
        labels - 1 if two else labels,
        classes=1 if two else len(groups),
        multinomial=not two,
        penalty=penalty * unit_of(features),
        weights=weights,
        start=begin,
        tolerance=TOLERANCE,
    )
    w, b = fit.weights.astype(np.float64), fit.intercepts.astype(np.float64)
    # Half of the weights on either side: softmax then needs no case of its own for two groups.
    if two:
        w, b = np.concatenate([-w, w]) / 2, np.concatenate([-b, b]) / 2
    return Linear(weights=w, intercepts=b)


def unit_of(features: Any) -> float:
    """Unit of the penalty: 1 for word counts, ten mean variances for dense features.

    In this unit it does not depend on how long the vectors of a file happen to be. Ten, because
    with one a scorer of 1,600 biographies is overconfident (slope of calibration 0.7).
    """
    return 1.0 if sparse.issparse(features) else 10 * float(np.var(features, axis=0).mean()) or 1.0


def irrelevant_scorers(
    counts: sparse.csr_matrix,
    embedding: NDArray[np.float32] | None,
    sums: Any,
    relevance: Relevance,
    labels: NDArray[np.intp],
    weights: FloatArray,
    *,
    start: Linear,
    penalty: float,
) -> dict[str, Linear]:
    """One scorer for each class on the words irrelevant to it, begun from the whole scorer."""
    found: dict[str, Linear] = {}
    for c, name in enumerate(relevance.classes):
        keep = ~relevance.relevant[c]
        if not relevance.tested[c] or not keep.any():
            continue
        features = pooled(counts, embedding, keep=keep, sums=sums)
        found[name] = fit_linear(
            features, labels, weights, relevance.groups, penalty=penalty, start=start
        )
    return found


def labels_of(group: Sequence[object], chosen: Sequence[str]) -> NDArray[np.intp]:
    """Place of each row's group among the chosen; -1 for any other."""
    known, codes = encode(group)
    return np.array([chosen.index(n) if n in chosen else -1 for n in (*known, "")])[codes]


def checked_weights(
    truth: Sequence[object], group: Sequence[object], groups: Sequence[str], *, rows: int
) -> FloatArray:
    """The weights of the training rows, refused where they leave nothing to learn from."""
    if len(truth) != rows:
        raise UsageError(f"truth has {len(truth):,} values for {rows:,} rows. Give one a row.")
    if len(groups) < 2:
        raise UsageError(f"groups={list(groups)} is not two groups or more to tell apart.")
    weights = alpha_weights(truth, group, groups=groups)
    if not weights.any():
        raise DataError(
            f"No class has rows of two of the groups {', '.join(groups)}, so there is nothing to "
            "learn a norm from. See whether the truth and the group are two different columns."
        )
    return weights


def removals(texts: Texts, total: int) -> dict[str, int]:
    """How often each scrubbed word stood in the texts; the rest of what was removed are names."""
    raw = Corpus.from_texts(texts)
    often = dict(zip(raw.words, raw.frequencies.tolist(), strict=True))
    found = {word: int(often[word]) for word in SCRUBBED_WORDS if word in often}
    found["<names>"] = max(0, total - sum(found.values()))
    return found


def plain_shares(shares: Mapping[str, FloatArray]) -> dict[str, list[float | None]]:
    """Irrelevant share of each variant by class, as plain numbers; None where it is not known."""
    return {name: [number(one) for one in share] for name, share in shares.items()}


def cells_of(truth: Sequence[object], group: Sequence[object]) -> dict[str, dict[str, int]]:
    """Rows by class and group, as plain numbers."""
    counts, classes, groups, _, _ = cell_counts(truth, group)
    return {
        name: {each: int(n) for each, n in zip(groups, row, strict=True)}
        for name, row in zip(classes, counts, strict=True)
    }
