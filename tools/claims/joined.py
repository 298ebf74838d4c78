"""Claims of audits about what joins rows: clusters, strata, labelers, small references."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import evenhand as eh
from claims.audits import audit, audit_claim, binary_table
from claims.draws import (
    Floats,
    Integers,
    clusters_over_strata,
    labels_over_strata,
    shared_labelers,
)
from claims.statistics import Generator

LABELS = ((1, 1), (1, 0), (0, 1), (0, 0))


def rows_of(counts: Integers, columns: Mapping[str, Any]) -> dict[str, Any]:
    """A table with each line of `columns` as often as counted."""
    times = counts.ravel()
    grids = np.broadcast_arrays(*columns.values(), np.empty(counts.shape))[:-1]
    return {name: np.repeat(grid.ravel(), times) for name, grid in zip(columns, grids)}


def _holds(rows: Any, truth: float) -> float:
    return float(rows["low"][0] <= truth <= rows["high"][0])


def strata_with_clusters(
    generator: Generator, repetitions: int, *, clusters: int, uneven: bool
) -> Floats:
    """The Mantel–Haenszel summary of an audit holds the truth; clusters lie across the strata."""
    made = clusters_over_strata(
        generator, repetitions, clusters=clusters, uneven=uneven, crossing=True
    )
    out = np.empty(repetitions)
    names = {
        "c": np.arange(clusters)[:, None, None, None],
        "s": np.arange(made.hits.shape[2])[None, :, None, None],
        "g": np.array(["a", "b"])[None, None, :, None],
        "d": np.array([1, 0])[None, None, None, :],
    }
    for i in range(repetitions):
        counts = np.stack([made.hits[i], made.n[i] - made.hits[i]], axis=-1)
        table = rows_of(counts, names)
        table["s"] = np.char.add("s", table["s"].astype(str))
        found = audit(
            table, decision="d", group="g", stratum="s", cluster="c", reference={"g": "a"}
        )
        rows = found.rows.where(measure="selection_rate_gap", class_="1", stratum="<summary>")
        out[i] = _holds(rows, made.truth)
    return out


def _labels(counts: Integers) -> dict[str, Any]:
    """Labels of labelers (labelers, strata, 2, 4), the group first."""
    labelers, strata = counts.shape[:2]
    table = rows_of(
        counts,
        {
            "l": np.arange(labelers)[:, None, None, None],
            "s": np.arange(strata)[None, :, None, None],
            "g": np.array(["b", "a"])[None, None, :, None],
            "k": np.arange(4)[None, None, None, :],
        },
    )
    kind = table.pop("k")
    cells = np.array(LABELS)
    named = {name: np.char.add(name, table[name].astype(str)) for name in ("l", "s")}
    return {**table, **named, "truth": cells[kind, 0], "d": cells[kind, 1]}


def labelers_over_strata(
    generator: Generator, repetitions: int, *, measure: str, labelers: int
) -> Floats:
    """A labelers' gap over strata, of labelers who work in all of them, holds the truth."""
    spread, bar = 0.35, 0.3
    # Marginal over labelers both signals shrink by the spread of their bars.
    scale = np.sqrt(1 + spread**2)
    truth = {"criterion_gap": bar / scale, "separation_gap": 0.0}[measure]
    out = np.empty(repetitions)
    for i in range(repetitions):
        counts = labels_over_strata(generator, labelers=labelers, strata=4, spread=spread, bar=bar)
        found = _labelers_audit(_labels(counts), stratum="s")
        rows = found.rows.where(measure=measure, group="b", stratum="<summary>")
        out[i] = _holds(rows, truth)
    return out


def labelers_at_the_limit(generator: Generator, repetitions: int) -> Floats:
    """Labelers' bars differ by exactly the limit in all of eight strata: called outside."""
    spread, limit = 0.3, 0.2
    bar = limit * np.sqrt(1 + spread**2)
    out = np.empty(repetitions)
    for i in range(repetitions):
        counts = labels_over_strata(generator, labelers=12, strata=8, spread=spread, bar=bar)
        found = _labelers_audit(_labels(counts), stratum="s", limits={"criterion_gap": limit})
        rows = found.rows.where(measure="criterion_gap", labeler=None)
        out[i] = float("outside" in set(rows["verdict"]))
    return out


def thresholds_at_the_limit(generator: Generator, repetitions: int) -> Floats:
    """Implied thresholds differ by exactly the limit in all of eight strata: called outside."""
    strata, n, limit = 8, 900, 0.1
    names = {
        "s": [f"s{k}" for k in np.repeat(np.arange(strata), 2 * n)],
        "g": np.tile(np.repeat(["a", "b"], n), strata),
    }
    out = np.empty(repetitions)
    for i in range(repetitions):
        score = generator.random(2 * n * strata)
        chance = np.clip(0.8 * score + np.where(names["g"] == "b", limit, 0.0), 0, 1)
        truth = (generator.random(score.size) < chance).astype(int)
        found = eh.audit(
            pl.DataFrame({**names, "score": score, "y": truth}),
            truth="y",
            score="score",
            threshold=0.5,
            group="g",
            stratum="s",
            reference={"g": "a"},
            lenses=["thresholds"],
            limits={"implied_threshold_gap": limit},
        )
        out[i] = float(found.verdict == "outside")
    return out


def thresholds_over_strata(generator: Generator, repetitions: int) -> Floats:
    """The summary of implied thresholds holds the truth; clusters lie across the strata."""
    clusters, strata = 40, 3
    size = np.full(clusters, 90)
    out = np.empty(repetitions)
    for i in range(repetitions):
        cluster = np.repeat(np.arange(clusters), size)
        group = np.where(generator.random(cluster.size) < 0.5, "b", "a")
        stratum = generator.integers(0, strata, cluster.size)
        score = np.clip(generator.normal(0.5, 0.15, cluster.size), 0.001, 0.999)
        # Members of a cluster are alike, more so for the group: no difference on average.
        lean = generator.normal(0, 0.4, (clusters, 2))[cluster, (group == "b").astype(int)]
        chance = 1 / (1 + np.exp(-(4 * (score - 0.5) + lean)))
        truth = (generator.random(score.size) < chance).astype(int)
        found = eh.audit(
            pl.DataFrame({"y": truth, "x": score, "g": group, "c": cluster,
                          "s": np.char.add("s", stratum.astype(str))}),
            truth="y", score="x", threshold=0.5, group="g", stratum="s", cluster="c",
            reference={"g": "a"}, lenses=["thresholds"],
        )  # fmt: skip
        rows = found.rows.where(measure="implied_threshold_gap", stratum="<summary>")
        out[i] = _holds(rows, 0.0)
    return out


def _labelers_audit(table: Mapping[str, Any], **rest: Any) -> eh.Audit:
    return eh.audit(
        pl.DataFrame(table),
        truth="truth",
        decision="d",
        labeler="l",
        group="g",
        reference={"g": "a"},
        lenses=["labelers"],
        **rest,
    )


def shared_clusters(generator: Generator, repetitions: int, *, measure: str) -> Floats:
    """Worst pair or impact ratio of an audit whose labelers judge all groups hold the truth."""
    hits, rates = shared_labelers(generator, repetitions)
    each = 10
    out = np.empty(repetitions)
    names = {
        "c": np.arange(hits.shape[1])[:, None, None],
        "g": np.array(["a", "b", "c"])[None, :, None],
        "d": np.array([1, 0])[None, None, :],
    }
    for i in range(repetitions):
        table = rows_of(np.stack([hits[i], each - hits[i]], axis=-1), names)
        found = audit(table, decision="d", group="g", cluster="c", reference={"g": "a"})
        rows = found.rows.where(measure=measure, class_="1")
        if measure == "impact_ratio":
            lowest = rows.where(group="c")
            out[i] = _holds(lowest, float(rates[2] / rates[0]))
        else:
            out[i] = _holds(rows, float(np.ptp(rates)))
    return out


def shared_items(
    generator: Generator,
    repetitions: int,
    *,
    measure: str,
    items: int,
    labelers: int,
    labels: int,
    item_sd: float,
    labeler_sd: float,
) -> Floats:
    """A rate or a gap of labels on shared items, every table a stratum of one audit.

    Half the items are of either group; effects are normal on the probit scale, around one half.
    """
    everybody = (repetitions, items, labelers)
    who = np.argsort(generator.random(everybody), axis=2)[:, :, :labels]
    own = np.broadcast_to(generator.normal(0, labeler_sd, (repetitions, 1, labelers)), everybody)
    bar = np.take_along_axis(own, who, 2) + generator.normal(0, item_sd, (repetitions, items, 1))
    table, item, _ = np.indices(who.shape)
    found = audit(
        {
            "t": np.char.add("t", table.ravel().astype(str)),
            "i": (table * items + item).ravel(),
            "l": (table * labelers + who).ravel(),
            "d": (bar + generator.normal(size=who.shape) > 0).astype(int).ravel(),
            "g": np.where(item % 2, "b", "a").ravel(),
        },
        decision="d", group="g", stratum="t", labeler="l", item="i", reference={"g": "a"},
    )  # fmt: skip
    rows = found.rows.where(measure=measure, class_="1", group="b")
    low, high, where = (np.array(rows[name]) for name in ("low", "high", "stratum"))
    inside = np.array([name is not None and str(name).startswith("t") for name in where])
    truth = 0.0 if measure.endswith("_gap") else 0.5
    return ((low <= truth) & (truth <= high))[inside].astype(float)


def at_the_limit(generator: Generator, repetitions: int, *, measure: str) -> Floats:
    """A summary over classes or groups that lies exactly at its limit is called outside."""
    sizes = {"a": 600, "b": 400, "c": 200}
    tpr = {"a": 0.8, "b": 0.7, "c": 0.75}
    fpr = {"a": 0.15, "b": 0.15, "c": 0.10}
    share = np.array([0.3 * tpr[g] + 0.7 * fpr[g] for g in sizes])
    limit = {
        "selection_rate_spread": float(share.std()),
        "selection_rate_gap_worst": float(np.ptp(share)),
        "equalised_odds": 0.1,
    }[measure]
    out = np.empty(repetitions)
    for i in range(repetitions):
        table = binary_table(
            generator,
            sizes=sizes,
            prevalence=0.3,
            true_positive_rate=tpr,
            false_positive_rate=fpr,
        )
        found = audit(
            table, truth="y", decision="d", group="g", reference={"g": "a"},
            limits={measure: limit},
        )  # fmt: skip
        out[i] = float(found.verdict == "outside")
    return out


def settling_impact(
    generator: Generator, repetitions: int, *, sizes: Mapping[str, int], rates: Mapping[str, float]
) -> Floats:
    """Further cases for an impact ratio against, or beside, a small group settle it.

    NaN where the first audit was settled, or gave no number.
    """
    out = np.full(repetitions, np.nan)
    for i in range(repetitions):
        found = _impact(generator, sizes, rates)
        asked = found.findings[0].settle
        if found.verdict != "cannot tell" or asked is None or not asked.how_many:
            continue
        shown = found.rows.where(measure="selection_rate", class_="1")
        seen = dict(zip(shown["group"], shown["value"]))
        if not 0.02 < min(seen.values()) <= max(seen.values()) < 0.98:
            continue
        grown = _grown(sizes, asked.how_many)
        if asked.groups == 1 or sum(grown.values()) > 200_000:
            continue
        later = _impact(generator, grown, seen).rows
        # What is promised is of the comparison that the finding leads with, not of all groups.
        (verdict,) = later.where(
            measure="impact_ratio", class_="1", group=found.findings[0].claim.group
        )["verdict"]
        out[i] = float(verdict in ("within", "outside"))
    return out


def _impact(generator: Generator, sizes: Mapping[str, int], rates: Mapping[str, float]) -> eh.Audit:
    group = np.repeat(list(sizes), list(sizes.values()))
    chance = np.repeat([rates[name] for name in sizes], list(sizes.values()))
    decided = (generator.random(group.size) < chance).astype(int)
    return audit(
        {"d": decided, "g": group}, decision="d", group="g", positive_is="benefit",
        limits={"impact_ratio": 0.8},
    )  # fmt: skip


def _grown(sizes: Mapping[str, int], how_many: float) -> dict[str, int]:
    """Sizes after collecting so many further cases, at the groups' present shares."""
    total = sum(sizes.values())
    return {name: n + int(np.ceil(how_many * n / total)) for name, n in sizes.items()}


def settling_labelers(generator: Generator, repetitions: int) -> Floats:
    """Further labelers for a criterion gap settle it, if the truth is as it looked."""
    out = np.full(repetitions, np.nan)
    limit, spread = 0.1, 0.3
    scale = np.sqrt(1 + spread**2)
    for i in range(repetitions):
        first = labels_over_strata(
            generator, labelers=20, strata=1, spread=spread, bar=0.25 * scale
        )
        found = _labelers_audit(_labels(first), limits={"criterion_gap": limit})
        settle = found.findings[0].settle
        if found.verdict != "cannot tell" or settle is None or not settle.how_many:
            continue
        seen = found.rows.where(measure="criterion_gap", group="b", labeler=None)["value"][0]
        units = settle.how_many
        more = units if settle.unit == "labelers" else units / (2 * 42)
        if more > 2_000:
            continue
        labelers = 20 + int(np.ceil(more))
        counts = labels_over_strata(
            generator, labelers=labelers, strata=1, spread=spread, bar=float(seen) * scale
        )
        later = _labelers_audit(_labels(counts), limits={"criterion_gap": limit})
        out[i] = float(later.verdict in ("within", "outside"))
    return out


CLAIMS = (
    *(
        audit_claim(
            "Mantel–Haenszel gap",
            f"{clusters} clusters across strata, {'uneven' if uneven else 'even'}",
            partial(strata_with_clusters, clusters=clusters, uneven=uneven),
            (0.93, 0.98),
            "coverage",
        )
        for clusters, uneven in ((15, False), (39, True))
    ),
    *(
        audit_claim(
            name,
            "20 labelers across 4 strata",
            partial(labelers_over_strata, measure=measure, labelers=20),
            (0.93, 0.98),
            "coverage",
        )
        for name, measure in (
            ("labelers' criterion gap", "criterion_gap"),
            ("labelers' separation gap", "separation_gap"),
        )
    ),
    audit_claim(
        "implied threshold gap",
        "40 clusters across 3 strata",
        thresholds_over_strata,
        (0.93, 1.0),
        "coverage",
    ),
    *(
        audit_claim(
            name,
            f"{labels} labels an item: {items} × {labelers}, SDs {item_sd:g} and {labeler_sd:g}",
            partial(
                shared_items,
                measure=measure,
                items=items,
                labelers=labelers,
                labels=labels,
                item_sd=item_sd,
                labeler_sd=labeler_sd,
            ),
            (0.93, 1.0),
            "coverage",
            share=0.5,
        )
        for items, labelers, labels, item_sd, labeler_sd in (
            (60, 40, 12, 0.8, 0.4),
            (200, 200, 20, 0.4, 0.8),
            (200, 20, 20, 0.3, 1.2),
            (200, 30, 6, 1.5, 1.5),
            (10, 40, 20, 0.8, 0.4),
            (200, 20, 20, 0.0, 0.0),
        )
        for name, measure in (
            ("rate of labels on shared items", "selection_rate"),
            ("gap of labels on shared items", "selection_rate_gap"),
        )
    ),
    *(
        audit_claim(
            name,
            "60 labelers judge all three groups",
            partial(shared_clusters, measure=measure),
            (0.93, 0.99),
            "coverage",
        )
        for name, measure in (
            ("worst pair", "selection_rate_gap_worst"),
            ("impact ratio", "impact_ratio"),
        )
    ),
    *(
        audit_claim(
            name,
            "exactly at its limit, three groups",
            partial(at_the_limit, measure=measure),
            (0.0, 0.05),
            "error",
        )
        for name, measure in (
            ("spread called outside", "selection_rate_spread"),
            ("worst pair called outside", "selection_rate_gap_worst"),
            ("equalised odds called outside", "equalised_odds"),
        )
    ),
    *(
        audit_claim("gap found", f"{name} at its limit in 8 strata", simulate, (0.0, 0.05), "error")
        for name, simulate in (
            ("criterion gap", labelers_at_the_limit),
            ("implied threshold gap", thresholds_at_the_limit),
        )
    ),
    *(
        audit_claim(
            "further units",
            setting,
            settling_impact,
            (0.75, 0.9),
            "settled",
            sizes=sizes,
            rates=rates,
        )
        for setting, sizes, rates in (
            ("impact ratio, a reference of 60", {"a": 60, "b": 900}, {"a": 0.5, "b": 0.36}),
            (
                "impact ratio, beside a group of 18",
                {"a": 18, "b": 700, "c": 400},
                {"a": 0.4, "b": 0.4, "c": 0.35},
            ),
        )
    ),
    audit_claim(
        "further units", "labelers' criterion gap", settling_labelers, (0.75, 0.9), "settled"
    ),
)
