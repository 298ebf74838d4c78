"""What each column of the table is for, checked once at the door."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from evenhand.decisions.labels import as_in_numbers, label
from evenhand.decisions.missing_words import missing_words
from evenhand.errors import UsageError, choices, nearest

MISSING_POLICIES = ("drop", "group", "error")
RULES = ("given", "score>=t", "argmax", "one-versus-rest")
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
# What other tools call a role, for the hint that names ours.
PEER_NAMES = {
    "truth": "y_true labels label target actual outcome ground_truth gold true_label",
    "decision": "y_pred y_hat pred preds prediction predictions predicted predicted_label",
    "score": "y_score y_prob y_proba prob proba probability probabilities predict_proba",
    "group": "sensitive_features sensitive_feature sensitive sensitive_attribute sensitive_attr "
    "protected protected_attribute protected_attributes protected_attribute_names prot_attr "
    "attribute attributes groups demographic",
    "reference": "ref_group ref_groups reference_group privileged privileged_groups "
    "unprivileged_groups",
    "weight": "sample_weight sample_weights weights instance_weights",
    "stratum": "control_features control_feature strata",
    "labeler": "annotator rater coder reviewer worker moderator annotator_id",
    "item": "item_id task unit example_id",
    "cluster": "cluster_id author user user_id",
    "positive": "pos_label positive_label positive_class favorable_label favorable_classes",
    "time": "timestamp date datetime created_at",
    "threshold": "cutoff cut cut_off thresholds",
}
# The score of each row's own class, beside those of all classes.
OWN_SCORE = "score:truth"


def peer_role(name: str) -> str | None:
    """Our name of a role that other tools call so, or None.

    Examples:
        >>> peer_role("y_pred"), peer_role("--sensitive-features"), peer_role("truth")
        ('decision', 'group', None)
    """
    plain = name.lower().lstrip("-").replace("-", "_")
    return next((role for role, theirs in PEER_NAMES.items() if plain in theirs.split()), None)


def role_hint(name: str) -> str:
    """What to write in place of an unknown role: ours for another tool's word, or the closest.

    Examples:
        >>> print(role_hint("y_pred")[:54])
         It is called 'decision' here. The roles are truth, de
        >>> role_hint("treuth")
        " Did you mean 'truth'?"
    """
    roles, ours = Roles.__slots__, peer_role(name)
    if ours is None:
        return choices(name, roles, called="roles", most=len(roles))
    return f" It is called {ours!r} here. The roles are {', '.join(roles)}."


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
    missing_words: tuple[str, ...] = ()
    classes: bool = False

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
    given["scores"] = _wide_scores(known, given.get("scores"), values=given["counterfactual"])
    if "threshold" in given:
        given["threshold"] = _threshold(given["threshold"])
    if "positive" in given:
        given["positive"] = label(given["positive"])
    given["stratum_edges"] = tuple(given.get("stratum_edges", ()))
    given["missing_words"] = missing_words(given.get("missing_words", ()))
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


def _threshold(threshold: Any) -> Threshold:
    """A threshold of plain numbers, or the name of its column."""
    if isinstance(threshold, Mapping):
        return {str(label(name)): _number(value) for name, value in threshold.items()}
    return threshold if isinstance(threshold, str) else _number(threshold)


def _number(threshold: Any) -> float:
    try:
        value = float(threshold)
    except (TypeError, ValueError):
        value = float("nan")
    if not isfinite(value):
        raise UsageError(
            f"threshold={threshold!r} is not a number. Give the score from which on the decision "
            "is positive, such as 0.5."
        )
    return threshold if isinstance(threshold, int) else value


def _wide_scores(columns: list[str], scores: Any, *, values: Collection[str]) -> dict[str, str]:
    """The score column of each class, by the classes' names.

    `<prefix><class>@<value>` is a score under another value of the group where decisions were
    made under that value; otherwise the @ belongs to the name of a class.
    """
    if isinstance(scores, Mapping):
        return {str(name): str(column) for name, column in scores.items()}
    prefix = scores or "score:"
    wide = {c.removeprefix(prefix): c for c in columns if c.startswith(prefix)}
    classes = {}
    for name, column in wide.items():
        if any(name.endswith(f"@{v}") and name.removesuffix(f"@{v}") in wide for v in values):
            continue
        base, mark, value = name.rpartition("@")
        if not mark or base not in wide:
            classes[name] = column
        else:
            raise UsageError(
                f"The column {column!r} may hold the score of a class {name!r}, or that of "
                f"{base!r} under {value!r}, for which there is no decision@{value}. Rename it, or "
                "say which column holds which class with scores={…}."
            )
    # The row's own class, unless the data show that a class has this name: see `has_truth_class`.
    if wide.get("truth") == OWN_SCORE:
        classes.pop("truth", None)
    if scores and not classes:
        raise UsageError(
            f"scores={scores!r}: no column of the table starts with '{scores}'. "
            "Name the columns <prefix><class>, such as 'score:nurse'."
        )
    return classes


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


def check_column(role: str, column: str, columns: Sequence[str]) -> None:
    """Refuse a role whose column is not there, or has a name that engines take for a pattern.

    Examples:
        >>> check_column("group", "*", ["*", "g"])
        Traceback (most recent call last):
        evenhand.errors.UsageError: group='*' names a column that engines take for a pattern of \
names. Rename the column.
    """
    if column not in columns:
        raise UsageError(
            f"{role}={column!r} is not a column of the table."
            f"{choices(column, columns, called='columns')}"
        )
    if column == "*" or (column.startswith("^") and column.endswith("$")):
        raise UsageError(
            f"{role}={column!r} names a column that engines take for a pattern of names. Rename "
            "the column."
        )


def _check_settings(roles: Roles) -> None:
    """Refuse settings that are none of those there are."""
    if roles.missing not in MISSING_POLICIES:
        raise UsageError(
            f"missing={roles.missing!r} is not a policy. "
            f"Choose one of {', '.join(MISSING_POLICIES)}."
        )
    if not isinstance(roles.classes, bool):
        raise UsageError(
            f"classes={roles.classes!r} is not True or False. Say classes=True where the numbers "
            "of truth and decision are codes of classes."
        )
    if roles.positive_is not in (None, "benefit", "burden"):
        raise UsageError(
            f"positive_is={roles.positive_is!r} is not known. Say 'benefit' or 'burden': what a "
            "positive decision is for the person decided about."
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
        if column is not None:
            check_column(role, column, columns)
    repeated = {c for c in roles.group if roles.group.count(c) > 1}
    if repeated:
        raise UsageError(f"group={min(repeated)!r} is given twice. Name each group column once.")
    _check_apart(roles)
    _check_settings(roles)
    attributes = [attribute.name for attribute in roles.attributes]
    for name in roles.reference:
        if name not in attributes:
            raise UsageError(
                f"reference for {name!r}, which is not a group column."
                f"{choices(name, attributes, called='group columns')}"
            )
    if roles.rule in {"argmax", "one-versus-rest"} and not roles.scores:
        raise UsageError(
            f"rule={roles.rule!r} needs one score column per class, named 'score:<class>'."
        )
    if roles.rule == "given" and roles.decision is None:
        raise UsageError("rule='given' needs a decision column.")
    if roles.rule == "score>=t" and (roles.score is None or roles.threshold is None):
        raise UsageError("rule='score>=t' needs a score column and a threshold.")
    edges = list(roles.stratum_edges)
    if not all(map(isfinite, edges)) or edges != sorted(set(edges)):
        raise UsageError(
            f"stratum_edges={list(roles.stratum_edges)} do not rise. "
            "Give the cut points in rising order, such as 18,30,65."
        )
