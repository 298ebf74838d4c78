"""Norm bias under many equally good norm scorers: how far ρ depends on which one is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.decisions.tally import encode
from evenhand.errors import UsageError
from evenhand.models.corpus import Corpus, Representation
from evenhand.models.norms.fit import (
    alpha_weights,
    cell_counts,
    checked_weights,
    fit_linear,
    labels_of,
    training_groups,
)
from evenhand.models.norms.names import name_words
from evenhand.models.norms.scorer import Names, Texts
from evenhand.stats.estimate import FloatArray
from evenhand.stats.ranks import cell_moments, spearman, spearman_from_moments
from evenhand.stats.trend import FEWEST_CLASSES
from evenhand.text.mask import SCRUBBED_WORDS, scrub_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRows:
    """The rows that norm bias is measured on: texts, groups, classes, scores of the own class."""

    texts: Texts
    group: Sequence[object]
    truth: Sequence[object]
    score: Sequence[float]
    names: Names = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiplicity:
    """ρ of each refit by group (refits × groups), with the representation of each refit.

    The first refit of a representation uses the training rows as they are, the others resamples.
    """

    groups: tuple[str, ...]
    representations: tuple[str, ...]
    bias: FloatArray

    def spread(self, group: str) -> tuple[float, float, float]:
        """Median, least and greatest ρ over the refits."""
        column = self.bias[:, self.groups.index(group)]
        kept = column[np.isfinite(column)]
        if not kept.size:
            return float("nan"), float("nan"), float("nan")
        return float(np.median(kept)), float(kept.min()), float(kept.max())


def norm_multiplicity(
    texts: Texts,
    *,
    group: Sequence[object],
    truth: Sequence[object],
    held: HeldOutRows,
    representations: Mapping[str, Representation],
    names: Names = None,
    groups: Sequence[str] | None = None,
    refits: int = 10,
    penalty: float = 1.0,
    seed: int = 0,
) -> Multiplicity:
    """ρ on the held-out rows for `refits` scorers of each representation.

    Give the same representation twice with other seeds to see what its own randomness does.
    """
    if refits < 1 or not representations:
        raise UsageError(f"refits={refits} of {len(representations)} representations is no refit.")
    chosen = tuple(groups) if groups is not None else training_groups(truth, group)
    others = name_words(texts, names=names)
    words, capitalised = others.everywhere.union(SCRUBBED_WORDS), others.capitalised
    corpus, other = (
        Corpus.from_texts(scrub_texts(each, names=own, words=words, capitalised=capitalised).texts)
        for each, own in ((texts, names), (held.texts, held.names))
    )
    labels = labels_of(group, chosen)
    checked_weights(truth, group, chosen, rows=len(texts))
    classes, codes = encode(truth)
    told = [classes[c] if c >= 0 else None for c in codes]
    named = [chosen[k] if k >= 0 else None for k in labels]
    rng = np.random.default_rng(seed)
    rows: list[list[float]] = []
    used: list[str] = []
    for name, representation in representations.items():
        model = representation.fit(corpus)
        features, target = model.features(corpus), model.features(other)
        for refit in range(refits):
            picked = (
                np.arange(len(texts)) if refit == 0 else rng.integers(0, len(texts), len(texts))
            )
            weights = alpha_weights(
                [told[i] for i in picked], [named[i] for i in picked], groups=chosen
            )
            kept = picked[weights > 0]
            fit = fit_linear(
                features[kept], labels[kept], weights[weights > 0], chosen, penalty=penalty
            )
            rows.append(biases(fit.probabilities(target), chosen, held))
            used.append(name)
    return Multiplicity(groups=chosen, representations=tuple(used), bias=np.array(rows))


def biases(norm: FloatArray, groups: Sequence[str], held: HeldOutRows) -> list[float]:
    """ρ of each group with its own norm on the held-out rows; NaN with fewer than five classes."""
    counts, _, known, c, g = cell_counts(held.truth, held.group)
    with np.errstate(all="ignore"):
        share = counts / counts.sum(axis=1, keepdims=True)
    usable = (c >= 0) & (g >= 0)
    cells = (c * len(known) + g)[usable]
    columns: dict[str, Any] = {name: norm[usable, k] for k, name in enumerate(groups)}
    score = np.asarray(held.score, dtype=np.float64)[usable]
    sums = cell_moments(cells, score, columns, cells=counts.size)
    found = []
    for name in groups:
        if name not in known:
            found.append(float("nan"))
            continue
        r = spearman_from_moments(
            sums["n"],
            x=sums["x"],
            xx=sums["xx"],
            y=sums[f"y:{name}"],
            yy=sums[f"yy:{name}"],
            xy=sums[f"xy:{name}"],
        ).reshape(counts.shape)[:, known.index(name)]
        p = share[:, known.index(name)]
        kept = np.isfinite(r) & np.isfinite(p)
        enough = kept.sum() >= FEWEST_CLASSES
        found.append(float(spearman(p[kept], r[kept])) if enough else float("nan"))
    return found
