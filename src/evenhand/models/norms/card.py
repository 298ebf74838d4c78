"""The quality card of a norm scorer: what it was given, how well it tells groups apart, by what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.decisions.tally import encode
from evenhand.errors import DataError
from evenhand.models.norms.fit import alpha_weights
from evenhand.models.norms.ratings import Ratings, agreement, mean_agreement
from evenhand.models.norms.relevance import CHOSEN, spoken
from evenhand.models.norms.scorer import Names, NormScorer
from evenhand.models.norms.spread import (
    FLAT,
    ClassNorms,
    area,
    class_norms,
    mean_accuracy,
    mean_area,
)
from evenhand.speech import listed
from evenhand.stats.calibration import bounded_logit, recalibrate
from evenhand.stats.estimate import Estimate, FloatArray
from evenhand.stats.rates import rate

TOO_GOOD, TOO_WEAK = 0.95, 0.6
# Shares of the words as used: with more irrelevant the scorers are the whole scorer again, with
# fewer they have nothing to go by.
NEARLY_ALL, NEARLY_NONE = 0.95, 0.05
SHOWN, OFTEN = 15, 5
BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NormCard:
    """How a norm scorer does on rows it was not trained on, and what to beware of.

    `strongest` lists words by group, strongest first; `cells` rows by class and group; `removed`
    how often each scrubbed word stood in the training texts, `name_words` how many words each list
    of names gave; `relevant` is the rule in words, `irrelevant` the task-irrelevant scorers by
    class, `auc_irrelevant` theirs within classes, by group.
    """

    groups: tuple[str, ...]
    accuracy: Estimate
    accuracy_weighted: Estimate
    accuracy_irrelevant: Estimate
    auc: Mapping[str, Estimate]
    calibration: tuple[float, float]
    strongest: Mapping[str, list[tuple[str, float]]]
    removed: Mapping[str, int]
    name_words: Mapping[str, int]
    cells: Mapping[str, Mapping[str, int]]
    relevant: str | None
    irrelevant_shares: Mapping[str, float]
    irrelevant_use: Mapping[str, float]
    irrelevant: Mapping[str, ClassNorms]
    auc_irrelevant: Mapping[str, Estimate]
    ratings: Estimate | None
    ratings_irrelevant: Estimate | None
    warnings: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """The card as plain values, for the folder of the scorer."""
        return {
            "groups": list(self.groups),
            "accuracy": told(self.accuracy),
            "accuracy_weighted": told(self.accuracy_weighted),
            "accuracy_irrelevant": told(self.accuracy_irrelevant),
            "auc": {name: told(value) for name, value in self.auc.items()},
            "calibration": dict(zip(("intercept", "slope"), map(finite, self.calibration))),
            "strongest": {name: [list(w) for w in words] for name, words in self.strongest.items()},
            "removed": dict(self.removed),
            "name_words": dict(self.name_words),
            "cells": {name: dict(row) for name, row in self.cells.items()},
            "relevant": self.relevant,
            "irrelevant_shares": _finite(self.irrelevant_shares),
            "irrelevant_use": _finite(self.irrelevant_use),
            "irrelevant": {
                name: {
                    "n": one.n,
                    "accuracy": told(one.accuracy),
                    "auc": {group: told(value) for group, value in one.auc.items()},
                    "deviation": _finite(one.deviation),
                    "ratings": told(one.ratings) if one.ratings else None,
                }
                for name, one in self.irrelevant.items()
            },
            "auc_irrelevant": {name: told(value) for name, value in self.auc_irrelevant.items()},
            "ratings": told(self.ratings) if self.ratings else None,
            "ratings_irrelevant": told(self.ratings_irrelevant)
            if self.ratings_irrelevant
            else None,
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        lines = [f"Norm scorer of {' and '.join(self.groups)}, on rows it was not trained on"]
        lines += [f"  accuracy              {self.accuracy}"]
        lines += [f"  accuracy, weighted    {self.accuracy_weighted}"]
        lines += [f"  AUC of {name:<15}{value}" for name, value in self.auc.items()]
        intercept, slope = self.calibration
        line = f"intercept {intercept:.2f}, slope {slope:.2f}"
        if not np.isfinite(self.calibration).all():
            line = "undefined: the scorer tells the groups apart without a mistake"
        lines += [f"  calibration           {line}"]
        lines += self._irrelevant_lines()
        if self.removed:
            shown = ", ".join(f"{word} {n:,}" for word, n in self.removed.items() if n)
            lines += [f"  removed               {shown or 'nothing'}"]
        if self.name_words:
            from_each = ", ".join(f"{n:,} by {source}" for source, n in self.name_words.items())
            lines += [f"  names, as words       {from_each}"]
        for name, words in self.strongest.items():
            lines += [f"  most {name:<16} {', '.join(word for word, _ in words)}"]
        if self.ratings is not None:
            lines += [f"  people's ratings      {self.ratings}"]
        few = [sum(row.get(name, 0) for row in self.cells.values()) for name in self.groups]
        each = ", ".join(f"{name} {n:,}" for name, n in zip(self.groups, few, strict=True))
        lines += [f"  training rows         {each} in {len(self.cells)} classes"]
        lines += [f"! {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _irrelevant_lines(self) -> list[str]:
        """What the card says of the task-irrelevant words and their scorers."""
        if self.accuracy_irrelevant.value is None:
            return []
        shares = {name: (share, self.irrelevant_use.get(name))
                  for name, share in self.irrelevant_shares.items()}  # fmt: skip

        def both(share: float, use: float | None) -> str:
            of_use = "" if use is None else f", {use:.1%} of the words as used"
            return f"{share:.1%} of the vocabulary{of_use}"

        chosen = chosen_rule(self.irrelevant_shares, self.relevant)
        lines = ["  task-irrelevant words"]
        if chosen is not None:
            lines += [f"    share               {both(*shares[chosen])}"]
            lines += [f"    relevant            {self.relevant or chosen}"]
        lines += [
            f"    by another rule     {both(*pair)} (relevant: {spoken(name)})"
            for name, pair in shares.items()
            if name != chosen
        ]
        lines += [f"    accuracy            {self.accuracy_irrelevant}"]
        first = self.groups[: 1 if len(self.groups) == 2 else None]
        for group in first:
            found = self.auc_irrelevant.get(group)
            lines += [f"    AUC of {group:<13}{found}"] if found is not None else []
        spread = [max(one.deviation.values()) for one in self.irrelevant.values() if one.deviation]
        if spread:
            lines += [
                f"    SD of the norms     {min(spread):.3f} to {max(spread):.3f} over "
                f"{len(spread)} classes"
            ]
        if self.ratings_irrelevant is not None:
            mean = self.ratings_irrelevant
            how = f" ({mean.method})" if mean.method else ""
            lines += [f"    people's ratings    {mean}{how}"]
        return lines


def quality_card(
    scorer: NormScorer,
    rows: Any,
    *,
    group: Sequence[object],
    truth: Sequence[object],
    names: Names = None,
    ratings: Ratings | None = None,
    level: float = 0.95,
) -> NormCard:
    """The card of a scorer on held-out texts (or numbers) with their groups and classes."""
    scores = scorer.score(rows, names=names, truth=truth)
    table = np.stack([scores.norm[name] for name in scorer.groups], axis=1)
    known, codes = encode(group)
    place = np.array([scorer.groups.index(n) if n in scorer.groups else -1 for n in (*known, "")])
    own = place[codes]
    used = (own >= 0) & np.isfinite(table).all(axis=1)
    if not used.any():
        raise DataError(
            f"No held-out row belongs to {' or '.join(scorer.groups)} and has a known word, so "
            "the scorer cannot be judged. Hold out more rows (--test-share)."
        )
    table, own = table[used], own[used]
    right = table.argmax(axis=1) == own
    present = [name for name in scorer.groups if name in known]
    alpha = alpha_weights(truth, group, groups=present)[used]
    accuracy = rate(int(right.sum()), int(right.size), level=level)
    auc = {
        name: area(table[own == k, k], table[own != k, k], level=level)
        for k, name in enumerate(scorer.groups)
    }
    strongest = strongest_words(scorer, rows, names=names)
    by_class = class_norms(
        scorer, scores.irrelevant, own=place[codes], truth=truth, ratings=ratings, level=level
    )
    auc_irrelevant = {
        name: mean_area([one.auc[name] for one in by_class.values()], level=level)
        for name in (scorer.groups if by_class else ())
    }
    irrelevant_use = mean_shares(scorer, "irrelevant_use")
    relevant = scorer.facts.get("relevant")
    return NormCard(
        groups=scorer.groups,
        accuracy=accuracy,
        accuracy_weighted=weighted_share(right, alpha, level=level),
        accuracy_irrelevant=mean_accuracy(by_class, level=level),
        auc=auc,
        calibration=calibration(table[:, 0], own == 0, alpha),
        strongest=strongest,
        removed=scorer.facts.get("removed", {}),
        name_words=scorer.facts.get("name_words", {}),
        cells=scorer.facts.get("cells", {}),
        relevant=relevant,
        irrelevant_shares=mean_shares(scorer, "irrelevant_shares"),
        irrelevant_use=irrelevant_use,
        irrelevant=by_class,
        auc_irrelevant=auc_irrelevant,
        ratings=agreement(scorer, ratings, level=level) if ratings else None,
        ratings_irrelevant=mean_agreement(
            [one.ratings for one in by_class.values() if one.ratings], level=level
        )
        if ratings and by_class
        else None,
        warnings=(
            *warnings_on(scorer, accuracy, auc, strongest, scores.leaked, scores.empty),
            *irrelevant_warnings(by_class, auc_irrelevant, irrelevant_use, relevant),
        ),
    )


def chosen_rule(shares: Mapping[str, float], relevant: str | None) -> str | None:
    """Under which name the shares of the rule in use are kept; None where there are none."""
    if CHOSEN in shares:
        return CHOSEN
    words = relevant or ""
    return next((name for name in shares if words.startswith(name)), next(iter(shares), None))


def irrelevant_warnings(
    by_class: Mapping[str, ClassNorms],
    auc: Mapping[str, Estimate],
    use: Mapping[str, float],
    relevant: str | None,
) -> list[str]:
    """What the task-irrelevant scorers cannot show, in sentences."""
    found: list[str] = []
    chosen = chosen_rule(use, relevant)
    share = use.get(chosen) if chosen is not None else None
    if by_class and share is not None and share > NEARLY_ALL:
        found.append(
            f"{share:.1%} of the words as used are irrelevant: the task-irrelevant norms are "
            "nearly the norms themselves. Choose more words to be relevant (--relevant 0.6), or "
            "leave them out (--no-irrelevant)."
        )
    if by_class and share is not None and share < NEARLY_NONE:
        found.append(
            f"Only {share:.1%} of the words as used are irrelevant, so that the task-irrelevant "
            "norms have little to go by. Choose fewer words to be relevant (--relevant)."
        )
    flat = [name for name, one in by_class.items() if one.flat]
    if flat:
        found.append(
            f"The task-irrelevant norms of {listed(flat, most=5)} are nearly the same for "
            f"everybody (SD under {FLAT}): correlations with them cannot show anything."
        )
    lowest = min(
        (value for value in auc.values() if value.low is not None),
        key=lambda value: value.low or 0.0,
        default=None,
    )
    if lowest is not None and (lowest.low or 0.0) <= 0.5:
        found.append(
            f"Within classes the data do not tell the task-irrelevant scorers from guessing (AUC "
            f"{lowest.value:.2f}, {lowest.low:.2f} to {lowest.high:.2f}): correlations with their "
            "norms cannot show anything."
        )
    return found


def mean_shares(scorer: NormScorer, fact: str) -> dict[str, float]:
    """Mean over the tested classes of a share of irrelevant words, by variant."""
    found = scorer.facts.get(fact, {})
    known = {name: [one for one in shares if one is not None] for name, shares in found.items()}
    return {name: float(np.mean(shares)) for name, shares in known.items() if shares}


def warnings_on(
    scorer: NormScorer,
    accuracy: Estimate,
    auc: Mapping[str, Estimate],
    strongest: Mapping[str, list[tuple[str, float]]],
    leaked: int,
    empty: int,
) -> tuple[str, ...]:
    """What stands between this scorer and a measurement, in sentences."""
    found: list[str] = []
    right = accuracy.value or 0.0
    if right > TOO_GOOD:
        found.append(
            f"The scorer is right on {right:.1%} of the rows: something in them names the group "
            "outright (see the words it weighs most), and correlations with it say little."
        )
    scrubbed = {str(word) for word in scorer.settings.get("scrubbed_words", ())}
    named = sorted({w for words in strongest.values() for w, _ in words} & scrubbed)
    if named:
        found.append(
            f"Among the strongest words are {', '.join(named)}, which scrubbing removes: the "
            "scorer reads who is meant, not how they write."
        )
    if scorer.of_texts and not scorer.settings.get("scrub", True):
        found.append("The texts were not scrubbed: pronouns, titles and names may tell the group.")
    lowest = min((value for value in auc.values() if value.value is not None),
                 key=lambda value: value.value or 0.0, default=None)  # fmt: skip
    if lowest is None or lowest.low is None or lowest.low <= 0.5:
        found.append(
            "The scorer is too weak to carry the measurement: the data do not tell it from "
            "guessing. Give more training rows, or other features."
        )
    elif (lowest.value or 0.0) < TOO_WEAK:
        found.append(
            f"The scorer is weak (AUC {lowest.value:.2f}): correlations with it fall short of "
            "those with the norm itself."
        )
    if leaked:
        verb = "row was" if leaked == 1 else "rows were"
        found.append(
            f"{leaked:,} {verb} in the scorer's training split (a leak): its norms look better "
            "there than they are. Score rows that it has not seen."
        )
    if empty:
        found.append(f"{empty:,} rows have nothing the scorer knows and get no norm.")
    return tuple(found)


def strongest_words(
    scorer: NormScorer, rows: Any, *, names: Names = None
) -> dict[str, list[tuple[str, float]]]:
    """The words that weigh most for each group, among those that stand in the rows often enough."""
    often = np.full(len(scorer.names), OFTEN)
    if scorer.of_texts:
        often = np.asarray(scorer.counts(rows, names=names).sum(axis=0)).ravel()
        if not (often >= OFTEN).any():
            often = np.full(len(scorer.names), OFTEN)
    found: dict[str, list[tuple[str, float]]] = {}
    for name in scorer.groups:
        weights = np.where(often >= OFTEN, scorer.word_weights(name), -np.inf)
        order = np.argsort(-weights, kind="stable")[:SHOWN]
        found[name] = [(scorer.names[k], float(weights[k])) for k in order if weights[k] > 0]
    return found


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers for a document, which has none for a ratio of nothing."""
    return {name: finite(value) for name, value in numbers.items()}


def weighted_share(right: Any, weights: FloatArray, *, level: float) -> Estimate:
    """Share of hits under the training weights, with Wilson's interval at Kish's number of rows."""
    total = float(weights.sum())
    if not total:
        reason = "no class of the held-out rows has two groups"
        return Estimate.none(reason, level=level, n=0)
    # Sums in another order differ in the last digit: all right is 1 and never more.
    share = min(float(weights @ right) / total, 1.0)
    n = total**2 / float(weights @ weights)
    found = rate(min(share * n, n), n, level=level)
    return Estimate(value=share, low=found.low, high=found.high, level=level, n=round(n))


def calibration(score: FloatArray, hit: Any, weights: FloatArray) -> tuple[float, float]:
    """Intercept and slope of the truth on the scorer's log-odds, by tenths of the rows."""
    order = np.argsort(score, kind="stable")
    bins = np.minimum(np.arange(score.size) * BINS // max(1, score.size), BINS - 1)
    n = np.bincount(bins, weights=weights[order], minlength=BINS)
    hits = np.bincount(bins, weights=weights[order] * hit[order], minlength=BINS)
    mass = np.bincount(bins, weights=weights[order] * score[order], minlength=BINS)
    with np.errstate(all="ignore"):
        line = recalibrate(bounded_logit(mass / n), hits=hits, n=n)
    return float(line.intercept), float(line.slope)


def told(estimate: Estimate) -> dict[str, Any]:
    """An estimate as plain values; an end that the data do not give is none."""
    ends = {name: getattr(estimate, name) for name in ("value", "low", "high")}
    return {
        **{name: None if end is None else finite(end) for name, end in ends.items()},
        **{name: getattr(estimate, name) for name in ("level", "n", "undefined")},
    }


def finite(value: float) -> float | None:
    """A number that JSON can hold."""
    return value if np.isfinite(value) else None
