"""The statistical lens: rates by group and class, and how far groups lie apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenhand.decisions.labels import MISSING, OVERALL, REST
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.shared_items import shared_items
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.collect import Need, group_needs
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.measures import CATALOGUE, counted_rates
from evenhand.lenses.rows import KNOWN_SHARES, LensResult, Options, Rows, exclusions
from evenhand.lenses.scope import Scope
from evenhand.lenses.statistical import lacks as lacks
from evenhand.lenses.statistical.compare import (
    Noise,
    Pairing,
    comparison_rows,
    rate_rows,
)
from evenhand.lenses.statistical.confusion import Confusion, confusion, find_classes
from evenhand.lenses.statistical.rates import SHARE, GroupRates, group_rates, rest_rates
from evenhand.lenses.statistical.reviewed import reviewed, withhold
from evenhand.lenses.statistical.shared_items import (
    ONLY_ROWS,
    alike,
    each_wider,
    unit_note,
    without_intervals,
)
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
from evenhand.lenses.statistical.units import (
    LENS,
    UnitCounts,
    Units,
    attribute_scope,
    count_units,
    kinds_of_unit,
    score_columns,
    unit_details,
)
from evenhand.speech import plural
from evenhand.stats.estimate import FloatArray

if TYPE_CHECKING:
    from evenhand.lenses.statistical.clusters import GatheredClusters

ODDS = ("true_positive_rate", "false_positive_rate")
# From this many groups of one case each, a group column is probably an id.
FEW_GROUPS = 10


def needs(roles: Roles) -> list[Need]:
    """The tables this lens measures from: counts and, with a truth, every score."""
    return group_needs("counts", roles) + group_needs("scores", roles, score_columns(roles))


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Every rate, gap, ratio and summary of every attribute.

    Where an item has more than one label, every row is made with labelers or clusters for its
    units and with items, and is the wider of the two.
    """
    parts: list[Rows] = []
    notes: list[str] = []
    details: dict[str, object] = {}
    counted: dict[str, object] = {}
    unequal: list[dict[str, object]] = []
    excluded: dict[str, int] = {}
    shared = shared_items(decisions)
    kinds = kinds_of_unit(decisions, shared)
    roles = kinds[0].decisions.roles
    tallies = kinds[0].tallies
    if shared is not None and shared.unnamed:
        tallies = count_units(decisions)
        excluded |= exclusions({f"no {decisions.roles.item}": shared.unnamed}, decisions.roles)
    for place, attribute in enumerate(roles.attributes):
        tally = kinds[0].tallies[place]
        check_thresholds(tally, attribute, roles)
        excluded |= left_out(tallies[place], attribute, roles)
        of_attribute: list[Rows] = []
        if roles.rule is not None:
            classes, positive = find_classes(tally, roles)
            details |= {"classes": list(classes), "positive": positive}
            units = [kind.units(place, options, like=tally) for kind in kinds]
            if roles.together is not None:
                counted[attribute.name] = unit_details(units, decisions.roles)
            rows, remarks = measure_tally(
                tally,
                attribute,
                roles,
                options,
                gathered=units[0].gathered,
                fewest=units[0].fewest,
                others=units[1:],
            )
            of_attribute += rows
            notes += remarks
        if kinds[0].scores is not None:
            of_attribute += _scored(kinds, attribute, tally, options)
        marked, why = withhold(of_attribute, reviewed(tally, attribute, roles))
        parts += marked
        unequal += why
    if counted:
        details["units"] = counted
    if unequal:
        details[KNOWN_SHARES] = unequal
    found = Rows.gather(parts)
    if shared is not None:
        notes.append(unit_note(shared, decisions.roles))
        found = found if shared.by_item else without_intervals(found, ONLY_ROWS)
    return LensResult(
        lens=LENS,
        rows=found,
        excluded=excluded,
        notes=tuple(notes),
        details=details,
        tallies=tuple(tally.collapsed("cluster", "clustered") for tally in tallies),
    )


def _scored(
    kinds: list[UnitCounts], attribute: Attribute, tally: Tally, options: Options
) -> list[Rows]:
    """Areas and calibration of one attribute, the wider of both where units are of two kinds."""
    from evenhand.lenses.statistical.scores import score_rows

    # A set counts scores by one kind of unit alone.
    stored = len(kinds) > 1 and kinds[0].decisions.tallies is not None
    blocks = []
    for kind in kinds[:1] if stored else kinds:
        assert kind.scores is not None
        classes = scored_classes(kind.decisions, tally)
        found = score_rows(kind.scores, attribute, options, classes=classes, fewest=kind.fewest)
        blocks.append([without_intervals(rows, ONLY_ROWS) for rows in found] if stored else found)
    return each_wider(blocks)


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
    fewest: int = 0,
    others: Sequence[Units] = (),
) -> tuple[list[Rows], list[str]]:
    """The rows of one attribute from its tally, and what is worth saying of them.

    `gathered` is what is known of clusters where the tally is not by cluster itself; where they
    are items, numbers that rest on fewer than `fewest` have no interval. Where the same rows come
    in `others` too, each row is the wider one.
    """
    units = [Units(tally=tally, gathered=gathered, fewest=fewest), *others]
    table = confusion(tally, roles)
    if table.sums["n"].sum() == 0:
        raise DataError(
            f"Nothing is left to measure for group={attribute.name!r}: no row has both a group "
            "and a decision."
        )
    clusters = [each.clusters(roles, table) for each in units]
    scope = attribute_scope(table, attribute, roles, options)
    measured = [RateRows(scope=scope, table=table, noise=Noise(table, scope)) for _ in units]
    parts: list[Rows] = []
    notes: list[str] = _unseen(table, attribute)
    for rate in counted_rates(truth=table.has_truth):
        rates = [
            group_rates(table, rate, clusters=known, fewest=each.fewest)
            for known, each in zip(clusters, units, strict=True)
        ]
        found = [rows.of(rate, each) for rows, each in zip(measured, alike(rates), strict=True)]
        parts += each_wider([rows for rows, _ in found])
        # What one kind of unit alone shows is not shown.
        notes += [note for note in found[0][1] if all(note in others for _, others in found)]
    parts += each_wider([rows.of_odds() for rows in measured])
    return parts, notes


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRows:
    """The rows of an attribute, rate by rate, with units of one kind.

    What several rates share is found once: `noise`, and the worst `pairs` by rate. `odds` are
    those of the rates of equalised odds, with their `cases`.
    """

    scope: Scope
    table: Confusion
    noise: Noise
    pairs: dict[str, Worst] = field(default_factory=dict)
    odds: dict[str, Worst] = field(default_factory=dict)
    cases: dict[str, FloatArray] = field(default_factory=dict)

    def of(self, rate: str, rates: GroupRates) -> tuple[list[Rows], list[str]]:
        """The rows of one rate, and what is worth saying of them."""
        scope, table = self.scope, self.table
        parts = [rate_rows(scope, rate, rates)]
        notes: list[str] = []
        if len(table.groups) < 2:
            return parts, notes
        for pairing in pairings(scope, table, rate, rates):
            parts += comparison_rows(scope, rate, pairing, self.noise)
            if rates.scale is not SHARE:
                continue  # sizes over classes, groups and strata are those of shares
            if len(table.classes) > 2 and pairing.reference_name != REST:
                parts.append(rms_rows(scope, rate, pairing, table=table, rates=rates))
            if len(table.strata) > 1 and pairing.reference_name not in (REST, OVERALL):
                rows, remarks = stratified_rows(scope, rate, pairing, rates=rates)
                parts += rows
                notes += remarks
        if rates.scale is SHARE:
            parts += self._over_groups(rate, rates)
        return parts, notes

    def _over_groups(self, rate: str, rates: GroupRates) -> list[Rows]:
        """One number over all groups: the worst pair, the four-fifths table and the spread."""
        scope = self.scope
        shown = rates.hiding(scope.hides(rates.cases))
        shared = rates.shared_variance()
        certainty = rates.pair_certainty(shared)
        mirror = self.pairs.get(CATALOGUE[rate].mirror or "")
        pair = mirror.mirrored() if mirror else worst(scope, shown, certainty=certainty)
        self.pairs[rate] = pair
        if rate in ODDS:
            self.odds[rate] = worst(scope, shown, certainty=certainty, rates_at_once=len(ODDS))
            self.cases[rate] = rates.cases
        parts = [worst_rows(scope, rate, shown, pair)]
        if rate == "selection_rate":
            parts.append(impact_ratio_rows(scope, rates, certainty=certainty))
        if len(self.table.groups) > 2:
            parts.append(spread_rows(scope, rate, shown, shared=shared))
        return parts

    def of_odds(self) -> list[Rows]:
        """The rows of equalised odds, once both of its rates are measured."""
        return [equalised_odds_rows(self.scope, self.odds, self.cases)] if self.odds else []


def pairings(scope: Scope, table: Confusion, rate: str, rates: GroupRates) -> Iterable[Pairing]:
    """The comparisons asked for: with the reference and, beyond two groups, with the rest."""
    everybody = list(range(len(table.groups)))
    hidden = np.where(scope.hides(rates.cases), rates.cases, 0.0)
    # Everybody else's rate less that of the groups that are shown is the rate of those hidden.
    all_hidden = hidden.sum(axis=1, keepdims=True)
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
            telling=scope.hides(all_hidden + 0 * hidden),
        )
    elif rest is not None:
        yield Pairing(
            index=everybody,
            group=rates,
            reference=rest,
            reference_name=REST,
            certainty=rest.certainty_of(rates),
            telling=scope.hides(all_hidden - hidden),
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
