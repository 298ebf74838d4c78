"""Decisions with a known effect of the group's own words and of what goes along with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from scipy.special import softmax

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray

_SKILL = 2.0  # score that the right class has over the others
_GENDERS = ("female", "male")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDecisions:
    """Factual and counterfactual decisions, and the gaps they have in expectation.

    `frame` has truth, gender, decision, decision@female and decision@male. `planted` gives for
    every class the statistical and the counterfactual true positive rate gap, female − male.
    """

    frame: pl.DataFrame
    planted: dict[str, dict[str, float]] = field(default_factory=dict)


def paired_decisions(
    n: int,
    *,
    gamma: Sequence[float] = (0.0, 0.0, 0.0),
    delta: Sequence[float] = (0.0, 0.0, 0.0),
    female_share: float | Sequence[float] = 0.5,
    correlation: float = 0.8,
    seed: int = 0,
) -> PairedDecisions:
    """Decisions by the largest of skill + γ_c·token + δ_c·proxy + noise, one γ and δ a class.

    The token is the group's own (swapped in the counterfactual), the proxy a word that agrees
    with the gender with the given correlation and is never swapped. γ = 0 makes every
    counterfactual gap exactly 0; δ = 0 makes both gaps alike in expectation.

    Examples:
        >>> made = paired_decisions(100, gamma=(1.0, 0.0, -1.0))
        >>> round(made.planted["a"]["counterfactual_gap"], 3)
        0.255
    """
    token, proxy = np.asarray(gamma, dtype=float), np.asarray(delta, dtype=float)
    classes = len(token)
    if n < 1 or classes < 2 or token.shape != proxy.shape or token.ndim != 1:
        raise UsageError(
            f"n={n}, {len(token)} values of gamma and {len(proxy)} of delta: give one or more rows "
            "and as many of one as of the other, two or more."
        )
    share = np.broadcast_to(np.asarray(female_share, dtype=float), (classes,))
    if not (share.min() >= 0 and share.max() <= 1 and -1 <= correlation <= 1):
        raise UsageError(
            f"female_share={female_share} and correlation={correlation}: shares lie between 0 and "
            "1, a correlation between -1 and 1."
        )
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    female = rng.random(n) < share[truth]
    agrees = rng.random(n) < (1 + correlation) / 2
    side = np.where(female == agrees, 0.5, -0.5)
    score = _SKILL * np.eye(classes)[truth] + side[:, None] * proxy + rng.gumbel(size=(n, classes))
    names = np.array([chr(ord("a") + k) if classes <= 26 else f"class{k}" for k in range(classes)])
    under = {g: names[np.argmax(score + t * token, axis=1)] for g, t in zip(_GENDERS, (0.5, -0.5))}
    frame = pl.DataFrame(
        {
            "truth": names[truth].tolist(),
            "gender": np.where(female, *_GENDERS).tolist(),
            "decision": np.where(female, under["female"], under["male"]).tolist(),
            "decision@female": under["female"].tolist(),
            "decision@male": under["male"].tolist(),
        }
    )
    return PairedDecisions(
        frame=frame,
        planted={
            str(names[c]): _gaps(c, token, proxy, float(share[c]), correlation)
            for c in range(classes)
        },
    )


def _gaps(
    c: int, token: FloatArray, proxy: FloatArray, share: float, correlation: float
) -> dict[str, float]:
    """Exact gaps of class c: Gumbel noise makes the chance of a decision a softmax."""

    def chance(t: float, side: float) -> float:
        skill = _SKILL * np.eye(len(token))[c]
        return float(softmax(skill + t * token + side * proxy)[c])

    def given(t: float, own: float) -> float:
        agree = (1 + correlation) / 2
        return agree * chance(t, own) + (1 - agree) * chance(t, -own)

    counterfactual = share * (given(0.5, 0.5) - given(-0.5, 0.5)) + (1 - share) * (
        given(0.5, -0.5) - given(-0.5, -0.5)
    )
    return {
        "statistical_gap": given(0.5, 0.5) - given(-0.5, -0.5),
        "counterfactual_gap": counterfactual,
    }
