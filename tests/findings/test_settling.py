"""How much more data would settle what cannot be told, in words that fit the measure."""

import re
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.findings.finding import Settle
from evenhand.findings.sentences.finding import settle_sentence
from evenhand.findings.settle import settle
from evenhand.lenses.rows import Rows
from evenhand.stats.estimate import critical
from evenhand.stats.power import further_units_of_size
from evenhand.stats.spread import quadratic_moments, size_of


def rows_of(
    gaps: list[float], error: float, *, measure: str, high: float, q: float = 1.959964
) -> Rows:
    """A size over classes or groups with its null level, and the cases of two groups."""
    base = re.sub(r"_(rms|spread).*", "", measure)
    over_classes = "_rms" in measure
    known = quadratic_moments(gaps, variances=[error**2] * len(gaps))
    z = critical(0.95)
    size, wide = size_of(known, z=z), size_of(known, z=q)
    whose: dict[str, Any] = {"class": None if over_classes else "1"}
    whose |= {"group": "f", "reference": "m"} if over_classes else {}
    named = measure.removesuffix("_corrected")
    shared = {"lens": "statistical", "attribute": "sex", "level": 0.95, "n": len(gaps), **whose}
    cases = Rows.block(
        (2,), lens="statistical", attribute="sex", measure="selection_rate", group=["f", "m"],
        n=[400, 600], value=0.5, **{"class": "1"},
    )  # fmt: skip
    plain, null = (
        Rows.block((1,), measure=f"{named}{end}", value=float(value), **shared)
        for end, value in (("", size.value), ("_null_level", size.null))
    )
    shown = size.corrected if measure.endswith("_corrected") else size.value
    whole = Rows.block(
        (1,), measure=measure, value=float(shown), low=float(size.low), high=float(size.high),
        family_low=float(wide.low), family_high=float(wide.high), limit_low=0.0, limit_high=high,
        verdict="cannot tell", **shared,
    )  # fmt: skip
    assert base in measure
    return Rows.concatenate([cases, plain, null, whole])


def open_of(rows: Rows) -> Settle:
    found = settle(list(rows)[-1], lambda **equal: list(rows.where(**equal)))
    assert found is not None
    return found


@pytest.mark.parametrize("measure", ["accuracy_gap_rms", "accuracy_gap_rms_corrected"])
@pytest.mark.parametrize("q", [1.959964, 2.5])
def test_a_size_over_classes_counts_cases_of_all_groups(measure: str, q: float) -> None:
    gaps, error = [0.1, -0.1, 0.08], 0.002**0.5
    found = open_of(rows_of(gaps, error, measure=measure, high=0.05, q=q))
    known = quadratic_moments(gaps, variances=[0.002] * 3)
    # At z the doctest of further_units_of_size has 4.3 times as many as there are.
    more = further_units_of_size(known, z=q, low=0, high=0.05, units=1000)
    assert found.how_many == pytest.approx(float(more.units), rel=0.02)
    assert (found.unit, found.groups, found.alone) == ("cases", 2, None)
    assert re.fullmatch(
        r"If the value is what it looks like, about [\d,]+ more cases across both groups would "
        r"settle it four times out of five\.", settle_sentence(asdict(found))
    )  # fmt: skip


def test_more_noise_needs_more_data() -> None:
    def more(error: float) -> float:
        rows = rows_of([0.1, -0.1, 0.08], error, measure="accuracy_gap_rms", high=0.05)
        return float(open_of(rows).how_many or np.nan)

    # Doubling errors leaves less of the size itself, so it takes more than four times the cases.
    assert more(0.06) > 4 * more(0.03)


def test_a_spread_over_groups() -> None:
    rows = rows_of([-0.1, 0.0, 0.1], 0.03, measure="accuracy_spread", high=0.06)
    found = open_of(rows)
    assert found.how_many is not None
    assert found.how_many > 100
    assert found.groups == 2


def test_nothing_is_said_of_a_size_without_its_null_level() -> None:
    rows = rows_of([0.1, -0.1, 0.08], 0.045, measure="accuracy_gap_rms", high=0.05)
    less = rows.take(rows["measure"] != "accuracy_gap_rms_null_level")
    assert settle_sentence(asdict(open_of(less))) == (
        "How many more cases would settle it is not known."
    )


def clustered(rng: np.random.Generator, rates: dict[str, float], clusters: int) -> pl.DataFrame:
    """Clusters of 20 rows in either group, of an intraclass correlation of 0.2."""
    frames = []
    for group, rate in rates.items():
        own = rng.beta(rate * 4, (1 - rate) * 4, clusters)
        hits = rng.random((clusters, 20)) < own[:, None]
        names = np.repeat([f"{group}{i}" for i in range(clusters)], 20)
        frames.append(pl.DataFrame({"d": hits.ravel().astype(int), "g": group, "who": names}))
    return pl.concat(frames)


def test_clusters_are_counted_and_settle_four_times_out_of_five() -> None:
    rng = np.random.default_rng(8)
    limits, roles = {"selection_rate_gap": 0.05}, {"decision": "d", "group": "g", "cluster": "who"}

    def look(rates: dict[str, float], clusters: int) -> eh.Audit:
        table = clustered(rng, rates, clusters)
        return eh.audit(table, limits=limits, lenses=["statistical"], **roles)

    first = look({"a": 0.3, "b": 0.38}, 40)
    found = first.findings[0].settle
    assert found is not None
    assert found.how_many is not None
    assert (found.unit, found.column, found.groups) == ("clusters", "who", 2)
    assert "more clusters (by who) across both groups" in first.findings[0].sentence
    seen = {
        row["group"]: row["value"]
        for row in first.rows.where(measure="selection_rate", class_="1", stratum=None)
    }
    later = [look(seen, 40 + round(found.how_many / 2)).verdict for _ in range(25)]
    # At 80 %, fewer than 14 of 25 happen once in 300 times.
    assert later.count("outside") + later.count("within") >= 14


def test_swaps_count_pairs_of_texts() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"decision@f": rng.random(400) < 0.32, "decision@m": rng.random(400) < 0.3}
    )
    audit = eh.audit(
        eh.Decisions(table),
        limits={"counterfactual_selection_rate_gap": 0.06},
        lenses=["counterfactual"],
    )
    assert audit.verdict == "cannot tell"
    assert re.search(
        r"about [\d,]+ more pairs of texts would settle it four times out of five\.$",
        audit.findings[0].sentence,
    )


def test_sizes_count_classes_and_groups() -> None:
    rng = np.random.default_rng(1)
    n = 3000
    table = pl.DataFrame(
        {
            "y": rng.choice(["a", "b", "c"], n),
            "d": rng.choice(["a", "b", "c"], n),
            "g": rng.choice(["f", "m", "x"], n),
        }
    )
    limits = {"true_positive_rate_gap_rms": 0.02, "selection_rate_spread": 0.001}
    audit = eh.audit(eh.Decisions(table, truth="y", decision="d", group="g"), limits=limits)
    sentences = {finding.measure: finding.sentence for finding in audit.findings}
    assert " over 3 classes" in sentences["true_positive_rate_gap_rms"]
    assert " of 3 groups " in sentences["selection_rate_spread"]
