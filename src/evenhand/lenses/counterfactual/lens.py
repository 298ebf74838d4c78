"""The counterfactual lens: what the group's words alone do to decisions.

Every row is decided twice, its text rewritten to one value of an attribute and to another, so
each gap is a mean over pairs and the population is all rows (METHODS: eq. 2 of P2).
"""

from typing import Any

import numpy as np

from evenhand.decisions.labels import ordered
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import DistantClusters
from evenhand.decisions.tallies.collect import Need
from evenhand.decisions.tallies.pairs import (
    MARK,
    flipped_rows,
    matching_attribute,
    pair_counts,
    pair_question,
)
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.counterfactual import lacks as lacks
from evenhand.lenses.counterfactual.clusters import as_decided, cluster_count, with_clusters
from evenhand.lenses.counterfactual.pairs import PairFamily, PairTable, pair_table
from evenhand.lenses.counterfactual.rows import flip_rows, gap_rows, rate_gaps, side_rows
from evenhand.lenses.measures import COUNTERFACTUAL_RATES, look_up
from evenhand.lenses.rows import LensResult, Options, Rows, exclusions
from evenhand.lenses.scope import HIDDEN_UNDER, UNTOLD_UNDER, Scope, rule_name
from evenhand.lenses.statistical.clusters import Clusters, GatheredClusters
from evenhand.lenses.statistical.compare import Noise, Pairing, comparison_rows
from evenhand.lenses.statistical.confusion import confusion, prepare
from evenhand.lenses.statistical.rates import group_rates
from evenhand.speech import agree

LENS = "counterfactual"
PREFIX = "counterfactual_"
# How the statistical and the counterfactual gap of one class lie to each other.
SIGNS = ("agree", "disagree", "surely disagree")
ENDS = {"": "value", "_low": "family_low", "_high": "family_high"}
Key = tuple[str, str, str, str]


def needs(roles: Roles) -> list[Need]:
    """The tables this lens measures from: pairs by each attribute alone, and sums of differences.

    Which attribute the pairs are of is seen when all rows are counted.
    """
    alone = [a for a in roles.attributes if len(a.columns) == 1]
    pairs = [Need(kind="pairs", attribute=a) for a in alone] or [Need(kind="pairs")]
    return [*pairs, Need(kind="pair_sums")]


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Counterfactual gaps, flip rates and score gaps, beside the statistical gaps."""
    evidence = _evidence(options)
    attribute = named = matching_attribute(decisions)
    tally = pair_counts(decisions, attribute)
    if attribute and not set(tally.labels["group"]) & set(decisions.roles.counterfactual):
        attribute = None
    values, notes = order_values(tally, decisions.roles, attribute, options)
    table = pair_table(tally, decisions.roles, values)
    excluded = left_out(table, decisions.roles)
    if not any(table.sums["n"][table.both(pair)].sum() for pair in table.pairs):
        raise DataError(
            "Nothing is left to measure: no row has a decision under both "
            f"'{values[0]}' and '{values[1]}'."
        )
    if "clustered" in tally.labels:
        distant = DistantClusters(decisions=decisions, question=pair_question(decisions, named))
        table = with_clusters(table, tally, decisions.roles, distant)
    name = attribute.name if attribute else str(options.settings.get("attribute", "counterfactual"))
    scope = Scope(
        lens=LENS,
        attribute=name,
        rule=rule_name(decisions.roles),
        level=options.level,
        seed=options.seed,
        classes=table.classes,
        groups=table.values,
        strata=table.strata,
        reference=values[0],
        mirrored=table.positive is not None,
        keep_small=options.keep_small,
    )
    family = PairFamily(table, scope)
    gaps = rate_gaps(table)
    rows = Rows.concatenate(
        [
            *gap_rows(scope, table, gaps, family),
            *flip_rows(scope, table, gaps["selection_rate"], family),
            *side_rows(scope, table, decisions),
        ]
    )
    notes += [*_table_notes(table, tally, decisions.roles), *_unmatched(decisions, attribute)]
    details: dict[str, Any] = {
        "classes": list(table.classes),
        "positive": table.positive,
        "values": list(values),
    }
    if table.cluster is not None:
        count, column = cluster_count(table), decisions.roles.cluster
        details["units"] = {name: {"unit": "clusters", "column": column, "count": count}}
    if attribute is not None and table.factual is not None:
        columns, remarks = quadrant(tally, table, attribute, decisions.roles, options, rows=rows)
        details["quadrant"] = columns
        notes += remarks
    if evidence:
        details["flipped"] = flipped_rows(decisions, most=evidence)
    return LensResult(
        lens=LENS,
        rows=rows,
        excluded=excluded,
        notes=tuple(notes),
        details=details,
        tallies=(tally.collapsed("cluster", "clustered"),),
    )


def order_values(
    tally: Tally, roles: Roles, attribute: Attribute | None, options: Options
) -> tuple[list[str], list[str]]:
    """The values with the reference first, and what is worth saying of the choice.

    The reference asked for, or the value with most rows, the first by name among equals and
    where no column says whose row it is.
    """
    values = ordered(roles.counterfactual)
    notes: list[str] = []
    asked = options.settings.get("counterfactual_reference")
    if asked is not None and str(asked) not in values:
        raise UsageError(
            f"counterfactual_reference={asked!r} has no decisions.{nearest(str(asked), values)} "
            f"There are decisions under {', '.join(values)}."
        )
    if asked is None and attribute is not None:
        asked = roles.reference.get(attribute.name)
        if asked is not None and asked not in values:
            notes.append(
                f"reference='{asked}' has no counterfactual decisions, so these gaps are taken "
                "against the value with most rows."
            )
            asked = None
    first = values[0] if asked is None else str(asked)
    if asked is None and attribute is not None:
        decided = tally.codes.get("decision", np.zeros(len(tally), dtype=np.int64)) >= 0
        own = tally.relabel("group", values).codes["group"]
        sizes = np.bincount(own[decided] + 1, tally.sums["n"][decided], minlength=len(values) + 1)
        first = values[int(np.argmax(sizes[1:]))]
    return [first, *(value for value in values if value != first)], notes


def left_out(table: PairTable, roles: Roles) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    n = table.sums["n"]
    reasons = {f"no {MARK}{v}": n[table.decided[i] < 0].sum() for i, v in enumerate(table.values)}
    if roles.truth:
        reasons["no truth"] = n[table.truth < 0].sum()
    if roles.stratum:
        reasons[f"no {roles.stratum}"] = n[table.stratum < 0].sum()
    if table.cluster is not None:
        reasons[f"no {roles.cluster}"] = n[table.cluster < 0].sum()
    remarks = {f"no {roles.stratum}": "kept outside strata", "no truth": "kept for selection rates"}
    return exclusions(reasons, roles, remarks=remarks)


def quadrant(
    tally: Tally,
    table: PairTable,
    attribute: Attribute,
    roles: Roles,
    options: Options,
    *,
    rows: Rows,
) -> tuple[dict[str, list[Any]], list[str]]:
    """Columns of a table with one line per measure, pair and class, and sentences on its signs.

    Intervals are the families': a class is picked out of many by its sign, so the claim has to
    hold for all of them at once. `signs` is None where either gap is 0, undefined or hidden.
    """
    statistical = _by_key(statistical_gaps(tally, table, attribute, roles, options))
    counterfactual = _by_key(row for row in rows if look_up(row["measure"]).kind == "gap")
    names = ("measure", "class", "group", "reference")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for side in ("statistical", "counterfactual"):
        found |= {f"{side}{end}": [] for end in ENDS}
    found["signs"] = []
    for key, theirs in statistical.items():
        ours = counterfactual.get((f"{PREFIX}{key[0]}", *key[1:]))
        if ours is None:
            continue
        for name, word in zip(names, key):
            found[name].append(word)
        for side, row in (("statistical", theirs), ("counterfactual", ours)):
            hidden = _cases(row) < HIDDEN_UNDER
            for end, column in ENDS.items():
                found[f"{side}{end}"].append(None if hidden else row[column])
        found["signs"].append(_signs(theirs, ours))
    return found, _sentences(found)


def statistical_gaps(
    tally: Tally, table: PairTable, attribute: Attribute, roles: Roles, options: Options
) -> Rows:
    """The statistical lens's own gaps for every pair of values that occur as groups."""
    counted = as_decided(tally, table, roles)
    cells = confusion(counted, roles)
    clusters: Clusters | GatheredClusters | None = None
    if table.gathered is not None:
        clusters = GatheredClusters(table=cells, products=table.gathered)
    elif "cluster" in counted.labels:
        clusters = Clusters(prepare(counted, roles)[0], cells)
    scope = Scope(
        lens="statistical",
        attribute=attribute.name,
        rule=rule_name(roles),
        level=options.level,
        seed=options.seed,
        classes=cells.classes,
        groups=cells.groups,
        strata=cells.strata,
        mirrored=cells.positive is not None,
        keep_small=options.keep_small,
    )
    noise = Noise(cells, scope)
    parts: list[Rows] = []
    for rate in COUNTERFACTUAL_RATES:
        if rate != "selection_rate" and not cells.has_truth:
            continue
        rates = group_rates(cells, rate, clusters=clusters)
        for i in sorted({reference for _, reference in table.pairs}):
            reference = table.values[i]
            wanted = {table.values[j] for j, against in table.pairs if against == i}
            if reference not in cells.groups or not wanted & set(cells.groups):
                continue
            place = cells.groups.index(reference)
            others = [g for g in range(len(cells.groups)) if g != place]
            pairing = Pairing(
                index=others,
                group=rates.take(others),
                reference=rates.take([place]),
                reference_name=reference,
            )
            gaps = comparison_rows(scope, rate, pairing, noise)[0].where(stratum=None)
            parts.append(gaps.take(np.isin(gaps["group"].astype(str), sorted(wanted))))
    return Rows.concatenate(parts)


def _table_notes(table: PairTable, tally: Tally, roles: Roles) -> list[str]:
    """Sentences on rows that disagree with themselves and classes that come and go."""
    notes: list[str] = []
    n = table.sums["n"]
    if table.factual is not None:
        own = np.take_along_axis(table.decided, np.maximum(table.own, 0)[None], axis=0)[0]
        known = (table.own >= 0) & (table.factual >= 0) & (own >= 0)
        differ, rows = n[known & (own != table.factual)].sum(), n[known].sum()
        if differ:
            notes.append(
                f"In {int(differ):,} of {int(rows):,} rows the decision differs from the "
                "counterfactual decision under the row's own value: either the text was changed "
                "although it had that value, or the decisions were made by different models. "
                "Counterfactual gaps use the counterfactual decisions."
            )
    if table.filled:
        notes.append(
            f"{table.filled:,} rows have no counterfactual decision under their own value; their "
            "decision as it was made stands for it."
        )
    if roles.rule in {"given", "argmax"}:
        factual = set(tally.labels["decision"])
        under = {name for v in table.values for name in tally.labels[f"{MARK}{v}"]}
        for names, where, other in (
            (under - factual, "counterfactual decisions", "decisions"),
            (factual - under, "decisions", "counterfactual decisions"),
        ):
            if names and factual:
                shown = ", ".join(f"'{name}'" for name in ordered(names)[:8])
                notes.append(
                    f"{shown} {agree(len(names), 'occurs', 'occur')} among the {where} and "
                    f"never among the {other}."
                )
    return notes


def _unmatched(decisions: Decisions, attribute: Attribute | None) -> list[str]:
    """Why the two kinds of gap cannot be set side by side, where they cannot."""
    roles = decisions.roles
    if not roles.group:
        return []
    if attribute is None:
        values = " or ".join(f"'{value}'" for value in ordered(roles.counterfactual))
        return [
            f"No group column holds {values}, the values that decisions were made under: "
            "counterfactual gaps stand alone, with no statistical gap beside them."
        ]
    if roles.rule in (None, "one-versus-rest"):
        return [
            "There is no single decision as it was made, so counterfactual gaps stand alone, "
            "with no statistical gap beside them."
        ]
    return []


def _evidence(options: Options) -> int:
    """How many flipped rows to show; none unless asked."""
    asked = options.settings.get("evidence", 0)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 0:
        raise UsageError(
            f"evidence={asked!r} is not a number of rows. "
            "Say how many flipped pairs to show, such as 20."
        )
    return asked


def _by_key(rows: Any) -> dict[Key, dict[str, Any]]:
    return {
        (row["measure"], row["class"], row["group"], row["reference"]): row
        for row in rows
        if row["stratum"] is None
    }


def _signs(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    if not theirs["value"] or not ours["value"]:
        return None
    if min(_cases(theirs), _cases(ours)) < HIDDEN_UNDER:
        return None
    if (theirs["value"] > 0) == (ours["value"] > 0):
        return SIGNS[0]
    sure = all(_leaves_out_zero(row) for row in (theirs, ours))
    return SIGNS[2] if sure else SIGNS[1]


def _leaves_out_zero(row: dict[str, Any]) -> bool:
    low, high = row["family_low"], row["family_high"]
    if low is None or high is None or _cases(row) < UNTOLD_UNDER:
        return False
    return bool(low > 0 or high < 0)


def _cases(row: dict[str, Any]) -> float:
    """The smaller denominator of a gap."""
    return float(min(n for n in (row["n"], row["n_reference"]) if n is not None))


def _sentences(found: dict[str, list[Any]]) -> list[str]:
    """Which classes lie in the opposite quadrants, surely or by their values alone."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    columns = (found[k] for k in ("measure", "group", "reference", "signs", "class"))
    for measure, group, reference, signs, name in zip(*columns):
        if signs in SIGNS[1:]:
            groups.setdefault((measure, group, reference, signs), []).append(name)
    notes = []
    for (measure, group, reference, signs), names in groups.items():
        shown = ", ".join(f"'{name}'" for name in names[:12])
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        sure = (
            "and both intervals leave out 0"
            if signs == SIGNS[2]
            else "but the intervals do not settle it"
        )
        rate = measure.removesuffix("_gap").replace("_", " ")
        notes.append(
            f"Gap in {rate}, {group} against {reference}: the statistical and the counterfactual "
            f"gap have opposite signs for {shown}{more}, {sure}."
        )
    return notes
