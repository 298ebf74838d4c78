"""What a reader is shown of the rows: the comparisons that matter, largest first."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.decisions.labels import REST, SUMMARY
from evenhand.findings.limits import hide_row, is_unclaimed
from evenhand.findings.sentences.rows import value_text
from evenhand.findings.sentences.words import Words, group_names, interval, words
from evenhand.lenses.measures import leading_measures, look_up
from evenhand.lenses.rows import Row
from evenhand.report.results import Results
from evenhand.speech import agree, as_cell, number, plural

HEADERS = ("measure", "class", "group", "against", "value", "interval", "n", "verdict")
# What a first screen shows beside the measures that may lead: how much a swap does.
ALSO_SHOWN = ("flip_rate", "changed_share")
_ORDER = {"outside": 0, "cannot tell": 1, "within": 2, "not assessed": 3}


def chosen_rows(record: Mapping[str, Any], *, most: int = 20) -> tuple[list[Row], int]:
    """The rows to show and how many more there are like them.

    Where limits are set, the rows that have one: outside, then cannot tell, then within.
    Otherwise the headline measures of each lens against the reference, of the positive class
    where there are two, and none of which nothing is claimed; where there are many measures, as
    many rows of each.
    """
    # Sorted by size, single labelers would be a ranking of people: they stay in the record.
    results = Results.of(record["results"])
    labeler = results.column("labeler")
    judged = results.pick(place for place in results.judged() if labeler[place] is None)
    limited = list(map(hide_row, judged))
    if limited:
        chosen = sorted(limited, key=lambda row: (_ORDER[row["verdict"]], -_size(row)))
        shown = chosen[:most]
    else:
        positive = record["details"].get("statistical", {}).get("positive")
        order = {name: i for i, name in enumerate((*leading_measures(), *ALSO_SHOWN))}
        places = results.places(measures=order)
        rows = results.pick(place for place in places if labeler[place] is None)
        direct = {_family(row) for row in rows if row["reference"] != REST}
        chosen = [
            hide_row(row)
            for row in rows
            if row["stratum"] in (None, SUMMARY)
            and not is_unclaimed(row)
            and (row["reference"] != REST or _family(row) not in direct)
            and (positive is None or row["class"] in (positive, None))
        ]
        chosen.sort(key=lambda row: (order[row["measure"]], -_size(row)))
        shown = _of_each(chosen, most)
    named = _names(record).named
    return [named(row) for row in shown], len(chosen) - len(shown)


def _of_each(rows: list[Row], most: int) -> list[Row]:
    """The first rows of every measure, at least three of each, up to about `most` in all."""
    counts = Counter(row["measure"] for row in rows)
    each = max(counts.values(), default=0)
    while each > 3 and sum(min(each, count) for count in counts.values()) > most:
        each -= 1
    seen: Counter[str] = Counter()
    kept = []
    for row in rows:
        seen[row["measure"]] += 1
        if seen[row["measure"]] <= each:
            kept.append(row)
    return kept


def cells(row: Row) -> tuple[str, ...]:
    """One row as text, in the order of HEADERS."""
    value = value_text(row)
    count = f"{row['n']:,.0f}" if row["n"] is not None else "–"
    if row["n_reference"] is not None:
        count += f" / {row['n_reference']:,.0f}"
    where = f" in {row['stratum']}" if row["stratum"] else ""
    if row["value"] is None:
        value = set_text(row)
    return (
        words(row["measure"]) + where,
        row["class"] or "",
        row["group"] or row["attribute"] or "",
        row["reference"] or "",
        value or "undefined",
        interval(row) or no_interval_text(row),
        count,
        row["verdict"] or "",
    )


def set_text(row: Row) -> str:
    """The set that a number lies in where scores are discrete; nothing where it has none.

    Examples:
        >>> set_text({"set_low": 0.27, "set_high": 4.1}), set_text({"set_low": 2, "set_high": None})
        ('from 0.270 to 4.100', '2.000 or more')
    """
    low, high = row.get("set_low"), row.get("set_high")
    if low is None:
        return ""
    return f"{number(low)} or more" if high is None else f"from {number(low)} to {number(high)}"


def no_interval_text(row: Row) -> str:
    """Why a row has no interval, or no value at all; nothing where it does not say.

    Examples:
        >>> no_interval_text({"undefined": None, "no_interval": "all cases are one cluster"})
        'no interval: all cases are one cluster'
        >>> no_interval_text({"undefined": "no cases in the group", "no_interval": None})
        'no cases in the group'
    """
    # Records of the first schema have no column for it.
    reason = row.get("no_interval")
    return f"no interval: {reason}" if reason else str(row["undefined"] or "")


def limit_text(row: Row) -> str:
    """The band that was agreed on for a row, as a sentence; nothing where there is none.

    Examples:
        >>> limit_text({"limit_low": -0.05, "limit_high": 0.05})
        'Limit: −0.050 to 0.050.'
    """
    low, high = row["limit_low"], row["limit_high"]
    return "" if low is None else f"Limit: {number(low)} to {number(high)}."


def impact_ratios(record: Mapping[str, Any]) -> list[Row]:
    """The rows of the four-fifths table: selection rates by the highest group's."""
    positive = record["details"].get("statistical", {}).get("positive")
    named = _names(record).named
    results = Results.of(record["results"])
    classes, stratum = map(results.column, ("class", "stratum"))
    places = [
        place
        for place in results.places(measures=["impact_ratio"])
        if stratum[place] is None and positive in (None, classes[place])
    ]
    shown = map(hide_row, results.pick(places))
    return [named(row) for row in shown if row["value"] is not None]


def as_people_csv(frame: Any) -> str:
    """A table of results as CSV for people: no label of the data is run as a formula."""
    import polars as pl

    cells = {}
    for column in frame.select(pl.col(pl.String)).iter_columns():
        # A few names fill a column: each is looked at once.
        names = column.unique().drop_nulls()
        shown = {name: cell for name in names if (cell := as_cell(name)) != name}
        cells[column.name] = column.replace(shown) if shown else column
    return str(frame.with_columns(**cells).write_csv())


def left_out(record: Mapping[str, Any]) -> Iterable[str]:
    """What was excluded, in words."""
    for item in record["data"]["excluded"]:
        rows = f"{item['rows']:,} {'row' if item['rows'] == 1 else 'rows'}"
        yield f"{rows} left out: {item['reason']}."


def rows_left_out(record: Mapping[str, Any]) -> str:
    """How many rows were left out of something, each counted once.

    A row may lack several things, and several lenses leave out the same row, each for its own
    reason: of several reasons the largest is what is known of their union.

    Examples:
        >>> lacks = [{"reason": "no truth", "rows": 196}, {"reason": "no group", "rows": 150}]
        >>> rows_left_out({"data": {"excluded": lacks}})
        '196 rows or more were left out of something'
        >>> rows_left_out({"data": {"excluded": lacks[:1]}})
        '196 rows were left out'
    """
    counts = [item["rows"] for item in record["data"].get("excluded") or []]
    if not counts:
        return "No row was left out"
    rows = plural(max(counts), "row")
    if len(counts) > 1:
        return f"{rows} or more were left out of something"
    return f"{rows} {agree(counts[0], 'was', 'were')} left out"


def _family(row: Row) -> tuple[Any, ...]:
    return row["lens"], row["attribute"], row["measure"]


def _size(row: Row) -> float:
    return -1.0 if row["value"] is None else look_up(row["measure"]).size(row["value"])


def _names(record: Mapping[str, Any]) -> Words:
    """The groups' names as people are shown them."""
    groups = Results.of(record["results"]).pairs("attribute", "group")
    return Words(names=group_names(groups))
