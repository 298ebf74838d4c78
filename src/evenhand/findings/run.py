"""The audit: every lens that the table supports, judged and recorded."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand import __version__
from evenhand.charter.charter import Charter
from evenhand.decisions.table import Decisions
from evenhand.errors import LimitExceeded, UsageError, nearest
from evenhand.findings.chartered import (
    assigned,
    charter_findings,
    charter_limits,
    the_charter,
    with_charter,
    with_settings,
)
from evenhand.findings.find import Finding, find, verdict_sentence
from evenhand.findings.record import SCHEMA
from evenhand.findings.sentences import plural
from evenhand.findings.verdict import (
    NOT_ASSESSED,
    OUTSIDE,
    Limit,
    counted_rows,
    hide_small,
    judge,
    overall,
    read_limits,
)
from evenhand.lenses import causal, labelers, norms, statistical, thresholds
from evenhand.lenses.lens import LensResult, Options
from evenhand.lenses.rows import Rows

if TYPE_CHECKING:
    from evenhand.models.words import WordWeights

LENSES: dict[str, Any] = {
    "statistical": statistical,
    "causal": causal,
    "thresholds": thresholds,
    "labelers": labelers,
    "norms": norms,
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit:
    """What an audit found: rows, findings and one verdict, ready to be shown or recorded."""

    rows: Rows
    findings: tuple[Finding, ...]
    verdict: str
    notes: tuple[str, ...]
    made: dict[str, Any]
    data: dict[str, Any]
    charter: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    lens_notes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return verdict_sentence(self.rows, self.verdict, limited=self.made.get("limits", 0) > 0)

    def __repr__(self) -> str:
        found = f"{plural(len(self.rows), 'row')}, {plural(len(self.findings), 'finding')}"
        return f"<Audit of {self.data['source']}: {self.verdict}, {found}>"

    def record(self) -> dict[str, Any]:
        """The whole audit as one plain document."""
        return {
            "schema": SCHEMA,
            "made": self.made,
            "data": self.data,
            "charter": self.charter,
            "results": list(self.rows),
            "findings": [finding.plain() for finding in self.findings],
            "notes": list(self.notes),
            "details": self.details,
            "sentence": self.sentence,
            "verdict": self.verdict,
        }

    def lens(self, name: str) -> "Audit":
        """What one lens gave, as an audit of its own: rows, findings, charts, and their verdict.

        Examples:
            >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
            >>> table["sex"] = ["f", "f", "m", "m"] * 100
            >>> result = audit(Decisions(table, truth="bad", decision="removed", group="sex"))
            >>> result.lens("statistical").chart().name
            'selection-rate-gap-sex'
        """
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
                replace(one, rows=tuple(moved[i] for i in one.rows))
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

    def to_json(self) -> str:
        """The record as JSON."""
        import json

        return json.dumps(self.record(), ensure_ascii=False, indent=1, allow_nan=False)

    def __str__(self) -> str:
        from evenhand.report.terminal import as_text

        return as_text(self.record())

    def chart(self, name: str | None = None) -> Any:
        """One of the report's charts: shows in a notebook, `.save("chart.svg")` keeps it.

        Without a name the first chart; a name that does not exist is answered with those that do.
        `result.lens("norms").chart()` is the first of a single lens.
        """
        from evenhand.report.charts_show import show_chart

        return show_chart(self.record(), name)

    def _repr_html_(self) -> str:
        from evenhand.report.notebook import as_fragment

        return as_fragment(self.record(), chart=len(set(self.rows["lens"])) == 1)


def audit(
    decisions: Decisions | Any,
    *,
    limits: Mapping[str, Any] | None = None,
    charter: Charter | str | Path | None = None,
    lenses: Iterable[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
    keep_small: bool = False,
    settings: Mapping[str, Any] | None = None,
    words: "WordWeights | None" = None,
    arguments: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **roles: Any,
) -> Audit:
    """Audit a table of decisions through every lens that its columns support.

    Args:
        decisions: The table and the roles of its columns, or a table with the roles named here.
        limits: Bands agreed on, such as `{"true_positive_rate_gap": 0.05}`.
        charter: The trade-offs chosen, or the file that holds them; `limits` go before its own.
        lenses: Only these lenses; by default all that the table supports.
        level: Confidence level of every interval.
        seed: Seed of everything drawn.
        keep_small: Keep the numbers of cells under 10 cases.
        settings: What single lenses take, such as a bandwidth.
        words: Weights of words in the model and its norm scorer, told beside the norms.
        arguments: What the caller wants recorded as the command that made this.
        progress: Called with the name of each lens as it starts.

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
    decisions = _decisions(decisions, roles, chartered)
    decisions = with_charter(decisions, chartered)
    bands = [*charter_limits(chartered), *read_limits(limits)]
    chosen = choose_lenses(decisions, lenses)
    if words is not None and "norms" not in chosen:
        lack = norms.lacks(decisions)
        raise UsageError(
            "The words belong to the norms lens, which "
            + (f"needs {lack}." if lack else "was not asked for: add it to the lenses.")
        )
    options = Options(level=level, seed=seed, settings=with_settings(settings, chartered))
    results: list[LensResult] = []
    for name in chosen:
        if progress is not None:
            progress(name)
        results.append(LENSES[name].measure(decisions, options))
        if name == "norms" and words is not None:
            from evenhand.models.carrying_words import carriers

            results[-1].details.update(words=carriers(words), words_toward=words.norm_group)
    return conclude(
        decisions,
        results,
        bands,
        charter=chartered,
        keep_small=keep_small,
        made=_made(decisions, level=level, seed=seed, arguments=arguments) | {"limits": len(bands)},
    )


def conclude(
    decisions: Decisions,
    results: list[LensResult],
    limits: list[Limit],
    *,
    charter: Charter | None = None,
    keep_small: bool,
    made: dict[str, Any],
) -> Audit:
    """The lenses' results judged, gathered into findings and recorded."""
    details = {result.lens: result.details for result in results if result.details}
    told_by = ("statistical", "causal", "labelers")
    known = (details.get(lens, {}).get("positive") for lens in told_by)
    positive = next((name for name in known if name is not None), None)
    rows = judge(Rows.concatenate(result.rows for result in results), limits, positive=positive)
    # Small cells may be kept in the record, but nobody is told of them in a sentence.
    hidden = hide_small(rows)
    shown = rows if keep_small else hidden
    excluded: dict[str, int] = {}
    for result in results:
        excluded |= result.excluded
    tallies = [tally for result in results for tally in result.tallies]
    marks = sha256("".join(t.fingerprint() for t in tallies).encode()).hexdigest()[:16]
    findings = find(hidden, positive=positive, positive_is=decisions.roles.positive_is)
    told = charter_findings(charter, shown, today=datetime.now(UTC).date())
    return Audit(
        rows=shown,
        findings=(*assigned(findings, charter), *told),
        verdict=overall(counted_rows(shown)["verdict"].tolist()),
        notes=tuple(
            dict.fromkeys(
                [
                    *(note for result in results for note in result.notes),
                    *unmet_limits(rows, limits),
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
            "lenses": {name: module.lacks(decisions) for name, module in LENSES.items()},
        },
        charter=charter.plain() if charter else None,
        details=details,
        lens_notes={result.lens: tuple(result.notes) for result in results},
    )


def unmet_limits(rows: Rows, limits: Iterable[Limit]) -> list[str]:
    """Sentences on limits that nothing in the results could be held against."""
    measured = set(rows["measure"][rows["verdict"] != NOT_ASSESSED])
    return [
        f"The limit on {limit.measure} was not assessed: nothing in this table gives that measure."
        for limit in limits
        if limit.measure not in measured
    ]


def choose_lenses(decisions: Decisions, asked: Iterable[str] | None) -> list[str]:
    """The lenses to run: those asked for, or all that the table supports."""
    lacking = {name: module.lacks(decisions) for name, module in LENSES.items()}
    if asked is not None:
        names = [asked] if isinstance(asked, str) else list(asked)
        for name in names:
            if name not in LENSES:
                raise UsageError(
                    f"lens {name!r} does not exist.{nearest(name, list(LENSES))} "
                    f"The lenses are {', '.join(LENSES)}."
                )
            if lacking[name]:
                raise UsageError(f"The {name} lens needs {lacking[name]}.")
        return names
    chosen = [name for name, lack in lacking.items() if lack is None]
    if not chosen:
        raise UsageError(
            "No lens can run on this table. Name a decision column (--decision), or a score and a "
            "threshold (--score, --threshold); --dry-run says what each lens needs."
        )
    return chosen


def check(result: Audit) -> None:
    """Raise `LimitExceeded` exactly where the command would exit 1: something is outside its limit.

    Examples:
        >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
        >>> table["sex"] = ["f", "f", "m", "m"] * 100
        >>> decisions = Decisions(table, truth="bad", decision="removed", group="sex")
        >>> check(audit(decisions, limits={"selection_rate_gap": 0.1}))
        Traceback (most recent call last):
        evenhand.errors.LimitExceeded: Gap found: 1 of 1 comparison lies outside its limit.
    """
    if not isinstance(result, Audit):
        raise UsageError(f"check takes the result of an audit, not {type(result).__name__}.")
    if result.verdict == OUTSIDE:
        raise LimitExceeded(result.sentence)


def _decisions(data: Any, roles: Mapping[str, Any], charter: Charter | None) -> Decisions:
    """The table with its roles, wherever they were given; those named here before a charter's."""
    if not isinstance(data, Decisions):
        return Decisions(data, **{**(charter.roles if charter else {}), **roles})
    if roles:
        raise UsageError(
            f"{min(roles)!r} is not an argument of audit. The roles of the columns are known "
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
