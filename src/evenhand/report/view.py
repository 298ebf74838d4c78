"""A record as sections read it: rows that may be shown, findings, and what is compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from evenhand.decisions.labels import REST, SUMMARY
from evenhand.errors import DataError
from evenhand.findings.order import foremost
from evenhand.findings.sentences.finding import say_all
from evenhand.findings.sentences.finding import whole as whole_sentence
from evenhand.findings.sentences.verdict import TAGS
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import CATALOGUE, distance
from evenhand.lenses.rows import ASIDES, COLUMNS, Row, Rows
from evenhand.report.labels import MOST, short
from evenhand.report.results import Results

_NAMED = ("class", "stratum", "norm")
ORDER = {"outside": 0, "cannot tell": 1, "within": 2, "not assessed": 3}


@dataclass(frozen=True, slots=True)
class View:
    """A record with the numbers of small cells taken out, and its findings said.

    Each finding has its `sentence`, with very long names cut, the `statement` without what would
    settle it, a `heading` and the `detail` below it.
    """

    record: Mapping[str, Any]
    rows: Results
    words: Words
    # What was asked for once: rows by group of a measure, and the attributes of every lens.
    by_group: dict[Any, dict[Any, list[Row]]] = field(default_factory=dict)
    spoken_of: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "View":
        """The view of a record; what was looked through already is not looked through again."""
        if isinstance(record, Whole) and record.view is not None:
            return record.view
        rows = Results.of(record["results"]).shown()
        words = _shown_words(record, rows)
        findings = _said(record, rows, words)
        said = Whole({**record, "findings": findings})
        view = said.view = cls(said, rows, words)
        if isinstance(record, Whole):
            record.view = view
        return view

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        """All findings, the most pressing first."""
        return list(self.record["findings"])

    @property
    def level(self) -> str:
        """The confidence level in percent."""
        return f"{self.record['made'].get('level', 0.95) * 100:g}%"

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
        if "measure" not in asked:
            held = self.rows.pick(self.rows.places(lens=lens))
        elif "group" in asked:
            key = lens, asked.pop("measure")
            names = ["group", "class"] if "class" in asked else ["group"]
            found = tuple(asked.pop(name) for name in names)
            held = self._index(key, tuple(names)).get(found, [])
        else:
            held = self.rows.of_measure(lens, asked.pop("measure"))
        return [row for row in held if all(row[name] == value for name, value in asked.items())]

    def _index(self, key: tuple[str, str], names: tuple[str, ...]) -> dict[Any, list[Row]]:
        """A measure's rows by group, or group and class: sentences look up the rates of a gap."""
        if (key, names) not in self.by_group:
            found: dict[Any, list[Row]] = {}
            for row in self.rows.of_measure(*key):
                found.setdefault(tuple(row[name] for name in names), []).append(row)
            self.by_group[key, names] = found
        return self.by_group[key, names]

    def whole(self, lens: str, measure: str, **equal: Any) -> list[Row]:
        """Rows of a measure for all strata together, of no single labeler, of the positive class.

        Comparisons with everybody else are left out where a reference was named.
        """
        found = [
            row
            for row in self.where(lens, measure=measure, **equal)
            if row["labeler"] is None and row["stratum"] in (None, SUMMARY)
        ]
        if any(row["stratum"] is None for row in found):
            found = [row for row in found if row["stratum"] is None]
        named = {row["attribute"] for row in found if row["reference"] != REST}
        positive = self.positive(lens)
        return [
            row
            for row in found
            if (row["reference"] != REST or row["attribute"] not in named)
            and (positive is None or row["class"] in (positive, None))
        ]

    def attributes(self, lens: str) -> list[str]:
        """The attributes that a lens speaks of, in order."""
        if not self.spoken_of:
            for own, attribute in self.rows.pairs("lens", "attribute"):
                self.spoken_of.setdefault(own, []).append(attribute)
        return list(self.spoken_of.get(lens, ()))

    def measures(self, lens: str) -> set[str]:
        """The measures that a lens gives; none where it did not run."""
        return {measure for own, measure in self.rows.by_measure if own == lens}

    def lens_findings(self, lens: str, *measures: str) -> list[Mapping[str, Any]]:
        """The findings of a lens, or of some of its measures."""
        return [
            finding
            for finding in self.findings
            if finding["lens"] == lens and (not measures or finding["measure"] in measures)
        ]

    def lead_row(self, finding: Mapping[str, Any]) -> Row | None:
        """The row that speaks for a finding; the older schema did not record which it is."""
        if finding.get("numbers"):
            row = self.rows[finding["numbers"][0]]
            return row if row["value"] is not None else None
        rows = self.rows.pick(finding["rows"])
        judged = [row for row in rows if row["verdict"] == finding["verdict"]] or rows
        return foremost([row for row in judged if row["measure"] in CATALOGUE], rows)

    def look(self, **equal: Any) -> list[Row]:
        """The rows whose columns equal these values, of a lens named among them."""
        return self.where(equal.pop("lens"), **equal)


def _shown_words(record: Mapping[str, Any], rows: Results) -> Words:
    """The record's words, with very long names of groups cut."""
    words = Words.of(
        charter=record.get("charter"),
        roles=record["data"].get("roles") or {},
        details=record.get("details") or {},
        groups=rows.pairs("attribute", "group"),
    )
    return replace(words, names={key: _cut(name) for key, name in words.names.items()})


def _said(record: Mapping[str, Any], rows: Results, words: Words) -> list[Mapping[str, Any]]:
    """The findings with their words."""
    findings = record["findings"]
    places = sorted({i for one in findings for i in (*one["rows"], *(one.get("numbers") or ()))})
    held = dict(zip(places, map(_briefly, rows.pick(places))))
    told = say_all(findings, held, words, record.get("details"))
    first = next((i for i, one in enumerate(findings) if one["rows"]), None)
    return [
        {
            **finding,
            "short": said.short,
            "headline": said.headline,
            "line": said.line,
            "summary": said.summary or said.line,
            "next": said.next or None,
            "sentence": whole_sentence(said.line, said.more, said.next),
            "statement": said.line,
            "more": said.more,
            "heading": said.headline,
            "detail": said.detail,
            # The first screen tells it in full: elsewhere a link is enough.
            "leads": i == first and bool(said.detail),
        }
        for i, (finding, said) in enumerate(zip(findings, told))
    ]


def _briefly(row: Row) -> Row:
    """A row with very long names cut; as it is where it has none."""
    if all(len(row[key] or "") <= MOST for key in _NAMED):
        return row
    return {**row, **{key: _cut(row[key]) for key in _NAMED}}


def _cut(name: Any) -> Any:
    return short(name) if len(name or "") > MOST else name


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
            block["said"].append(_item(one, titled=one["heading"] == block["title"]))
            left.remove(one)
    items = [_item(one) for one in left]
    return [*([{"kind": "list", "title": None, "items": items}] if items else []), *blocks]


def _item(one: Mapping[str, Any], *, titled: bool = False) -> dict[str, Any]:
    """A finding in its section: in full, or what the first screen leaves out and a link to it."""
    if one.get("leads"):
        link = {"href": "#summary", "name": "The finding, and what to do, in the summary."}
        return {"verdict": one["verdict"], "text": one["more"], "link": link}
    text = one["detail"] if titled else one["sentence"]
    return {"verdict": one["verdict"], "text": text or one["sentence"]}


def _figures(blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if block["kind"] == "figure":
            yield block
        yield from _figures(block.get("blocks", []))


def by_size(rows: Iterable[Row]) -> list[Row]:
    """Rows by verdict, then by how far they lie from no difference."""
    return sorted(rows, key=lambda row: (ORDER.get(row["verdict"], 3), -distance(row)))


_FINDING: dict[str, Any] = {
    "lens": "",
    "layer": "implementation",
    "owner": None,
    "measure": "",
    "attribute": None,
    "rows": (),
    **dict.fromkeys(("claim", "numbers", "certainty", "settle", "next")),
}


class Whole(dict[str, Any]):
    """A record that has every key a report reads, and its view once somebody asked for it."""

    view: View | None = None


def whole(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with every key that a report reads; a damaged one is refused with a sentence.

    Examples:
        >>> base = {"schema": "evenhand.audit/2", "made": {}, "data": {}, "results": []}
        >>> sorted(whole(base | {"findings": [], "verdict": "not assessed"}))[:4]
        ['charter', 'data', 'details', 'findings']
        >>> whole(base | {"findings": [], "verdict": "fine"})
        Traceback (most recent call last):
        evenhand.errors.DataError: The record is damaged: its verdict is 'fine'. Make it again \
with: evenhand audit … --json
    """
    if isinstance(record, Whole):
        return record
    if record.get("verdict") not in TAGS:
        _damaged(f"its verdict is {record.get('verdict')!r}")
    for name, kind in (("made", Mapping), ("data", Mapping), ("results", list), ("findings", list)):
        if not isinstance(record.get(name), kind):
            _damaged(f"its {name!r} is not what it should be")
    return completed(record, _results(record))


def completed(record: Mapping[str, Any], results: Rows | Sequence[Row]) -> "Whole":
    """A record with every key that a report reads, its results as they are given."""
    held = {
        **record,
        "made": {"level": 0.95, **record["made"]},
        "data": {"excluded": [], "roles": {}, "source": "decisions", **record["data"]},
        "charter": record.get("charter"),
        "details": record.get("details") or {},
        "notes": record.get("notes") or [],
        "sentence": record.get("sentence") or TAGS[record["verdict"]],
        "results": Results.of(results),
        "findings": [
            _finding(i, one, len(results)) for i, one in enumerate(record["findings"], start=1)
        ],
    }
    return Whole(held)


def _results(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The result rows, each with what stands beside the results of a record."""
    rows = [_row(i, row) for i, row in enumerate(record["results"], start=1)]
    for name, found in (record.get("asides") or {}).items():
        for value, places in found.items() if name in ASIDES else ():
            if not _are_places(places, len(rows)):
                _damaged(f"its {name!r} refers to results that it does not hold")
            for place in places:
                rows[place][name] = value
    return rows


def _are_places(places: Any, results: int) -> bool:
    """Whether these are places of results that a record holds."""
    return isinstance(places, list | tuple) and all(
        type(place) is int and 0 <= place < results for place in places
    )


_ROW: dict[str, Any] = dict.fromkeys((*COLUMNS, *ASIDES))


def _row(i: int, row: Any) -> dict[str, Any]:
    # Asked of every row: of a plain one without asking what a mapping is.
    if type(row) is not dict and not isinstance(row, Mapping):
        _damaged(f"result {i} is not a row")
    for name in ("lens", "measure"):
        if not isinstance(row.get(name), str):
            _damaged(f"result {i} has no {name!r}")
    held = {**_ROW, **row}
    if held["verdict"] not in TAGS:
        held["verdict"] = "not assessed"
    return held


def _finding(i: int, finding: Any, results: int) -> dict[str, Any]:
    if not isinstance(finding, Mapping) or not isinstance(finding.get("sentence"), str):
        _damaged(f"finding {i} has no sentence")
    if finding.get("verdict") not in TAGS:
        _damaged(f"finding {i} has the verdict {finding.get('verdict')!r}")
    held = {**_FINDING, **finding}
    for name in ("rows", "numbers"):
        if not _are_places(held[name] or (), results):
            _damaged(f"finding {i} refers to results that it does not hold")
    for name in ("claim", "certainty", "settle"):
        if not isinstance(held[name], Mapping | None):
            _damaged(f"the {name} of finding {i} is not what it should be")
    return held


def _damaged(why: str) -> NoReturn:
    raise DataError(f"The record is damaged: {why}. Make it again with: evenhand audit … --json")
