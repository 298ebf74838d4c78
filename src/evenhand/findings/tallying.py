"""Tallying a table: everything that its lenses need of it, without its rows."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from evenhand.decisions.keywords import TableArguments, describe_roles
from evenhand.decisions.shared_items import MOST_LABELS, labels_of_items
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallied import TalliedDecisions
from evenhand.decisions.tallies.collect import Need, collect_tallies, scores_stay_in_spark
from evenhand.decisions.tallies.privacy import read_key, with_floor, with_names
from evenhand.decisions.tallies.sets import Tallies
from evenhand.errors import UsageError
from evenhand.findings.registry import LENSES, choose_lenses
from evenhand.lenses.rows import Options

# Beyond this many rows of one audit, scores are counted on the fixed grid instead of sorted.
MOST_EXACT = 5_000_000
# The lenses that look at scores, and are measured from the grid then.
GRID_LENSES = ("statistical", "thresholds")


@describe_roles
def tally(
    decisions: Decisions | Any,
    *,
    lenses: Iterable[str] | None = None,
    pseudonyms: str | Path | bytes | None = None,
    names: bool = False,
    floor: int = 0,
    longest_seconds: float | None = None,
    progress: Callable[[str], None] | None = None,
    **roles: Unpack[TableArguments],
) -> Tallies:
    """What an audit needs of a table, without its rows: to be saved, merged and audited.

    Labelers, items and clusters are numbered unless their names are asked for; such sets do not
    merge. With `pseudonyms` they get keyed hashes, the same wherever the key is.

    Args:
        decisions: The table and the roles of its columns, or a table with the roles named here.
        lenses: What these lenses need; by default all that the table supports.
        pseudonyms: A file with a secret, or the secret itself, that names are hashed with.
        names: Keep the names of labelers, items and clusters.
        floor: Withhold cells of fewer rows than this.
        longest_seconds: Leave longer times out.
        progress: Called with what is being done.
        roles: What each column is for, by the keywords below, where a table is given.

    Examples:
        >>> table = {"bad": [1, 0] * 20, "removed": [1, 0, 0, 0] * 10, "sex": ["f", "m"] * 20}
        >>> tally(table, truth="bad", decision="removed", group="sex").rows
        40
    """
    if floor < 0:
        raise UsageError(f"floor={floor} is negative. Give the fewest rows of a cell, such as 10.")
    if names and pseudonyms is not None:
        raise UsageError("Names are kept or replaced by pseudonyms. Give one of the two.")
    key = None if pseudonyms is None else read_key(pseudonyms)
    if not isinstance(decisions, Decisions):
        decisions = Decisions(decisions, **{k: v for k, v in roles.items() if v is not None})  # type: ignore[arg-type]
    elif roles:
        raise UsageError(
            f"{min(roles)!r} is not an argument of tally. The roles of the columns are known "
            "already: name it where the Decisions are made."
        )
    chosen = choose_lenses(decisions, lenses)
    decisions.check()
    if progress is not None:
        progress("counting")
    found = collect_tallies(
        decisions, lens_needs(decisions, chosen), longest_seconds=longest_seconds
    )
    if decisions.roles.item is not None:
        most, _ = labels_of_items(decisions)
        found = replace(found, survey={**found.survey, MOST_LABELS: float(most)})
    return with_floor(with_names(found, key=key, names=names), floor)


def lens_needs(decisions: Decisions, lenses: Iterable[str]) -> list[Need]:
    """The tables that these lenses measure from; one from outside may say none."""
    found: list[Need] = []
    for name in lenses:
        needs = getattr(LENSES[name], "needs", None)
        found += needs(decisions.roles) if needs is not None else []
    return found


def on_grid(
    decisions: Decisions, lenses: Iterable[str], options: Options
) -> TalliedDecisions | None:
    """The tallies of a table with so many scores that they are counted on the grid, in one pass.

    None for a smaller table, one that is tallied already, one whose clusters are too many or whose
    items have several labels each, and where rows are to be shown. Where Spark holds clusters
    that are too many for its driver, they stay there.
    """
    roles = decisions.roles
    if decisions.tallies is not None or not roles.truth or not (roles.score or roles.scores):
        return None
    chosen = [name for name in lenses if name in GRID_LENSES]
    if not chosen or options.settings.get("evidence") or decisions.row_count <= MOST_EXACT:
        return None
    if roles.item is not None:
        # Scores on the grid are counted by one kind of unit; items of one label are none.
        if labels_of_items(decisions)[0] > 1:
            return None
        decisions = decisions.with_roles(item=None)
    needs = lens_needs(decisions, chosen)
    if scores_stay_in_spark(decisions, needs):
        found = collect_tallies(decisions, needs, clustered=True)
        return TalliedDecisions(found, rows=decisions)
    found = collect_tallies(decisions, needs)
    return None if found.lost else TalliedDecisions(found)
