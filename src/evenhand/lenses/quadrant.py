"""Statistical gaps beside counterfactual gaps, class by class, and where their signs disagree."""

from typing import Any

import numpy as np

from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.tally import Tally
from evenhand.lenses.compare_groups import Noise, Pairing, Setting, comparison_rows
from evenhand.lenses.confusion import confusion, prepare
from evenhand.lenses.group_rates import group_rates
from evenhand.lenses.lens import Options
from evenhand.lenses.pairs import PairTable
from evenhand.lenses.rows import Rows
from evenhand.lenses.statistical import rule_name

MARK = "counterfactual_"
SIGNS = ("agree", "disagree", "surely disagree")
# The same floors as everywhere: under 10 cases nothing is shown, under 50 nothing is sure.
HIDDEN_UNDER, UNTOLD_UNDER = 10, 50
ENDS = {"": "value", "_low": "family_low", "_high": "family_high"}
Key = tuple[str, str, str, str]


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
    counterfactual = _by_key(
        row for row in rows if row["measure"].startswith(MARK) and row["measure"].endswith("_gap")
    )
    names = ("measure", "class", "group", "reference")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for side in ("statistical", "counterfactual"):
        found |= {f"{side}{end}": [] for end in ENDS}
    found["signs"] = []
    for key, theirs in statistical.items():
        ours = counterfactual.get((f"{MARK}{key[0]}", *key[1:]))
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
    counted = _as_decided(tally, table, roles)
    cells = confusion(counted, roles)
    clusters = prepare(counted, roles)[0] if "cluster" in counted.labels else None
    setting = Setting(
        attribute=attribute.name,
        classes=cells.classes,
        groups=cells.groups,
        strata=cells.strata,
        rule=rule_name(roles),
        level=options.level,
        seed=options.seed,
    )
    noise = Noise(cells, setting)
    parts: list[Rows] = []
    for rate in ("selection_rate", "true_positive_rate", "false_positive_rate"):
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
            gaps = comparison_rows(setting, rate, pairing, noise)[0].where(stratum=None)
            parts.append(gaps.take(np.isin(gaps["group"].astype(str), sorted(wanted))))
    return Rows.concatenate(parts)


def _as_decided(tally: Tally, table: PairTable, roles: Roles) -> Tally:
    """The tally without the counterfactual keys, its decisions named by the same classes."""
    keys = [k for k in ("group", "stratum", "truth", "decision", "cluster") if k in tally.labels]
    kept = Tally(
        labels={k: tally.labels[k] for k in keys},
        codes={k: tally.codes[k] for k in keys},
        sums=tally.sums,
    )
    return kept if roles.rule == "score>=t" else kept.relabel("decision", table.labels)


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
        listed = ", ".join(f"'{name}'" for name in names[:12])
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        sure = (
            "and both intervals leave out 0"
            if signs == SIGNS[2]
            else "but the intervals do not settle it"
        )
        rate = measure.removesuffix("_gap").replace("_", " ")
        notes.append(
            f"Gap in {rate}, {group} against {reference}: the statistical and the counterfactual "
            f"gap have opposite signs for {listed}{more}, {sure}."
        )
    return notes
