"""From rows to findings: the rows of one measure gathered under one verdict and one claim."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import SUMMARY
from evenhand.findings.finding import (
    LAYER,
    NONE,
    NONE_PROVEN,
    Certainty,
    Claim,
    Finding,
)
from evenhand.findings.limits import (
    CANNOT_TELL,
    NORMS,
    NOT_ASSESSED,
    OUTSIDE,
    is_judged_as,
    is_unreviewed,
    judged_rows,
    overall,
    single_labelers,
    small_row,
    unclaimed,
)
from evenhand.findings.order import Key, evidence, foremost, leading, opposed
from evenhand.findings.sentences.costs import stated_costs, undefined_rows
from evenhand.findings.sentences.finding import say_all, whole
from evenhand.findings.sentences.labelers import WEIGHTS_COMPARED, explaining_rows
from evenhand.findings.sentences.policy import policy_rows
from evenhand.findings.sentences.rows import (
    chosen,
    chosen_behind,
    wanted_behind,
    wanted_rows,
)
from evenhand.findings.sentences.texts import unknown_of
from evenhand.findings.sentences.words import Said, Words
from evenhand.findings.settle import UNREVIEWED, settle
from evenhand.lenses.measures import leading_measures, look_up, nearest_value, surely_apart
from evenhand.lenses.rows import Row, Rows
from evenhand.lenses.scope import UNTOLD_UNDER

POLICY = "policy"
# What the average labeler does, in the place of what all labels together show.
AVERAGES = ("cost_ratio_ratio_average", "criterion_gap_average", "separation_gap_average")
_BARS = ("criterion_gap", "criterion_gap_average")
_COMPARED_WEIGHTS = (*WEIGHTS_COMPARED, "implied_threshold_gap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The rows of one measure of one attribute, of groups or of single labelers."""

    lens: str
    attribute: str | None
    measure: str
    labelers: bool
    places: tuple[int, ...]
    rows: tuple[Row, ...]

    @property
    def verdict(self) -> str:
        """The verdict of all its rows together."""
        return overall(row["verdict"] for row in self.rows)

    @property
    def judged(self) -> list[Row]:
        """The rows that the verdict comes from."""
        verdict = self.verdict
        return [row for row in self.rows if row["verdict"] == verdict]

    def places_of(self, rows: Iterable[Row]) -> list[int]:
        """Where some of its rows stand among the results."""
        place = {id(row): i for i, row in zip(self.places, self.rows)}
        return [place[id(row)] for row in rows]


def find(
    rows: Rows,
    words: Words,
    *,
    positive: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """One finding for each limited measure of each attribute, the most pressing first.

    Where a lens has no limit at all, its leading gaps that chance does not explain; and where
    an attribute has none of those, a finding that says so. What nobody may claim because the truth
    is known unequally often is one finding of an attribute, after the others. `details` is what
    the lenses left for the report.
    """
    families = list(gather(rows, positive))
    found = [one for family in families for one in _claims(family, rows, details)]
    found += _unreviewed(families, found, rows)
    ordered = sorted(_weights_first(_said_once(found)), key=lambda pair: pair[0])
    claims = [one for _, one in ordered]
    findings = [*claims, *_nothing_proven(families, claims), *_nothing_known(families, details)]
    needed = sorted({i for one in findings if one.rows for i in (*one.rows, *one.numbers)})
    held = dict(zip(needed, rows.take(np.array(needed, dtype=np.int64))))
    plain = [one.plain() for one in findings]
    said = say_all(plain, held, words, details)
    return [_in_words(one, its) for one, its in zip(findings, said)]


def outside_leads(rows: Rows, positive: str | None, *, lens: str) -> Iterator[Row]:
    """The rows that lead what a lens finds outside its limits."""
    for family in gather(rows, positive):
        if family.lens == lens and not family.labelers and family.verdict == OUTSIDE:
            lead = foremost(family.judged, family.rows)
            if lead is not None:
                yield lead


def _said_once(found: Sequence[tuple[Key, Finding]]) -> list[tuple[Key, Finding]]:
    """The findings, without those that say the same choice again on another scale.

    Where weights are judged group by group, their comparison says nothing more; where nothing
    judges them, the comparison says it all. Nor does a gap that nobody judges where the ratio of
    the same two rates is.
    """
    weights = {(one.lens, one.attribute): one.verdict for _, one in found if _is_weight(one)}
    compared = {(one.lens, one.attribute) for _, one in found if one.measure in _COMPARED_WEIGHTS}

    told = {_compared(one) for _, one in found if one.verdict != NOT_ASSESSED}

    def again(one: Finding) -> bool:
        key = one.lens, one.attribute
        judged = weights.get(key, NOT_ASSESSED) != NOT_ASSESSED
        if one.verdict != NOT_ASSESSED:
            return False
        if one.lens == "statistical" and _compared(one) in told - {None}:
            return True
        if one.measure in _COMPARED_WEIGHTS:
            return judged
        return _is_weight(one) and not judged and key in compared

    return [(key, one) for key, one in found if not again(one)]


def _compared(one: Finding) -> tuple[Any, ...] | None:
    """Whose rates a finding compares, whichever way; None for one that compares no two."""
    base, claim = look_up(one.measure).base, one.claim
    if base is None or claim is None or None in (claim.group, claim.reference):
        return None
    both = frozenset((claim.group, claim.reference))
    return one.lens, one.attribute, base, claim.class_, claim.stratum, both


def _weights_first(found: Sequence[tuple[Key, Finding]]) -> list[tuple[Key, Finding]]:
    """The findings, with what nobody judges of labelers' bars behind how they weigh mistakes.

    One standard asks for unequal bars where prevalence differs: a bar alone says nothing of it.
    """
    weights = {
        (one.lens, one.attribute): key
        for key, one in reversed(found)
        if one.measure in ("cost_ratio", *WEIGHTS_COMPARED) and one.verdict == NOT_ASSESSED
    }

    def place(key: Key, one: Finding) -> Key:
        before = weights.get((one.lens, one.attribute))
        is_bar = one.measure in _BARS and one.verdict == NOT_ASSESSED
        return max(key, (*before, 0.0)) if is_bar and before is not None else key

    return [(place(key, one), one) for key, one in found]


def _is_weight(one: Finding) -> bool:
    return one.measure == "cost_ratio" and one.claim is not None and one.claim.group is not None


def _in_words(finding: Finding, said: Said) -> Finding:
    """A finding with its words."""
    return replace(
        finding,
        short=said.short,
        headline=said.headline,
        detail=said.detail,
        line=said.line,
        summary=said.summary or said.line,
        next=said.next or None,
        sentence=whole(said.line, said.more, said.next),
    )


def gather(rows: Rows, positive: str | None) -> Iterator[Family]:
    """The rows worth a finding, by lens, attribute and measure."""
    limited = np.isfinite(rows["limit_low"])
    # A row that stands in for another is found under its name.
    named = [other or name for name, other in zip(rows["measure"], rows["judged_as"])]
    bound = {named[i] for i in np.flatnonzero(limited)}
    single = single_labelers(rows)
    families: dict[tuple[Any, ...], list[int]] = {}
    for i in np.flatnonzero(limited | _headlines(rows, positive, bound)):
        key = (rows["lens"][i], rows["attribute"][i], named[i], bool(single[i]))
        families.setdefault(key, []).append(int(i))
    for (lens, attribute, measure, labelers), places in families.items():
        if measure == "implied_threshold" and "cost_ratio" in bound:
            continue  # the same choice on another scale: one finding is enough
        yield Family(
            lens=str(lens),
            attribute=attribute,
            measure=str(measure),
            labelers=labelers,
            places=tuple(places),
            rows=tuple(rows.take(np.array(places))),
        )


def _headlines(rows: Rows, positive: str | None, bound: set[str]) -> NDArray[np.bool_]:
    """Rows of measures that may lead and that nobody set a limit on."""
    headline = np.zeros(len(rows), dtype=bool)
    there = {*rows["measure"], *rows["judged_as"]}
    for name in leading_measures():
        if name in there and name not in bound and look_up(name).variant_of not in bound:
            headline |= is_judged_as(rows, name)
    headline &= ~_spoken_for(rows)
    headline &= judged_rows(rows, positive) & ~single_labelers(rows) & ~unclaimed(rows)
    # Nobody asked for each stratum: many of them would show a gap by chance alone.
    strata = rows["stratum"]
    headline &= (strata == None) | (strata == SUMMARY)  # noqa: E711
    return np.asarray(headline)


def _spoken_for(rows: Rows) -> NDArray[np.bool_]:
    """Rows of all labels together where the average labeler's stand beside them, which lead."""
    names, labelers = rows["measure"], rows["labeler"]
    averaged = [
        i
        for i in np.flatnonzero(np.isfinite(rows["value"]) & (rows["lens"] == "labelers"))
        if names[i] in AVERAGES
    ]
    if not averaged:
        return np.zeros(len(rows), dtype=bool)
    keys = list(zip(rows["attribute"], rows["group"], rows["reference"], rows["stratum"]))
    averages = {(keys[i], look_up(names[i]).variant_of) for i in averaged}
    return np.array(
        [
            labeler is None and (key, name) in averages
            for key, name, labeler in zip(keys, names, labelers)
        ],
        dtype=bool,
    )


def _claims(
    family: Family, rows: Rows, details: Mapping[str, Any] | None
) -> Iterator[tuple[Key, Finding]]:
    """The finding of a family and where it stands among all, where its rows claim something."""
    verdict = family.verdict
    if family.labelers and verdict != OUTSIDE:
        return
    lead = foremost(family.judged, family.rows)
    undefined = undefined_rows(family.judged) if lead is None and verdict == CANNOT_TELL else []
    costs = _stated(family, lead)
    stated = [*undefined, *costs] or ([lead] if lead is not None else [])
    if family.labelers and lead is not None:
        # Labelers are counted and never named: all who lie outside are what it rests on.
        stated = sorted(family.judged, key=lambda row: row is not lead)
    if not stated or (verdict == NOT_ASSESSED and not _claimable(lead or stated[0])):
        return
    explaining: list[int] = []
    first = stated[0]
    if family.lens == "labelers" and not family.labelers:
        compared = first["group"] if first["measure"] in WEIGHTS_COMPARED else None
        if costs or compared is not None:
            explaining = explaining_rows(rows, attribute=family.attribute, group=compared)
    # What is opposite overall and within strata is first a question of which of them was meant.
    turned = opposed(first, family.rows) if verdict == OUTSIDE and not family.labelers else None
    policy = policy_rows(rows, first) if verdict == OUTSIDE and turned is None else []
    stated += [turned] if turned is not None else []
    rests_on = [] if costs or family.labelers else _stated_beside(rows, first)
    if verdict == OUTSIDE and not family.labelers and turned is None:
        rests_on += _asked_for(rows, first, wanted_behind, chosen_behind)
    finding = Finding(
        lens=family.lens,
        layer=POLICY if policy or turned is not None else LAYER,
        verdict=verdict,
        sentence="",
        measure=family.measure,
        attribute=family.attribute,
        rows=family.places,
        claim=replace(Claim.of(first), group=None) if family.labelers else Claim.of(first),
        numbers=tuple(dict.fromkeys((*family.places_of(stated), *explaining, *policy, *rests_on))),
        certainty=Certainty.of(first),
        settle=None
        if undefined
        else settle(first, lambda **equal: list(rows.where(**equal)), details),
    )
    yield evidence(verdict, lead or first, family.judged), finding


def _unreviewed(
    families: Sequence[Family], found: Sequence[tuple[Key, Finding]], rows: Rows
) -> Iterator[tuple[Key, Finding]]:
    """For each lens and attribute one finding of what no limit asks and nobody may claim.

    None where a limit asks: then its finding says whose truth is known how often.
    """
    told = {
        (one.lens, one.attribute)
        for _, one in found
        if one.settle is not None and one.settle.reason == UNREVIEWED
    }
    unreviewed: dict[tuple[str, str | None], list[tuple[Key, Family, Row]]] = {}
    for family in families:
        if family.verdict == NOT_ASSESSED and (family.lens, family.attribute) not in told:
            open_rows = [row for row in family.rows if is_unreviewed(row)]
            # The whole table before what is left within strata.
            lead = leading([row for row in open_rows if row["stratum"] is None] or open_rows)
            if lead is not None:
                key = evidence(NOT_ASSESSED, lead, family.rows)
                unreviewed.setdefault((family.lens, family.attribute), []).append(
                    (key, family, lead)
                )
    for of_attribute in unreviewed.values():
        key, family, lead = min(of_attribute, key=lambda one: one[0])
        finding = Finding(
            lens=family.lens,
            layer=LAYER,
            verdict=NOT_ASSESSED,
            sentence="",
            measure=family.measure,
            attribute=family.attribute,
            rows=family.places,
            claim=Claim.of(lead),
            numbers=(*family.places_of([lead]), *_stated_beside(rows, lead)),
            certainty=Certainty.of(lead),
            settle=settle(lead, lambda **equal: list(rows.where(**equal))),
        )
        yield key, finding


def _stated_beside(rows: Rows, lead: Row) -> list[int]:
    """Where the rows stand that the sentence of a leading row states beside it."""
    return _asked_for(rows, lead, wanted_rows, chosen)


def _asked_for(
    rows: Rows,
    lead: Row,
    wanted: Callable[[Row], list[dict[str, Any]]],
    pick: Callable[[Row, Sequence[Row]], list[Row]],
) -> list[int]:
    """Where the rows stand that are picked of those that a leading row wants."""
    places: list[int] = []
    for asked in wanted(lead):
        mask = np.ones(len(rows), dtype=bool)
        for name, value in asked.items():
            column = rows[name]
            mask &= np.array([one == value for one in column], dtype=bool)
        at = np.flatnonzero(mask)
        held = dict(zip(at.tolist(), rows.take(at)))
        said = pick(lead, list(held.values()))
        places += [i for i, row in held.items() if any(row is one for one in said)]
    return places


def _claimable(row: Row) -> bool:
    """Whether a row that no limit judges is worth a claim: proven apart, and not on few cases."""
    return surely_apart(row) and not small_row(row, under=UNTOLD_UNDER)


def _stated(family: Family, lead: Row | None) -> list[Row]:
    """The cost ratios that one sentence states together; none of another measure."""
    if family.measure != "cost_ratio" or family.labelers:
        return []
    return stated_costs(family.rows, lead)


def _nothing_proven(families: list[Family], claims: list[Finding]) -> Iterator[Finding]:
    """For each lens and attribute that claims nothing, a finding that chance explains it all."""
    claimed = {(one.lens, one.attribute) for one in claims}
    quiet: dict[tuple[str, str | None], list[Family]] = {}
    for family in families:
        if family.verdict == NOT_ASSESSED and _is_shown(family):
            quiet.setdefault((family.lens, family.attribute), []).append(family)
    for (lens, attribute), alike in quiet.items():
        if (lens, attribute) in claimed:
            continue
        numbers = tuple(place for family in alike for place in _with_interval(family))
        yield _of_nobody(lens, attribute, numbers, level=alike[0].rows[0]["level"])


def _nothing_known(families: list[Family], details: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Where norms are not known and nothing else is said of norms, a finding that says so."""
    unknown = unknown_of(details)
    if not unknown or any(family.lens == NORMS for family in families):
        return
    attribute = unknown[0]["attribute"]
    yield _of_nobody(NORMS, attribute, (), level=None)


def _of_nobody(
    lens: str, attribute: str | None, numbers: tuple[int, ...], *, level: float | None
) -> Finding:
    """A finding that claims nothing of anybody."""
    return Finding(
        lens=lens,
        layer=LAYER,
        verdict=NOT_ASSESSED,
        sentence="",
        measure="",
        attribute=attribute,
        rows=(),
        claim=Claim(attribute=attribute, measure=None, direction=NONE),
        numbers=numbers,
        certainty=Certainty(kind=NONE_PROVEN, level=level),
    )


def _is_shown(family: Family) -> bool:
    """Whether any number of a family comes with what says how sure it is."""
    known = [row for row in family.rows if nearest_value(row) is not None]
    return any(row["no_interval"] is None for row in known)


def _with_interval(family: Family) -> Iterator[int]:
    """Where a family's rows stand, without numbers of which nobody knows how sure they are."""
    for place, row in zip(family.places, family.rows, strict=True):
        if row["no_interval"] is None:
            yield place
