"""Sums by cluster, against the same counted row by row."""

from collections import defaultdict

import numpy as np
import polars as pl
import pytest

from evenhand.decisions.table import Decisions
from evenhand.lenses.measures import cells_of, counted_rates
from evenhand.lenses.statistical.clusters import Clusters
from evenhand.lenses.statistical.confusion import confusion, prepare
from evenhand.lenses.statistical.rates import weight_column


def table(classes, rows=600, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    frame = pl.DataFrame(
        {
            "truth": truth,
            "decision": np.where(rng.random(rows) < 0.6, truth, rng.integers(0, classes, rows)),
            "sex": rng.choice(["f", "m", "x"], rows),
            "site": rng.integers(0, 2, rows),
            "who": rng.integers(0, 25, rows),
            "weight": rng.choice([0.0, 0.5, 1.0, 2.0], rows),
        }
    ).with_columns(pl.format("c{}", c).alias(c) for c in ("truth", "decision"))
    return frame.with_columns(
        pl.when(pl.Series(rng.random(rows) > 0.05)).then(pl.col(c)).alias(c)
        for c in ("truth", "decision", "sex", "site", "who")
    )


def by_hand(frame, rate, classes, weighted):
    """Hits, cases and squares of every (stratum, group, class, cluster), a row at a time."""
    hit_mask, case_mask = cells_of(rate).masks
    found = defaultdict(lambda: [0.0, 0.0, 0.0])
    groups = sorted(set(frame["sex"].drop_nulls()))
    for row in frame.iter_rows(named=True):
        if row["sex"] is None or row["who"] is None or row["decision"] is None:
            continue
        amount = row["weight"] if weighted else 1.0
        layers = [0] + ([row["site"] + 1] if row["site"] is not None else [])
        for place, name in enumerate(classes):
            state = 2 if row["truth"] is None else int(row["truth"] == name)
            decided = int(row["decision"] == name)
            for layer in layers:
                cell = (layer * len(groups) + groups.index(row["sex"])) * len(classes) + place
                sums = found[cell, row["who"]]
                sums[0] += amount * hit_mask[state][decided]
                sums[1] += amount * case_mask[state][decided]
                sums[2] += amount**2 * case_mask[state][decided]
    return {key: sums for key, sums in found.items() if sums[1] > 0}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_sums_by_cluster_are_those_of_the_rows(classes, weighted):
    frame = table(classes)
    roles = {"positive": "c1"} if classes == 2 else {}
    decisions = Decisions(
        frame,
        truth="truth",
        decision="decision",
        group="sex",
        stratum="site",
        cluster="who",
        weight="weight" if weighted else None,
        **roles,
    )
    tally = decisions.count(decisions.roles.attributes[0], cluster=True)
    counts = confusion(tally, decisions.roles)
    clusters = Clusters(prepare(tally, decisions.roles)[0], counts)
    names = [int(name) for name in tally.labels["cluster"]]
    for rate in counted_rates(truth=True):
        sums = clusters.sums(rate, weight_column(counts.sums, rate))
        expected = by_hand(frame, rate, counts.classes, weighted)
        where = [(int(c), names[k]) for c, k in zip(sums["cell"], sums["cluster"], strict=True)]
        # In order, each once: what follows sorts nothing.
        places = list(zip(sums["cell"].tolist(), sums["cluster"].tolist(), strict=True))
        assert places == sorted(set(places))
        assert set(where) == set(expected)
        got = np.stack([sums["hit_weight"], sums["weight"], sums["squares"]], axis=1)
        assert got == pytest.approx(np.array([expected[key] for key in where]), abs=1e-12)
