"""The audit: every lens that the table supports, judged and recorded."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from evenhand import __version__
from evenhand.charter.charter import Charter
from evenhand.decisions.hints import reading_hints
from evenhand.decisions.keywords import TableArguments, describe_roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallied import FREE_ROLES, find_tallies, tallied_decisions
from evenhand.errors import LimitExceeded, UsageError, nearest
from evenhand.findings.by_group import by_group
from evenhand.findings.charter import (
    assign,
    charter_findings,
    charter_limits,
    the_charter,
    with_charter,
    with_settings,
)
from evenhand.findings.find import find
from evenhand.findings.finding import Finding
from evenhand.findings.gate import gate
from evenhand.findings.limits import (
    NOT_ASSESSED,
    Limit,
    counted_rows,
    hide_small,
    is_judged_as,
    judge,
    overall,
    read_limits,
    shares_told,
)
from evenhand.findings.record import SCHEMA, read_record, record_text
from evenhand.findings.recut import FirstAudit, audited_cuts
from evenhand.findings.registry import FORMER_NAMES, LENSES, choose_lenses, lacking
from evenhand.findings.sentences.verdict import verdict_words
from evenhand.findings.sentences.words import Words, positive_class
from evenhand.findings.tallying import GRID_LENSES, on_grid
from evenhand.lenses.rows import LensResult, Options, Rows
from evenhand.lenses.settings import check_settings
from evenhand.speech import plural

if TYPE_CHECKING:
    from evenhand.models.words import WordWeights


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit:
    """What an audit found: rows, findings and one verdict, ready to be shown or recorded.

    Attributes:
        rows: Every result row, the same columns for all lenses.
        findings: What matters, the most pressing first: data, with a sentence each.
        verdict: outside, cannot tell, within or not assessed.
        notes: What was noticed besides, in sentences.
        made: When, by which version, at which level, with which seed and arguments.
        data: Source, rows, exclusions, roles, fingerprint, and what lenses lack.
        charter: The charter as it is recorded, where there is one.
        details: Curves and tables of single lenses, for the report.
        lens_notes: The notes of each lens.
        forms: Forms that were asked for, such as `ll144`, as documents.
    """

    rows: Rows
    findings: tuple[Finding, ...]
    verdict: str
    notes: tuple[str, ...]
    made: dict[str, Any]
    data: dict[str, Any]
    charter: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    lens_notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    forms: dict[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The verdict in words: the finding that leads, and how much else is outside or open."""
        return " ".join(filter(None, self._words))

    @property
    def _words(self) -> tuple[str, str]:
        """The verdict's headline, and what follows it."""
        limited = self.made.get("limits", 0) > 0
        return verdict_words(self.rows, self.verdict, self.findings, limited=limited)

    def __repr__(self) -> str:
        found = f"{plural(len(self.rows), 'row')}, {plural(len(self.findings), 'finding')}"
        return f"<Audit of {self.data['source']}: {self.verdict}, {found}>"

    def record(self) -> dict[str, Any]:
        """The whole audit as one plain document."""
        return self._document(self.rows.results())

    def _shown(self) -> dict[str, Any]:
        """The record as reports read it, without looking for damage: it was in nobody's hands."""
        from evenhand.report.view import completed

        return completed(self._document([]), self.rows)

    def _document(self, results: list[dict[str, Any]]) -> dict[str, Any]:
        """The audit as a document with these results."""
        headline, remark = self._words
        return {
            "schema": SCHEMA,
            "made": self.made,
            "data": self.data,
            "charter": self.charter,
            "results": results,
            "asides": self.rows.asides(),
            "findings": [finding.plain() for finding in self.findings],
            "notes": list(self.notes),
            "details": self.details,
            "sentence": " ".join(filter(None, (headline, remark))),
            "headline": headline,
            "remark": remark,
            "verdict": self.verdict,
            **({"forms": self.forms} if self.forms else {}),
        }

    def lens(self, name: str) -> "Audit":
        """What one lens gave, as an audit of its own: rows, findings, charts, and their verdict.

        Examples:
            >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
            >>> table["sex"] = ["f", "f", "m", "m"] * 100
            >>> result = audit(Decisions(table, truth="bad", decision="removed", group="sex"))
            >>> result.lens("statistical").chart().name
            'true-positive-rate-gap-sex'
        """
        name = FORMER_NAMES.get(name, name)
        ran = list(dict.fromkeys(self.rows["lens"]))
        if name not in ran:
            lack = self.data.get("lenses", {}).get(name)
            raise UsageError(
                f"The {name} lens did not run: it needs {lack}."
                if lack
                else f"There is no result of a lens {name!r}.{nearest(name, ran)} "
                f"This audit has {', '.join(ran) or 'none'}."
            )
        places = np.flatnonzero(self.rows["lens"] == name)
        moved = {int(place): i for i, place in enumerate(places)}
        rows = self.rows.take(places)
        return replace(
            self,
            rows=rows,
            findings=tuple(
                replace(
                    one,
                    rows=tuple(moved[i] for i in one.rows),
                    numbers=tuple(moved[i] for i in one.numbers),
                )
                for one in self.findings
                if one.lens == name
            ),
            verdict=overall(counted_rows(rows)["verdict"].tolist()),
            notes=self.lens_notes.get(name, ()),
            details={name: self.details[name]} if name in self.details else {},
        )

    def to_frame(self) -> Any:
        """The result rows as a Polars data frame."""
        return self.rows.to_frame()

    def by_group(self) -> Any:
        """A Polars frame of the groups side by side: one row for each attribute, group and class.

        Rates with their intervals and cases, and where measured the area under the curve, implied
        threshold, cost ratio, separation and criterion. Cells under 10 cases are hidden.

        Examples:
            >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
            >>> table["sex"] = ["f", "f", "m", "m"] * 100
            >>> result = audit(table, truth="bad", decision="removed", group="sex", positive=1)
            >>> result.by_group().select("group", "class", "n", "selection_rate").rows()[:2]
            [('f', '0', 200.0, 0.5), ('f', '1', 200.0, 0.5)]
        """
        return by_group(self.rows)

    def to_json(self) -> str:
        """The record as JSON."""
        return record_text(self._document([]), rows=self.rows)

    def __str__(self) -> str:
        from evenhand.report.terminal import as_text

        return as_text(self._shown())

    def save(self, path: str | Path) -> None:
        """Write the audit whole or not at all, as the ending of the file's name says.

        `.html` is the report, `.md` a summary, `.json` the record, `.csv` all rows and `.xml` test
        results (JUnit).
        """
        from evenhand.report.render import render

        render(self, path=path)

    def compare(self, other: "Audit | Mapping[str, Any] | str | Path") -> Any:
        """What moved since another audit beyond sampling error, and which verdicts changed.

        `other` is the older one: an audit, its record or the file of it. The comparison shows
        itself, and `.to_frame()` has every number that both audits hold.
        """
        from evenhand.report.compare import compare_records

        if isinstance(other, Audit):
            other = other.record()
        before = read_record(other) if isinstance(other, str | Path) else other
        return compare_records(before, self.record())

    @property
    def charts(self) -> Mapping[str, Any]:
        """Every chart of the report by its name, in the report's order; each shows itself."""
        from evenhand.report.notebook import charts_of

        return charts_of(self._shown())

    def chart(self, name: str | None = None) -> Any:
        """One of the report's charts: shows in a notebook, `.save("chart.svg")` keeps it.

        Without a name the first chart; a name that does not exist is answered with those that do.
        `result.lens("norms").chart()` is the first of a single lens.
        """
        from evenhand.report.notebook import show_chart

        return show_chart(self._shown(), name)

    def _repr_html_(self) -> str:
        from evenhand.report.notebook import as_fragment

        return as_fragment(self._shown())


@describe_roles
def audit(
    decisions: Decisions | Any,
    *,
    limits: Mapping[str, Any] | None = None,
    charter: Charter | str | Path | None = None,
    lenses: Iterable[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
    keep_small: bool = False,
    exact: bool = False,
    settings: Mapping[str, Any] | None = None,
    words: "WordWeights | None" = None,
    forms: Mapping[str, Mapping[str, Any]] | Iterable[str] = (),
    arguments: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **roles: Unpack[TableArguments],
) -> Audit:
    """Audit a table of decisions through every lens that its columns support.

    Args:
        decisions: The table and the roles of its columns, a table with the roles named here, or
            tally sets of it.
        limits: Bands agreed on, such as `{"true_positive_rate_gap": 0.05}`.
        charter: The trade-offs chosen, or the file that holds them; `limits` go before its own.
        lenses: Only these lenses; by default all that the table supports.
        level: Confidence level of every interval.
        seed: Seed of everything drawn.
        keep_small: Keep the numbers of cells under 10 cases.
        exact: Areas under the curve and calibration from the scores themselves, however many.
        settings: What single lenses take, such as a bandwidth.
        words: Weights of words in the model and its norm scorer, told beside the norms.
        forms: Forms to fill in from the counts, such as `["ll144"]`, or each with its details.
        arguments: What the caller wants recorded as the command that made this.
        progress: Called with the name of each lens as it starts.
        roles: What each column is for, by the keywords below, where a table is given.

    Examples:
        >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
        >>> table["sex"] = ["f", "f", "m", "m"] * 100
        >>> result = audit(table, truth="bad", decision="removed", group="sex")
        >>> result.verdict, len(result.rows.where(measure="selection_rate", class_="1"))
        ('not assessed', 2)
    """
    if not isinstance(level, float) or not 0.5 <= level < 1:
        raise UsageError(f"level={level!r} is not a confidence level. Choose one such as 0.95.")
    if not isinstance(seed, Integral) or seed < 0:
        raise UsageError(f"seed={seed!r} is not a seed. Give 0 or a larger whole number.")
    chartered = the_charter(charter)
    decisions = with_roles(decisions, roles, chartered)
    decisions = with_charter(decisions, chartered)
    bands = [*charter_limits(chartered), *read_limits(limits)]
    # A form may be all that a table is good for: scores alone, without a cut, have no decisions.
    alone = bool(forms) and lenses is None and all(lacking(decisions).values())
    chosen = [] if alone else choose_lenses(decisions, lenses)
    if words is not None and "norms" not in chosen:
        lack = LENSES["norms"].lacks(decisions)
        raise UsageError(
            "The words belong to the norms lens, which "
            + (f"needs {lack}." if lack else "was not asked for: add it to the lenses.")
        )
    options = Options(
        level=level,
        seed=seed,
        keep_small=keep_small,
        settings=check_settings(with_settings(settings, chartered)),
    )
    results: list[LensResult] = []
    decisions.check()
    gridded = None if exact else on_grid(decisions, chosen, options)
    made = _made(decisions, level=level, seed=seed, arguments=arguments) | {"limits": len(bands)}
    filled = fill_forms(decisions, forms, today=made["at"][:10])
    for name in chosen:
        if progress is not None:
            progress(name)
        by_grid = gridded is not None and name in GRID_LENSES
        results.append(LENSES[name].measure(gridded if by_grid else decisions, options))
        if name == "norms" and words is not None:
            from evenhand.models.words import carriers

            results[-1].details.update(words=carriers(words), words_toward=words.norm_group)
    result = conclude(
        decisions,
        results,
        bands,
        options=options,
        charter=chartered,
        keep_small=keep_small,
        made=made,
    )
    return replace(result, forms=filled) if filled else result


def conclude(
    decisions: Decisions,
    results: list[LensResult],
    limits: list[Limit],
    *,
    options: Options,
    charter: Charter | None = None,
    keep_small: bool,
    made: dict[str, Any],
) -> Audit:
    """The lenses' results judged, gathered into findings and recorded."""
    details = {result.lens: result.details for result in results if result.details}
    positive = positive_class(details)
    rows = judge(Rows.concatenate(result.rows for result in results), limits, positive=positive)
    details = shares_told(details, rows)
    # Small cells may be kept in the record, but nobody is told of them in a sentence.
    hidden = hide_small(rows)
    shown = rows if keep_small else hidden
    cuts = audited_cuts(
        FirstAudit(
            decisions=decisions,
            results=results,
            rows=hidden,
            limits=limits,
            options=options,
            positive=positive,
        )
    )
    if cuts:
        details["thresholds"] = {**details["thresholds"], "audited_cuts": cuts}
    excluded = dict(decisions.left_out)
    for result in results:
        excluded |= result.excluded
    tallies = [tally for result in results for tally in result.tallies]
    marks = sha256("".join(t.fingerprint() for t in tallies).encode()).hexdigest()[:16]
    recorded = charter.plain() if charter else None
    words = Words.of(
        charter=recorded,
        roles={"positive_is": decisions.roles.positive_is, "stratum": decisions.roles.stratum},
        details=details,
        groups=zip(rows["attribute"], rows["group"]),
    )
    found = find(hidden, words, positive=positive, details=details)
    findings = assign(found, charter, labels=decisions.roles.labeler is not None)
    on_charter = charter_findings(charter, shown, today=datetime.now(UTC).date())
    # What was asked for and is not what it seems: nobody should have to look for it.
    heeded = [*reading_hints(decisions.roles, tallies), *unmet_limits(rows, limits)]
    return Audit(
        rows=shown,
        findings=(*findings, *on_charter),
        verdict=overall(counted_rows(shown)["verdict"].tolist()),
        notes=tuple(
            dict.fromkeys(
                [
                    *decisions.notes,
                    *(note for result in results for note in result.notes),
                    *(decisions.tallies.notes() if decisions.tallies else ()),
                    *heeded,
                ]
            )
        ),
        made=made,
        data={
            "source": decisions.source,
            "rows": int(tallies[0].total()) if tallies else None,
            "excluded": [{"reason": k, "rows": v} for k, v in excluded.items()],
            "roles": decisions.roles.used(),
            "fingerprint": marks,
            "lenses": lacking(decisions),
            "heeded": heeded,
        },
        charter=recorded,
        details=details,
        lens_notes={result.lens: tuple(result.notes) for result in results},
    )


FORMS = ("ll144",)


def fill_forms(
    decisions: Decisions, asked: Mapping[str, Mapping[str, Any]] | Iterable[str], *, today: str
) -> dict[str, Any]:
    """The forms asked for, by name; each from the counts themselves."""
    given = dict(asked) if isinstance(asked, Mapping) else {name: {} for name in asked}
    for name in given:
        if name not in FORMS:
            raise UsageError(
                f"{name!r} is not a form.{nearest(str(name), FORMS)} There is {', '.join(FORMS)}."
            )
    if not given:
        return {}
    from evenhand.findings.ll144 import ll144_form

    return {name: ll144_form(decisions, details, today=today) for name, details in given.items()}


def unmet_limits(rows: Rows, limits: Iterable[Limit]) -> list[str]:
    """Sentences on limits that nothing in the results could be held against."""
    assessed = rows.take(rows["verdict"] != NOT_ASSESSED)
    return [
        f"The limit on {limit.measure} was not assessed: nothing in this table gives that measure."
        for limit in limits
        if not is_judged_as(assessed, limit.measure).any()
    ]


def check(result: Any, *, fail_on: str | None = None) -> None:
    """Raise `LimitExceeded` exactly where the command would exit 1: something is outside its limit.

    `fail_on` is `outside` or, to raise also where the data cannot tell, `cannot-tell`; whoever
    gives it must have set a limit.

    Examples:
        >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
        >>> table["sex"] = ["f", "f", "m", "m"] * 100
        >>> decisions = Decisions(table, truth="bad", decision="removed", group="sex")
        >>> try:
        ...     check(audit(decisions, limits={"selection_rate_gap": 0.1}))
        ... except LimitExceeded as error:
        ...     print(str(error).splitlines()[-1])
        selection_rate_gap of '1', m against f: −0.500 [−0.569, −0.429], limit −0.100 to 0.100
    """
    if isinstance(result, Audit):
        gate(result, fail_on=fail_on).check()
        return
    # A look at a store says of itself whether something is outside or an alarm is open.
    outside = getattr(result, "is_outside", None)
    if outside is None:
        raise UsageError(f"check takes the result of an audit, not {type(result).__name__}.")
    if outside:
        raise LimitExceeded(result.sentence)


def with_roles(
    data: Any, roles: Mapping[str, Any], charter: Charter | None = None, *, caller: str = "audit"
) -> Decisions:
    """The table with its roles, wherever they were given; those named here before a charter's."""
    tallies = None if isinstance(data, Decisions) else find_tallies(data)
    if tallies is not None:
        given = {k: v for k, v in roles.items() if k not in ("engine", "spark_master")}
        free = {k: v for k, v in (charter.roles if charter else {}).items() if k in FREE_ROLES}
        return tallied_decisions(tallies, {**free, **given})
    if not isinstance(data, Decisions):
        named = {name: value for name, value in roles.items() if value is not None}
        return Decisions(data, **{**(charter.roles if charter else {}), **named})
    if roles:
        raise UsageError(
            f"{min(roles)!r} is not an argument of {caller}. The roles of the columns are known "
            "already: name it where the Decisions are made."
        )
    return data


def _made(
    decisions: Decisions, *, level: float, seed: int, arguments: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "engine": decisions.engine,
        "level": level,
        "seed": seed,
        "arguments": dict(arguments or {}),
    }
