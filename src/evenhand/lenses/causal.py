"""The causal lens: what the group's words alone do to decisions.

Every row is decided twice, its text rewritten to one value of an attribute and to another, so
each gap is a mean over pairs and the population is all rows (METHODS: eq. 2 of P2).
"""

from typing import Any

import numpy as np

from evenhand.decisions.labels import ordered
from evenhand.decisions.pair_tallies import (
    MARK,
    flipped_rows,
    matching_attribute,
    pair_counts,
)
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.lens import LensResult, Options, found_missing
from evenhand.lenses.pair_rows import LENS, PairRows
from evenhand.lenses.pairs import PairTable, pair_table
from evenhand.lenses.quadrant import quadrant
from evenhand.lenses.rows import Rows


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    found = decisions.roles.counterfactual
    if not found:
        return "a decision under each value of an attribute (columns 'decision@<value>')"
    if len(found) == 1:
        only = next(iter(found))
        return f"a decision under a second value: it has one under '{only}' alone"
    return None


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Counterfactual gaps, flip rates and score gaps, beside the statistical gaps."""
    decisions.survey  # noqa: B018 — refuses unusable scores and weights before anything is counted
    evidence = _evidence(options)
    attribute = matching_attribute(decisions)
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
    name = attribute.name if attribute else str(options.settings.get("attribute", "counterfactual"))
    page = PairRows(table, name, decisions.roles, options)
    rows = Rows.concatenate([*page.gap_rows(), *page.flip_rows(), *page.side_rows(decisions)])
    notes += [*_told(table, tally, decisions.roles), *_unmatched(decisions, attribute)]
    details: dict[str, Any] = {
        "classes": list(table.classes),
        "positive": table.positive,
        "values": list(values),
    }
    if attribute is not None and table.factual is not None:
        found, told = quadrant(tally, table, attribute, decisions.roles, options, rows=rows)
        details["quadrant"] = found
        notes += told
    if evidence:
        details["flipped"] = flipped_rows(decisions, most=evidence)
    return LensResult(
        lens=LENS,
        rows=rows,
        excluded=excluded,
        notes=tuple(notes),
        details=details,
        tallies=(tally,),
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
        reasons["no truth (kept for selection rates)"] = n[table.truth < 0].sum()
    if roles.stratum:
        reasons[f"no {roles.stratum} (kept outside strata)"] = n[table.stratum < 0].sum()
    if table.cluster is not None:
        reasons[f"no {roles.cluster}"] = n[table.cluster < 0].sum()
    return found_missing(reasons, roles)


def _told(table: PairTable, tally: Tally, roles: Roles) -> list[str]:
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
                listed = ", ".join(f"'{name}'" for name in ordered(names)[:8])
                notes.append(
                    f"{listed} {'occur' if len(names) > 1 else 'occurs'} among the {where} and "
                    f"never among the {other}."
                )
    return notes


def _unmatched(decisions: Decisions, attribute: Attribute | None) -> list[str]:
    """Why the two kinds of gap cannot be set side by side, where they cannot."""
    roles = decisions.roles
    if not roles.group:
        return []
    if attribute is None:
        listed = " or ".join(f"'{value}'" for value in ordered(roles.counterfactual))
        return [
            f"No group column holds {listed}, the values that decisions were made under: "
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
