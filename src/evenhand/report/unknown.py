"""What the data cannot tell: what would settle it, what is widest, and which rates are not there.

Of many open comparisons of one measure three numbers are told, not all of them: how many there
are, which is widest, and which is nearest to being settled, with what that would take.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

from evenhand.decisions.labels import REST
from evenhand.findings.limits import HIDDEN, NORMS, hide_row, is_unclaimed, is_unreviewed
from evenhand.findings.sentences.agreed import ends, gap_range, limit_words, two, unproven
from evenhand.findings.sentences.finding import further, settle_sentence
from evenhand.findings.sentences.rows import row_sentence
from evenhand.findings.sentences.texts import say_unknown_norms, unknown_of
from evenhand.findings.sentences.words import Words, words
from evenhand.findings.settle import UNREVIEWED, settle
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import ASIDES, COLUMNS, UNEQUALLY_KNOWN, Row
from evenhand.lenses.scope import HIDDEN_UNDER, UNTOLD_UNDER
from evenhand.report.rates import BY_CLASS, RATES
from evenhand.report.results import Results
from evenhand.speech import decimals, listed, opening

Plain = Mapping[str, Any]
# Open comparisons that are told one by one, names in a list, rows tried for the nearest.
MOST_OPEN, MOST_NAMED, MOST_TRIED = 2, 3, 8
STATISTICAL = "statistical"
# A record of an older version may lack columns.
_BLANK: dict[str, Any] = dict.fromkeys((*COLUMNS, *ASIDES))


def unknown(record: Plain, findings: Sequence[Plain]) -> list[str]:
    """What the data cannot tell, and what would: sentences, the most pressing first."""
    return list(_Unknown(record)(findings))


class _Unknown:
    """The open questions of one record; only rows that somebody asks for are looked at closely."""

    def __init__(self, record: Plain) -> None:
        self.record = record
        self.results = Results.of(record["results"])
        self._of: dict[tuple[str, str], list[Row]] = {}

    @cached_property
    def words(self) -> Words:
        return Words.of(
            charter=self.record.get("charter"),
            roles=self.record["data"].get("roles") or {},
            details=self.record.get("details") or {},
            groups=self.results.pairs("attribute", "group"),
        )

    def look(self, **equal: Any) -> list[Row]:
        """The rows of a lens and a measure whose columns equal these values."""
        asked = {name.rstrip("_"): value for name, value in equal.items()}
        key = asked.pop("lens"), asked.pop("measure")
        if key not in self._of:
            self._of[key] = [self._shown(row) for row in self.results.of_measure(*key)]
        held = self._of[key]
        for name, value in asked.items():
            held = [row for row in held if row[name] == value]
        return held

    def _shown(self, row: Row) -> Row:
        return hide_row(row if len(row) >= len(_BLANK) else {**_BLANK, **row})

    def __call__(self, findings: Sequence[Plain]) -> Iterator[str]:
        told: set[int] = set()
        yield from self._norms(findings)
        for finding in findings:
            if not is_open(finding):
                continue
            # What no limit asks leaves other comparisons of the same rate to be told.
            told.update(finding["rows"] if finding["verdict"] == "cannot tell" else ())
            if self._unclaimed(finding):
                continue
            if finding.get("next"):
                name, then = finding.get("short"), str(finding["next"])
                yield f"{opening(name)}: {then[:1].lower()}{then[1:]}" if name else then
            yield from self._beside(finding)
        open_ = list(self._open_rows(told))
        yield from open_
        if not told and not open_:
            yield from self._unlimited(findings)
        yield from self._missing()

    def _norms(self, findings: Sequence[Plain]) -> Iterator[str]:
        """Which norms are not known, and why, where no finding says so."""
        said = any(
            one["lens"] == NORMS and not one["rows"] and not one.get("numbers") for one in findings
        )
        for one in unknown_of(self.record.get("details")) if not said else ():
            yield say_unknown_norms([one], self.words).line

    def _unclaimed(self, finding: Plain) -> bool:
        """Whether a finding is open because a norm is not known: that is said of the norm."""
        return any(map(is_unclaimed, self.results.pick(list(finding.get("numbers") or ())[:1])))

    def _beside(self, finding: Plain) -> Iterator[str]:
        """The other open comparisons of a finding that only its widest one spoke for."""
        rows = self.results.pick(finding["rows"])
        open_ = [
            self._shown(row)
            for row in rows
            if row["verdict"] == "cannot tell" and row["labeler"] is None and not is_unclaimed(row)
        ]
        if len(open_) > MOST_OPEN:
            yield self._many(open_, len(rows))

    def _open_rows(self, told: set[int]) -> Iterator[str]:
        """Comparisons that the data leave open beside one that they settle, and what would help."""
        labeler, verdict = map(self.results.column, ("labeler", "verdict"))
        places = [
            place
            for place in self.results.judged()
            if verdict[place] == "cannot tell" and labeler[place] is None and place not in told
        ]
        said = set(map(self._family, self.results.pick(told)))
        families: dict[tuple[str, str | None, str], list[Row]] = {}
        for row in self.results.pick(places):
            if is_unclaimed(row):
                continue
            families.setdefault(self._family(row), []).append(self._shown(row))
        for (lens, attribute, measure), rows in families.items():
            other = lens, attribute, "cost_ratio"
            if measure == "implied_threshold" and (other in families or other in said):
                continue  # a cost ratio said otherwise: once is enough
            if len(rows) > MOST_OPEN:
                same = self.look(lens=lens, measure=measure, attribute=attribute)
                judged = [row for row in same if row["verdict"] != "not assessed"]
                yield self._many(rows, len(judged))
            else:
                yield from map(self._one, rows)

    def _family(self, row: Row) -> tuple[str, str | None, str]:
        return row["lens"], row["attribute"], row["measure"]

    def _one(self, row: Row) -> str:
        """An open comparison, and what would settle it."""
        needed = self._needed(row)
        remedy = settle_sentence(needed, self.words, row["class"]) if needed else ""
        return " ".join(filter(None, (row_sentence(row, self.words, self.look), remedy)))

    def _needed(self, row: Row) -> Plain | None:
        found = settle(row, self.look, self.record.get("details"))
        return None if found is None else asdict(found)

    def _many(self, rows: Sequence[Row], family: int) -> str:
        """Many open comparisons of one measure: how many, the widest, the nearest to be settled."""
        first, spoken = rows[0], self.words
        withheld = [row for row in rows if is_unreviewed(row)]
        rows = [row for row in rows if not is_unreviewed(row)]
        limits = {(row["limit_low"], row["limit_high"]) for row in (*rows, *withheld)}
        said = limit_words(first, unit=True) if len(limits) == 1 else None
        agreed = f" ({said})" if said else ""
        count = f"{len(rows) + len(withheld):,} of {family:,} comparisons are open{agreed}."
        parts = [f"{opening(words(first['measure']))} by {first['attribute']}: {count}"]
        known = sorted([row for row in rows if row["family_low"] is not None], key=_width)
        if known:
            wide = known[-1]
            parts.append(f"Widest is {_which(wide, rows, spoken)}: {_fits(wide)}.")
        parts.append(self._nearest(known, spoken) if rows else "")
        parts += _to_review(withheld, rows, spoken)
        return " ".join(filter(None, parts))

    def _nearest(self, known: Sequence[Row], spoken: Words) -> str:
        """Which of these the fewest further cases would settle; the narrowest are tried."""
        tried = [(self._needed(row), row) for row in known[:MOST_TRIED]]
        settled = [
            (needed, row) for needed, row in tried if needed and needed["how_many"] is not None
        ]
        if not settled:
            return "No number of further cases is known to settle any of them."
        needed, row = min(settled, key=lambda pair: float(pair[0]["how_many"]))
        enough = further(needed, spoken, row["class"])
        return (
            f"Nearest to being settled is {_which(row, known, spoken)}: about {enough} would do it "
            "four times out of five."
        )

    def _unlimited(self, findings: Sequence[Plain]) -> Iterator[str]:
        """Where no limit judges the comparisons of the leading rate: which may be chance alone."""
        if self.record["verdict"] != "not assessed" and self.words.positive is not None:
            return
        lead = next((one for one in findings if one["rows"] and one.get("numbers")), None)
        name = str(self.results[lead["numbers"][0]]["measure"]) if lead else ""
        base = look_up(name).base if lead and lead["lens"] == STATISTICAL else None
        rate = look_up(base or BY_CLASS[0])
        compared = [
            row
            for row in self.look(lens=STATISTICAL, measure=f"{rate.name}_gap", stratum=None)
            if row["family_low"] is not None
            and row["reference"] not in (None, REST)
            and row["verdict"] == "not assessed"
            and not is_unreviewed(row)
            and self.words.positive in (None, row["class"])
        ]
        rows = [row for row in compared if row["attribute"] == compared[0]["attribute"]]
        open_ = sorted(filter(unproven, rows), key=_width)
        if open_ and len(rows) > 1:
            yield self._chance(rows, open_, rate.label)

    def _chance(self, rows: Sequence[Row], open_: Sequence[Row], label: str) -> str:
        """How many comparisons chance alone could explain, and which is widest."""
        spoken, wide = self.words, open_[-1]
        many = f"{len(open_):,} of {len(rows):,}"
        group, other = (spoken.people(wide["attribute"], wide[k]) for k in ("group", "reference"))
        whether = f"whether the {label} differs"
        if len({row["group"] for row in rows}) == 1:
            said = f"{many} {spoken.classes[1]} the data cannot tell {whether} between {group} and"
            said += f" {other}"
        elif len({row["class"] for row in rows}) == 1:
            said = f"{many} groups the data cannot tell {whether} from that of {other}"
        else:
            said = (
                f"{many} comparisons of the {label} the data cannot tell whether there is any gap"
            )
        return f"For {said}. Widest is {_which(wide, rows, spoken)}: {_fits(wide)}."

    def _missing(self) -> Iterator[str]:
        """Which rates of whom are hidden or undefined, for which classes, and what that takes."""
        lacking: dict[str, dict[tuple[str, str, str], list[str]]] = {}
        rates = [row for name in RATES for row in self.look(lens=STATISTICAL, measure=name)]
        for row in rates:
            # Of two classes the other one's rates say the same the other way round.
            mirror = self.words.positive not in (None, row["class"]) and row["class"] is not None
            if mirror or row["stratum"] is not None or row["labeler"] is not None:
                continue
            if row["undefined"] and row["group"] and row.get("set_low") is None:
                key = row["measure"], row["attribute"], row["group"]
                names = lacking.setdefault(str(row["undefined"]), {}).setdefault(key, [])
                if row["class"] is not None and row["class"] not in names:
                    names.append(row["class"])
        for reason, held in lacking.items():
            yield _missing_sentence(reason, held, self.words)


def is_open(finding: Plain) -> bool:
    """Whether a finding says what the data cannot tell, a limit or nobody asking for it."""
    settle = finding.get("settle") or {}
    return finding["verdict"] == "cannot tell" or settle.get("reason") == UNREVIEWED


def _to_review(withheld: Sequence[Row], others: Sequence[Row], spoken: Words) -> list[str]:
    """Of open comparisons those that more of the same cases leave open, and what to review."""
    if not withheld:
        return []
    which = f"For {len(withheld):,} of them" if others else "For them"
    return [
        f"{which} {UNEQUALLY_KNOWN}, so more {spoken.items[1]} reviewed in the same way would "
        "settle nothing: review a random sample of the unreviewed ones in each group."
    ]


def _missing_sentence(
    reason: str, held: Mapping[tuple[str, str, str], list[str]], spoken: Words
) -> str:
    """The rates that are not there, measure by measure, group by group, class by class."""
    measures: dict[str, list[str]] = {}
    for (measure, attribute, group), classes in held.items():
        whose = spoken.people(attribute, group)
        if spoken.positive is None and classes:
            of = [f"'{name}'" for name in classes]
            whose += f" for {_some(of, spoken.classes)}"
        measures.setdefault(words(measure), []).append(whose)
    joined = {
        name: ", and of ".join(whose)
        if spoken.positive is None
        else _some(whose, ("group", "groups"))
        for name, whose in measures.items()
    }
    parts = [f"the {name} of {whose}" for name, whose in joined.items()]
    if reason == HIDDEN:
        return (
            f"Fewer than {HIDDEN_UNDER} cases stand behind {listed(parts)}: hidden until there are "
            f"{HIDDEN_UNDER}, and not judged under {UNTOLD_UNDER}."
        )
    return f"Undefined {'is' if len(parts) == 1 else 'are'} {listed(parts)}: {reason}."


def _some(names: Sequence[str], what: tuple[str, str]) -> str:
    """The first names, and how many more there are of what."""
    more = len(names) - MOST_NAMED
    if more < 1:
        return listed(names)
    return f"{', '.join(names[:MOST_NAMED])} and {more:,} more {what[more > 1]}"


def _width(row: Row) -> float:
    pair = ends(row)
    return 0.0 if pair is None else pair[1] - pair[0]


def _which(row: Row, rows: Iterable[Row], spoken: Words) -> str:
    """What tells a row from the others of its measure: its class, its group, or both."""
    held = list(rows)
    name = f"'{row['class']}'" if len({one["class"] for one in held}) > 1 else ""
    who = spoken.people(row["attribute"], row["group"]) if row["group"] else ""
    if name and len({one["group"] for one in held}) == 1:
        who = ""
    stratum = row["stratum"] if len({one["stratum"] for one in held}) > 1 else None
    where = f"in stratum {stratum}" if stratum else ""
    return ", ".join(filter(None, (name, who, where))) or words(row["measure"])


def _fits(row: Row) -> str:
    """What an interval leaves open."""
    pair, record = ends(row), look_up(row["measure"])
    if pair is None:
        return "it has no interval"
    if record.kind in ("gap", "distance") and record.high == 1:
        return f"anything from {gap_range(*pair, decimals(*pair))} fits"
    return f"anything from {two(pair[0])} to {two(pair[1])} fits"
