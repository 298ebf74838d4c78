"""Whether norms are known: a score that cannot tell a group from others says nothing of it.

Shuffle who is a woman before a norm is learned, and correlations with it are of something else than
looking like one; yet they may rise with the share of women as a norm's do.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.norm_areas import Norm, norm_areas
from evenhand.decisions.tally import Tally
from evenhand.lenses.norms import GUESSED, NO_GROUP, NOT_IN_SET, TOO_FEW
from evenhand.lenses.rows import Rows
from evenhand.lenses.scope import with_reasons
from evenhand.stats.auc import Auc
from evenhand.stats.estimate import critical

# An area of scores that are nothing but chance.
CHANCE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownNorm:
    """A norm of which nothing is claimed, and why.

    `attribute` is the one that its group is of; `value`, `low` and `high` are the share of pairs
    of one class, one of the group and one of others, in which the group's has the higher norm.
    """

    attribute: str
    norm: str
    irrelevant: bool
    why: str
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def reason(self) -> str:
        """Why no limit is held against the rows of this norm."""
        if self.why == NOT_IN_SET:
            return "whether the norm is known is not in this tally set"
        if self.value is None or self.low is None or self.high is None:
            because = f"no group is called '{self.norm}'"
            if self.why == TOO_FEW:
                because = f"no class has two rows of '{self.norm}' and two of others"
            return f"the norm is not known, since {because}"
        return (
            f"the norm is not known, since its score tells '{self.norm}' from others no better "
            f"than chance (right in {self.value:.0%} of pairs within a class, {self.low:.0%} to "
            f"{self.high:.0%})"
        )

    def plain(self) -> dict[str, Any]:
        """The same for the report."""
        return asdict(self)


def unknown_norms(
    decisions: Decisions, counts: Mapping[Attribute, Tally], *, level: float
) -> list[UnknownNorm]:
    """The norms that are not shown to tell their group from others of the same class.

    `counts` are those of `norm_counts` by attribute.
    """
    roles = decisions.roles
    asked = [
        (norm, irrelevant)
        for irrelevant, norms in ((False, roles.norm), (True, roles.norm_irrelevant))
        for norm in norms.items()
    ]
    homes = {norm[0]: _home(norm[0], counts) for norm, _ in asked}
    areas: dict[Norm, Auc] = {}
    for attribute, tally in counts.items():
        own = [norm for norm, _ in asked if homes[norm[0]] == attribute]
        areas |= norm_areas(decisions, attribute, counts=tally, norms=own)
    found = []
    for norm, irrelevant in asked:
        home = homes[norm[0]]
        named: dict[str, Any] = {
            "attribute": (home or next(iter(counts))).name,
            "norm": norm[0],
            "irrelevant": irrelevant,
        }
        area = areas.get(norm)
        if home is None or area is None:
            found.append(UnknownNorm(**named, why=NO_GROUP if home is None else NOT_IN_SET))
        elif not np.isfinite(area.value):
            found.append(UnknownNorm(**named, why=TOO_FEW))
        else:
            low, high = (float(end) for end in area.interval(z=critical(level)))
            if not low > CHANCE:
                named |= {"value": float(area.value), "low": low, "high": high}
                found.append(UnknownNorm(**named, why=GUESSED))
    return found


def withhold(rows: Rows, unknown: Mapping[str, str]) -> Rows:
    """The rows, with why no limit is held against those of norms that are not known.

    Examples:
        >>> rows = Rows.block((2,), measure="norm_bias", norm=["f", "m"], method="Spearman")
        >>> withhold(rows, {"m": "the norm is not known"})["method"].tolist()
        ['Spearman', 'Spearman; no limit is held against it: the norm is not known']
    """
    mask = np.array(
        [
            norm in unknown and why is None
            for norm, why in zip(rows["norm"], rows["unjudged"], strict=True)
        ],
        dtype=bool,
    )
    if not mask.any():
        return rows
    unjudged, method = rows["unjudged"].copy(), rows["method"].copy()
    unjudged[mask] = [unknown[norm] for norm in rows["norm"][mask]]
    method[mask] = with_reasons((int(mask.sum()),), method[mask], unjudged[mask])
    return rows.replace(unjudged=unjudged, method=method)


def _home(group: str, counts: Mapping[Attribute, Tally]) -> Attribute | None:
    """The attribute that a group is of: the first column that has it."""
    return next(
        (
            attribute
            for attribute, tally in counts.items()
            if len(attribute.columns) == 1 and group in tally.labels["group"]
        ),
        None,
    )
