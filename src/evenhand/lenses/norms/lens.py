"""The norms lens: within a group, does looking typical of a group go with higher scores?

Group metrics can all agree while, among women, those who write as most women do are scored higher
in the classes where women are many and lower where they are few (Cheng et al. 2023).
"""

from functools import partial
from typing import Any

import numpy as np

from evenhand.decisions.labels import ordered
from evenhand.decisions.roles import OWN_SCORE, Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.collect import Need
from evenhand.decisions.tallies.norm_areas import AREAS, area_table, norm_areas
from evenhand.decisions.tallies.norms import LACKS_SCORE, norm_counts
from evenhand.decisions.tallies.sampled_norms import (
    SampledCounts,
    held_counts,
    is_sampled,
    sample_columns,
    sampled_counts,
)
from evenhand.decisions.tallies.scores import is_weighted
from evenhand.decisions.tallies.sets import table_name
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.norms import lacks as lacks
from evenhand.lenses.norms.known import unknown_norms, withhold
from evenhand.lenses.norms.rows import (
    NormCells,
    cells_of,
    correlation_rows,
    rank_tables,
    share_rows,
    trend_rows,
)
from evenhand.lenses.norms.samples import PartShares, ShareCounts, clustered_shares
from evenhand.lenses.rows import LensResult, Options, Rows, exclusions
from evenhand.lenses.scope import Scope
from evenhand.stats.estimate import Estimate, FloatArray
from evenhand.stats.ranks import smallest_detectable, smallest_significant
from evenhand.stats.trend import compare_trends

LENS = "norms"
MOST_CLASSES = 1_000
# Under this many rows in its largest class, a group gets a sentence on what it could have shown.
SMALL_GROUP, FEW_ROWS = 100, 30
# Under so many clusters, intervals of trends that clusters tilt were found to cover .91 to .94.
FEW_CLUSTERS = 20


def needs(roles: Roles) -> list[Need]:
    """The tables this lens measures from: counts, and ranks, which do not merge."""
    return [
        Need(kind="norms", attribute=attribute, finish=partial(norm_tables, attribute))
        for attribute in roles.attributes
    ]


def norm_tables(attribute: Attribute, decisions: Decisions) -> dict[str, Tally]:
    """Counts, shares of a sample, areas and every table of ranks, by their names in a tally set."""
    roles = decisions.roles
    columns = [*roles.norm.values(), *roles.norm_irrelevant.values()]
    counted = norm_counts(decisions, attribute, norms=columns)
    decisions.check_classes(counted.tally)
    found = {table_name("norm_counts", attribute.name): counted.tally}
    asked = [*roles.norm.items(), *roles.norm_irrelevant.items()]
    areas = norm_areas(decisions, attribute, counts=counted.tally, norms=asked)
    if areas:
        found[table_name(AREAS, attribute.name)] = area_table(areas)
    if is_sampled(decisions):
        held = held_counts(sampled_counts(decisions, attribute))
        found[table_name("sampled_counts", attribute.name)] = held
    positive = positive_class(decisions, counted.tally)
    for norms, elsewhere in ((roles.norm, True), (roles.norm_irrelevant, False)):
        if norms:
            found |= rank_tables(
                decisions,
                attribute,
                norms=norms,
                positive=positive,
                elsewhere=elsewhere,
                counted=counted,
            )
    return found


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Shares, correlations with every norm, and their trend over classes, by attribute.

    Nothing is claimed of a norm that does not tell its group from others of the same class.
    The setting `not_class=False` leaves out the correlations among rows of another truth, which
    need one pass over the table for every class; `bootstrap=False` the bootstrap of the trends.
    """
    roles = decisions.roles
    elsewhere, bootstrap = _flag(options, "not_class"), _flag(options, "bootstrap")
    # Rows by the end of their measures' names: by all words, or by those that say nothing.
    parts: list[tuple[str, Rows]] = []
    notes: list[str] = []
    trends: list[dict[str, Any]] = []
    tallies: dict[Attribute, Tally] = {}
    excluded: dict[str, int] = {}
    for attribute in roles.attributes:
        columns = [*roles.norm.values(), *roles.norm_irrelevant.values()]
        counted = norm_counts(decisions, attribute, norms=columns)
        counts = counted.tally
        tallies[attribute] = counts
        excluded |= left_out(counts, attribute, decisions)
        scope = attribute_scope(counts, attribute, roles, options)
        decisions.check_classes(counts)
        table = share_counts(scope, counts, decisions, attribute)
        positive = positive_class(decisions, counts)
        parts.append(("", share_rows(scope, table)))
        notes += notes_on(scope, decisions, positive)
        for end, norms in (("", roles.norm), ("_irrelevant", roles.norm_irrelevant)):
            if not norms:
                continue
            for cells in cells_of(
                decisions,
                attribute,
                scope,
                norms=norms,
                positive=positive,
                # A scorer without a class's words says nothing of the rows of other classes.
                elsewhere=elsewhere and not end,
                counted=counted,
            ):
                parts.append((end, correlation_rows(scope, cells, end=end)))
                if cells.classes != scope.classes:
                    continue
                rows, details = trend_rows(scope, cells, table.shares, end=end, bootstrap=bootstrap)
                parts += [(end, each) for each in rows]
                trends += details
                if not end:
                    notes += small_groups(scope, cells) + few_clusters(cells)
    unknown = unknown_norms(decisions, tallies, level=options.level)
    reasons = {
        end: {one.norm: one.reason for one in unknown if one.irrelevant is bool(end)}
        for end in ("", "_irrelevant")
    }
    left_open: dict[str, Any] = {"unknown": [one.plain() for one in unknown]} if unknown else {}
    return LensResult(
        lens=LENS,
        rows=Rows.concatenate(withhold(rows, reasons[end]) for end, rows in parts),
        excluded=excluded,
        notes=tuple(notes),
        details={"trends": trends, **left_open},
        tallies=tuple(tallies.values()),
    )


def attribute_scope(counts: Tally, attribute: Attribute, roles: Roles, options: Options) -> Scope:
    """What the rows of one attribute share."""
    classes = ordered({*counts.labels["truth"], *roles.scores})
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"truth={roles.truth!r} has {len(classes):,} values. The norms lens needs classes, at "
            f"most {MOST_CLASSES:,}: name the column that holds them."
        )
    if counts.dense(["group", "truth"], "n").sum() == 0:
        raise DataError(
            f"Nothing is left to measure for group={attribute.name!r}: no row has both a group "
            "and a truth."
        )
    return Scope(
        lens=LENS,
        attribute=attribute.name,
        level=options.level,
        seed=options.seed,
        classes=tuple(classes),
        groups=counts.labels["group"],
        strata=(None, *counts.labels.get("stratum", ())),
    )


def share_counts(
    scope: Scope, counts: Tally, decisions: Decisions, attribute: Attribute
) -> ShareCounts:
    """Rows and weights by (stratum, group, class), everybody first."""
    sampled = is_sampled(decisions)
    found = sampled_counts(decisions, attribute) if sampled else SampledCounts(tally=counts)
    strata = tuple(name for name in scope.strata if name is not None)
    labels = {"group": scope.groups, "truth": scope.classes}
    labels |= {"stratum": strata} if strata else {}
    tally = found.tally
    for key, named in labels.items():
        tally = tally.relabel(key, named)

    def by_cell(name: str) -> FloatArray:
        everybody = tally.dense(["group", "truth"], name)[None]
        if not strata:
            return everybody
        return np.concatenate([everybody, tally.dense(["stratum", "group", "truth"], name)])

    rows = by_cell("n")
    if not sampled:
        return ShareCounts(rows=rows, weight=rows, squares=rows)
    weight, squares, clustered = by_cell("w"), by_cell("w2"), None
    if decisions.roles.together is not None:
        part = PartShares(labels=labels, weight=weight)
        sums = part(tally) if found.distant is None else found.distant.add_up(part)
        clustered = clustered_shares(weight, squares, sums)
    return ShareCounts(
        rows=rows,
        weight=weight,
        squares=squares,
        weighted=is_weighted(decisions),
        clustered=clustered,
    )


def positive_class(decisions: Decisions, counts: Tally) -> str | None:
    """The class that a single score belongs to; None where it cannot be known."""
    roles = decisions.roles
    if roles.score is None:
        return None
    if roles.positive is not None:
        return roles.positive
    return "1" if set(counts.labels["truth"]) <= {"0", "1"} else None


def left_out(counts: Tally, attribute: Attribute, decisions: Decisions) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    n, roles = counts.sums["n"], decisions.roles
    reasons = {
        f"no {attribute.name}": n[counts.codes["group"] < 0].sum(),
        "no truth": n[counts.codes["truth"] < 0].sum(),
        "no score": counts.sums.get(LACKS_SCORE, np.zeros(1)).sum(),
    }
    norms = (*roles.norm.values(), *roles.norm_irrelevant.values())
    for column in (*norms, *sample_columns(decisions)):
        what = f"no {column}" if f"no {column}" not in reasons else f"no norm {column!r}"
        reasons[what] = counts.sums[f"lacks:{column}"].sum()
    remarks = dict.fromkeys(("no truth", "no score"), "left out of norms")
    return exclusions(reasons, roles, remarks=remarks)


def notes_on(scope: Scope, decisions: Decisions, positive: str | None) -> list[str]:
    """Sentences on what the table leaves open."""
    roles = decisions.roles
    groups = scope.groups
    notes: list[str] = []
    if len(groups) == 1:
        notes.append(
            f"'{scope.attribute}' has one group alone, '{groups[0]}': its share is 1 in every "
            "class, so correlations can be shown and no trend over classes."
        )
    unmatched = [name for name in {**roles.norm, **roles.norm_irrelevant} if name not in groups]
    if len(unmatched) == len({**roles.norm, **roles.norm_irrelevant}):
        names = ", ".join(f"'{name}'" for name in ordered(unmatched))
        notes.append(
            f"No value of '{scope.attribute}' is called {names}, as the norms are: correlations "
            "are shown for every group, and a trend over classes for none."
        )
    single = not roles.scores and OWN_SCORE not in decisions.columns
    if single and positive is None:
        notes.append(
            f"'{roles.score}' is one score for {len(scope.classes)} classes: say which of "
            "them it belongs to (--positive), and its correlation with the norms can be shown."
        )
    return notes


def few_clusters(cells: NormCells) -> list[str]:
    """A sentence where trends rest on so few clusters that their intervals may be too narrow."""
    if cells.sample is None or not cells.sample.clustered:
        return []
    most = int(cells.sample.clusters.max())
    if not 1 < most < FEW_CLUSTERS:
        return []
    return [
        f"No class has rows of more than {most} clusters. If clusters differ much in how they "
        "reward looking typical, intervals of norm bias, slope and mean size cover about 91 times "
        "in 100, not 95."
    ]


def small_groups(scope: Scope, cells: NormCells) -> list[str]:
    """Sentences on groups so small that only a large correlation could have shown."""
    notes: list[str] = []
    for g, group in enumerate(scope.groups):
        n = cells.n[0, g]
        best = int(np.argmax(n))
        rows = int(n[best])
        if 3 < rows < SMALL_GROUP:
            bar = float(smallest_significant(rows, level=scope.level))
            seen = float(smallest_detectable(rows, level=scope.level))
            notes.append(
                f"The largest class of '{group}', '{cells.classes[best]}', has {rows} rows: a "
                f"correlation with a norm must exceed {bar:.2f} to be told from 0, and one of "
                f"{seen:.2f} would be found four times in five. Smaller ones cannot be ruled out."
            )
        few = int(((n > 0) & (n < FEW_ROWS)).sum())
        if few and rows >= SMALL_GROUP:
            notes.append(
                f"'{group}' has fewer than {FEW_ROWS} rows in {few} of {len(n)} classes: their "
                "correlations say little, and they pull the trend over classes towards 0."
            )
    return notes


def compare_norm_bias(
    first: Rows,
    second: Rows,
    *,
    group: str,
    attribute: str | None = None,
    irrelevant: bool = False,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> Estimate:
    """Norm bias ρ of the first model minus that of the second, on the same classes and rows.

    Rows are those of the norms lens for either model, such as `audit(…).rows`; `group` says whose
    people and whose norms, `irrelevant` compares by the scorers without each class's own words.
    Interval by a bootstrap over classes that keeps the two models' pairs together, p-value by
    Meng, Rosenthal & Rubin (1992).

    Examples:
        >>> shared = {"lens": "norms", "group": "f", "class": list("abcde")}
        >>> rising = [0.1, 0.3, 0.5, 0.7, 0.9]
        >>> share = Rows.block((5,), measure="group_share", value=rising, **shared)
        >>> def with_r(*r):
        ...     named = Rows.block((5,), measure="norm_correlation", norm="f", value=r, **shared)
        ...     return Rows.concatenate([share, named])
        >>> steep, other = with_r(-0.2, -0.1, 0.0, 0.1, 0.2), with_r(0.1, -0.1, 0.2, 0.0, 0.15)
        >>> round(compare_norm_bias(steep, other, group="f").value, 2)
        0.7
    """
    end = "_irrelevant" if irrelevant else ""
    shares = _by_class(first, "group_share", group=group, attribute=attribute)
    others = _by_class(second, "group_share", group=group, attribute=attribute)
    named = f"norm_correlation{end}"
    r = [
        _by_class(rows, named, group=group, attribute=attribute, norm=group)
        for rows in (first, second)
    ]
    if not shares or not r[0] or not r[1]:
        groups = ordered({str(g) for g in first["group"] if g is not None})
        raise UsageError(
            f"group={group!r} has no {named} with its own norm in both results."
            f"{nearest(group, groups)}"
        )
    if shares.keys() != others.keys() or any(
        abs(shares[name] - others[name]) > 1e-9 for name in shares
    ):
        raise UsageError(
            f"The two results differ in the shares of {group!r}: they are not of the same rows. "
            "Audit both models on one table."
        )
    classes = [name for name in shares if name in r[0] and name in r[1]]
    return compare_trends(
        [shares[name] for name in classes],
        [r[0][name] for name in classes],
        [r[1][name] for name in classes],
        level=level,
        draws=draws,
        seed=seed,
    )


def _by_class(rows: Rows, measure: str, **where: str | None) -> dict[str, float]:
    wanted = {name: value for name, value in where.items() if value is not None}
    found = rows.where(lens=LENS, measure=measure, stratum=None, **wanted)
    return {
        str(name): float(value)
        for name, value in zip(found["class"], found["value"], strict=True)
        if np.isfinite(value)
    }


def _flag(options: Options, name: str) -> bool:
    asked = options.settings.get(name, True)
    if not isinstance(asked, bool):
        raise UsageError(f"{name}={asked!r} is neither True nor False.")
    return asked
