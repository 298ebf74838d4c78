"""How long labels took: speed against care, by the EZ-diffusion model's closed form."""

from typing import Any

import numpy as np

from evenhand.decisions.tally import Tally
from evenhand.lenses.labeler_groups import HIDDEN_UNDER
from evenhand.stats.contrast import contrast
from evenhand.stats.estimate import FloatArray, number
from evenhand.stats.pooled_signal import FEWEST_LABELERS
from evenhand.stats.signal_checks import Diffusion, ez_diffusion


def time_details(
    tally: Tally, *, groups: tuple[str, ...], reference: str | None, level: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """One table per group, and what differs from the reference beyond chance.

    `tally` has truth and decision brought to the same two classes. Drift and boundary come from
    the share of right labels and the times of right ones, as the closed form asks.
    """
    held = {
        name: tally.dense(["labeler", "group", "truth", "decision"], name)
        for name in ("n", "timed", "seconds", "seconds2")
    }
    right = {name: np.trace(table, axis1=-2, axis2=-1) for name, table in held.items()}
    labels = held["n"].sum(axis=(-2, -1))
    sums = np.stack(
        [labels, right["n"], right["timed"], right["seconds"], right["seconds2"]], axis=-1
    )
    whole = sums.sum(axis=0)
    found, mean, variance = _diffusion(whole)
    tables, notes = [], []
    place = None if reference is None else groups.index(reference)
    for g, name in enumerate(groups):
        if whole[g, 2] < HIDDEN_UNDER:
            continue
        table: dict[str, Any] = {
            "group": name,
            "labels": number(whole[g, 0]),
            "timed": number(whole[g, 2]),
            "mean_seconds": number(mean[g]),
            "sd_seconds": number(np.sqrt(variance[g])),
            "share_right": number(whole[g, 1] / whole[g, 0]),
            "drift": number(found.drift[g]),
            "boundary": number(found.boundary[g]),
            "non_decision_time": number(found.non_decision_time[g]),
        }
        if variance[g] > 4 * mean[g] ** 2:
            notes.append(
                f"{name}: a few very long times rule the spread of seconds, so drift and boundary "
                "are not to be trusted. Leave pauses out with longest_seconds."
            )
        elif place is not None and g != place and whole[place, 2] >= HIDDEN_UNDER:
            table["against"], told = _against(sums, g, place, groups, level)
            notes += told
        tables.append(table)
    return tables, notes


def _diffusion(sums: FloatArray) -> tuple[Diffusion, FloatArray, FloatArray]:
    """EZ-diffusion from (…, 5): labels, right, timed, seconds, squared seconds."""
    labels, right, timed, seconds, squares = np.moveaxis(sums, -1, 0)
    with np.errstate(all="ignore"):
        mean = seconds / timed
        variance = np.maximum(squares / timed - mean**2, 0.0) * timed / (timed - 1)
        share = right / labels
        usable = (timed > 1) & (labels > 0)
        found = ez_diffusion(
            np.where(usable, share, 0.75),
            variance_seconds=np.where(usable, variance, np.nan),
            mean_seconds=mean,
            n=np.where(usable, labels, 1.0),
        )
    return found, np.asarray(mean), np.asarray(variance)


def _against(
    sums: FloatArray, group: int, reference: int, groups: tuple[str, ...], level: float
) -> tuple[dict[str, Any], list[str]]:
    """Group − reference by leaving each labeler out, and a note where chance does not do."""
    pair = sums[:, [group, reference]]
    pair = pair[pair[..., 0].sum(axis=1) > 0]
    labelers = len(pair)
    told: dict[str, Any] = {"reference": groups[reference]}
    notes: list[str] = []
    if labelers < FEWEST_LABELERS:
        return told, notes
    total = pair.sum(axis=0)
    whole = _diffusion(total)[0]
    left = _diffusion(total - pair)[0]
    for name, more, less in (
        ("boundary", "with more care and more slowly", "with less care and faster"),
        ("drift", "with clearer evidence", "with less clear evidence or less attention"),
    ):
        each = getattr(left, name)
        gaps = each[:, 0] - each[:, 1]
        spread = (labelers - 1) / labelers * ((gaps - gaps.mean()) ** 2).sum()
        value = getattr(whole, name)
        found = contrast(
            value[0],
            value[1],
            standard_error=np.sqrt(spread),
            freedom=labelers - 1,
            level=level,
        )
        ends = {"low": number(float(found.low)), "high": number(float(found.high))}
        told[f"{name}_gap"] = {"value": number(float(found.value)), **ends}
        if found.low > 0 or found.high < 0:
            notes.append(
                f"{groups[group]} is labelled {more if found.value > 0 else less} than "
                f"{groups[reference]} (EZ-diffusion {name} gap {_signed(found.value)} "
                f"[{_signed(found.low)}, {_signed(found.high)}]): a first reading of "
                "response times, not a verdict."
            )
    return told, notes


def _signed(value: FloatArray) -> str:
    return f"{float(value):+.3f}".replace("-", "−")
