"""The charter at work: its choices as limits, what it leaves open as findings."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.charter.charter import LAYERS, Charter
from evenhand.charter.concerns import (
    Concern,
    concerns,
    group_concerns,
    mixed_concerns,
    mixed_groups,
)
from evenhand.decisions.labels import MISSING
from evenhand.decisions.table import Decisions
from evenhand.findings.finding import LAYER, Finding
from evenhand.findings.limits import NOT_ASSESSED, WITHIN, Limit
from evenhand.findings.sentences.steps import whose_labelers, whose_words
from evenhand.lenses.rows import Rows

# What an audit says of the charter itself; answers still in want of words are for `charter check`.
_SAID = ("review", "owner", "choice")
# A disparity goes to the implementation; none found but concern remaining, to those who chose.
KEPT = (
    "What was chosen is what is done. Where concern remains, ask next whether the policy itself is "
    "right, and then the product."
)


def the_charter(charter: Charter | str | Path | None) -> Charter | None:
    """A charter as it was given, or read from its file."""
    if not isinstance(charter, str | Path):
        return charter
    from evenhand.charter.read import read_charter

    return read_charter(charter)


def with_charter(decisions: Decisions, charter: Charter | None) -> Decisions:
    """The decisions, told by the charter what a positive decision is where nobody else said so."""
    if charter is None or decisions.roles.positive_is or charter.positive_is is None:
        return decisions
    return decisions.with_roles(positive_is=charter.positive_is)


def with_settings(settings: Mapping[str, Any] | None, charter: Charter | None) -> dict[str, Any]:
    """The settings of the lenses, what the caller gives before what the charter knows."""
    return (charter.settings if charter else {}) | dict(settings or {})


def charter_limits(charter: Charter | None) -> list[Limit]:
    """The charter's limits, and its choices as bands of the cost ratio and implied threshold.

    The choice for everybody comes first, so that a group's own takes its place.

    Examples:
        >>> from evenhand.charter.charter import Choice
        >>> choice = Choice(cost_ratio=4, low=3.2, high=5)
        >>> for limit in charter_limits(Charter(source="c.toml", choices=(choice,))):
        ...     print(limit.measure, round(limit.low, 3), round(limit.high, 3))
        cost_ratio 3.2 5
        implied_threshold 0.167 0.238
    """
    if charter is None:
        return []
    found = [Limit(measure=name, low=b[0], high=b[1]) for name, b in charter.limits.items()]
    if charter.bar is not None:
        apart = charter.bar.tolerance
        found.append(Limit(measure="criterion_gap", low=-apart, high=apart))
    bands = [
        (choice.attribute, choice.group, (choice.low, choice.high), choice.threshold_band)
        for choice in sorted(charter.choices, key=lambda choice: choice.group is not None)
    ]
    # Who belongs to pairs with choices of their own is a mixture that no one band speaks of.
    open_ = [(*key, (nan, nan), (nan, nan)) for key in mixed_groups(charter)]
    for attribute, group, costs, thresholds in [
        *(band for band in bands if band[1] is None),
        *open_,
        *(band for band in bands if band[1] is not None),
    ]:
        for measure, (low, high) in (("cost_ratio", costs), ("implied_threshold", thresholds)):
            found.append(
                Limit(measure=measure, low=low, high=high, attribute=attribute, group=group)
            )
    return found


def charter_findings(charter: Charter | None, rows: Rows, *, today: datetime.date) -> list[Finding]:
    """What the charter leaves open for this data, each at its layer and with its owner."""
    if charter is None:
        return []
    said = [concern for concern in concerns(charter, today=today) if concern.kind in _SAID]
    groups = groups_of(rows)
    said += [one for one in mixed_concerns(charter) if one.attribute in groups]
    said += group_concerns(charter, groups)
    if kept(rows):
        who = charter.owner_of("policy")
        said.append(Concern(kind="kept", layer="policy", sentence=KEPT, owner=who))
    return [
        Finding(
            lens="charter",
            layer=concern.layer,
            verdict=NOT_ASSESSED,
            sentence=concern.sentence,
            headline=concern.sentence.rstrip("."),
            line=concern.sentence,
            summary=concern.sentence,
            short=f"the {concern.layer} layer of the charter",
            whose=whose_words(concern.layer, concern.owner),
            measure="",
            attribute=concern.attribute,
            rows=(),
            owner=concern.owner,
        )
        for concern in said
    ]


def kept(rows: Rows) -> bool:
    """Whether every cost ratio that was judged is shown to lie in the band chosen for it."""
    single = np.array([name is not None for name in rows["labeler"]], dtype=bool)
    verdicts = set(rows["verdict"][(rows["measure"] == "cost_ratio") & ~single])
    return verdicts - {NOT_ASSESSED} == {WITHIN}


def assign(
    findings: Iterable[Finding], charter: Charter | None, *, labels: bool = False
) -> list[Finding]:
    """The findings with the owner of their layer, who should look, and whose they are in words.

    `labels` where the decisions are those of people who label.
    """
    owners = {layer: charter.owner_of(layer) if charter else None for layer in LAYERS}
    instructs = charter.owner_of_labelers if charter else None
    assigned = []
    for finding in findings:
        owner = finding.owner or owners.get(finding.layer)
        said = whose_words(finding.layer, owner)
        if (labels or finding.lens == "labelers") and finding.layer == LAYER:
            said, owner = whose_labelers(instructs, owner), instructs or owner
        assigned.append(replace(finding, owner=owner, whose=said if finding.next else None))
    return assigned


def groups_of(rows: Rows) -> dict[str, list[str]]:
    """The groups of each attribute that the rows speak of."""
    found: dict[str, list[str]] = {}
    for pair in dict.fromkeys(zip(rows["attribute"].tolist(), rows["group"].tolist())):
        attribute, group = pair
        if attribute is not None and group not in (None, MISSING):
            found.setdefault(attribute, []).append(group)
    return found
