"""One gate: what lets an audit pass, the same in a shell, in Python, in pytest, on a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.errors import CannotTell, LimitExceeded, UsageError, nearest
from evenhand.speech import number

if TYPE_CHECKING:
    from evenhand.findings.run import Audit

FAIL_ON = ("outside", "cannot-tell")
# So many rows are named where something fails.
MOST_BEYOND = 8
MARKS = {"outside": "✗", "cannot tell": "?", "within": "✓", "not assessed": "·"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether an audit passes: the exit code, the verdict in a sentence, a line for each finding.

    The code is 0 where it passes, 1 where something lies outside its limit, and 3 where it cannot
    be told and that was to fail. `beyond` has a line for each row outside its limit.
    """

    code: int
    sentence: str
    lines: tuple[str, ...]
    beyond: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.sentence, *self.lines])

    def check(self) -> None:
        """Raise where the code is not 0."""
        if self.code:
            error = LimitExceeded if self.code == LimitExceeded.exit_code else CannotTell
            more = len(self.beyond) - MOST_BEYOND
            rest = [f"and {more:,} more"] if more > 0 else []
            raise error("\n".join([self.sentence, *self.beyond[:MOST_BEYOND], *rest]))


def gate(result: "Audit", *, fail_on: str | None = None) -> Gate:
    """Hold an audit's verdict against what is to fail: outside, or also what the data cannot tell.

    Whoever says what is to fail must have set a limit, since else nothing could.

    Examples:
        >>> from evenhand.findings.run import audit
        >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
        >>> table["sex"] = ["f", "f", "m", "m"] * 100
        >>> result = audit(table, truth="bad", decision="removed", group="sex",
        ...                limits={"selection_rate_gap": 0.1})
        >>> gate(result).code, len(gate(result).lines) == len(result.findings)
        (1, True)
    """
    # The command line names what may fail before it knows whether it will audit anything.
    from evenhand.findings.limits import CANNOT_TELL, OUTSIDE, counted_rows

    if fail_on is not None and fail_on not in FAIL_ON:
        raise UsageError(
            f"fail_on={fail_on!r} is not known.{nearest(str(fail_on), list(FAIL_ON))} "
            f"Choose {' or '.join(FAIL_ON)}."
        )
    if fail_on is not None and not result.made.get("limits"):
        raise UsageError(
            "The gate has no limits, so that nothing can fail. Set one, such as "
            "true_positive_rate_gap=0.05 (--limit), or give a charter that does (--charter)."
        )
    code, beyond = 0, counted_rows(result.rows).where(verdict=OUTSIDE)
    if result.verdict == OUTSIDE:
        code = LimitExceeded.exit_code
    elif result.verdict == CANNOT_TELL and fail_on == "cannot-tell":
        code = CannotTell.exit_code
    lines = [f"{MARKS[one.verdict]} {one.sentence}" for one in result.findings]
    return Gate(
        code=code,
        sentence=result.sentence,
        lines=tuple(lines),
        beyond=tuple(_beyond(row) for row in beyond),
    )


def _beyond(row: Mapping[str, Any]) -> str:
    """Measure, group, value and limit of a row outside it; labelers are not named."""
    from evenhand.findings.sentences.rows import value_text
    from evenhand.findings.sentences.words import interval

    what = f"{row['measure']} of '{row['class']}'" if row["class"] else str(row["measure"])
    who = [row["group"] or row["attribute"], f"in {row['stratum']}" if row["stratum"] else None]
    against = f"against {row['reference']}" if row["reference"] else None
    alone = "by one labeler" if row["labeler"] is not None else None
    named = " ".join(filter(None, (*who, against, alone)))
    band = f"{number(row['limit_low'])} to {number(row['limit_high'])}"
    return f"{what}, {named}: {value_text(row)} {interval(row)}, limit {band}"
