"""What a charter leaves open: reviews overdue, nobody named, groups that no choice covers."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenhand.charter.charter import ASKED, LAYERS, OUTCOMES, BarChoice, Charter, Choice
from evenhand.charter.conflicts import conflicts
from evenhand.charter.words import plain_number
from evenhand.errors import nearest
from evenhand.speech import agree, listed, opening, plural

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """One thing left open, the layer it belongs to and who should look.

    `kind` is `review`, `owner`, `group`, `choice`, `words`, `unheard` or `conflict`.
    """

    kind: str
    layer: str
    sentence: str
    owner: str | None = None
    attribute: str | None = None


def concerns(charter: Charter, *, today: datetime.date) -> list[Concern]:
    """Everything that the charter, read by itself, leaves open."""
    named = _groups_named(charter)
    return [
        *_choices(charter, today),
        *_layers(charter, today),
        *without_choice(charter, named),
        *_words(charter),
        *_unheard(charter),
        *(
            _concern(charter, "conflict", "policy", sentence, attribute=attribute)
            for sentence, attribute in conflicts(charter)
        ),
    ]


def group_concerns(charter: Charter, groups: Mapping[str, Sequence[str]]) -> list[Concern]:
    """Groups of the data that no choice covers, and groups of the charter that the data lacks."""
    return [*without_choice(charter, groups), *_unknown_groups(charter, groups)]


def without_choice(charter: Charter, groups: Mapping[str, Sequence[str]]) -> Iterator[Concern]:
    """One concern for each attribute that has groups without a choice."""
    if not charter.choices:
        return
    for attribute, names in groups.items():
        left = [name for name in names if charter.choice_for(attribute, name) is None]
        if left:
            yield _concern(
                charter,
                "group",
                "policy",
                f"No cost ratio is chosen for {_listed(attribute, left)}: what "
                f"{agree(len(left), 'it implies', 'they imply')} is measured and not judged.",
                attribute=attribute,
            )


def mixed_groups(charter: Charter) -> dict[tuple[str, str], Choice]:
    """Groups of one column that hold a pair with a choice of its own, and have none themselves."""
    own = {(choice.attribute, choice.group) for choice in charter.choices}
    found: dict[tuple[str, str], Choice] = {}
    for choice in charter.choices:
        columns = (choice.attribute or "").split("*")
        values = (choice.group or "").split("*")
        if len(columns) < 2 or len(columns) != len(values):
            continue
        for key in zip(columns, values):
            if key not in own:
                found.setdefault(key, choice)
    return found


def mixed_concerns(charter: Charter) -> Iterator[Concern]:
    """One concern for each group that mixes pairs with different choices."""
    for (attribute, group), choice in mixed_groups(charter).items():
        yield _concern(
            charter,
            "group",
            "policy",
            f"{attribute}={group} mixes pairs with different choices ({choice.whom} has its own): "
            "what it implies is measured and not judged.",
            choice.decided_by,
            attribute=attribute,
        )


def _choices(charter: Charter, today: datetime.date) -> Iterator[Concern]:
    if not charter.choices and charter.bar is None:
        yield _concern(
            charter,
            "choice",
            "policy",
            "No cost ratio is chosen: nobody has said how the two mistakes weigh against each "
            "other. Add one under [[choices]].",
        )
    chosen: list[Choice | BarChoice] = [*charter.choices]
    chosen += [charter.bar] if charter.bar else []
    for choice in chosen:
        named = _named(choice)
        who = choice.decided_by or charter.owner_of("policy")
        if choice.decided_by is None:
            yield _concern(charter, "owner", "policy", f"{named} was decided by nobody named.")
        if choice.review_by is None:
            yield _concern(charter, "review", "policy", f"{named} has no review date.", who)
        elif choice.review_by < today:
            late = _overdue(choice.review_by, today)
            yield _concern(charter, "review", "policy", f"{named} {late}", who)
        if choice.reason is None:
            yield _concern(charter, "words", "policy", f"{named} has no reason.", who)


def _layers(charter: Charter, today: datetime.date) -> Iterator[Concern]:
    for name in LAYERS:
        layer = charter.layers.get(name)
        if layer is None or layer.owner is None:
            yield _concern(
                charter, "owner", name, f"The {name} layer has no owner. Ask {ASKED[name]}."
            )
        if layer is None:
            continue
        if layer.review_by is not None and layer.review_by < today:
            late = _overdue(layer.review_by, today)
            yield _concern(charter, "review", name, f"The {name} layer {late}")
        if not layer.consulted and name != "implementation":
            yield _concern(
                charter, "words", name, f"The {name} layer names nobody who was consulted."
            )
        left = [answer for answer in layer.answers if answer.text is None]
        if left:
            yield _concern(
                charter,
                "words",
                name,
                f"The {name} layer leaves {len(left)} of {len(layer.answers)} questions "
                f"unanswered, such as: {left[0].question}",
            )


def _words(charter: Charter) -> Iterator[Concern]:
    if charter.system.name is None or charter.system.decision is None:
        lacking = "name" if charter.system.name is None else "decision"
        yield _concern(charter, "words", "product", f"The system has no {lacking}.")
    unsaid = [
        name for name in ("item", "decided", "truth") if getattr(charter.system, name) is None
    ]
    if unsaid:
        yield _concern(
            charter,
            "words",
            "product",
            f"The system has no words for {listed(unsaid)}: findings use the table's own labels.",
        )
    told = {one.outcome for one in charter.catalogue}
    for outcome in ("false_positive", "false_negative"):
        if outcome not in told:
            yield _concern(
                charter,
                "words",
                "policy",
                f"The catalogue does not say who bears a {outcome.replace('_', ' ')}.",
            )
    if charter.catalogue and not any(one.kind == "benefit" for one in charter.catalogue):
        yield _concern(charter, "words", "policy", "The catalogue lists costs and no benefit.")


def _unheard(charter: Charter) -> Iterator[Concern]:
    """Those who bear the cost of an outcome and were not consulted, each once."""
    heard = {person.name for person in charter.stakeholders if person.consulted}
    for layer in charter.layers.values():
        heard |= {*layer.consulted, *(name for one in layer.answers for name in one.consulted)}
    costs: dict[str, list[str]] = {}
    for one in charter.catalogue:
        if one.kind == "cost" and one.borne_by not in heard:
            named = costs.setdefault(one.borne_by, [])
            named += [one.outcome] if one.outcome not in named else []
    for bearer, outcomes in costs.items():
        told = listed([f"a {name.replace('_', ' ')}" for name in OUTCOMES if name in outcomes])
        yield _concern(
            charter,
            "unheard",
            "policy",
            f"{opening(bearer)}: they bear the cost of {told} and were not consulted.",
        )


def _unknown_groups(charter: Charter, groups: Mapping[str, Sequence[str]]) -> Iterator[Concern]:
    """What the charter says of groups that the data does not have, and so cannot hold."""
    policy = charter.owner_of("policy")
    said = [
        ("chooses a cost ratio", one.attribute, one.group, one.decided_by or policy)
        for one in charter.choices
    ]
    said += [("gives a prevalence", *key, policy) for key in charter.prevalence]
    said += [("tells the quality of the truth", *key, policy) for key in charter.truth_quality]
    said += [
        ("has a name", attribute, group, policy)
        for attribute, names in charter.system.groups.items()
        if attribute in groups  # one charter may name the groups of several tables
        for group in names
    ]
    for what, attribute, group, who in said:
        if attribute is None or group is None:
            continue
        names = list(groups.get(attribute, ()))
        if group in names:
            continue
        if names:
            why = f"but the data has no such group.{nearest(group, names)}"
        else:
            why = f"but the data was not grouped by {attribute}."
            why += nearest(attribute, list(groups))
        yield _concern(
            charter,
            "group",
            "policy",
            f"The charter {what} for {attribute}={group}, {why}",
            who,
            attribute=attribute,
        )


def _groups_named(charter: Charter) -> dict[str, list[str]]:
    """Groups that the charter speaks of anywhere, by attribute."""
    keys = [(one.attribute, one.group) for one in charter.catalogue]
    keys += [*charter.prevalence, *charter.truth_quality]
    found: dict[str, list[str]] = {}
    for attribute, group in keys:
        if attribute is not None and group is not None:
            names = found.setdefault(attribute, [])
            if group not in names:
                names.append(group)
    return found


def _concern(
    charter: Charter,
    kind: str,
    layer: str,
    sentence: str,
    owner: str | None = None,
    *,
    attribute: str | None = None,
) -> Concern:
    return Concern(
        kind=kind,
        layer=layer,
        sentence=sentence,
        owner=owner or charter.owner_of(layer),
        attribute=attribute,
    )


def _named(choice: Choice | BarChoice) -> str:
    if isinstance(choice, BarChoice):
        return "The choice of one bar for everybody"
    return f"The cost ratio of {plain_number(choice.cost_ratio)} for {choice.whom}"


def _overdue(review_by: datetime.date, today: datetime.date) -> str:
    days = (today - review_by).days
    return (
        f"was to be reviewed by {review_by}, {plural(days, 'day')} ago. Confirm it or choose again."
    )


def _listed(attribute: str, names: Sequence[str]) -> str:
    told = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{attribute}={told}{more}"
