"""A finding is data: who and what is claimed, on which numbers, how sure, and what would settle it.

Its sentence is made last, from these fields and the rows they refer to.
"""

from dataclasses import asdict, dataclass
from typing import Any

from evenhand.lenses.measures import look_up, nearest_value, surely_apart
from evenhand.lenses.rows import Row
from evenhand.speech import number

MORE, LESS, SAME, NONE, UNDEFINED = "more", "less", "same", "none", "undefined"
# Whose findings are, unless those who chose have to choose again.
LAYER = "implementation"
PROVEN, NONE_PROVEN = "proven difference", "none proven"
# Kinds of numbers whose sign, or side of 1, is a direction.
_DIRECTED = ("gap", "ratio", "correlation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who, what and in which direction, as the leading row has it.

    `direction` is more, less or same for a comparison; for other numbers more or less than was
    agreed on, and none where nothing was or it is kept; undefined where there is no value.
    """

    attribute: str | None
    measure: str | None
    direction: str
    group: str | None = None
    reference: str | None = None
    class_: str | None = None
    stratum: str | None = None

    @classmethod
    def of(cls, row: Row) -> "Claim":
        """The claim that a row makes.

        Examples:
            >>> keys = ("attribute", "group", "reference", "class", "stratum")
            >>> row = dict.fromkeys(keys) | {"measure": "accuracy_ratio", "value": 0.8}
            >>> Claim.of(row).direction
            'less'
        """
        keys = ("attribute", "measure", "group", "reference", "stratum")
        return cls(**{key: row[key] for key in keys}, class_=row["class"], direction=direction(row))

    def plain(self) -> dict[str, Any]:
        """The claim as a plain dict, with `class` as rows have it."""
        held = asdict(self)
        return {name.rstrip("_"): value for name, value in held.items()}


def direction(row: Row) -> str:
    """Which way a row points, as its printed number does."""
    value, low, high = nearest_value(row), row.get("limit_low"), row.get("limit_high")
    if value is None:
        return UNDEFINED
    record = look_up(row["measure"])
    if record.neutral is None and low is not None and high is not None:
        return MORE if value > high else LESS if value < low else NONE
    if record.kind not in _DIRECTED or record.neutral is None:
        return NONE
    apart = float(value) - record.neutral
    if number(abs(apart)) == number(0.0):
        return SAME
    return MORE if apart > 0 else LESS


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty:
    """Whether a difference is proven, by intervals that hold for the whole family at `level`."""

    kind: str
    level: float | None

    @classmethod
    def of(cls, row: Row) -> "Certainty":
        """How sure a row is: of a difference, or of lying outside what was agreed."""
        if nearest_value(row) is None or row["family_low"] is None or row["family_high"] is None:
            kind = UNDEFINED
        elif look_up(row["measure"]).neutral is None:
            kind = PROVEN if row["verdict"] == "outside" else NONE_PROVEN
        else:
            kind = PROVEN if surely_apart(row) else NONE_PROVEN
        return cls(kind=kind, level=row["level"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """What would settle a verdict: how many further units, or why no number would.

    `how_many` units (cases, pairs, classes, labelers, clusters by a `column`), in so many
    `groups` at their present shares (1: the row's own), of the cases `among` which a rate is
    counted (true or untrue ones), would settle it four times out of five under a `condition`;
    `alone` are those of the row's own group, the others staying as they are. `lacking` is the
    side, group or reference, that has too few cases for any limit. `reason` is too close, no
    number, not judged, unreviewed or unknown; `why` what the lens says where nothing can be judged.
    """

    unit: str
    how_many: float | None = None
    groups: int | None = None
    among: str | None = None
    condition: str | None = None
    alone: float | None = None
    lacking: str | None = None
    column: str | None = None
    reason: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A judged result: which lens, at which layer, what it claims, and the rows behind it.

    `rows` are the places of its family among the results, `numbers` those that its sentence
    states or rests on, the leading one first. `owner` is who should look at it, where a charter
    names somebody for the layer. The words are made last: a `short` name to link to it, the
    `headline` and the `detail` that follows it, both as one `line`, the `summary` that a verdict
    opens with, what to do `next` and `whose` it is; the `sentence` is line and next.
    """

    lens: str
    layer: str
    verdict: str
    sentence: str
    measure: str
    attribute: str | None
    rows: tuple[int, ...]
    owner: str | None = None
    claim: Claim | None = None
    numbers: tuple[int, ...] = ()
    certainty: Certainty | None = None
    settle: Settle | None = None
    short: str = ""
    headline: str = ""
    detail: str = ""
    line: str = ""
    summary: str = ""
    next: str | None = None
    whose: str | None = None

    def plain(self) -> dict[str, Any]:
        """The finding as a plain dict."""
        return {
            "lens": self.lens,
            "layer": self.layer,
            "owner": self.owner,
            "verdict": self.verdict,
            "claim": self.claim.plain() if self.claim else None,
            "numbers": list(self.numbers),
            "certainty": asdict(self.certainty) if self.certainty else None,
            "settle": asdict(self.settle) if self.settle else None,
            "short": self.short,
            "headline": self.headline,
            "detail": self.detail,
            "line": self.line,
            "summary": self.summary,
            "next": self.next,
            "whose": self.whose,
            "sentence": self.sentence,
            "measure": self.measure,
            "attribute": self.attribute,
            "rows": list(self.rows),
        }
