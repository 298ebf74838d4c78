"""How often the truth is known on either side of a decision, by group, and what that withholds.

A number that needs a truth counts the rows that have one. Where one group's refused rows were
reviewed more often than another's, the two differ by what was reviewed, whatever was decided.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.decisions.labels import OVERALL, REST, SUMMARY
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.tally import Tally
from evenhand.lenses.kinds import CELLS, SELECTED, Measure
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import UNEQUALLY_KNOWN, Row, Rows, choose, of_one_group
from evenhand.lenses.scope import HIDDEN_UNDER, with_reasons
from evenhand.lenses.statistical.confusion import Confusion, confusion
from evenhand.stats.estimate import FloatArray

# Known shares are unequal from more than one in so many on: 5 points.
_ONE_IN = 20
_REFUSED = frozenset(CELLS) - SELECTED
# Of one group alone: what both sides of the decision enter, though no cells say so.
_BOTH_SIDES = frozenset({"auc"})
# Known rows and all of them, of one cell and of all cells of somebody.
Counts = tuple[float, float]
Side = tuple[FloatArray, FloatArray]
Key = tuple[str | bool | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """Rows with a known truth, and all rows, by (stratum, group, class, decided).

    The first stratum is the whole table; `attribute` is whose groups they are.
    """

    attribute: str
    strata: tuple[str | None, ...]
    groups: tuple[str, ...]
    classes: tuple[str, ...]
    known: FloatArray
    rows: FloatArray
    _asked: dict[Key, dict[str, Any] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Confusion, attribute: str) -> "Reviewed":
        """What the two-by-two tables of an attribute say of it; rows count, whatever they weigh.

        Examples:
            >>> keys = {"group": ["f"] * 4 + ["m"] * 2, "decision": [1, 0, 0, 0, 1, 0]}
            >>> keys["truth"] = [1, 1, 0, None, 1, 0]
            >>> tally = Tally.of(keys, {"n": [50, 10, 10, 80, 60, 90]})
            >>> found = Reviewed.of(confusion(tally, Roles(truth="t", rule="given")), "sex")
            >>> (found.known / found.rows)[0, :, 1].tolist()
            [[0.2, 1.0], [1.0, 1.0]]
        """
        n = table.sums["n"]
        return cls(
            attribute=attribute,
            strata=table.strata,
            groups=table.groups,
            classes=table.classes,
            known=n[..., :2, :].sum(axis=-2),
            rows=n.sum(axis=-2),
        )

    def withheld(self, rows: Rows) -> tuple[Rows, list[dict[str, Any]]]:
        """The rows, with those marked that no limit can be held against, and why, as data.

        For each place of a marked row one entry: which shares of whose rows have a known truth,
        on which side of which decision.
        """
        names = ("lens", "measure", "class", "group", "reference", "stratum", "labeler", "unjudged")
        columns = [rows[name] for name in names]
        found: list[dict[str, Any]] = []
        mask = np.zeros(len(rows), dtype=bool)
        for place, values in enumerate(zip(*columns)):
            row = dict(zip(names, values))
            why = None if row["unjudged"] is not None else self._of_row(row)
            if why is not None:
                mask[place] = True
                found.append(why)
        if not found:
            return rows, []
        # Of one group's number only a limit asks, and whether there is one an audit knows.
        compared = mask & ~of_one_group(rows)
        reasons = choose(compared, UNEQUALLY_KNOWN)
        marked = rows.replace(
            unjudged=choose(mask, UNEQUALLY_KNOWN, rows["unjudged"]),
            method=with_reasons((len(rows),), rows["method"], reasons),
        )
        return marked, found

    def _of_row(self, row: Row) -> dict[str, Any] | None:
        """Why a row is withheld, or None: the cell in which known shares differ most."""
        record = look_up(row["measure"])
        # One labeler beside all others judged the same group as they.
        same_group = row["labeler"] is not None and row["reference"] == REST
        if not record.takes_limit or same_group or not _needs_truth(row, record):
            return None
        alone = row["reference"] is None and not record.over_groups
        if alone and (row["group"] is None or not _takes_both_sides(row, record)):
            return None
        place = {key: row[key] for key in ("group", "reference", "class", "stratum")}
        key = (*place.values(), record.over_groups)
        if key not in self._asked:
            cells = self._of_sides(row) if alone else self._of_pair(row)
            cell = _widest(self._of_groups(row) if record.over_groups else cells)
            told = {"attribute": self.attribute, **place, "over_groups": record.over_groups}
            self._asked[key] = cell and {**told, **cell}
        return self._asked[key]

    def _of_groups(self, row: Row) -> Iterator[dict[str, Any]]:
        """The groups that are known most and least often, in every cell."""
        for s, c, side in self._cells(row):
            known = [(self.known[s, g, c, side], self.rows[s, g, c, side]) for g in self._numbers]
            enough = [g for g in self._numbers if known[g][1] >= HIDDEN_UNDER]
            if not enough:
                continue
            least, most = (pick(enough, key=lambda g: _share(known[g])) for pick in (min, max))
            yield self._cell(s, c, side) | {
                "who": self.groups[least],
                "whom": self.groups[most],
                "counts": (known[least], known[most]),
            }

    def _of_pair(self, row: Row) -> Iterator[dict[str, Any]]:
        """A group and what it is compared with, in every cell."""
        reference = str(row["reference"])
        mine = self._counts(row["group"], row["group"])
        theirs = self._counts(reference, row["group"])
        if mine is None or theirs is None:
            return
        for s, c, side in self._cells(row):
            counts = tuple((known[s, c, side], n[s, c, side]) for known, n in (mine, theirs))
            if min(n for _, n in counts) >= HIDDEN_UNDER:
                yield self._cell(s, c, side) | {
                    "who": row["group"],
                    "whom": reference,
                    "counts": counts,
                }

    def _of_sides(self, row: Row) -> Iterator[dict[str, Any]]:
        """One group on the two sides of every decision."""
        mine = self._counts(row["group"], row["group"])
        if mine is None:
            return
        known, n = mine
        for s, c, side in self._cells(row):
            counts = tuple((known[s, c, at], n[s, c, at]) for at in (1, 0))
            if side and n[s, c].min() >= HIDDEN_UNDER:
                yield self._cell(s, c, side) | {
                    "who": row["group"],
                    "whom": None,
                    "counts": counts,
                }

    @property
    def _numbers(self) -> range:
        return range(len(self.groups))

    def _cell(self, stratum: int, place: int, side: int) -> dict[str, Any]:
        """What a cell is called."""
        where = self.strata[stratum]
        return {"of": self.classes[place], "decided": bool(side), "where": where}

    def _cells(self, row: Row) -> Iterator[tuple[int, int, int]]:
        """The strata, classes and sides of the decision that a row rests on."""
        within = list(range(1, len(self.strata)))
        strata = within if row["stratum"] == SUMMARY else _places(self.strata, row["stratum"])
        every = list(range(len(self.classes)))
        classes = every if row["class"] is None else _places(self.classes, row["class"])
        for s in strata:
            for c in classes:
                yield s, c, 0
                yield s, c, 1

    def _counts(self, name: str, group: str) -> Side | None:
        """Known and all rows of a group, of all others or of everybody, or None of a stranger."""
        if name == OVERALL:
            return self.known.sum(axis=1), self.rows.sum(axis=1)
        if (group if name == REST else name) not in self.groups:
            return None
        place = self.groups.index(group if name == REST else name)
        own = self.known[:, place], self.rows[:, place]
        if name != REST:
            return own
        return self.known.sum(axis=1) - own[0], self.rows.sum(axis=1) - own[1]


def reviewed(tally: Tally, attribute: Attribute, roles: Roles) -> Reviewed | None:
    """How often the truth is known, from counts; None where it is everywhere, or nowhere.

    Nor where every row says how likely it was to be reviewed: its weight accounts for that.
    """
    if roles.review_share is not None or roles.rule is None or "truth" not in tally.codes:
        return None
    if not tally.sums["n"][tally.codes["truth"] < 0].sum():
        return None
    table = confusion(tally.collapsed("cluster", "clustered").without("labeler"), roles)
    return Reviewed.of(table, attribute.name) if table.has_truth else None


def withhold(parts: list[Rows], known: Reviewed | None) -> tuple[list[Rows], list[dict[str, Any]]]:
    """Rows of one attribute, marked where known shares of the truth forbid a verdict, and why."""
    if known is None:
        return parts, []
    marked = [known.withheld(rows) for rows in parts]
    # One and the same entry for all rows of a place.
    why = {id(one): one for _, entries in marked for one in entries}
    return [rows for rows, _ in marked], list(why.values())


def _widest(cells: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Of some cells the one whose known shares differ most, with the shares; None if in none."""
    unequal = [cell for cell in cells if _unequal(*cell["counts"])]
    if not unequal:
        return None
    widest = max(unequal, key=lambda cell: _apart(*cell["counts"]))
    named = {name: value for name, value in widest.items() if name != "counts"}
    return {**named, "shares": [_share(counts) for counts in widest["counts"]]}


def _needs_truth(row: Row, record: Measure) -> bool:
    """Whether a row's measure needs a truth: in these lenses all but rates that say so."""
    cells = look_up(record.base or record.name).cells
    return cells is None or cells.needs_truth or row["lens"] != "statistical"


def _takes_both_sides(row: Row, record: Measure) -> bool:
    """Whether a number of one group rests on both sides of the decision."""
    if row["lens"] != "statistical" or record.cells is None:
        return row["lens"] == "labelers" or record.name in _BOTH_SIDES
    cases = record.cells.cases
    return not (cases <= SELECTED or cases <= _REFUSED)


def _places(names: tuple[str | None, ...], name: str | None) -> list[int]:
    return [names.index(name)] if name in names else []


def _share(counts: Counts) -> float:
    return float(counts[0] / counts[1])


def _apart(one: Counts, other: Counts) -> float:
    return abs(_share(one) - _share(other))


def _unequal(one: Counts, other: Counts) -> bool:
    """Whether two shares differ by more than 5 points, counted without rounding.

    Examples:
        >>> _unequal((55, 100), (50, 100)), _unequal((56, 100), (50, 100))
        (False, True)
    """
    (known, n), (their_known, their_n) = one, other
    return bool(_ONE_IN * abs(known * their_n - their_known * n) > n * their_n)
