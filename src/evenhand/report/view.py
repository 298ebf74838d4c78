"""A record as sections read it: rows that may be shown, findings, and what is compared."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.findings.find import leading
from evenhand.findings.verdict import hide_row
from evenhand.lenses.catalogue import CATALOGUE
from evenhand.report.labels import MOST, short

Row = Mapping[str, Any]
_NAMED = ("class", "group", "reference", "stratum", "norm")
ORDER = {"outside": 0, "cannot tell": 1, "within": 2, "not assessed": 3}
# Where the words of a sentence end and its numbers begin.
_NUMBERS = re.compile(
    r": (?=(?:gap|ratio|root mean square|rank correlation|norm bias|slope|criterion gap|"
    r"separation gap|prevalence gap|[−+]?\d))"
)


@dataclass(frozen=True, slots=True)
class View:
    """A record with the numbers of small cells taken out, and very long names cut in sentences."""

    record: Mapping[str, Any]
    rows: tuple[Row, ...] = field(default=())
    by_measure: Mapping[tuple[str, str], list[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "View":
        """The view of a record."""
        rows = tuple(hide_row(row) for row in record["results"])
        # With hundreds of groups, looking through all rows each time takes a minute.
        index: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            index.setdefault((row["lens"], row["measure"]), []).append(row)
        names = {row[key] for row in rows for key in _NAMED}
        long = sorted((name for name in names if len(name or "") > MOST), key=len, reverse=True)
        told = [one | {"sentence": _cut(one["sentence"], long)} for one in record["findings"]]
        return cls({**record, "findings": told}, rows, index)

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        """All findings, the most pressing first."""
        return list(self.record["findings"])

    @property
    def level(self) -> str:
        """The confidence level in percent."""
        return f"{self.record['made'].get('level', 0.95) * 100:g} %"

    def details(self, lens: str) -> Mapping[str, Any]:
        """What a lens left for the report; empty where it left nothing."""
        found = (self.record.get("details") or {}).get(lens)
        return found if isinstance(found, Mapping) else {}

    def positive(self, lens: str = "statistical") -> str | None:
        """The class that counts as positive, where there is one."""
        found = self.details(lens).get("positive")
        return None if found is None else str(found)

    def where(self, lens: str, **equal: Any) -> list[Row]:
        """The rows of a lens whose columns equal these values; `class_` stands for `class`."""
        asked = {name.rstrip("_"): value for name, value in equal.items()}
        held: Iterable[Row] = self.rows
        if "measure" in asked:
            held = self.by_measure.get((lens, asked.pop("measure")), ())
        return [
            row
            for row in held
            if row["lens"] == lens and all(row[name] == value for name, value in asked.items())
        ]

    def whole(self, lens: str, measure: str, **equal: Any) -> list[Row]:
        """Rows of a measure for all strata together, of no single labeler, of the positive class.

        Comparisons with everybody else are left out where a reference was named.
        """
        found = [
            row
            for row in self.where(lens, measure=measure, **equal)
            if row["labeler"] is None and row["stratum"] in (None, "<summary>")
        ]
        if any(row["stratum"] is None for row in found):
            found = [row for row in found if row["stratum"] is None]
        named = {row["attribute"] for row in found if row["reference"] != "<rest>"}
        positive = self.positive(lens)
        return [
            row
            for row in found
            if (row["reference"] != "<rest>" or row["attribute"] not in named)
            and (positive is None or row["class"] in (positive, None))
        ]

    def attributes(self, lens: str) -> list[str]:
        """The attributes that a lens speaks of, in order."""
        return list(dict.fromkeys(row["attribute"] for row in self.rows if row["lens"] == lens))

    def measures(self, lens: str) -> set[str]:
        """The measures that a lens gives."""
        return {row["measure"] for row in self.rows if row["lens"] == lens}

    def lens_findings(self, lens: str, *measures: str) -> list[Mapping[str, Any]]:
        """The findings of a lens, or of some of its measures."""
        return [
            finding
            for finding in self.findings
            if finding["lens"] == lens and (not measures or finding["measure"] in measures)
        ]

    def lead_row(self, finding: Mapping[str, Any]) -> Row | None:
        """The row that speaks for a finding."""
        places = [i for i in finding["rows"] if 0 <= i < len(self.rows)]
        rows = [dict(self.rows[i]) for i in places]
        judged = [row for row in rows if row["verdict"] == finding["verdict"]] or rows
        return leading([row for row in judged if row["measure"] in CATALOGUE])


def _cut(sentence: str, names: Iterable[str]) -> str:
    for name in names:
        sentence = sentence.replace(name, short(name))
    return sentence


def headline(sentence: str) -> str:
    """The words of a sentence without its numbers, as a heading.

    Examples:
        >>> headline("Where the truth is '1', f is missed more often than m: gap +0.1 [0, 1].")
        "Where the truth is '1', f is missed more often than m"
        >>> headline("Decisions on f act as if one weighs 2 [1, 3]; on m as 1. Agreed: 1 to 2.")
        'Decisions on f act as if one weighs 2'
    """
    text = _NUMBERS.split(sentence, maxsplit=1)[0]
    text = re.split(r"; |(?<=[^0-9 ]{3})\. |(?<=\])\. ", text, maxsplit=1)[0]
    return re.sub(r" \[[^\]]*\]$", "", text.rstrip("."))


def after(sentence: str) -> str:
    """What follows the heading: the numbers, and what would settle it.

    Examples:
        >>> after("Where the truth is '1', f is missed more often than m: gap +0.1 [0, 1].")
        'Gap +0.1 [0, 1].'
    """
    rest = sentence[len(headline(sentence)) :].lstrip(":;. ").strip()
    if rest.startswith("["):
        return f"Interval {rest}"
    return rest[:1].upper() + rest[1:]


def with_findings(
    found: Iterable[Mapping[str, Any]], blocks: list[dict[str, Any]], *, heading: str
) -> list[dict[str, Any]]:
    """Blocks whose figures tell their findings; findings without a figure come first as a list."""
    left = list(found)
    for block in _figures(blocks):
        told = [one for one in left if (one["measure"], one["attribute"]) in block["about"]]
        if block["title"] == heading:
            block["title"] = block["plain"]
        for one in told:
            said = headline(one["sentence"]) == block["title"]
            text = after(one["sentence"]) if said else one["sentence"]
            block["said"].append({"verdict": one["verdict"], "text": text or one["sentence"]})
            left.remove(one)
    items = [{"text": one["sentence"], "verdict": one["verdict"]} for one in left]
    return [*([{"kind": "list", "title": None, "items": items}] if items else []), *blocks]


def _figures(blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if block["kind"] == "figure":
            yield block
        yield from _figures(block.get("blocks", []))


def by_size(rows: Iterable[Row]) -> list[Row]:
    """Rows by verdict, then by how far they lie from no difference."""
    return sorted(rows, key=lambda row: (ORDER.get(row["verdict"], 3), -distance(row)))


def distance(row: Row) -> float:
    """How far a value lies from no difference, or from the middle of its band; undefined last."""
    if row["value"] is None:
        return -1.0
    kind = CATALOGUE[row["measure"]].kind if row["measure"] in CATALOGUE else "number"
    low, high = row["limit_low"], row["limit_high"]
    if kind in ("rate", "number") and low is not None and high is not None:
        return float(abs(row["value"] - (low + high) / 2) / max(high - low, 1e-12))
    return abs(float(row["value"]) - (1.0 if kind == "ratio" else 0.0))
