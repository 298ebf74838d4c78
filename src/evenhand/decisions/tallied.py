"""Decisions that are known by their tallies: what lenses take in place of a table of rows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from evenhand.decisions.classes import check_classes
from evenhand.decisions.labels import label
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.sets import Tallies, merge_all, table_name
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.files.places import find_matches
from evenhand.speech import listed

ENDING = ".tallies"
# Roles that change how counts are read, and not what was counted.
FREE_ROLES = ("reference", "positive_is", "classes")


class TalliedDecisions(Decisions):
    """Decisions known by a tally set alone.

    Where clusters stay in Spark, `rows` are the decisions whose clusters can be asked there.

    Examples:
        >>> import evenhand as eh
        >>> table = {"removed": [1, 0, 0, 0] * 10, "sex": ["f", "m"] * 20}
        >>> decisions = TalliedDecisions(eh.tally(table, decision="removed", group="sex"))
        >>> decisions.count(decisions.roles.attributes[0]).total()
        40.0
        >>> decisions.labels(["sex"])
        Traceback (most recent call last):
        evenhand.errors.DataError: This needs rows, and 'arrays' holds tallies alone. Give the \
table that was tallied.
    """

    tallies: Tallies

    def __init__(self, tallies: Tallies, rows: Decisions | None = None) -> None:
        self.tallies, self._rows = tallies, rows
        self.source, self.roles = tallies.source, tallies.roles
        self.columns = list(tallies.columns)
        self.engine = "tallies"
        self._csv = None

    @property
    def _on_engine(self) -> Decisions:
        """The decisions that the tallies were made of, where an engine still holds them."""
        return self if self._rows is None else self._rows

    def __getattr__(self, name: str) -> Any:
        if name == "frame":
            raise DataError(
                f"This needs rows, and '{self.source}' holds tallies alone. Give the table that "
                "was tallied."
            )
        raise AttributeError(name)

    @cached_property
    def survey(self) -> dict[str, float]:
        """Least and greatest value of each numeric role, as they were when rows were counted."""
        return dict(self.tallies.survey)

    def check_classes(self, tally: Tally, *, decision: str = "decision") -> None:
        """Nothing: sets are looked at where they are read, and tables where they are counted."""

    def count(self, attribute: Attribute, *, cluster: bool = False) -> Tally:
        """Counts by (group, stratum, truth, decision), from the set."""
        if cluster and table_name("clusters", attribute.name) in self.tallies.lost:
            self.tallies.table(table_name("clusters", attribute.name))
        tally = self.tallies.table(table_name("counts", attribute.name))
        return tally if cluster else tally.without("cluster", "clustered")


def find_tallies(data: Any) -> Tallies | None:
    """The tally set that somebody named: one, several, or their files; None for a table."""
    named = list(data) if isinstance(data, list | tuple) else [data]
    given = [each for one in named for each in _matching(one)]
    sets = [
        Tallies.load(each) if _is_file(each) else each
        for each in given
        if _is_file(each) or isinstance(each, Tallies)
    ]
    if not sets:
        return None
    if len(sets) < len(given):
        table = next(each for each in given if not (_is_file(each) or isinstance(each, Tallies)))
        raise UsageError(
            f"'{table}' is no tally set and others are. Tally it first, or give tables alone."
        )
    return merge_all(sets)


def tallied_decisions(tallies: Tallies, roles: Mapping[str, Any]) -> TalliedDecisions:
    """Decisions of a tally set, with roles that do not change what was counted."""
    known = tallies.roles.used()
    for name, value in roles.items():
        told = list(value) if isinstance(value, tuple) else value
        same = told == known.get(name) or [told] == known.get(name)
        if name in FREE_ROLES or value is None or same:
            continue
        raise UsageError(
            f"{name}={value!r} would change what was counted. Tally the table again with it; of a "
            f"tally set only {listed(FREE_ROLES)} can be chosen."
        )
    changes: dict[str, Any] = {k: v for k, v in roles.items() if k == "positive_is"}
    reference = roles.get("reference")
    if reference is not None:
        groups = tallies.roles.group
        named = reference if isinstance(reference, Mapping) else dict.fromkeys(groups, reference)
        changes["reference"] = {str(name): str(label(value)) for name, value in named.items()}
    checked = of_classes(tallies, classes=bool(roles.get("classes")))
    return TalliedDecisions(checked.with_roles(**changes))


def of_classes(tallies: Tallies, *, classes: bool) -> Tallies:
    """The set with whether numbers are `classes`; refused where its table would be.

    Examples:
        >>> import evenhand as eh
        >>> table = {"code": list(range(30)) * 2, "sex": ["f", "m"] * 30}
        >>> tallies = eh.tally(table, decision="code", group="sex", classes=True)
        >>> of_classes(tallies.with_roles(classes=False), classes=True).roles.classes
        True
    """
    roles = replace(tallies.roles, classes=tallies.roles.classes or classes)
    for tally in (*tallies.tables.values(), *tallies.finished.values()):
        check_classes(tally, roles, schema=None)
    return replace(tallies, roles=roles)


def _matching(data: Any) -> list[Any]:
    """The tally sets that a pattern such as week-*.tallies finds; anything else as it is."""
    if not _is_file(data) or Path(data).exists():
        return [data]
    return list(find_matches(data)) or [data]


def _is_file(data: Any) -> bool:
    return isinstance(data, str | Path) and str(data).lower().endswith(ENDING)
