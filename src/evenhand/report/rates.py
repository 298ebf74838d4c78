"""Every group's rates side by side, as people are shown them before any gap."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from evenhand.decisions.labels import REST
from evenhand.findings.limits import HIDDEN, hide_row
from evenhand.findings.sentences.agreed import two
from evenhand.findings.sentences.words import Words, positive_class
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import UNTOLD_UNDER
from evenhand.report.results import Results
from evenhand.speech import agreed_number, few

# What describes a group without a comparison, in the order of columns; the measure that the
# leading finding speaks of goes first.
RATES = ("selection_rate", "true_positive_rate", "false_positive_rate", "implied_threshold")
BY_CLASS = ("true_positive_rate", "selection_rate")
MOST_CLASSES = 6
# A cost ratio is the implied threshold on another scale: one is shown.
_SHOWN_AS = {"cost_ratio": "implied_threshold"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCell:
    """A share in percent, its interval and its cases; the words where there is none."""

    rate: str
    interval: str
    count: float | None
    value: float | None
    width: float
    verdict: str

    @property
    def n(self) -> str:
        """How many cases it rests on, as people are shown it."""
        return "–" if self.count is None else f"{self.count:,.0f}"

    @property
    def text(self) -> str:
        """The share and its interval."""
        return " ".join(filter(None, (self.rate, self.interval)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Rates by group: a line for each group and a column for each measure.

    Where decisions are between many classes, a line for each class and a column for each group.
    `measures` are those of the columns, or the one that all columns show; `more` counts the
    classes that are left out.
    """

    title: str
    corner: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[RateCell | None, ...]], ...]
    measures: tuple[str, ...]
    more: int = 0

    def of_columns(self, start: int, stop: int) -> "Grid":
        """Some of the columns."""
        lines = tuple((name, held[start:stop]) for name, held in self.lines)
        return replace(self, columns=self.columns[start:stop], lines=lines)


def rate_grids(record: Mapping[str, Any]) -> Iterator[Grid]:
    """A grid for each attribute, that of the leading finding first; none without rates."""
    lead = _lead(record)
    results = Results.of(record["results"])
    words = Words.of(
        charter=record.get("charter"),
        roles=record["data"].get("roles") or {},
        details=record.get("details") or {},
        groups=results.pairs("attribute", "group"),
    )
    usual = _usual(results)
    rates = dict.fromkeys((*_compared(lead, usual), *usual))
    described = [words.named(hide_row(row)) for row in _described(results, rates)]
    references = {
        row["attribute"]: words.name(row["attribute"], row["reference"])
        for row in results.pick(results.places(measures=["selection_rate_gap"]))
        if row["reference"] != REST
    }
    attributes = list(dict.fromkeys(row["attribute"] for row in described))
    if lead is not None:
        attributes.sort(key=lambda name: name != lead["attribute"])
    positive = positive_class(record.get("details") or {})
    for attribute in attributes:
        own = [row for row in described if row["attribute"] == attribute]
        against = references.get(attribute)
        grid = (
            _by_class(own, attribute, against, lead)
            if positive is None
            else _by_measure(own, attribute, against, rates, positive, words)
        )
        if grid is not None:
            yield grid


def _usual(results: Results) -> tuple[str, ...]:
    """What describes a group; labelers alone weigh mistakes, and sentences keep to that scale."""
    return RATES if "thresholds" in results.lenses else (*RATES[:-1], "cost_ratio")


def _described(results: Results, rates: Collection[str]) -> list[Row]:
    """The rows that are one of these rates of one group, compared with nobody."""
    group, *others = map(results.column, ("group", "reference", "stratum", "labeler", "norm"))
    return results.pick(
        place
        for place in results.places(measures=rates)
        if group[place] is not None and all(column[place] is None for column in others)
    )


def _compared(lead: Row | None, usual: Sequence[str] = RATES) -> list[str]:
    """The rate that the leading row compares; none where it is no share of cases."""
    own = "" if lead is None else str(lead["measure"])
    base = look_up(own).base or own
    shown = base if base in usual else _SHOWN_AS.get(base, base)
    return [shown] if look_up(shown).kind in ("rate", "odds") or shown in usual else []


def _lead(record: Mapping[str, Any]) -> Row | None:
    """The row that the first finding rests on."""
    for finding in record["findings"][:1]:
        if finding.get("numbers"):
            row: Row = record["results"][finding["numbers"][0]]
            return row
    return None


def _by_measure(
    rows: Sequence[Row],
    attribute: str,
    against: str | None,
    rates: Iterable[str],
    positive: str,
    words: Words,
) -> Grid | None:
    """A line for each group, the highest first, and a column for each measure."""
    held: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["class"] in (positive, None):
            # The first lens that gives a measure: a model's scores go before labels.
            held.setdefault(row["measure"], {}).setdefault(row["group"], row)
    measures = [name for name in rates if name in held]
    columns = [_cells(held[name]) for name in measures]
    if not columns:
        return None
    groups = list(dict.fromkeys(name for column in columns for name in column))
    groups.sort(key=lambda name: -_height(columns[0].get(name)))
    return Grid(
        title=f"{attribute}, compared with {against}" if against else attribute,
        corner="group",
        columns=tuple(_heading(held[name].values(), words) for name in measures),
        lines=tuple((name, tuple(column.get(name) for column in columns)) for name in groups),
        measures=tuple(measures),
    )


def _by_class(
    rows: Sequence[Row], attribute: str, against: str | None, lead: Row | None
) -> Grid | None:
    """A line for each class in which groups differ most, and a column for each group."""
    present = {row["measure"] for row in rows if row["class"] is not None}
    measures = [name for name in dict.fromkeys((*_compared(lead), *BY_CLASS)) if name in present]
    if not measures:
        return None
    held: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["measure"] == measures[0] and row["class"] is not None:
            held.setdefault(row["group"], {}).setdefault(row["class"], row)
    columns = {group: _cells(own) for group, own in held.items()}
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    named = None if lead is None else lead["class"]
    shown_by = {name: _evidence(column.get(name) for column in columns.values()) for name in names}
    names.sort(key=lambda name: (name != named, -shown_by[name]))
    if named is None:
        # A class with few cases of some group does not lead: a gap there is mostly chance.
        first = (n for n in names if not _is_small(column.get(n) for column in columns.values()))
        lead_name = next(first, None)
        names.sort(key=lambda name: name != lead_name)
    leading = (None if lead is None else lead["group"], against)
    groups = sorted(columns, key=lambda name: name not in leading)
    shown = names[:MOST_CLASSES]
    return Grid(
        title=f"{look_up(measures[0]).label} by {attribute}, where groups differ most",
        corner="class",
        columns=tuple(groups),
        lines=tuple((name, tuple(columns[g].get(name) for g in groups)) for name in shown),
        measures=tuple(measures[:1]),
        more=len(names) - len(shown),
    )


def _is_small(cells: Iterable[RateCell | None]) -> bool:
    """Whether some group has too few cases of a class for anything to be told of it."""
    return any(cell is None or (cell.count or 0.0) < UNTOLD_UNDER for cell in cells)


def _evidence(cells: Iterable[RateCell | None]) -> float:
    """How far apart the groups of a class are, in widths of their intervals."""
    known = [cell for cell in cells if cell is not None and cell.value is not None]
    values = [cell.value for cell in known if cell.value is not None]
    width = sum(cell.width for cell in known)
    return (max(values) - min(values)) / width if len(values) > 1 and width > 0 else -1.0


def _height(cell: RateCell | None) -> float:
    return -1.0 if cell is None or cell.value is None else cell.value


def _heading(rows: Iterable[Row], words: Words) -> str:
    """A measure's name, with the band agreed on where all groups have the same.

    Where a charter says what happens to people, in its words; else as everybody calls it.
    """
    held = list(rows)
    bands = {(row["limit_low"], row["limit_high"]) for row in held}
    measure, name = held[0]["measure"], held[0]["class"]
    spoken = words.decided is not None and name is not None
    label = words.column(measure, name) if spoken else look_up(measure).label
    if measure == "cost_ratio" and words.wrong and words.missed:
        label = f"{words.mistakes} for one {words.missed[0]}"
    low, high = next(iter(bands)) if len(bands) == 1 else (None, None)
    if low is None or high is None:
        return label
    plain = _is_plain(measure)
    ends = [agreed_number(end) if plain else _percent(end, 0) for end in (low, high)]
    return f"{label}, agreed {ends[0]} to {ends[1]}"


def _cells(rows: Mapping[str, Row]) -> dict[str, RateCell]:
    """The cells of a column, all with as many decimals as its numbers need."""
    values = [row["value"] for row in rows.values() if row["value"] is not None]
    largest = max(values, default=1.0)
    digits = 1 if largest >= 0.01 else 2 if largest >= 0.001 else 3
    return {name: _cell(row, digits) for name, row in rows.items()}


def _cell(row: Row, digits: int) -> RateCell:
    def cell(rate: str, interval: str, value: float | None, *, counted: bool = True) -> RateCell:
        count = row["n"] if counted else None
        low, high = row["family_low"], row["family_high"]
        width = 1.0 if low is None or high is None else float(high - low)
        return RateCell(
            rate=rate, interval=interval, count=count, value=value, width=width,
            verdict=row["verdict"],
        )  # fmt: skip

    if row.get("set_low") is not None and row["value"] is None:
        form = _form(row["measure"], digits)
        low, high = (form(row[name]) for name in ("set_low", "set_high"))
        return cell(f"from {low} to {high}", "", None)
    if row["value"] is None:
        hidden = row["undefined"] == HIDDEN
        return cell("hidden" if hidden else "undefined", "", None, counted=not hidden)
    low, high = row["family_low"], row["family_high"]
    form = _form(row["measure"], digits)
    own = form(row["value"])
    if low is None or high is None:
        return cell(own, "no interval", row["value"])
    if _is_plain(row["measure"]):
        return cell(own, f"[{form(low)}, {form(high)}]", row["value"])
    bounds = f"[{100 * low:.{digits}f}, {100 * high:.{digits}f}]"
    return cell(own, bounds, row["value"])


def _is_plain(measure: str) -> bool:
    """Whether a measure is a number as it stands, and no share in percent."""
    return look_up(measure).kind != "rate"


def _form(measure: str, digits: int) -> Callable[[float], str]:
    """How a measure's numbers are written: shares in percent, weights of a miss in few digits."""
    if look_up(measure).kind == "odds":
        return two
    return few if _is_plain(measure) else partial(_percent, digits=digits)


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f}%"
