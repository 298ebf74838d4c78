"""Claims of whole audits: headlines, families, what is planted and what settles a verdict."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import evenhand as eh
from claims.claim import Claim
from claims.draws import Floats, beta_binomial
from claims.statistics import Generator

LIMIT = 0.05
# What audits are usually held against.
USUAL = {
    "selection_rate_gap": 0.05,
    "true_positive_rate_gap": 0.05,
    "false_positive_rate_gap": 0.05,
    "selection_rate_ratio": 0.8,
    "impact_ratio": 0.8,
    "equalised_odds": 0.1,
}


def audit(table: Mapping[str, Any], **rest: Any) -> eh.Audit:
    """An audit of a simulated table through the statistical lens alone."""
    return eh.audit(pl.DataFrame(table), lenses=["statistical"], **rest)


def binary_table(
    generator: Generator,
    *,
    sizes: Mapping[str, int],
    prevalence: float,
    true_positive_rate: Mapping[str, float],
    false_positive_rate: Mapping[str, float],
) -> dict[str, Any]:
    """Truth and decision of groups whose error rates are known."""
    group = np.repeat(list(sizes), list(sizes.values()))
    truth = generator.random(group.size) < prevalence
    chance = np.where(
        truth,
        [true_positive_rate[name] for name in group],
        [false_positive_rate[name] for name in group],
    )
    decision = generator.random(group.size) < chance
    return {"y": truth.astype(int), "d": decision.astype(int), "g": group}


SIZES = {"a": 700, "b": 500, "c": 300, "d": 120}


def null_audit(generator: Generator, repetitions: int) -> Floats:
    """Anything is said to lie outside six usual limits, and all groups are treated alike."""
    out = np.empty(repetitions)
    for i in range(repetitions):
        table = binary_table(
            generator,
            sizes=SIZES,
            prevalence=0.3,
            true_positive_rate=dict.fromkeys(SIZES, 0.75),
            false_positive_rate=dict.fromkeys(SIZES, 0.15),
        )
        found = audit(table, truth="y", decision="d", group="g", limits=USUAL)
        out[i] = float(found.verdict == "outside")
    return out


def planted_audit(generator: Generator, repetitions: int, *, gap: float) -> Floats:
    """A true positive rate of one group that lies lower is said to be outside its limit."""
    out = np.empty(repetitions)
    rates = {**dict.fromkeys(SIZES, 0.8), "b": 0.8 - gap}
    for i in range(repetitions):
        table = binary_table(
            generator,
            sizes={name: 2 * n for name, n in SIZES.items()},
            prevalence=0.4,
            true_positive_rate=rates,
            false_positive_rate=dict.fromkeys(SIZES, 0.15),
        )
        found = audit(
            table,
            truth="y",
            decision="d",
            group="g",
            reference={"g": "a"},
            limits={"true_positive_rate_gap": LIMIT},
        )
        rows = found.rows.where(measure="true_positive_rate_gap", group="b", class_="1")
        out[i] = float("outside" in list(rows["verdict"]))
    return out


def strata_audit(generator: Generator, repetitions: int, *, strata: int, gap: float) -> Floats:
    """The headline says that a gap was found, in strata of which none has one beyond the limit."""
    out = np.empty(repetitions)
    n = 300
    for i in range(repetitions):
        stratum = np.repeat(np.arange(strata), 2 * n)
        group = np.tile(np.repeat(["a", "b"], n), strata)
        decided = generator.random(group.size) < np.where(group == "b", 0.3 + gap, 0.3)
        table = {"d": decided.astype(int), "g": group, "s": [f"s{k}" for k in stratum]}
        found = audit(
            table,
            decision="d",
            group="g",
            stratum="s",
            reference={"g": "a"},
            limits={"selection_rate_gap": LIMIT},
        )
        out[i] = float(found.verdict == "outside")
    return out


CLASSES = ("k1", "k2", "k3", "k4", "k5", "k6")


def joint_audit(generator: Generator, repetitions: int, *, measure: str) -> Floats:
    """The family intervals of a measure hold the truth for all classes and groups together."""
    share = {"a": 0.6, "b": 0.3, "c": 0.1}
    p = np.array([0.3, 0.22, 0.18, 0.14, 0.1, 0.06])
    rates = np.stack([p, np.roll(p, 1), p[[1, 0, 3, 2, 5, 4]]])
    truth = {
        "selection_rate_gap_worst": dict(zip(CLASSES, np.ptp(rates, axis=0))),
        "selection_rate_spread": dict(zip(CLASSES, rates.std(axis=0))),
        "selection_rate_gap_rms": {
            name: float(np.sqrt(((rates[g] - rates[0]) ** 2).mean()))
            for g, name in enumerate(share)
        },
    }[measure]
    key = "group" if measure.endswith("_rms") else "class"
    out = np.empty(repetitions)
    for i in range(repetitions):
        sizes = [round(1200 * part) for part in share.values()]
        decided = [generator.choice(CLASSES, size, p=rates[g]) for g, size in enumerate(sizes)]
        table = {"d": np.concatenate(decided), "g": np.repeat(list(share), sizes)}
        found = audit(table, decision="d", group="g", reference={"g": "a"})
        rows = found.rows.where(measure=measure)
        low, high = rows["family_low"], rows["family_high"]
        true = np.array([truth[name] for name in rows[key]])
        out[i] = float(((low <= true + 1e-12) & (true <= high + 1e-12)).all())
    return out


def settling_audit(
    generator: Generator, repetitions: int, *, sampling: str, rates: tuple[float, float]
) -> Floats:
    """Further units that an audit asked for settle its verdict, if the truth is as it looked.

    NaN where the first audit was settled, or gave no number.
    """
    out = np.full(repetitions, np.nan)
    for i in range(repetitions):
        first = _sample(generator, sampling, np.array(rates), {"a": 400, "b": 400})
        found = _settle_audit(first, sampling)
        row = next(iter(found.rows.where(measure="selection_rate_gap", class_="1")))
        asked = _asked(found)
        if row["verdict"] != "cannot tell" or asked is None:
            continue
        seen = [
            float(found.rows.where(measure="selection_rate", class_="1", group=g)["value"][0])
            for g in ("a", "b")
        ]
        if not 0.02 < min(seen) <= max(seen) < 0.98:
            continue
        size = CLUSTER if sampling == "clusters" else 1
        sizes = dict.fromkeys(("a", "b"), 400 + asked * size / 2)
        rounded = {name: int(np.ceil(n / CLUSTER) * CLUSTER) for name, n in sizes.items()}
        if sum(rounded.values()) > 200_000:
            continue
        again = _settle_audit(_sample(generator, sampling, np.array(seen), rounded), sampling)
        later = next(iter(again.rows.where(measure="selection_rate_gap", class_="1")))
        out[i] = float(later["verdict"] in ("within", "outside"))
    return out


CLUSTER = 20


def _sample(
    generator: Generator, sampling: str, rates: Floats, sizes: Mapping[str, int]
) -> dict[str, Any]:
    """Decisions of two groups: independent rows, clusters of twenty, or rows of uneven weight."""
    parts: dict[str, list[Any]] = {"d": [], "g": [], "c": [], "w": []}
    for place, (name, n) in enumerate(sizes.items()):
        if sampling == "clusters":
            count = n // CLUSTER
            hits = beta_binomial(
                generator, rates[[place]], size=CLUSTER, icc=0.2, shape=(1, count)
            )[0]
            decided = (np.arange(CLUSTER) < hits[:, None]).ravel()
            parts["c"].append([f"{name}{k}" for k in np.repeat(np.arange(count), CLUSTER)])
        else:
            decided = generator.random(n) < rates[place]
            parts["c"].append([f"{name}{k}" for k in range(n)])
        parts["d"].append(decided.astype(int))
        parts["g"].append(np.repeat(name, n))
        parts["w"].append(generator.gamma(1.0, 1.0, n) + 0.05)
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def _settle_audit(table: Mapping[str, Any], sampling: str) -> eh.Audit:
    roles: dict[str, Any] = {"decision": "d", "group": "g", "reference": {"g": "a"}}
    if sampling == "clusters":
        roles["cluster"] = "c"
    if sampling == "weights":
        roles["weight"] = "w"
    return audit(table, limits={"selection_rate_gap": LIMIT}, **roles)


def _asked(found: eh.Audit) -> float | None:
    """Units asked for in all groups; None where no number is given."""
    (finding,) = found.findings
    return None if finding.settle is None else finding.settle.how_many


def audit_claim(
    title: str,
    setting: str,
    simulate: Callable[..., Floats],
    wanted: tuple[float, float],
    kind: str,
    *,
    share: float = 0.1,
    **setup: object,
) -> Claim:
    return Claim(
        measure=title,
        setting=f"audits: {setting}",
        wanted=wanted,
        simulate=partial(simulate, **setup),
        kind=kind,
        share=share,
    )


CLAIMS = (
    *(
        audit_claim(
            name,
            "6 classes, groups .6/.3/.1, n = 1,200",
            joint_audit,
            (0.93, 1.0),
            "joint",
            measure=measure,
        )
        for name, measure in (
            ("worst pair", "selection_rate_gap_worst"),
            ("spread", "selection_rate_spread"),
            ("RMS over classes", "selection_rate_gap_rms"),
        )
    ),
    audit_claim(
        "outside", "no difference, six usual limits", null_audit, (0.0, 0.01), "error", share=0.1
    ),
    *(
        audit_claim(
            "gap found",
            f"{strata} strata, gap {gap:g}, limit 0.05",
            strata_audit,
            (0.0, 0.05),
            "error",
            strata=strata,
            gap=gap,
        )
        for strata in (5, 20)
        for gap in (0.0, 0.05)
    ),
    *(
        audit_claim(
            "further units",
            {"rows": "independent rows", "clusters": "clusters of 20, ICC .2"}.get(
                sampling, "gamma weights"
            ),
            settling_audit,
            (0.75, 0.9),
            "settled",
            sampling=sampling,
            rates=(0.30, 0.41),
        )
        for sampling in ("rows", "clusters", "weights")
    ),
    *(
        audit_claim(
            "gap found",
            f"true positive rate lower by {gap:g}, limit 0.05",
            planted_audit,
            (0.8, 1.0),
            "found",
            gap=gap,
        )
        for gap in (0.15, 0.2)
    ),
)
