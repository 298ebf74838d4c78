"""The lenses that an audit looks through, and how one more is added."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Protocol, runtime_checkable

from evenhand import load
from evenhand.decisions.roles import Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.collect import Need
from evenhand.errors import UsageError, nearest
from evenhand.lenses import counterfactual, labelers, norms, statistical, thresholds
from evenhand.lenses.measures import register
from evenhand.lenses.rows import LensResult, Options


@runtime_checkable
class Lens(Protocol):
    """A lens: a module that says what it lacks of a table, and measures it.

    Its results are rows of its own name. One from outside may also hold `MEASURES`, the records
    of what it measures that the catalogue does not have.
    """

    def lacks(self, decisions: Decisions, /) -> str | None:
        """What the table would need for this lens, or None where it has it."""

    def measure(self, decisions: Decisions, options: Options, /) -> LensResult:
        """The rows of this lens."""


class _Packaged:
    """A lens of ours: what it lacks is known at once, the rest is imported where it is used.

    Of a table most lenses lack something, and importing all of them takes longer than a small
    audit.
    """

    def __init__(self, lacks: Callable[[Decisions], str | None], module: str) -> None:
        self.lacks = lacks
        self._module = module

    def measure(self, decisions: Decisions, options: Options, /) -> LensResult:
        """The rows of this lens."""
        result: LensResult = load(self._module).measure(decisions, options)
        return result

    def needs(self, roles: Roles, /) -> list[Need]:
        """The tables that this lens measures from."""
        found: list[Need] = load(self._module).needs(roles)
        return found


# In the order in which they run.
LENSES: dict[str, Lens] = {
    "statistical": _Packaged(statistical.lacks, "lenses.statistical.lens"),
    "counterfactual": _Packaged(counterfactual.lacks, "lenses.counterfactual.lens"),
    "thresholds": _Packaged(thresholds.lacks, "lenses.thresholds.lens"),
    "labelers": _Packaged(labelers.lacks, "lenses.labelers.lens"),
    "norms": _Packaged(norms.lacks, "lenses.norms.lens"),
}
# What lenses were once called, still understood where somebody names one.
FORMER_NAMES = {"causal": "counterfactual"}


def register_lens(name: str, lens: Lens) -> ExitStack:
    """Add a lens, with the measures it brings; as a context, until it ends.

    Rows, verdicts, sentences, tables and a chart follow by themselves.
    """
    if name in LENSES or name in FORMER_NAMES:
        raise UsageError(f"There is a lens {name!r} already. Choose another name.")
    if not isinstance(lens, Lens):
        raise UsageError(f"lens {name!r} needs two functions, lacks and measure.")
    undo = register(*getattr(lens, "MEASURES", ()))
    LENSES[name] = lens
    undo.callback(LENSES.pop, name)
    return undo


def lacking(decisions: Decisions) -> dict[str, str | None]:
    """What the table would need for each lens, None where it has it."""
    return {name: lens.lacks(decisions) for name, lens in LENSES.items()}


def choose_lenses(decisions: Decisions, asked: Iterable[str] | None) -> list[str]:
    """The lenses to run: those asked for, or all that the table supports."""
    needs = lacking(decisions)
    if asked is not None:
        given = [asked] if isinstance(asked, str) else list(asked)
        names = [FORMER_NAMES.get(name, name) for name in given]
        for name in names:
            if name not in LENSES:
                raise UsageError(
                    f"lens {name!r} does not exist.{nearest(name, list(LENSES))} "
                    f"The lenses are {', '.join(LENSES)}."
                )
            if needs[name]:
                raise UsageError(f"The {name} lens needs {needs[name]}.")
        return names
    chosen = [name for name, lack in needs.items() if lack is None]
    if not chosen:
        raise UsageError(
            "No lens can run on this table. Name a decision column (--decision), or a score and a "
            "threshold (--score, --threshold); --dry-run says what each lens needs."
        )
    return chosen
