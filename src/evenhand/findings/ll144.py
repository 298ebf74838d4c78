"""The bias-audit table of New York City's Local Law 144, as 6 RCNY §§ 5-300, 5-301 and 5-303 say.

From counts, so that small categories and the base follow the rule and not ours: every category is
shown, the base is the category with the highest rate whatever its size, and nothing passes or
fails.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from math import isfinite
from typing import Any

import numpy as np

from evenhand.decisions.categories import CategoryCounts, count_categories
from evenhand.decisions.labels import crossed_name
from evenhand.decisions.table import Decisions
from evenhand.errors import UsageError, nearest
from evenhand.speech import listed
from evenhand.stats.estimate import FloatArray

SCHEMA = "evenhand.ll144/1"
SEX = ("sex", "gender")
RACE = ("race", "ethnicity", "race/ethnicity", "race_ethnicity", "race_or_ethnicity")
# § 5-301 (d): an auditor may leave a category under this share out of the impact ratios.
EXCLUDABLE_UNDER = 0.02
SELECTION, SCORING = "selection", "scoring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What the form says beside its counts.

    Attributes:
        sex: The column with the categories of sex.
        race: The column with those of race and ethnicity.
        unknown: Values of either that name no category.
        exclude: Categories left out of the impact ratios, each with its written justification.
        audit_date: The date of the audit.
        distribution_date: The date from which on the tool was used.
        data: The source and explanation of the data.
        tool: The name of the tool that selects or scores.
    """

    sex: str | None = None
    race: str | None = None
    unknown: tuple[str, ...] = ()
    exclude: Mapping[str, str] = field(default_factory=dict)
    audit_date: str | None = None
    distribution_date: str | None = None
    data: str | None = None
    tool: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Details":
        """The details as a user wrote them, checked."""
        known = list(cls.__slots__)
        for name, value in given.items():
            if name not in known:
                raise UsageError(
                    f"The form ll144 has no detail {name!r}.{nearest(str(name), known)} "
                    f"It takes {', '.join(known)}."
                )
            if name.endswith("_date"):
                _day(name, value)
        made = dict(given)
        for name in ("sex", "race", "data", "tool"):
            if not isinstance(made.get(name, ""), str | None):
                raise UsageError(f"{name}={made[name]!r} is not text. Write it in quotation marks.")
        for name in ("audit_date", "distribution_date"):
            if name in made:
                made[name] = str(made[name])
        if not isinstance(made.get("exclude", {}), Mapping):
            raise UsageError(
                f"exclude={made['exclude']!r} lacks the justification that § 5-301 (d) asks for. "
                'Write each category with it: {"Asian": "12 applicants, all for one position"}.'
            )
        for category, why in dict(made.get("exclude", {})).items():
            if not isinstance(why, str):
                raise UsageError(
                    f"exclude has {why!r} as the justification for {category!r}. Write it in "
                    "quotation marks."
                )
        unknown = made.get("unknown", ())
        listed_values = [unknown] if isinstance(unknown, str) else unknown
        if not isinstance(listed_values, list | tuple | set) or not all(
            isinstance(value, str) for value in listed_values
        ):
            raise UsageError(
                f'unknown={unknown!r} is not a list of values. Write them so: ["not given", "x"].'
            )
        made["unknown"] = tuple(listed_values)
        return cls(**made)


def _day(name: str, value: Any) -> None:
    try:
        date.fromisoformat(str(value))
    except ValueError:
        raise UsageError(f"{name}={value!r} is not a date. Write it as 2026-01-31.") from None


def ll144_form(decisions: Decisions, given: Mapping[str, Any], *, today: str) -> dict[str, Any]:
    """The form as a document: counts, rates and impact ratios by sex, by race, and crossed.

    Examples:
        >>> table = {"sex": ["f"] * 10 + ["m"] * 10, "race": ["a", "b"] * 10}
        >>> table["hired"] = [1] * 3 + [0] * 7 + [1] * 6 + [0] * 4
        >>> made = Decisions(table, decision="hired", group=["sex", "race"])
        >>> rows = ll144_form(made, {}, today="2026-01-31")["tables"][0]["rows"]
        >>> [(row["category"], row["rate"], row["impact_ratio"]) for row in rows]
        [('f', 0.3, 0.5), ('m', 0.6, 1.0)]
    """
    details = Details.of(given)
    if decisions.roles.weight:
        raise UsageError("The form ll144 counts people: leave the weight out.")
    sex, race = _columns(decisions, details)
    counts = count_categories(decisions, [sex, race], unknown=details.unknown)
    kind = SCORING if counts.median is not None else SELECTION
    crossed = [crossed_name(pair) for pair in _pairs(counts)]
    _check_excluded(details, counts, crossed)
    tables = []
    for place, outcome in _outcomes(decisions, counts):
        chosen = counts.chosen[:, :, place]
        for name, categories, people, hits in (
            ("Sex", counts.names[0], counts.people.sum(axis=1), chosen.sum(axis=1)),
            ("Race/ethnicity", counts.names[1], counts.people.sum(axis=0), chosen.sum(axis=0)),
            ("Sex and race/ethnicity", crossed, counts.people.reshape(-1), chosen.reshape(-1)),
        ):
            rows = impact_rows(categories, people, hits, exclude=details.exclude)
            tables.append({"name": name, "outcome": outcome, "rows": rows})
    return {
        "schema": SCHEMA,
        "kind": kind,
        "columns": {"sex": sex, "race": race},
        "people": int(counts.people.sum()),
        "unknown": counts.unknown,
        "median": counts.median,
        "tool": details.tool,
        "data": details.data or f"{decisions.source}",
        "audit_date": details.audit_date or today,
        "distribution_date": details.distribution_date,
        "tables": tables,
    }


def impact_rows(
    categories: Any, people: FloatArray, hits: FloatArray, *, exclude: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Rates, and each by the highest: § 5-300, "impact ratio".

    A category without applicants has no rate, one that is excluded no ratio and is never the base.

    Examples:
        >>> people, selected = np.array([1390.0, 1181.0]), np.array([667.0, 555.0])
        >>> rows = impact_rows(["m", "f"], people, selected, exclude={})
        >>> [(f"{row['rate']:.0%}", f"{row['impact_ratio']:.3f}") for row in rows]
        [('48%', '1.000'), ('47%', '0.979')]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.asarray(hits, dtype=float) / np.asarray(people, dtype=float)
    based = [
        rate for name, rate in zip(categories, rates) if name not in exclude and isfinite(rate)
    ]
    base = max(based, default=0.0)
    return [
        {
            "category": name,
            "people": int(count),
            "chosen": int(hit),
            "rate": float(rate) if isfinite(rate) else None,
            "impact_ratio": float(rate / base)
            if isfinite(rate) and base > 0 and name not in exclude
            else None,
            "excluded": exclude.get(name),
        }
        for name, count, hit, rate in zip(categories, people, hits, rates)
    ]


def _pairs(counts: CategoryCounts) -> list[tuple[str, str]]:
    return [(one, other) for one in counts.names[0] for other in counts.names[1]]


def _outcomes(decisions: Decisions, counts: CategoryCounts) -> list[tuple[int, str | None]]:
    """Which outcomes have tables: of two the positive one, of several each (§ 5-301 (b) (4))."""
    if counts.median is not None:
        return [(0, None)]
    names = list(counts.outcomes)
    if decisions.roles.positive in names:
        return [(names.index(str(decisions.roles.positive)), None)]
    if set(names) <= {"0", "1"}:
        if "1" not in names:
            raise UsageError("Nobody was selected, so that there is no rate to compare.")
        return [(names.index("1"), None)]
    if len(names) == 2:
        raise UsageError(
            f"The decisions are {names[0]!r} and {names[1]!r}. Say which one moves a person "
            f"forward: positive={names[1]!r} (--positive)."
        )
    return list(enumerate(names))


def _columns(decisions: Decisions, details: Details) -> tuple[str, str]:
    """The columns of sex and of race; by their names where nobody says."""
    groups = list(decisions.roles.group)
    chosen = []
    for role, given, names in (("sex", details.sex, SEX), ("race", details.race, RACE)):
        if given is not None:
            if given not in groups:
                raise UsageError(
                    f"{role}={given!r} of the form ll144 is not a group column."
                    f"{nearest(given, groups)} The groups are {listed(groups)}."
                )
            chosen.append(given)
            continue
        fitting = [group for group in groups if group.rpartition(".")[2].casefold() in names]
        if len(fitting) != 1:
            what = "race or ethnicity" if role == "race" else "sex"
            why = f"{listed(fitting)} may be it" if fitting else "none has such a name"
            raise UsageError(
                f"The form ll144 needs a group column for {what}: of {listed(groups)} {why}. Name "
                f'it as a group (--group) and in the details: {role} = "…" (--form-details).'
            )
        chosen.append(fitting[0])
    return chosen[0], chosen[1]


def _check_excluded(details: Details, counts: CategoryCounts, crossed: list[str]) -> None:
    shares = dict(zip(counts.names[0], counts.people.sum(axis=1)))
    shares |= dict(zip(counts.names[1], counts.people.sum(axis=0)))
    shares |= dict(zip(crossed, counts.people.reshape(-1)))
    total = counts.people.sum()
    for name, why in details.exclude.items():
        if name not in shares:
            raise UsageError(
                f"exclude names {name!r}, which is not a category.{nearest(name, list(shares))} "
                f"The categories are {listed(list(shares), most=12)}."
            )
        if not isinstance(why, str) or not why.strip():
            raise UsageError(
                f"{name!r} is excluded without a justification, which § 5-301 (d) asks for. "
                "Write it beside the category."
            )
        share = shares[name] / total
        if share >= EXCLUDABLE_UNDER:
            raise UsageError(
                f"{name!r} has {share:.1%} of the applicants. Only a category under "
                f"{EXCLUDABLE_UNDER:.0%} may be excluded (6 RCNY § 5-301 (d))."
            )
