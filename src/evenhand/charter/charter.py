"""The charter as typed values: what was chosen, by whom, until when and why."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.stats.estimate import number

LAYERS = ("product", "policy", "implementation")

# Who is asked, in words, and the questions by their keys in the charter.
ASKED = {
    "product": "whoever leads the product",
    "policy": "whoever owns the rules",
    "implementation": "engineers and label operations",
}
LABEL_OPERATIONS = "label operations"
QUESTIONS: dict[str, dict[str, str]] = {
    "product": {
        "serves_everyone": "Does what it sets out to do serve everyone it affects?",
        "whose_interests": "Whose interests give way to whose, and how far?",
        "without_a_person": "Should a machine act here without a person?",
    },
    "policy": {
        "fits_every_group": "Does the rule, as written, fit the lives of every group it will be "
        "applied to?",
        "what_counts": "What exactly counts as a violation, and does it matter whom it is aimed "
        "at; who is protected?",
        "which_mistake_hurts": "Which mistake hurts whom, and how badly: the person who made the "
        "thing, those who see it, those it is about?",
    },
    "implementation": {
        "labelers_follow": "Do the people who label follow the rule?",
        "models_balance": "Do the models strike the chosen balance for every group?",
    },
}

SCHEMA = "evenhand.charter/1"
OUTCOMES = ("false_positive", "false_negative", "true_positive", "true_negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The system and its decision, and the words of its world that sentences are made with.

    `item` is what is decided about and `class_` what the answers are where there are many (one,
    several); `of` links items to people, `decided` is the participle of a positive decision,
    `truth` what is the case and what is not, as people say it of several. The two mistakes are
    (one, several); `groups` names the people of a group by attribute and value.
    """

    name: str | None = None
    decision: str | None = None
    item: tuple[str, str] | None = None
    of: str | None = None
    decided: str | None = None
    truth: tuple[str, str] | None = None
    class_: tuple[str, str] | None = None
    false_positive: tuple[str, str] = ("wrongful decision", "wrongful decisions")
    false_negative: tuple[str, str] = ("missed case", "missed cases")
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to one of the layer's questions, and who gave it.

    `apart` where the charter names somebody else than the layer's owner for it.
    """

    question: str
    text: str | None
    owner: str | None = None
    apart: bool = False
    date: datetime.date | None = None
    consulted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer of the decision: who owns it, when it was settled, who was consulted."""

    name: str
    owner: str | None = None
    date: datetime.date | None = None
    review_by: datetime.date | None = None
    consulted: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakeholder:
    """Somebody whom the decision affects, what is at stake for them and whether they were heard."""

    name: str
    interest: str | None = None
    consulted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """One line of the catalogue: what an outcome costs or brings, to whom, in which group."""

    outcome: str
    kind: str
    borne_by: str
    what: str
    attribute: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A cost ratio chosen for everybody, for a group or for a pair, and the band tolerated.

    Examples:
        >>> choice = Choice(cost_ratio=4, low=3.2, high=5)
        >>> choice.threshold, choice.whom
        (0.2, 'everybody')
    """

    cost_ratio: float
    low: float
    high: float
    attribute: str | None = None
    group: str | None = None
    positive_is: str | None = None
    decided_by: str | None = None
    decided_on: datetime.date | None = None
    review_by: datetime.date | None = None
    reason: str | None = None

    @property
    def threshold(self) -> float:
        """The implied threshold, 1/(1+c): from which probability on it pays to act."""
        return _implied(self.cost_ratio)

    @property
    def threshold_band(self) -> tuple[float, float]:
        """The band of implied thresholds; the highest ratio gives the lowest threshold."""
        return _implied(self.high), _implied(self.low)

    @property
    def whom(self) -> str:
        """For whom the choice holds."""
        return "everybody" if self.group is None else f"{self.attribute}={self.group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChoice:
    """One bar for every group chosen instead of one weight, and how far bars may differ.

    `tolerance` is in standard deviations of what labelers see: a limit on `criterion_gap`.
    """

    tolerance: float
    decided_by: str | None = None
    decided_on: datetime.date | None = None
    review_by: datetime.date | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthQuality:
    """How often the truth column says so of what is so, and of what is not."""

    sensitivity: float
    specificity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Charter:
    """Everything that a charter file says; printed, it speaks in words."""

    source: str
    system: System = field(default_factory=System)
    layers: Mapping[str, Layer] = field(default_factory=dict)
    stakeholders: tuple[Stakeholder, ...] = ()
    catalogue: tuple[Consequence, ...] = ()
    choices: tuple[Choice, ...] = ()
    bar: BarChoice | None = None
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    prevalence: Mapping[tuple[str | None, str | None], float] = field(default_factory=dict)
    truth_quality: Mapping[tuple[str | None, str | None], TruthQuality] = field(
        default_factory=dict
    )
    roles: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        from evenhand.charter.words import charter_text

        return charter_text(self)

    def concerns(self, *, today: datetime.date | None = None) -> list[Any]:
        """Everything that the charter leaves open, with the layer and owner of each."""
        from evenhand.charter.concerns import concerns

        return list(concerns(self, today=today or datetime.datetime.now(datetime.UTC).date()))

    def choice_for(self, attribute: str | None, group: str | None) -> Choice | None:
        """The choice that holds for a group: its own, else the one for everybody."""
        keys = ((attribute, group), (None, None))
        found = {(choice.attribute, choice.group): choice for choice in self.choices}
        return next((found[key] for key in keys if key in found), None)

    def owner_of(self, layer: str) -> str | None:
        """Who should look at a finding of this layer."""
        return self.layers[layer].owner if layer in self.layers else None

    @property
    def owner_of_labelers(self) -> str | None:
        """Who instructs the people who label, where the charter names somebody for that."""
        layer = self.layers.get("implementation")
        asked = QUESTIONS["implementation"]["labelers_follow"]
        answers = layer.answers if layer is not None else ()
        return next((one.owner for one in answers if one.question == asked and one.apart), None)

    @property
    def positive_is(self) -> str | None:
        """What a positive decision is for the person decided about, where the charter says so."""
        said = self.roles.get("positive_is")
        chosen = (choice.positive_is for choice in self.choices)
        return said or next((word for word in chosen if word), None)

    @property
    def settings(self) -> dict[str, Any]:
        """What lenses are told of prevalence and of the truth, as the file nests it.

        Examples:
            >>> shares = {(None, None): 0.02, ("gender", "female"): 0.03}
            >>> Charter(source="c.toml", prevalence=shares).settings
            {'prevalence': {'all': 0.02, 'gender': {'female': 0.03}}}
        """
        chosen = {(c.attribute, c.group): c.cost_ratio for c in self.choices}
        known: dict[str, Mapping[tuple[str | None, str | None], Any]] = {
            "prevalence": self.prevalence,
            "truth_quality": self.truth_quality,
            "cost_ratio": chosen,
        }
        found: dict[str, Any] = {}
        for name, values in known.items():
            for (attribute, group), value in values.items():
                table = found.setdefault(name, {})
                if attribute is not None:
                    table = table.setdefault(attribute, {})
                table[group or "all"] = _plain(value)
        return found

    def plain(self) -> dict[str, Any]:
        """The charter as plain values for the record."""
        from evenhand.charter.words import charter_sentence, chosen_words

        return {
            "schema": SCHEMA,
            "source": self.source,
            "sentence": charter_sentence(self),
            "chosen": chosen_words(self),
            "system": _plain(self.system),
            "layers": {name: _plain(self.layers[name]) for name in LAYERS if name in self.layers},
            "stakeholders": [_plain(one) for one in self.stakeholders],
            "catalogue": [_plain(one) for one in self.catalogue],
            "choices": [
                _plain(one)
                | {
                    "implied_threshold": one.threshold,
                    "implied_threshold_low": one.threshold_band[0],
                    "implied_threshold_high": one.threshold_band[1],
                }
                for one in self.choices
            ],
            "bar": _plain(self.bar),
            "limits": {name: _plain(band) for name, band in self.limits.items()},
            "prevalence": [
                {"attribute": attribute, "group": group, "value": value}
                for (attribute, group), value in self.prevalence.items()
            ],
            "truth_quality": [
                {"attribute": attribute, "group": group} | _plain(value)
                for (attribute, group), value in self.truth_quality.items()
            ],
            "roles": _plain(dict(self.roles)),
        }


def _implied(cost_ratio: float) -> float:
    from evenhand.stats.thresholds.costs import implied_threshold

    return float(implied_threshold(cost_ratio))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float):
        return number(value)  # an open end of a band is null, as in the result rows
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "__slots__"):
        return {name.rstrip("_"): _plain(getattr(value, name)) for name in value.__slots__}
    return value
