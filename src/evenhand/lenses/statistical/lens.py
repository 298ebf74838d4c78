"""The statistical lens: rates by group and class, and how far groups lie apart."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from evenhand.decisions.counts import count_attributes
from evenhand.decisions.labels import MISSING, OVERALL, REST
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.collect import Need, group_needs
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.measures import CATALOGUE, counted_rates
from evenhand.lenses.rows import KNOWN_SHARES, LensResult, Options, Rows, exclusions
from evenhand.lenses.scope import Scope, choose_reference, rule_name
from evenhand.lenses.statistical import lacks as lacks
from evenhand.lenses.statistical.compare import (
    Noise,
    Pairing,
    comparison_rows,
    rate_rows,
)
from evenhand.lenses.statistical.confusion import Confusion, confusion, find_classes, prepare
from evenhand.lenses.statistical.rates import SHARE, GroupRates, group_rates, rest_rates
from evenhand.lenses.statistical.reviewed import reviewed, withhold
from evenhand.lenses.statistical.summaries import (
    Worst,
    equalised_odds_rows,
    impact_ratio_rows,
    rms_rows,
    spread_rows,
    stratified_rows,
    worst,
    worst_rows,
)
from evenhand.speech import plural
from evenhand.stats.estimate import FloatArray

if TYPE_CHECKING:
    from evenhand.decisions.tallies.scores import ScoreTallies
    from evenhand.lenses.statistical.clusters import Clusters, GatheredClusters

LENS = "statistical"
ODDS = ("true_positive_rate", "false_positive_rate")
# From this many groups of one case each, a group column is probably an id.
FEW_GROUPS = 10


def needs(roles: Roles) -> list[Need]:
    """The tables this lens measures from: counts and, with a truth, every score."""
    return group_needs("counts", roles) + group_needs("scores", roles, score_columns(roles))


def score_columns(roles: Roles) -> list[str]:
    """The score columns that are held against a truth."""
    if roles.truth is None:
        return []
    return [roles.score] if roles.score else list(roles.scores.values())


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Every rate, gap, ratio and summary of every attribute."""
    parts: list[Rows] = []
    notes: list[str] = []
    details: dict[str, object] = {}
    units: dict[str, object] = {}
    unequal: list[dict[str, object]] = []
    excluded: dict[str, int] = {}
    scores = _held_scores(decisions)
    ruled = decisions.roles.rule is not None
    clustered = ruled and decisions.roles.together is not None
    attributes = decisions.roles.attributes
    tallies = count_attributes(decisions, attributes, cluster=clustered)
    for attribute, tally in zip(attributes, tallies, strict=True):
        check_thresholds(tally, attribute, decisions.roles)
        excluded |= left_out(tally, attribute, decisions.roles)
        found: list[Rows] = []
        if ruled:
            classes, positive = find_classes(tally, decisions.roles)
            details |= {"classes": list(classes), "positive": positive}
            gathered = gather_clusters(decisions, tally, attribute, options)
            if gathered is not None and scores is not None:
                scores.apart.add(attribute.name)
            if decisions.roles.together is not None:
                units[attribute.name] = independent_units(tally, decisions.roles, gathered)
            rows, remarks = measure_tally(
                tally, attribute, decisions.roles, options, gathered=gathered
            )
            found += rows
            notes += remarks
        if scores is not None:
            found += _scored(scores, attribute, tally, options)
        marked, why = withhold(found, reviewed(tally, attribute, decisions.roles))
        parts += marked
        unequal += why
    if units:
        details["units"] = units
    if unequal:
        details[KNOWN_SHARES] = unequal
    return LensResult(
        lens=LENS,
        rows=Rows.gather(parts),
        excluded=excluded,
        notes=tuple(notes),
        details=details,
        tallies=tuple(tally.collapsed("cluster", "clustered") for tally in tallies),
    )


def _held_scores(decisions: Decisions) -> "ScoreTallies | None":
    """What is counted of scores; without any, all that measures them is not even imported."""
    columns = score_columns(decisions.roles)
    if not columns:
        return None
    from evenhand.decisions.tallies.scores import ScoreTallies

    return ScoreTallies(decisions, columns)


def _scored(
    scores: "ScoreTallies", attribute: Attribute, tally: Tally, options: Options
) -> list[Rows]:
    """Areas and calibration of one attribute."""
    from evenhand.lenses.statistical.scores import score_rows

    classes = scored_classes(scores.decisions, tally)
    return score_rows(scores, attribute, options, classes=classes)


def gather_clusters(
    decisions: Decisions, tally: Tally, attribute: Attribute, options: Options
) -> "GatheredClusters | None":
    """Products over clusters from the engine, where the clusters themselves stay there."""
    if "clustered" not in tally.codes:
        return None
    from evenhand.decisions.tallies.by_cluster import DistantClusters
    from evenhand.lenses.statistical.clusters import GatheredClusters, PartProducts

    table = confusion(tally, decisions.roles)
    scope = attribute_scope(table, attribute, decisions.roles, options)
    part = PartProducts(
        table=table, roles=decisions.roles, labels=tally.labels, reference=scope.place
    )
    rows = decisions._on_engine
    question = rows.count_question(attribute, cluster=True)
    distant = DistantClusters(decisions=rows, question=question)
    return GatheredClusters(table=table, products=distant.add_up(part))


def _own_clusters(tally: Tally, roles: Roles, table: Confusion) -> "Clusters":
    """The clusters of a tally that is by cluster itself."""
    from evenhand.lenses.statistical.clusters import Clusters

    return Clusters(prepare(tally, roles)[0], table)


def independent_units(
    tally: Tally, roles: Roles, gathered: "GatheredClusters | None"
) -> dict[str, object]:
    """How many clusters the rows of an attribute come from, and what they are."""
    if gathered is None:
        codes = tally.codes
        used = codes["cluster"][(codes["cluster"] >= 0) & (codes["group"] >= 0)]
        count = int(np.count_nonzero(np.bincount(used, minlength=1)))
    else:
        count = gathered.units
    return {
        "unit": "clusters" if roles.cluster else "labelers",
        "column": roles.together,
        "count": count,
    }


def scored_classes(decisions: Decisions, tally: Tally) -> dict[str, str]:
    """Which column holds the score of which class; none without a truth to hold it against."""
    roles = decisions.roles
    if roles.truth is None:
        return {}
    if roles.score is None:
        return dict(roles.scores)
    _, positive = find_classes(tally, roles)
    return {} if positive is None else {positive: roles.score}


def measure_tally(
    tally: Tally,
    attribute: Attribute,
    roles: Roles,
    options: Options,
    *,
    gathered: "GatheredClusters | None" = None,
) -> tuple[list[Rows], list[str]]:
    """The rows of one attribute from its tally, and what is worth saying of them.

    `gathered` is what is known of clusters where the tally is not by cluster itself.
    """
    table = confusion(tally, roles)
    clusters: Clusters | GatheredClusters | None = gathered
    if "cluster" in tally.labels:
        clusters = _own_clusters(tally, roles, table)
    if table.sums["n"].sum() == 0:
        raise DataError(
            f"Nothing is left to measure for group={attribute.name!r}: no row has both a group "
            "and a decision."
        )
    scope = attribute_scope(table, attribute, roles, options)
    noise = Noise(table, scope)
    parts: list[Rows] = []
    notes: list[str] = _unseen(table, attribute)
    pairs: dict[str, Worst] = {}
    odds: dict[str, Worst] = {}
    cases: dict[str, FloatArray] = {}
    for rate in counted_rates(truth=table.has_truth):
        rates = group_rates(table, rate, clusters=clusters)
        parts.append(rate_rows(scope, rate, rates))
        if len(table.groups) < 2:
            continue
        for pairing in pairings(scope, table, rate, rates):
            parts += comparison_rows(scope, rate, pairing, noise)
            if rates.scale is not SHARE:
                continue  # sizes over classes, groups and strata are those of shares
            if len(table.classes) > 2 and pairing.reference_name != REST:
                parts.append(rms_rows(scope, rate, pairing, table=table, rates=rates))
            if len(table.strata) > 1 and pairing.reference_name not in (REST, OVERALL):
                rows, remarks = stratified_rows(scope, rate, pairing, rates=rates)
                parts += rows
                notes += remarks
        if rates.scale is not SHARE:
            continue
        shared = rates.shared_variance()
        certainty = rates.pair_certainty(shared)
        mirror = pairs.get(CATALOGUE[rate].mirror or "")
        pairs[rate] = mirror.mirrored() if mirror else worst(scope, rates, certainty=certainty)
        if rate in ODDS:
            odds[rate] = worst(scope, rates, certainty=certainty, rates_at_once=len(ODDS))
            cases[rate] = rates.cases
        parts.append(worst_rows(scope, rate, rates, pairs[rate]))
        if rate == "selection_rate":
            parts.append(impact_ratio_rows(scope, rates, certainty=certainty))
        if len(table.groups) > 2:
            parts.append(spread_rows(scope, rate, rates, shared=shared))
    if odds:
        parts.append(equalised_odds_rows(scope, odds, cases))
    return parts, notes


def attribute_scope(
    table: Confusion, attribute: Attribute, roles: Roles, options: Options
) -> Scope:
    """What the rows of one attribute share."""
    sizes = table.sums["n"][0, :, 0].sum(axis=(-2, -1))
    return Scope(
        lens=LENS,
        attribute=attribute.name,
        rule=rule_name(roles),
        level=options.level,
        seed=options.seed,
        classes=table.classes,
        groups=table.groups,
        strata=table.strata,
        reference=choose_reference(table.groups, sizes, roles.reference.get(attribute.name)),
        mirrored=table.positive is not None,
    )


def pairings(scope: Scope, table: Confusion, rate: str, rates: GroupRates) -> Iterable[Pairing]:
    """The comparisons asked for: with the reference and, beyond two groups, with the rest."""
    everybody = list(range(len(table.groups)))
    rest = None
    place = scope.place
    if place is None or len(everybody) > 2:
        rest = rest_rates(table, rate, of=rates)
    if place is not None:
        others = [i for i in everybody if i != place]
        yield Pairing(
            index=others,
            group=rates.take(others),
            reference=rates.take([place]),
            reference_name=scope.groups[place],
            certainty=_of_groups(rates.certainty(place), others),
        )
    # Everybody's share is a mean of the group's and the rest's; everybody's odds are none.
    if rest is not None and scope.reference == OVERALL and rates.scale is SHARE:
        yield Pairing(
            index=everybody,
            group=rates,
            reference=rest,
            reference_name=OVERALL,
            whole=True,
            certainty=rest.certainty_of(rates),
        )
    elif rest is not None:
        yield Pairing(
            index=everybody,
            group=rates,
            reference=rest,
            reference_name=REST,
            certainty=rest.certainty_of(rates),
        )


def check_thresholds(tally: Tally, attribute: Attribute, roles: Roles) -> None:
    """Refuse thresholds by group that name a group that is not there, or leave one out."""
    if not isinstance(roles.threshold, Mapping) or attribute.columns != roles.group[:1]:
        return
    groups = [name for name in tally.labels["group"] if name != MISSING]
    for name in roles.threshold:
        if name not in groups:
            raise UsageError(
                f"threshold for {name!r}, which is not a value of group={attribute.name!r}."
                f"{nearest(name, groups)} It has {', '.join(groups[:8])}."
            )
    for name in groups:
        if name not in roles.threshold:
            raise UsageError(
                f"There is a threshold for {', '.join(roles.threshold)} and none for {name!r}. "
                f"Give every value of group={attribute.name!r} one."
            )


def left_out(tally: Tally, attribute: Attribute, roles: Roles) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    n, codes = tally.sums["n"], tally.codes
    reasons = {f"no {attribute.name}": n[codes["group"] < 0].sum()}
    if "decision" in codes:
        reasons["no decision"] = n[codes["decision"] < 0].sum()
    if "truth" in codes:
        reasons["no truth"] = n[codes["truth"] < 0].sum()
    if "stratum" in codes:
        reasons[f"no {roles.stratum}"] = n[codes["stratum"] < 0].sum()
    for key in ("cluster", "clustered"):
        if key in codes:
            reasons[f"no {roles.together}"] = n[codes[key] < 0].sum()
    if "weighed" in codes:
        reasons[f"no {roles.weight}"] = n[codes["weighed"] < 0].sum()
    if "scored" in codes:
        reasons["no decision"] = n[codes["scored"] < 0].sum()
    remarks = {f"no {roles.stratum}": "kept outside strata", "no truth": "kept for selection rates"}
    return exclusions(reasons, roles, remarks=remarks)


def _of_groups(factor: FloatArray | float, groups: list[int]) -> FloatArray | float:
    return factor if isinstance(factor, float) else factor[:, groups]


def _unseen(table: Confusion, attribute: Attribute) -> list[str]:
    notes = []
    sizes = table.sums["n"][0, :, 0].sum(axis=(-2, -1))
    if len(table.groups) == 1:
        notes.append(
            f"group='{attribute.name}' has one value, '{table.groups[0]}': there is nothing to "
            "compare it with."
        )
    elif len(table.groups) >= FEW_GROUPS and sizes.max() <= 1:
        notes.append(
            f"group='{attribute.name}' has {len(table.groups):,} values of one case each. It looks "
            "like an id column: name the column that says which group a person belongs to."
        )
    if not table.has_truth:
        return notes
    cells = table.sums["n"][0].sum(axis=0)
    positives = cells[:, 1].sum(axis=-1)
    decided = cells[:, :, 1].sum(axis=-1)
    for i, name in enumerate(table.classes):
        if positives[i] == 0 and decided[i] > 0:
            notes.append(
                f"Class '{name}' was decided {plural(decided[i], 'time')} and never occurs in the "
                "truth: its true positive rate is undefined."
            )
    if (positives > 0).sum() == 1:
        only = table.classes[int(np.argmax(positives))]
        notes.append(
            f"The truth has one class, '{only}': rates that need another class are undefined."
        )
    return notes
