"""Findings: rows of one measure gathered under one verdict and one sentence."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from evenhand.findings.cost_sentences import cost_sentence, untold_sentence
from evenhand.findings.labeler_sentences import few_labelers, labelers_sentence
from evenhand.findings.names import names_for
from evenhand.findings.sentences import plural, row_sentence
from evenhand.findings.settling import settling
from evenhand.findings.swap_sentences import words_for
from evenhand.findings.verdict import (
    CANNOT_TELL,
    NOT_ASSESSED,
    OUTSIDE,
    WITHIN,
    judged_rows,
    overall,
    single_labelers,
)
from evenhand.findings.verdict_sentences import verdict_sentence as verdict_sentence
from evenhand.lenses.catalogue import CATALOGUE
from evenhand.lenses.rows import Rows

# What is worth a sentence when nobody set a limit: the gaps that most audits start from.
HEADLINES = (
    "selection_rate_gap",
    "true_positive_rate_gap",
    "false_positive_rate_gap",
    "accuracy_gap",
    "auc_gap",
    "cost_ratio",
    "cost_ratio_ratio",
    "criterion_gap",
    "separation_gap",
    "counterfactual_selection_rate_gap",
    "counterfactual_true_positive_rate_gap",
    "counterfactual_false_positive_rate_gap",
    "norm_bias",
    "norm_bias_irrelevant",
    "norm_correlation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A judged result: which lens, at which layer, what it says, and the rows behind it.

    `owner` is who should look at it, where a charter names somebody for the layer.
    """

    lens: str
    layer: str
    verdict: str
    sentence: str
    measure: str
    attribute: str | None
    rows: tuple[int, ...]
    owner: str | None = None

    def plain(self) -> dict[str, Any]:
        """The finding as a plain dict."""
        return {
            "lens": self.lens,
            "layer": self.layer,
            "owner": self.owner,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "measure": self.measure,
            "attribute": self.attribute,
            "rows": list(self.rows),
        }


def find(
    rows: Rows, *, positive: str | None = None, positive_is: str | None = None
) -> Iterator[Finding]:
    """One finding for each limited measure of each attribute.

    Where a lens has no limit at all, its headline gaps that chance does not explain; and where
    an attribute has none of those, a sentence that says so.
    """
    limited = np.isfinite(rows["limit_low"])
    bound = set(rows["measure"][limited])
    headline = np.isin(rows["measure"].astype(str), [m for m in HEADLINES if m not in bound])
    headline &= judged_rows(rows, positive)
    # Nobody asked for each stratum: many of them would show a gap by chance alone.
    headline &= np.array(
        [stratum in (None, "<summary>") for stratum in rows["stratum"]], dtype=bool
    )
    single = single_labelers(rows)
    headline &= ~single
    families: dict[tuple[Any, ...], list[int]] = {}
    for i in np.flatnonzero(limited | headline):
        key = (rows["lens"][i], rows["attribute"][i], rows["measure"][i], bool(single[i]))
        families.setdefault(key, []).append(int(i))
    meaning = {positive: positive_is} if positive and positive_is else {}
    named = names_for(
        {"attribute": a, "group": g} for a, g in set(zip(rows["attribute"], rows["group"]))
    )
    quiet: dict[tuple[Any, Any], int] = {}
    found: list[Finding] = []
    for (lens, attribute, measure, labelers), places in families.items():
        if measure == "implied_threshold" and "cost_ratio" in bound:
            continue  # the same choice on another scale: one finding is enough
        plain = list(rows.take(np.array(places)))
        family = [named(row) for row in plain]
        verdict = overall(row["verdict"] for row in family)
        judged = [row for row in family if row["verdict"] == verdict] or family
        lead = leading(judged)
        costs = cost_sentence(family, lead) if measure == "cost_ratio" else None
        if costs is not None and lens == "labelers":
            costs = labelers_sentence(rows, family, lead)
        if labelers:
            if verdict != OUTSIDE:
                continue
            costs = few_labelers(family)
        untold = untold_sentence(judged) if lead is None and verdict == CANNOT_TELL else None
        if lead is None and (costs is not None or untold is not None):
            # Discrete scores leave a set of cost ratios: an interval without a value.
            lead = judged[0]
        if lead is None:
            continue
        if verdict == NOT_ASSESSED and not _sure(lead):
            quiet[lens, attribute] = quiet.get((lens, attribute), 0) + len(places)
            continue
        quiet[lens, attribute] = -len(rows)
        own = next(row for row, told in zip(plain, family) if told is lead)
        more = f" {settling(own, rows)}" if verdict == CANNOT_TELL and untold is None else ""
        if untold is not None:
            costs = f"{untold} {costs}" if costs else untold
        found.append(
            Finding(
                lens=str(lens),
                layer="implementation",
                verdict=verdict,
                sentence=(costs or row_sentence(lead, meaning=meaning)) + more,
                measure=str(measure),
                attribute=attribute,
                rows=tuple(places),
            )
        )
    order = (OUTSIDE, CANNOT_TELL, WITHIN, NOT_ASSESSED)
    yield from sorted(found, key=lambda f: (order.index(f.verdict), f.measure != "cost_ratio"))
    for (lens, attribute), count in quiet.items():
        if count > 0:
            swapped = f"When only {words_for(attribute)} are swapped"
            where = swapped if lens == "causal" else f"By {attribute}"
            noun = "correlation with a norm" if lens == "norms" else "gap"
            many = "correlations with a norm" if lens == "norms" else "gaps"
            told = f"none of {plural(count, noun, many)} can be told from chance"
            if count == 1:
                told = f"the one {noun} cannot be told from chance"
            yield Finding(
                lens=str(lens),
                layer="implementation",
                verdict=NOT_ASSESSED,
                sentence=f"{where}, {told}.",
                measure="",
                attribute=attribute,
                rows=(),
            )


def leading(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The row that speaks for its family: surely a difference first, then the largest."""
    defined = [row for row in rows if row["value"] is not None]
    if not defined:
        return None

    def rank(row: dict[str, Any]) -> tuple[bool, float]:
        return (_sure(row), _departure(row))

    return max(defined, key=rank)


def _sure(row: dict[str, Any]) -> bool:
    """Whether the family interval leaves out no difference."""
    still = _no_difference(row["measure"])
    low, high = row["family_low"], row["family_high"]
    return low is not None and high is not None and bool(low > still or high < still)


def _departure(row: dict[str, Any]) -> float:
    """How far a row lies from no difference, or a cost ratio from the middle of its band."""
    if CATALOGUE[row["measure"]].kind == "number" and row["limit_low"] and row["value"] > 0:
        middle = (row["limit_low"] * row["limit_high"]) ** 0.5
        return abs(log(row["value"] / middle))
    if CATALOGUE[row["measure"]].kind == "rate" and row["limit_low"] is not None:
        return abs(float(row["value"]) - float(row["limit_low"] + row["limit_high"]) / 2)
    return abs(float(row["value"]) - _no_difference(row["measure"]))


def _no_difference(measure: str) -> float:
    return 1.0 if CATALOGUE[measure].kind == "ratio" else 0.0
