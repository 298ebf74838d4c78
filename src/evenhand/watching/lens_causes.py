"""Why an implied threshold or a labelers' cost ratio moved, in parts that sum to the movement.

An implied threshold moves because the threshold did, or because a score came to mean another
chance (calibration). Labelers' cost ratio moves because the truth became more common, because
their bar did, or because their skill did.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from evenhand.decisions.roles import Roles
from evenhand.decisions.tallies.grid import UNCUT, ScoreEntries
from evenhand.decisions.tallies.scores import truth_states
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.parts import part_values
from evenhand.stats.movement import threshold_and_scores
from evenhand.stats.thresholds.local import LocalMoments, local_fit, tricube

DRAWS = 1_000


def part_row(
    part: str, value: float, draws: FloatArray, words: str, label: str | None = None
) -> dict[str, Any]:
    """A part of a movement with its interval."""
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return {
        "part": part, "stratum": None, "value": float(value), "low": float(low),
        "high": float(high), "words": words, "label": label or part,
    }  # fmt: skip


def threshold_rows(
    tallies: Sequence[Tally],
    roles: Roles,
    class_: str,
    groups: Sequence[str],
    bandwidth: float,
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> list[dict[str, Any]]:
    """What moved the implied threshold of a group, less what moved that of a second one, if any."""
    total: Any = 0.0
    cut: Any = 0.0
    meaning: Any = 0.0
    raised = 0
    for i, group in enumerate(groups):
        prevalence, direction = _prevalences(
            tallies, roles, class_, group, bandwidth, seed + i, draws
        )
        raised = direction if i == 0 else raised
        sign = 1 if i == 0 else -1
        moved, calibrated = threshold_and_scores(prevalence)
        total = total + sign * (prevalence[:, 1, 1] - prevalence[:, 0, 0])
        cut, meaning = cut + sign * moved, meaning + sign * calibrated
    how = {1: "raised", -1: "lowered", 0: "moved"}[raised]
    verb = "moved" if how == "moved" else f"was {how}"
    rows = [
        part_row("total", total[0], total[1:], "it moved", "all"),
        part_row("threshold", cut[0], cut[1:], f"the threshold {verb}", f"threshold {how}"),
        part_row(
            "calibration",
            meaning[0],
            meaning[1:],
            "a score came to mean another chance",
            "calibration moved",
        ),
    ]
    return [row for row in rows if np.isfinite(row["value"])]


def _prevalences(
    tallies: Sequence[Tally],
    roles: Roles,
    class_: str,
    group: str,
    bandwidth: float,
    seed: int,
    draws: int,
) -> tuple[FloatArray, int]:
    """Prevalence in each window at each window's threshold, by (draw, window, window).

    The first is the data's own. Also whether the threshold rose or fell.
    """
    rng = np.random.default_rng([seed, 16])
    windows = [_cells(tally, roles, class_, group) for tally in tallies]
    cuts = [float(np.average(cut, weights=n)) for _, _, n, cut in windows]
    found = np.empty((draws + 1, 2, 2))
    for i, (score, truth, n, _) in enumerate(windows):
        near = np.zeros(score.size, dtype=bool)
        for cut in cuts:
            near |= np.abs(score - cut) < bandwidth
        counts = np.append(n[near], n[~near].sum())
        again = rng.multinomial(round(float(counts.sum())), counts / counts.sum(), size=draws)
        table = np.vstack([counts, again])[:, :-1].astype(np.float64)
        for j, cut in enumerate(cuts):
            found[:, i, j] = _fitted((score[near] - cut) / bandwidth, truth[near], table)
    return found, int(np.sign(cuts[1] - cuts[0]))


def _cells(
    tally: Tally, roles: Roles, class_: str, group: str
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Score, truth, rows and threshold of a group's cells."""
    entries = ScoreEntries.of(tally)
    truth = truth_states(entries.tally, class_)
    mine = np.array([name == group for name in (*entries.tally.labels["group"], None)])
    use = mine[entries.tally.codes["group"]] & (truth >= 0) & (entries.side != UNCUT)
    held, kept = entries.take(use), truth[use].astype(np.float64)
    if "cut" in held.tally.labels:
        labels = np.array([*map(float, held.tally.labels["cut"]), np.nan])
        cut = labels[held.tally.codes["cut"]]
    else:
        cut = np.full(kept.size, float(roles.threshold))  # type: ignore[arg-type]
    return held.score, kept, held.tally.sums["n"], cut


def _fitted(u: FloatArray, truth: FloatArray, counts: FloatArray) -> FloatArray:
    """The local quadratic at 0 for every row of counts."""
    kernel = np.where(np.abs(u) < 1, tricube(u), 0.0)

    def sums(base: FloatArray, highest: int) -> FloatArray:
        return counts @ np.stack([base * u**k for k in range(highest + 1)], axis=1)

    moments = LocalMoments(
        n=counts @ (kernel > 0).astype(np.float64),
        weight=sums(kernel, 4),
        outcome=sums(kernel * truth, 2),
        squared=sums(kernel**2, 8),
        squared_outcome=sums(kernel**2 * truth, 6),
    )
    return np.asarray(local_fit(moments, degree=2).value)


def labeler_rows(
    tallies: Sequence[Tally], positive: str, group: str, *, seed: int = 0, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """What moved the logarithm of a group's cost ratio by its labelers: prevalence, bar, skill.

    Labelers are redrawn with all their labels, since each has a bar of their own.
    """
    rng = np.random.default_rng([seed, 17])
    sides = []
    for tally in tallies:
        table = _labels(tally, positive, group)
        if not len(table):
            return []
        weights = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), size=draws)
        sides.append(np.vstack([np.ones(len(table)), weights]) @ table.reshape(len(table), 4))
    values = []
    for side in sides:
        # (truth, decision) with half a case added, so that nobody is said to err never.
        cells = side.reshape(-1, 2, 2) + 0.5
        rates = cells[..., 1] / cells.sum(axis=-1)
        alarm, hit = ndtri(rates[:, 0]), ndtri(rates[:, 1])
        against = np.log(cells[:, 0].sum(axis=-1) / cells[:, 1].sum(axis=-1))
        values.append((against, -alarm, hit - alarm))
    before, after = values
    parts = part_values(
        log_odds_against=after[0], log_odds_against_reference=before[0],
        criterion=after[1], criterion_reference=before[1],
        separation=after[2], separation_reference=before[2],
    )  # fmt: skip
    named = {
        "total": (parts.total, "it moved"),
        "prevalence": (parts.prevalence, "the truth became more or less common"),
        "bar": (parts.bar, "labelers ask for more or less evidence"),
        "skill": (parts.skill, "labelers tell the two apart better or less well"),
    }
    return [part_row(name, v[0], v[1:], words) for name, (v, words) in named.items()]


def _labels(tally: Tally, positive: str, group: str) -> FloatArray:
    """Labels by (labeler, truth, decision) of one group, for labelers who have any."""
    if group not in tally.labels["group"]:
        return np.zeros((0, 2, 2))
    mine = tally.take(tally.codes["group"] == tally.labels["group"].index(group))
    use = np.ones(len(mine), dtype=bool)
    states = []
    for key in ("truth", "decision"):
        yes = [int(name == positive) for name in mine.labels[key]]
        state = np.array([*yes, -1], dtype=np.int64)[mine.codes[key]]
        states.append(state)
        use &= state >= 0
    use &= mine.codes["labeler"] >= 0
    size = len(mine.labels["labeler"])
    flat = (mine.codes["labeler"] * 4 + states[0] * 2 + states[1])[use]
    table = np.bincount(flat, mine.sums["n"][use], minlength=size * 4).reshape(size, 2, 2)
    return np.asarray(table[table.sum(axis=(1, 2)) > 0], np.float64)
