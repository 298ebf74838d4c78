"""What each column of the table is for, checked once at the door."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.decisions.labels import as_in_numbers, label
from evenhand.errors import UsageError, nearest

MISSING_POLICIES = ("drop", "group", "error")
RULES = ("given", "score>=t", "argmax", "one-versus-rest")
REFERENCES = ("<rest>", "<overall>")
COLUMN_ROLES = (
    "truth",
    "decision",
    "score",
    "stratum",
    "labeler",
    "item",
    "cluster",
    "weight",
    "review_share",
    "time",
    "seconds",
    "text",
)
Threshold = float | str | Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One way of grouping people: a column, or several crossed."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The roles of the columns, in the words of the vocabulary."""

    truth: str | None = None
    decision: str | None = None
    score: str | None = None
    scores: Mapping[str, str] = field(default_factory=dict)
    threshold: Threshold | None = None
    rule: str | None = None
    positive: str | None = None
    positive_is: str | None = None
    group: tuple[str, ...] = ()
    crossed: bool = False
    reference: Mapping[str, str] = field(default_factory=dict)
    stratum: str | None = None
    stratum_edges: tuple[float, ...] = ()
    labeler: str | None = None
    item: str | None = None
    cluster: str | None = None
    weight: str | None = None
    review_share: str | None = None
    time: str | None = None
    seconds: str | None = None
    text: str | None = None
    counterfactual: Mapping[str, str] = field(default_factory=dict)
    norm: Mapping[str, str] = field(default_factory=dict)
    norm_irrelevant: Mapping[str, str] = field(default_factory=dict)
    missing: str = "drop"

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Each group column alone and, where asked for, all of them crossed."""
        alone = tuple(Attribute(name=column, columns=(column,)) for column in self.group)
        if self.crossed and len(self.group) > 1:
            return (*alone, Attribute(name="*".join(self.group), columns=self.group))
        return alone

    @property
    def together(self) -> str | None:
        """The column whose rows are not independent: the cluster, or who labelled them."""
        return self.cluster or self.labeler

    def used(self) -> dict[str, Any]:
        """The roles that are set, as plain values for the record."""
        told: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if value is None or value in ((), False) or value == {}:
                continue
            if isinstance(value, Mapping):
                value = dict(value)
            told[name] = list(value) if isinstance(value, tuple) else value
        return told


def find_roles(columns: Sequence[str], **given: Any) -> Roles:
    """The roles given, completed by the columns that other commands add under known names.

    Examples:
        >>> columns = ["y", "decision", "decision@female", "gender"]
        >>> roles = find_roles(columns, truth="y", group="gender")
        >>> roles.decision, roles.rule, dict(roles.counterfactual)
        ('decision', 'given', {'female': 'decision@female'})
    """
    known = list(columns)
    given = {name: value for name, value in given.items() if value is not None}
    # A pandas table may name its columns by numbers.
    for role in COLUMN_ROLES:
        if isinstance(given.get(role), int):
            given[role] = str(given[role])
    group = given.pop("group", ())
    given["group"] = tuple(map(str, group if isinstance(group, list | tuple) else (group,)))
    given["reference"] = _references(given.get("reference", {}), given["group"])
    given["scores"] = _wide_scores(known, given.get("scores"))
    undecided = not {"decision", "score", "rule", "threshold"} & set(given)
    if undecided and "decision" in known:
        given["decision"] = "decision"
    for role, mark in (
        ("counterfactual", "decision@"),
        ("norm", "norm@"),
        ("norm_irrelevant", "norm_irrelevant@"),
    ):
        found = {c.removeprefix(mark): c for c in known if c.startswith(mark)}
        given[role] = dict(given.get(role, {})) or found
    if isinstance(given.get("threshold"), Mapping):
        given["threshold"] = {str(label(k)): float(v) for k, v in given["threshold"].items()}
    if "positive" in given:
        given["positive"] = label(given["positive"])
    given["stratum_edges"] = tuple(given.get("stratum_edges", ()))
    given["rule"] = _rule(given)
    roles = Roles(**given)
    _check(roles, known)
    return roles


def spelled(roles: Roles, *, numbers: Collection[str]) -> Roles:
    """The roles with values named as results name them: in a column of `numbers` 1.0 is 1.

    Examples:
        >>> roles = find_roles(["y", "d", "g"], decision="d", group="g", reference="True")
        >>> dict(spelled(roles, numbers={"g"}).reference)
        {'g': '1'}
    """
    reference = {
        name: as_in_numbers(value) if name in numbers else value
        for name, value in roles.reference.items()
    }
    changed: dict[str, Any] = {"reference": reference}
    if isinstance(roles.threshold, Mapping) and set(roles.group[:1]) & set(numbers):
        changed["threshold"] = {as_in_numbers(name): t for name, t in roles.threshold.items()}
    classes = {column for column in (roles.truth, roles.decision) if column}
    if roles.positive is not None and classes and classes <= set(numbers):
        changed["positive"] = as_in_numbers(roles.positive)
    return replace(roles, **changed)


def _references(reference: Any, group: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(reference, Mapping):
        return dict.fromkeys(group, str(label(reference)))
    return {str(name): str(label(value)) for name, value in reference.items()}


def _wide_scores(columns: list[str], scores: Any) -> dict[str, str]:
    if isinstance(scores, Mapping):
        return {str(name): str(column) for name, column in scores.items()}
    prefix = scores or "score:"
    found = {c.removeprefix(prefix): c for c in columns if c.startswith(prefix) and "@" not in c}
    found.pop("truth", None)
    if scores and not found:
        raise UsageError(
            f"scores={scores!r}: no column of the table starts with '{scores}'. "
            "Name the columns <prefix><class>, such as 'score:nurse'."
        )
    return found


def _rule(given: dict[str, Any]) -> str | None:
    asked = given.get("rule")
    if asked is not None and asked not in RULES:
        raise UsageError(
            f"rule={asked!r} is not a rule.{nearest(str(asked), list(RULES))} "
            f"Choose one of {', '.join(RULES)}."
        )
    if asked is not None:
        return str(asked)
    if given.get("decision"):
        return "given"
    if given.get("score"):
        return "score>=t" if given.get("threshold") is not None else None
    if given["scores"]:
        return "argmax"
    return None


def _check_apart(roles: Roles) -> None:
    """Refuses one column in two roles that only make sense apart."""
    pairs = [("decision", roles.decision, "truth", roles.truth)]
    for role in ("truth", "decision", "stratum"):
        pairs += [("group", group, role, getattr(roles, role)) for group in roles.group]
    for one, column, other, same in pairs:
        if column is not None and column == same:
            raise UsageError(
                f"{one}={column!r} is also the {other}, so there is nothing to compare. "
                "Name two columns."
            )


def _check(roles: Roles, columns: list[str]) -> None:
    if not roles.group and not roles.counterfactual and not roles.labeler:
        shown = ", ".join(columns[:8]) + ", …" * (len(columns) > 8)
        raise UsageError(
            "No group is named. Say which column holds it, such as group='gender' (--group). "
            f"The columns are {shown}."
        )
    named = [(role, getattr(roles, role)) for role in COLUMN_ROLES]
    named += [("group", column) for column in roles.group]
    named += [("scores", column) for column in roles.scores.values()]
    named += [("counterfactual", column) for column in roles.counterfactual.values()]
    named += [("norm", column) for column in roles.norm.values()]
    named += [("norm_irrelevant", column) for column in roles.norm_irrelevant.values()]
    if isinstance(roles.threshold, str):
        named.append(("threshold", roles.threshold))
    for role, column in named:
        if column is not None and column not in columns:
            raise UsageError(
                f"{role}={column!r} is not a column of the table.{nearest(column, columns)}"
            )
    repeated = {c for c in roles.group if roles.group.count(c) > 1}
    if repeated:
        raise UsageError(f"group={min(repeated)!r} is given twice. Name each group column once.")
    _check_apart(roles)
    if roles.missing not in MISSING_POLICIES:
        raise UsageError(
            f"missing={roles.missing!r} is not a policy. "
            f"Choose one of {', '.join(MISSING_POLICIES)}."
        )
    if roles.positive_is not in (None, "benefit", "burden"):
        raise UsageError(
            f"positive_is={roles.positive_is!r} is not known. Say 'benefit' or 'burden': what a "
            "positive decision is for the person decided about."
        )
    attributes = [attribute.name for attribute in roles.attributes]
    for name in roles.reference:
        if name not in attributes:
            raise UsageError(
                f"reference for {name!r}, which is not a group column.{nearest(name, attributes)}"
            )
    if roles.rule in {"argmax", "one-versus-rest"} and not roles.scores:
        raise UsageError(
            f"rule={roles.rule!r} needs one score column per class, named 'score:<class>'."
        )
    if roles.rule == "given" and roles.decision is None:
        raise UsageError("rule='given' needs a decision column.")
    if roles.rule == "score>=t" and (roles.score is None or roles.threshold is None):
        raise UsageError("rule='score>=t' needs a score column and a threshold.")
    if list(roles.stratum_edges) != sorted(set(roles.stratum_edges)):
        raise UsageError(
            f"stratum_edges={list(roles.stratum_edges)} do not rise. "
            "Give the cut points in rising order, such as 18,30,65."
        )
