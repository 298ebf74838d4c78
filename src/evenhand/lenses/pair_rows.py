"""The rows of the causal lens: gaps, flip rates, score gaps and texts changed."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from evenhand.decisions.pair_tallies import pair_sums, score_columns, text_columns
from evenhand.decisions.roles import Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.lenses.catalogue import COUNTERFACTUAL_RATES
from evenhand.lenses.lens import Options
from evenhand.lenses.pairs import PairedGaps, PairFamily, PairTable, flips, paired_gaps
from evenhand.lenses.rows import Rows, choose, words
from evenhand.lenses.statistical import rule_name
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import benjamini_hochberg, bonferroni
from evenhand.stats.rates import agresti_min, mcnemar_mid_p, wilson
from evenhand.stats.spread import rms

LENS = "causal"
NO_PAIRS = "no pairs"
NO_TEXTS = "the texts are not in the table"


class PairRows:
    """The rows of one pair table: what they share, and one method for each kind of row."""

    def __init__(self, table: PairTable, attribute: str, roles: Roles, options: Options) -> None:
        self.table, self.roles, self.options = table, roles, options
        self.z = critical(options.level)
        self.family = PairFamily(table, level=options.level, seed=options.seed)
        self.shared = {
            "lens": LENS,
            "attribute": attribute,
            "rule": rule_name(roles),
            "level": options.level,
        }
        self.group = words(table.values[value] for value, _ in table.pairs)
        self.reference = words(table.values[reference] for _, reference in table.pairs)

    def block(self, shape: tuple[int, ...], **columns: Any) -> Rows:
        """Rows by (stratum, pair) or (stratum, pair, class)."""
        deep = len(shape) == 3
        place = {
            "group": self.group[:, None] if deep else self.group,
            "reference": self.reference[:, None] if deep else self.reference,
            "stratum": words(self.table.strata).reshape(-1, *(1,) * (len(shape) - 1)),
        }
        return Rows.block(shape, **{**self.shared, **place, **columns})

    @cached_property
    def gaps(self) -> dict[str, PairedGaps]:
        """The paired gaps of every rate that the table has the truth for."""
        rates = COUNTERFACTUAL_RATES if self.table.has_truth else ("selection_rate",)
        return {rate: paired_gaps(self.table, rate, level=self.options.level) for rate in rates}

    def gap_rows(self) -> list[Rows]:
        """Every counterfactual rate gap, and its root mean square over more than two classes."""
        parts: list[Rows] = []
        for rate, gaps in self.gaps.items():
            q = self.family.critical(rate)
            low, high = agresti_min(gaps.gained, gaps.lost, gaps.n, z=self.z)
            family_low, family_high = agresti_min(gaps.gained, gaps.lost, gaps.n, z=q)
            p = np.where(gaps.cases > 0, mcnemar_mid_p(gaps.gained, gaps.lost), np.nan)
            parts.append(
                self.block(
                    gaps.value.shape,
                    measure=f"counterfactual_{rate}_gap",
                    **{"class": words(self.table.classes)},
                    value=gaps.value,
                    low=low,
                    high=high,
                    family_low=family_low,
                    family_high=family_high,
                    n=gaps.cases,
                    p=p,
                    p_adjusted=np.stack([benjamini_hochberg(stratum) for stratum in p]),
                    method=_method("agresti-min", gaps.kind),
                    undefined=choose(gaps.cases == 0, NO_PAIRS),
                )
            )
            if len(self.table.classes) > 2:
                parts += self._size_rows(rate, gaps)
        return parts

    def _size_rows(self, rate: str, gaps: PairedGaps) -> list[Rows]:
        size = rms(gaps.value, gaps.variance, z=self.z)
        wide = rms(gaps.value, gaps.cautious_variance, z=self.z)
        low, high = np.minimum(size.low, wide.low), np.maximum(size.high, wide.high)
        total = len(self.table.classes)
        skipped = total - size.n_used
        shared = {
            "n": size.n_used.astype(float),
            "undefined": choose(size.n_used == 0, "no class has a gap"),
            "method": choose(
                skipped > 0,
                [[f"moments; {k} of {total} classes undefined" for k in s] for s in skipped],
                "moments",
            ),
        }
        ends = {"low": low, "high": high, "family_low": low, "family_high": high}
        name, shape = f"counterfactual_{rate}_gap_rms", size.value.shape
        return [
            self.block(shape, measure=name, value=size.value, **ends, **shared),
            self.block(shape, measure=f"{name}_corrected", value=size.corrected, **ends, **shared),
            self.block(shape, measure=f"{name}_null_level", value=size.null, **shared),
        ]

    def flip_rows(self) -> list[Rows]:
        """The share of pairs decided differently: overall, and for or against each class."""
        share, n, cases = flips(self.table)
        low, high = wilson(share * n, n, z=self.z)
        # One number over all classes is a family of its own.
        overall = self.block(
            share.shape,
            measure="flip_rate",
            value=share,
            low=low,
            high=high,
            family_low=low,
            family_high=high,
            n=cases,
            method="wilson",
            undefined=choose(cases == 0, NO_PAIRS),
        )
        gaps = self.gaps["selection_rate"]
        q = self.family.critical("selection_rate", flipped=True)
        moved = gaps.gained + gaps.lost
        low, high = wilson(moved, gaps.n, z=self.z)
        family_low, family_high = wilson(moved, gaps.n, z=q)
        with np.errstate(all="ignore"):
            value = moved / gaps.n
        by_class = self.block(
            value.shape,
            measure="flip_rate",
            **{"class": words(self.table.classes)},
            value=value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=gaps.cases,
            method=_method("wilson", gaps.kind),
            undefined=choose(gaps.cases == 0, NO_PAIRS),
        )
        return [overall, by_class]

    def side_rows(self, decisions: Decisions) -> list[Rows]:
        """Score gaps and the share of texts changed, where the table has the columns for them."""
        scores, texts = score_columns(decisions), text_columns(decisions)
        pairs = [(str(a), str(b)) for a, b in zip(self.group, self.reference)]
        tally = pair_sums(decisions, pairs, scores=scores, texts=texts)
        if tally is None:
            return [self._changed_rows(None)]
        rows = [self._changed_rows(tally)]
        if scores:
            rows.append(self._score_rows(tally, list(scores)))
        return rows

    def _sums(self, tally: Tally, name: str) -> FloatArray:
        """One sum by stratum, the whole table first; zeros where it was not taken."""
        if name not in tally.sums:
            return np.zeros(len(self.table.strata))
        if "stratum" not in tally.labels:
            return np.array([tally.total(name)])
        ordered_tally = tally.relabel("stratum", [s for s in self.table.strata if s is not None])
        return np.concatenate([[tally.total(name)], ordered_tally.dense(["stratum"], name)])

    def _changed_rows(self, tally: Tally | None) -> Rows:
        shape = (len(self.table.strata), len(self.table.pairs))
        counts = [np.zeros(shape), np.zeros(shape)]
        if tally is not None:
            for count, name in zip(counts, ("changed", "texts")):
                for i in range(shape[1]):
                    count[:, i] = self._sums(tally, f"{name}:{i}")
        changed, n = counts
        low, high = wilson(changed, n, z=self.z)
        q = bonferroni(self.options.level, members=shape[1])
        family_low, family_high = wilson(changed, n, z=q)
        with np.errstate(all="ignore"):
            value = changed / n
        return self.block(
            shape,
            measure="changed_share",
            value=value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=n,
            method="wilson",
            undefined=choose(n == 0, NO_TEXTS),
        )

    def _score_rows(self, tally: Tally, names: list[str | None]) -> Rows:
        """Mean difference of scores over pairs, with its t interval; the score is as given."""
        shape = (len(self.table.strata), len(self.table.pairs), len(names))
        sums = {
            name: np.stack(
                [
                    np.stack(
                        [self._sums(tally, f"{name}:{i}:{k}") for k in range(shape[2])], axis=-1
                    )
                    for i in range(shape[1])
                ],
                axis=1,
            )
            for name in ("n", "d", "dd", "w", "wd", "ww", "wwd", "wwdd")
        }
        n = sums["n"]
        with np.errstate(all="ignore"):
            if self.roles.weight:
                value = sums["wd"] / sums["w"]
                inner = sums["wwdd"] - 2 * value * sums["wwd"] + value**2 * sums["ww"]
                variance = np.maximum(inner, 0.0) / sums["w"] ** 2 * n / (n - 1)
            else:
                value = sums["d"] / n
                variance = np.maximum(sums["dd"] / n - value**2, 0.0) / (n - 1)
            error = np.where(n > 1, np.sqrt(variance), np.nan)
            t = value / error
            # Equal scores in every pair: nothing speaks against no difference.
            t = np.where((error == 0) & (value == 0), 0.0, t)
            p = 2 * stdtr(np.maximum(n - 1, 1), -np.abs(t))
            level = self.options.level
            # Scores are not tallied jointly, so the family's bound is Bonferroni's.
            members = max(int((n[0] > 1).sum()), 1)
            half, family = (
                stdtrit(np.maximum(n - 1, 1), 1 - (1 - level) / (2 * m)) * error
                for m in (1, members)
            )
        # A single score is the positive class's.
        named = [self.table.positive if name is None else name for name in names]
        return self.block(
            shape,
            measure="counterfactual_score_gap",
            **{"class": words(named)},
            value=value,
            low=value - half,
            high=value + half,
            family_low=value - family,
            family_high=value + family,
            n=n,
            p=p,
            p_adjusted=np.stack([benjamini_hochberg(stratum) for stratum in p]),
            method="paired t" + (", weighted" if self.roles.weight else ""),
            undefined=choose(n == 0, "no pairs with scores"),
        )


def _method(name: str, kind: str) -> str:
    return name if kind == "counted" else f"{name}, {kind}"
