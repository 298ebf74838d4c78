"""Gaps within strata and their summary, and where the whole table tells another story."""

import numpy as np

from evenhand.lenses.compare_groups import Pairing, Setting
from evenhand.lenses.rows import Rows, choose, words
from evenhand.stats.families import benjamini_hochberg, bonferroni
from evenhand.stats.stratified import mantel_haenszel_gap

SUMMARY = "<summary>"


def stratified_rows(setting: Setting, rate: str, pairing: Pairing) -> tuple[list[Rows], list[str]]:
    """Mantel–Haenszel gaps over strata, their homogeneity, and sentences on reversals of sign."""
    z = setting.z
    sides = pairing.counts(z)
    within = [np.moveaxis(side[1:], 0, -1) for side in sides]
    found = mantel_haenszel_gap(*within, z=z)
    q = bonferroni(setting.level, members=int((found.n_used > 0).sum()))
    family = mantel_haenszel_gap(*within, z=q)
    reason = choose(found.n_used == 0, "no stratum has cases of both")
    names = [setting.groups[i] for i in pairing.index]
    shared = {
        "class": words(setting.classes),
        "group": words(names)[:, None],
        "reference": pairing.reference_name,
        "stratum": SUMMARY,
        "n": np.broadcast_to(pairing.group.cases[1:], pairing.group.value[1:].shape).sum(axis=0),
        "n_reference": np.broadcast_to(
            pairing.reference.cases[1:], pairing.group.value[1:].shape
        ).sum(axis=0),
        "undefined": reason,
    }
    summary = setting.block(
        found.value.shape,
        measure=f"{rate}_gap",
        value=found.value,
        low=found.low,
        high=found.high,
        family_low=family.low,
        family_high=family.high,
        p=found.p,
        p_adjusted=benjamini_hochberg(found.p),
        method="mantel-haenszel",
        **shared,
    )
    test = setting.block(
        found.value.shape,
        measure=f"{rate}_gap_homogeneity",
        value=np.where(found.degrees > 0, found.homogeneity, np.nan),
        p=found.homogeneity_p,
        method=choose(
            found.degrees > 0, [[f"chi-square({d})" for d in r] for r in found.degrees], None
        ),
        **{
            **shared,
            "undefined": choose(found.degrees > 0, None, "fewer than two strata with cases"),
        },
    )
    crude = pairing.group.value[0] - pairing.reference.value[0]
    with np.errstate(all="ignore"):
        turned = (crude * found.value < 0) & ((found.low > 0) | (found.high < 0))
    notes = [
        f"{_plain(rate)} of '{setting.classes[c]}', {names[g]} against {pairing.reference_name}: "
        f"the gap is {crude[g, c]:+.3f} in the whole table and {found.value[g, c]:+.3f} within "
        "strata, so the strata explain its sign (Simpson's paradox)."
        for g, c in np.argwhere(turned)
    ]
    return [summary, test], notes


def _plain(rate: str) -> str:
    return rate.replace("_", " ").capitalize()
