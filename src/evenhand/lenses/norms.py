"""The norms lens: within a group, does looking typical of a group go with higher scores?

Group metrics can all agree while, among women, those who write as most women do are scored higher
in the classes where women are many and lower where they are few (Cheng et al. 2023).
"""

from typing import Any

import numpy as np

from evenhand.decisions.labels import ordered
from evenhand.decisions.norm_tallies import OWN_SCORE, norm_counts
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.lens import LensResult, Options, found_missing
from evenhand.lenses.norm_cells import Cells, Places, cells_of
from evenhand.lenses.norm_rows import LENS, Page
from evenhand.lenses.rows import Rows
from evenhand.stats.estimate import Estimate
from evenhand.stats.ranks import smallest_detectable, smallest_significant
from evenhand.stats.trend import compare_trends

MOST_CLASSES = 1_000
# Under this many rows in its largest class, a group gets a sentence on what it could have shown.
SMALL_GROUP, FEW_ROWS = 100, 30


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    roles = decisions.roles
    if not roles.norm and not roles.norm_irrelevant:
        return "norm columns 'norm@<group>' (evenhand norms score adds them)"
    if not roles.group:
        return "a group column"
    if not roles.truth:
        return "a truth column"
    if not roles.scores and not roles.score and OWN_SCORE not in decisions.columns:
        return "a score of each row's class: columns 'score:<class>' or 'score:truth', or a score"
    return None


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Shares, correlations with every norm, and their trend over classes, by attribute.

    The setting `not_class=False` leaves out the correlations among rows of another truth, which
    need one pass over the table for every class; `bootstrap=False` the bootstrap of the trends.
    """
    decisions.survey  # noqa: B018 — refuses unusable scores before anything is counted
    roles = decisions.roles
    elsewhere = _flag(options, "not_class")
    parts: list[Rows] = []
    notes: list[str] = []
    trends: list[dict[str, Any]] = []
    tallies: list[Tally] = []
    excluded: dict[str, int] = {}
    for attribute in roles.attributes:
        columns = [*roles.norm.values(), *roles.norm_irrelevant.values()]
        counted = norm_counts(decisions, attribute, norms=columns)
        counts = counted.tally
        tallies.append(counts)
        excluded |= left_out(counts, attribute, roles)
        page = make_page(counts, attribute, roles, options)
        positive = positive_class(decisions, counts)
        parts.append(page.share_rows())
        notes += notes_on(page, decisions, positive)
        for end, norms in (("", roles.norm), ("_irrelevant", roles.norm_irrelevant)):
            if not norms:
                continue
            for cells in cells_of(
                decisions,
                attribute,
                page.places,
                norms=norms,
                positive=positive,
                # A scorer without a class's words says nothing of the rows of other classes.
                elsewhere=elsewhere and not end,
                counted=counted,
            ):
                parts.append(page.correlation_rows(cells, end=end))
                if cells.classes != page.places.classes:
                    continue
                rows, details = page.trend_rows(cells, end=end)
                parts += rows
                trends += details
                if not end:
                    notes += small_groups(page, cells, options.level)
    return LensResult(
        lens=LENS,
        rows=Rows.concatenate(parts),
        excluded=excluded,
        notes=tuple(notes),
        details={"trends": trends},
        tallies=tuple(tallies),
    )


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


def make_page(counts: Tally, attribute: Attribute, roles: Roles, options: Options) -> Page:
    """The axes of one attribute and its counts (stratum, group, class), everybody first."""
    classes = ordered({*counts.labels["truth"], *roles.scores})
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"truth={roles.truth!r} has {len(classes):,} values. The norms lens needs classes, at "
            f"most {MOST_CLASSES:,}: name the column that holds them."
        )
    counts = counts.relabel("truth", classes)
    everybody = counts.dense(["group", "truth"], "n")
    if everybody.sum() == 0:
        raise DataError(
            f"Nothing is left to measure for group={attribute.name!r}: no row has both a group "
            "and a truth."
        )
    strata = counts.labels.get("stratum", ())
    table = everybody[None]
    if strata:
        table = np.concatenate([table, counts.dense(["stratum", "group", "truth"], "n")])
    places = Places(strata=(None, *strata), groups=counts.labels["group"], classes=tuple(classes))
    return Page(
        attribute=attribute.name,
        places=places,
        counts=table,
        level=options.level,
        seed=options.seed,
        bootstrap=_flag(options, "bootstrap"),
    )


def positive_class(decisions: Decisions, counts: Tally) -> str | None:
    """The class that a single score belongs to; None where it cannot be known."""
    roles = decisions.roles
    if roles.score is None:
        return None
    if roles.positive is not None:
        return roles.positive
    return "1" if set(counts.labels["truth"]) <= {"0", "1"} else None


def left_out(counts: Tally, attribute: Attribute, roles: Roles) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    n = counts.sums["n"]
    reasons = {
        f"no {attribute.name}": n[counts.codes["group"] < 0].sum(),
        "no truth (left out of norms)": n[counts.codes["truth"] < 0].sum(),
        "no score (left out of norms)": counts.sums.get("lacks:score", np.zeros(1)).sum(),
    }
    for column in (*roles.norm.values(), *roles.norm_irrelevant.values()):
        reasons[f"no {column}"] = counts.sums[f"lacks:{column}"].sum()
    return found_missing(reasons, roles)


def notes_on(page: Page, decisions: Decisions, positive: str | None) -> list[str]:
    """Sentences on what the table leaves open."""
    roles = decisions.roles
    groups = page.places.groups
    notes: list[str] = []
    if len(groups) == 1:
        notes.append(
            f"'{page.attribute}' has one group alone, '{groups[0]}': its share is 1 in every "
            "class, so correlations can be shown and no trend over classes."
        )
    unmatched = [name for name in {**roles.norm, **roles.norm_irrelevant} if name not in groups]
    if len(unmatched) == len({**roles.norm, **roles.norm_irrelevant}):
        listed = ", ".join(f"'{name}'" for name in ordered(unmatched))
        notes.append(
            f"No value of '{page.attribute}' is called {listed}, as the norms are: correlations "
            "are shown for every group, and a trend over classes for none."
        )
    single = not roles.scores and OWN_SCORE not in decisions.columns
    if single and positive is None:
        notes.append(
            f"'{roles.score}' is one score for {len(page.places.classes)} classes: say which of "
            "them it belongs to (--positive), and its correlation with the norms can be shown."
        )
    if roles.weight or roles.cluster:
        which = " and ".join(name for name in ("weight", "cluster") if getattr(roles, name))
        notes.append(f"The norms lens ranks rows as they are: {which} is not used in it.")
    return notes


def small_groups(page: Page, cells: Cells, level: float) -> list[str]:
    """Sentences on groups so small that only a large correlation could have shown."""
    notes: list[str] = []
    for g, group in enumerate(page.places.groups):
        n = cells.n[0, g]
        best = int(np.argmax(n))
        rows = int(n[best])
        if 3 < rows < SMALL_GROUP:
            bar = float(smallest_significant(rows, level=level))
            seen = float(smallest_detectable(rows, level=level))
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


def _flag(options: Options, name: str) -> bool:
    asked = options.settings.get(name, True)
    if not isinstance(asked, bool):
        raise UsageError(f"{name}={asked!r} is neither True nor False.")
    return asked
