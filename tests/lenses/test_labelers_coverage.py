"""Intervals of the labelers lens hold what they promise, and it is fast enough."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from work import calls, times_as_long

import evenhand as eh
from evenhand.decisions.tallies.labelers import label_counts
from evenhand.lenses.labelers import lens as labelers
from evenhand.lenses.labelers.contrasts import difference, summary_rows
from evenhand.lenses.labelers.groups import group_signal, quantile
from evenhand.lenses.labelers.sample import Sample, samples
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.scope import Scope
from evenhand.simulate.labelers import LabelerGroup, Variation, simulate_labelers

ROLES = {"truth": "truth", "decision": "decision", "labeler": "labeler", "group": "group"}
# METHODS 12.4's generator: φ = 0.1, d′ = 2, t = 1.2, so log c = ln 9 − 1.2·2 + 2²/2 = 1.7972.
TRUE_LOG_COST = 1.7972
ALL = ("cost_ratio_ratio", "criterion_gap", "separation_gap", "implied_threshold_gap")


def rows_of(frame: Any, **roles: Any) -> Rows:
    return labelers.measure(eh.Decisions(frame, **ROLES, **roles), Options()).rows


def covered(repeats: int, *, count: int, each: int) -> float:
    """Share of data sets whose interval of the cost ratio holds the true one, unpooled."""
    hits = 0
    for seed in range(repeats):
        frame = simulate_labelers(
            {"A": LabelerGroup()}, labelers=count, items_each=each, seed=seed
        ).frame
        row = rows_of(frame, item="item").where(measure="cost_ratio", labeler=None)
        hits += np.log(row["low"][0]) <= TRUE_LOG_COST <= np.log(row["high"][0])
    return hits / repeats


def test_unpooled_intervals_cover() -> None:
    assert 0.91 <= covered(250, count=4, each=250) <= 0.99


@pytest.mark.heavy
@pytest.mark.parametrize(("count", "each"), [(4, 250), (1, 1000)])
def test_unpooled_intervals_cover_within_the_band(count: int, each: int) -> None:
    assert 0.93 <= covered(2000, count=count, each=each) <= 0.97


def drawn(rng: np.random.Generator, *, count: int, each: int, spread: float) -> Sample:
    """Two groups treated alike by labelers whose criteria vary."""
    counts = np.zeros((1, count, 2, 4))
    lean = rng.standard_normal(count) * spread
    for g in range(2):
        positives = rng.binomial(each, 0.1, count)
        hits = rng.binomial(positives, ndtr(0.8 - lean))
        alarms = rng.binomial(each - positives, ndtr(-1.2 - lean))
        cells = [hits, positives - hits, alarms, each - positives - alarms]
        counts[0, :, g] = np.stack(cells, axis=-1)
    return samples(
        counts,
        labelers=tuple(f"L{j:03d}" for j in range(count)),
        groups=("A", "B"),
        strata=(),
        items=None,
        stratum_items=None,
        given=np.full(2, np.nan),
    )[0]


@pytest.mark.parametrize(
    ("count", "each", "spread"), [(20, 50, 0.0), (20, 100, 0.3), (5, 200, 0.3)]
)
def test_clustered_intervals_and_contrasts_cover(count: int, each: int, spread: float) -> None:
    # Five labelers: t with 4 degrees of freedom for the error of items too would cover 99 %.
    rng = np.random.default_rng(1)
    scope = Scope(lens="labelers", attribute="g", positive="1", level=0.95, seed=0)
    repeats, alone = 700, 0
    hits = dict.fromkeys(ALL, 0)
    for _ in range(repeats):
        sample = drawn(rng, count=count, each=each, spread=spread)
        found = difference(scope, sample.pair(0, 1))
        for measure in ALL:
            hits[measure] += found.contrasts[measure].low <= 0 <= found.contrasts[measure].high
        signal = group_signal(sample, level=0.95)
        half = quantile(0.95, signal.freedom)[0] * signal.found.log_cost_ratio_error[0]
        alone += abs(signal.found.log_cost_ratio[0] - TRUE_LOG_COST) <= half
    for measure in ALL:
        assert 0.925 <= hits[measure] / repeats <= 0.985, measure
    if spread == 0:
        assert 0.93 <= alone / repeats <= 0.985


def over_strata(rng: np.random.Generator, *, count: int, spread: float) -> list[Sample]:
    """Four strata judged by the same labelers, who lean alike in all of them, by group."""
    lean = rng.standard_normal((count, 1, 2)) * spread
    t = 1.0 + np.linspace(-0.3, 0.3, 4)[:, None] + lean
    hits, alarms = rng.binomial(15, ndtr(1.6 - t)), rng.binomial(40, ndtr(-t))
    cells = np.moveaxis(np.stack([hits, 15 - hits, alarms, 40 - alarms], axis=-1), 1, 0)
    return samples(
        np.concatenate([cells.sum(axis=0, keepdims=True), cells]).astype(float),
        labelers=tuple(f"L{j:03d}" for j in range(count)),
        groups=("A", "B"),
        strata=tuple("wxyz"),
        items=None,
        stratum_items=None,
        given=np.full(2, np.nan),
    )[1:]


def summaries_covered(repeats: int, *, count: int, spread: float) -> dict[str, float]:
    """Share of data sets whose summary over strata holds no difference, by measure."""
    rng = np.random.default_rng(count)
    scope = Scope(
        lens="labelers", attribute="g", positive="1", level=0.95, seed=0, groups=("A", "B"),
        reference="B",
    )  # fmt: skip
    hits: dict[str, float] = dict.fromkeys(ALL[:3], 0)
    for _ in range(repeats):
        tables = over_strata(rng, count=count, spread=spread)
        between = [[difference(scope, sample.pair(0, 1))] for sample in tables]
        for rows in summary_rows(scope, tables, between):
            [row] = list(rows)
            none = 1.0 if row["measure"] == "cost_ratio_ratio" else 0.0
            hits[row["measure"]] += row["low"] <= none <= row["high"]
    return {name: value / repeats for name, value in hits.items()}


def test_summaries_over_strata_cover_where_labelers_span_them() -> None:
    # Strata taken for independent held 0.76 of the criterion gaps.
    for measure, share in summaries_covered(60, count=10, spread=0.4).items():
        assert share >= 0.88, measure


@pytest.mark.heavy
@pytest.mark.parametrize("count", [6, 12, 30])
def test_summaries_over_strata_cover_within_the_band(count: int) -> None:
    for measure, share in summaries_covered(2000, count=count, spread=0.4).items():
        assert 0.93 <= share <= 0.985, measure


def labelers_covered(repeats: int, *, count: int, each: int) -> tuple[float, float]:
    """Share of labelers' criteria and separations that their pooled intervals hold."""
    spread = Variation(criterion_across=0.3, separation_across=0.3, criterion_within=0.1)
    hits, total = np.zeros(2), 0
    for seed in range(repeats):
        made = simulate_labelers(labelers=count, items_each=each, variation=spread, seed=seed)
        rows = rows_of(made.frame)
        truth = {(r["labeler"], r["group"]): r for r in made.labelers.iter_rows(named=True)}
        for k, measure in enumerate(("criterion", "separation")):
            for row in rows.where(measure=measure, reference=None):
                if row["labeler"] is not None and row["group"] is not None:
                    own = truth[row["labeler"], row["group"]][measure]
                    hits[k] += row["low"] <= own <= row["high"]
                    total += k == 0
    return hits[0] / total, hits[1] / total


def test_pooled_intervals_of_labelers_cover() -> None:
    criterion, separation = labelers_covered(12, count=40, each=50)
    assert criterion >= 0.92
    assert separation >= 0.92


@pytest.mark.heavy
def test_pooled_intervals_of_labelers_cover_within_the_band() -> None:
    criterion, separation = labelers_covered(100, count=40, each=50)
    assert criterion >= 0.93
    assert separation >= 0.93


def test_shared_items_do_not_make_false_differences() -> None:
    # Without the items' clusters a true null is rejected 10–50 % of the time (METHODS 13.3).
    rejected, repeats = 0, 150
    alike = {name: LabelerGroup(prevalence=0.4, separation=1.0, criterion=0.5) for name in "AB"}
    scope = Scope(lens="labelers", attribute="group", positive="1", level=0.95, seed=0)
    for seed in range(repeats):
        frame = simulate_labelers(
            alike, labelers=12, items_each=80, shared_items=60, item_share=0.3, seed=seed
        ).frame
        decisions = eh.Decisions(frame, **ROLES, item="item")
        attribute = decisions.roles.attributes[0]
        found = labelers.attribute_samples(
            decisions, attribute, label_counts(decisions, attribute), {}
        )
        assert not isinstance(found, str)
        gap = difference(scope, found[1][0].pair(0, 1)).contrasts["criterion_gap"]
        rejected += gap.p < 0.05
    assert rejected / repeats <= 0.1


@pytest.mark.heavy
def test_time_grows_with_the_labelers_and_no_faster() -> None:
    spread = Variation(criterion_across=0.3, separation_across=0.2)
    few, many = (
        simulate_labelers(labelers=number, items_each=50, variation=spread).frame
        for number in (50, 500)
    )
    rows = rows_of(many, item="item")
    assert len(rows.where(measure="criterion", group="A", reference=None)) == 501
    ratio = times_as_long(lambda: rows_of(many, item="item"), lambda: rows_of(few, item="item"))
    print(f"500 labelers: {ratio:.1f} times 50")
    assert ratio < 20
    # All labelers in one array: 110,000 steps for 500 when written, 80,000 for 50.
    assert calls(lambda: rows_of(many, item="item")) < 200_000
