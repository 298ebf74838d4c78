"""Claims at the edge of what holds: uneven and few clusters, small n, weak signals, whole families.

Where fewer than 93 of 100 intervals hold, `said` gives the words that stand beside the number.
"""

from functools import partial
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit, ndtr

import evenhand as eh
from claims.audits import audit, audit_claim, binary_table
from claims.claim import Claim
from claims.draws import Floats, norm_classes
from claims.joined import rows_of
from claims.statistics import COVERED, Generator, held, pairs_by_weight
from claims.thresholds import latent_size, latent_trend
from evenhand.lenses.statistical.compare import LONE_CASE
from evenhand.stats.estimate import critical
from evenhand.stats.rates import wilson
from evenhand.stats.spread import root_mean_square
from evenhand.stats.trend import WEAK_SIGNAL

Z = critical(0.95)
# The mean of a logistic curve over normal leanings, by quadrature.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


def marginal(odds: float, spread: float) -> float:
    """The rate of a population whose clusters lean by `spread` on the logit."""
    return float(WEIGHTS @ expit(odds + spread * NODES) / WEIGHTS.sum())


def uneven_sizes(generator: Generator, clusters: int, *, mean: int) -> Any:
    """Sizes of clusters, of which a few are many times the others."""
    drawn = mean / 2 * (1 - generator.random(clusters)) ** -0.7
    return np.clip(drawn, 2, 20 * mean).astype(int)


def uneven_clusters(
    generator: Generator, repetitions: int, *, measure: str, clusters: int, shared: bool
) -> Floats:
    """A rate, gap or ratio of groups whose clusters are few or uneven holds the truth."""
    spread, odds = 0.6, {"a": 0.0, "b": 0.5, "c": -0.5}
    rates = {name: marginal(own, spread) for name, own in odds.items()}
    truth = {
        "selection_rate": rates["b"],
        "selection_rate_gap": rates["b"] - rates["a"],
        "selection_rate_ratio": rates["b"] / rates["a"],
        "rest": rates["b"] - (rates["a"] + rates["c"]) / 2,
    }[measure]
    out = np.empty(repetitions)
    for i in range(repetitions):
        parts: dict[str, list[Any]] = {"g": [], "c": [], "d": []}
        lean = generator.normal(0, spread, (clusters, 1 if shared else 3))
        for k, name in enumerate(odds):
            size = uneven_sizes(generator, clusters, mean=24)
            chance = np.repeat(expit(odds[name] + lean[:, k if not shared else 0]), size)
            whose = np.repeat(np.arange(clusters), size) + (0 if shared else 1000 * k)
            parts["g"].append(np.repeat(name, size.sum()))
            parts["c"].append(whose)
            parts["d"].append((generator.random(chance.size) < chance).astype(int))
        table = {name: np.concatenate(part) for name, part in parts.items()}
        against = "<rest>" if measure == "rest" else {"g": "a"}
        found = audit(table, decision="d", group="g", cluster="c", reference=against)
        asked = "selection_rate_gap" if measure == "rest" else measure
        (row,) = found.rows.where(measure=asked, class_="1", group="b").take([0])
        if measure == "rest":
            # Sizes differ between draws: everybody else are those that there are.
            mass = {name: float((table["g"] == name).sum()) for name in ("a", "c")}
            others = sum(mass[n] * rates[n] for n in mass) / sum(mass.values())
            truth = rates["b"] - others
        out[i] = np.nan if row["low"] is None else float(row["low"] <= truth <= row["high"])
    return out


def pairs_in_clusters(
    generator: Generator, repetitions: int, *, clusters: int, alike: float
) -> Floats:
    """RMS over classes of counterfactual gaps; the less `alike`, the more a cluster goes as one."""
    p, flips, each = np.array([0.4, 0.3, 0.2, 0.1]), 0.15, 20
    truth = float(np.sqrt(((flips * (np.roll(p, 1) - p)) ** 2).mean()))
    names = np.array(["k0", "k1", "k2", "k3"])
    out = np.empty(repetitions)
    for i in range(repetitions):
        own = generator.dirichlet(6 * p, clusters)
        changes = generator.beta(alike * flips, alike * (1 - flips), clusters)
        first = np.concatenate([generator.choice(4, each, p=row) for row in own])
        cluster = np.repeat(np.arange(clusters), each)
        moved = generator.random(first.size) < changes[cluster]
        second = np.where(moved, (first + 1) % 4, first)
        table = pl.DataFrame(
            {
                "truth": names[first],
                "d@f": names[second],
                "d@m": names[first],
                "d": names[first],
                "g": np.repeat("m", first.size),
                "c": cluster,
            }
        )
        found = eh.audit(
            table, decision="d", group="g", cluster="c", lenses=["counterfactual"],
            counterfactual={"f": "d@f", "m": "d@m"},
        )  # fmt: skip
        (row,) = found.rows.where(measure="counterfactual_selection_rate_gap_rms").take([0])
        out[i] = float(row["low"] <= truth <= row["high"])
    return out


def one_rate(generator: Generator, repetitions: int, *, n: int, p: float) -> Floats:
    """A single rate, at one true value."""
    low, high = wilson(generator.binomial(n, p, repetitions), np.full(repetitions, n), z=Z)
    return ((low <= p) & (p <= high)).astype(float)


def rms_of_hits(generator: Generator, repetitions: int, *, classes: int, n: int) -> Floats:
    """RMS of gaps in true positive rates, whose classes are independent."""
    p = np.linspace(0.3, 0.9, classes)
    other = np.clip(p + 0.1 * np.cos(np.arange(classes)), 0.02, 0.98)
    hits = [generator.binomial(n, rate, (repetitions, classes)) for rate in (p, other)]
    variance = sum(k * (n - k) / n**3 for k in hits) + 2 / n**3
    found = root_mean_square((hits[0] - hits[1]) / n, variances=variance, z=Z)
    return held(found, float(np.sqrt(((p - other) ** 2).mean())))


def joint_gaps(generator: Generator, repetitions: int, *, measure: str) -> Floats:
    """Gaps of four groups and, of four classes, of all of them: all intervals hold together."""
    out = np.empty(repetitions)
    if measure == "true_positive_rate_gap":
        sizes = {"a": 700, "b": 500, "c": 300, "d": 120}
        rates = {"a": 0.8, "b": 0.7, "c": 0.8, "d": 0.75}
        for i in range(repetitions):
            table = binary_table(
                generator, sizes=sizes, prevalence=0.4, true_positive_rate=rates,
                false_positive_rate=dict.fromkeys(sizes, 0.1),
            )  # fmt: skip
            found = audit(table, truth="y", decision="d", group="g", reference={"g": "a"})
            rows = found.rows.where(measure=measure, class_="1", reference="a")
            true = np.array([rates[name] - rates["a"] for name in rows["group"]])
            out[i] = float(((rows["family_low"] <= true) & (true <= rows["family_high"])).all())
        return out
    p = np.array([[0.4, 0.3, 0.2, 0.1], [0.3, 0.3, 0.2, 0.2], [0.4, 0.2, 0.3, 0.1]])
    names = np.array(["k0", "k1", "k2", "k3"])
    for i in range(repetitions):
        decided = np.concatenate([generator.choice(names, 400, p=row) for row in p])
        table = {"d": decided, "g": np.repeat(["a", "b", "c"], 400)}
        found = audit(table, decision="d", group="g", reference={"g": "a"})
        rows = found.rows.where(measure="selection_rate_gap", reference="a")
        place = {"b": 1, "c": 2}
        true = np.array(
            [p[place[g], int(k[1])] - p[0, int(k[1])] for g, k in zip(rows["group"], rows["class"])]
        )
        out[i] = float(((rows["family_low"] <= true) & (true <= rows["family_high"])).all())
    return out


def joint_bars(generator: Generator, repetitions: int) -> Floats:
    """Criterion gaps of three groups to a fourth, judged by the same labelers, hold together."""
    labelers, spread, shift = 25, 0.3, np.array([0.0, 0.2, -0.1, 0.3])
    truth = dict(zip("abcd", shift / np.sqrt(1 + spread**2)))
    names = {
        "l": np.arange(labelers)[:, None, None],
        "g": np.array(list("abcd"))[None, :, None],
        "k": np.arange(4)[None, None, :],
    }
    out = np.empty(repetitions)
    for i in range(repetitions):
        bar = 1.0 + shift + generator.normal(0, spread, (labelers, 1))
        hits = generator.binomial(15, ndtr(1.6 - bar))
        alarms = generator.binomial(30, ndtr(-bar))
        table = rows_of(np.stack([hits, 15 - hits, alarms, 30 - alarms], axis=-1), names)
        kind = table.pop("k")
        table |= {"y": (kind < 2).astype(int), "d": (kind % 2 == 0).astype(int)}
        found = eh.audit(
            pl.DataFrame(table), truth="y", decision="d", labeler="l", group="g",
            reference={"g": "a"}, lenses=["labelers"],
        )  # fmt: skip
        rows = found.rows.where(measure="criterion_gap", labeler=None)
        true = np.array([truth[name] for name in rows["group"]])
        out[i] = float(((rows["family_low"] <= true) & (true <= rows["family_high"])).all())
    return out


def joint_thresholds(generator: Generator, repetitions: int) -> Floats:
    """Implied thresholds of four groups of very unequal size hold together."""
    sizes, cut = {"a": 3000, "b": 1200, "c": 600, "d": 400}, 0.4
    group = np.repeat(list(sizes), list(sizes.values()))
    shift = {"a": 0.0, "b": 0.06, "c": -0.05, "d": 0.0}
    truth = {name: 0.1 + 0.7 * cut + own for name, own in shift.items()}
    out = np.empty(repetitions)
    for i in range(repetitions):
        score = generator.beta(2, 2.5, group.size)
        chance = 0.1 + 0.7 * score + np.array([shift[name] for name in group])
        table = {"y": (generator.random(score.size) < chance).astype(int), "x": score, "g": group}
        found = eh.audit(
            pl.DataFrame(table), truth="y", score="x", threshold=cut, group="g",
            lenses=["thresholds"],
        )  # fmt: skip
        rows = found.rows.where(measure="implied_threshold", class_="1")
        true = np.array([truth[name] for name in rows["group"]])
        low, high = rows["family_low"], rows["family_high"]
        known = ~np.isnan(low)
        out[i] = float(((low <= true) & (true <= high))[known].all()) if known.any() else np.nan
    return out


def unlimited_null(generator: Generator, repetitions: int) -> Floats:
    """An audit without limits claims a proven difference, and all groups are treated alike."""
    sizes = {"a": 700, "b": 500, "c": 300, "d": 120}
    out = np.empty(repetitions)
    for i in range(repetitions):
        table = binary_table(
            generator,
            sizes=sizes,
            prevalence=0.3,
            true_positive_rate=dict.fromkeys(sizes, 0.75),
            false_positive_rate=dict.fromkeys(sizes, 0.15),
        )
        found = audit(table, truth="y", decision="d", group="g")
        out[i] = float(any(one.measure for one in found.findings))
    return out


def weighted_trend(generator: Generator, repetitions: int) -> Floats:
    """Norm bias of weighted rows holds the latent one."""
    classes, people, rho = 16, 120, 0.7
    latent = norm_classes(
        np.random.default_rng(1), 2000, rho=rho, people=4, classes=classes, spread=0.25
    )[1]
    p = np.linspace(0.05, 0.95, classes)
    order = np.argsort(np.argsort(latent, axis=1), axis=1)
    ranks = np.arange(classes)
    truth = float(np.mean([np.corrcoef(ranks, row)[0, 1] for row in order]))
    out = np.empty(repetitions)
    for i in range(repetitions):
        rise = (p - p.mean()) / p.std()
        own = 0.25 * (rho * rise + np.sqrt(1 - rho**2) * generator.standard_normal(classes))
        own = np.clip(own, -0.85, 0.85)
        others = np.rint(people * (1 - p) / p).astype(int)
        parts: dict[str, list[Any]] = {"truth": [], "g": [], "score": [], "norm@m": [], "w": []}
        for c in range(classes):
            total = people + int(others[c])
            x = generator.standard_normal(total)
            y = own[c] * x + np.sqrt(1 - own[c] ** 2) * generator.standard_normal(total)
            parts["truth"].append(np.repeat(f"k{c:02d}", total))
            parts["g"].append(np.repeat(["m", "f"], [people, int(others[c])]))
            parts["norm@m"].append(ndtr(x))
            parts["score"].append(ndtr(y))
            parts["w"].append(generator.gamma(3.0, 1 / 3, total))
        columns = {name: np.concatenate(part) for name, part in parts.items()}
        score = columns.pop("score")
        for c in range(classes):
            columns[f"score:k{c:02d}"] = np.where(columns["truth"] == f"k{c:02d}", score, 0.0)
        found = eh.audit(
            pl.DataFrame(columns), truth="truth", scores="score:", rule="argmax", group="g",
            weight="w", norm={"m": "norm@m"}, lenses=["norms"],
        )  # fmt: skip
        rows = [
            row for row in found.rows.where(measure="norm_bias", group="m")
            if row["value"] is not None
        ]  # fmt: skip
        out[i] = float(rows[0]["low"] <= truth <= rows[0]["high"]) if rows else np.nan
    return out


def _edge(measure: str, setting: str, simulate: Any, wanted: Any = COVERED, **more: Any) -> Claim:
    return Claim(measure=measure, setting=setting, wanted=wanted, simulate=simulate, **more)


CLAIMS = (
    *(
        audit_claim(
            name,
            f"{j} uneven clusters, {'of all groups' if shared else 'a group'}",
            uneven_clusters,
            (0.93, 0.99),
            "coverage",
            measure=measure,
            clusters=j,
            shared=shared,
        )
        for name, measure, j, shared in (
            ("rate", "selection_rate", 8, False),
            ("gap", "selection_rate_gap", 8, False),
            ("gap", "selection_rate_gap", 8, True),
            ("gap", "selection_rate_gap", 30, False),
            ("ratio", "selection_rate_ratio", 30, True),
            ("gap to the rest", "rest", 15, True),
        )
    ),
    *(
        audit_claim(
            "RMS over classes",
            f"pairs of texts in {j} clusters{', each nearly as one' if alike < 1 else ''}",
            pairs_in_clusters,
            (0.93, 1.0),
            "coverage",
            clusters=j,
            alike=alike,
        )
        for j, alike in ((15, 4.0), (30, 4.0), (30, 0.5), (100, 0.5))
    ),
    *(
        _edge("rate", f"n = {n}, true rate {p:g}", partial(one_rate, n=n, p=p))
        for n, p in ((15, 0.02), (40, 0.02), (40, 0.3), (400, 0.02))
    ),
    _edge("rate", "n = 40, true rate 0.004", partial(one_rate, n=40, p=0.004), said=LONE_CASE),
    *(
        _edge("RMS over classes", f"true positive rates, {k} classes of {n}",
              partial(rms_of_hits, classes=k, n=n), (0.93, 0.99))
        for k, n in ((4, 40), (28, 40), (28, 400))
    ),
    _edge("counterfactual gap, weighted", "changed pairs weigh 8 times",
          partial(pairs_by_weight, heavier=8.0)),
    *(
        _edge("mean |r| over classes", f"28 classes of 60, spread {spread:g}",
              partial(latent_size, people=60, spread=spread), (0.93, 1.0), share=0.25, said=said)
        for spread, said in ((0.02, ""), (0.05, WEAK_SIGNAL))
    ),
    _edge("norm bias, the one that leads", "28 classes of 60, ρ = 0.97",
          partial(latent_trend, rho=0.97, people=60), (0.93, 1.0), share=0.25),
    audit_claim("norm bias, the one that leads", "gamma weights, 16 classes of 120, ρ = 0.7",
                weighted_trend, (0.93, 1.0), "coverage"),
    *(
        audit_claim(name, setting, joint_gaps, (0.93, 1.0), "joint", measure=measure)
        for name, setting, measure in (
            ("gap", "true positive rates of groups of 120 to 700", "true_positive_rate_gap"),
            ("gap", "4 classes, 3 groups of 400", "selection_rate_gap"),
        )
    ),
    audit_claim("labelers' criterion gap", "25 labelers, 4 groups", joint_bars, (0.93, 1.0),
                "joint"),
    audit_claim("implied threshold", "4 groups of 400 to 3,000", joint_thresholds, (0.93, 1.0),
                "joint"),
    audit_claim("difference claimed", "no difference, no limits", unlimited_null, (0.0, 0.3),
                "error"),
)  # fmt: skip
