"""A charter in words: the first sentence, the whole text, the starter, what is left open."""

import datetime
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.charter.charter import LAYERS, QUESTIONS, Charter, Choice, System
from evenhand.charter.concerns import concerns, group_concerns
from evenhand.charter.read import parse_charter
from evenhand.charter.words import STARTER, charter_sentence, charter_text, weighed

DAY = datetime.date
SYSTEM = System(
    name="Comment moderation",
    decision="remove the comment",
    false_positive=("wrongful removal", "wrongful removals"),
    false_negative=("missed violation", "missed violations"),
)
CHOICE = Choice(
    cost_ratio=4,
    low=3.2,
    high=5,
    decided_by="the policy council",
    decided_on=DAY(2026, 1, 31),
    review_by=DAY(2027, 1, 31),
    reason="Insults drive readers away.",
)
FEMALE = replace(CHOICE, cost_ratio=5, low=4, high=6.5, attribute="gender", group="female")


def charter(*choices: Choice) -> Charter:
    return Charter(source="c.toml", system=SYSTEM, choices=choices)


def test_the_first_sentence() -> None:
    assert charter_sentence(charter(CHOICE)) == (
        "Chosen: one missed violation counts as 4 wrongful removals (act from 20% on), decided by "
        "the policy council, review by 2027-01-31."
    )


def test_several_choices_share_who_decided() -> None:
    assert charter_sentence(charter(CHOICE, FEMALE)) == (
        "Chosen: for everybody, one missed violation counts as 4 wrongful removals (act from 20% "
        "on); for gender=female, one missed violation counts as 5 wrongful removals (act from "
        "16.7% on), decided by the policy council, review by 2027-01-31."
    )
    other = replace(FEMALE, decided_by=None, review_by=None)
    assert charter_sentence(charter(CHOICE, other)) == (
        "Chosen: for everybody, one missed violation counts as 4 wrongful removals (act from 20% "
        "on), decided by the policy council, review by 2027-01-31; for gender=female, one missed "
        "violation counts as 5 wrongful removals (act from 16.7% on), decided by nobody named, no "
        "review date."
    )


def test_many_choices_are_counted() -> None:
    many = [replace(FEMALE, group=str(i)) for i in range(6)]
    assert "; and 3 more, decided by" in charter_sentence(charter(*many))


def test_nothing_chosen() -> None:
    assert charter_sentence(charter()) == (
        "Nothing is chosen yet: how a missed violation weighs against a wrongful removal is left "
        "open."
    )


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1, "one missed violation counts as one wrongful removal (act from 50% on)"),
        # The paper's 0.91 for c = 0.1 is 1/1.1 = 0.909.
        (0.1, "one wrongful removal counts as 10 missed violations (act from 90.9% on)"),
        (3, "one missed violation counts as 3 wrongful removals (act from 25% on)"),
        (9999, "one missed violation counts as 9,999 wrongful removals (act from 0.01% on)"),
        (1 / 9999, "one wrongful removal counts as 9,999 missed violations (act from 99.99% on)"),
    ],
)
def test_ratios_in_words(ratio: float, words: str) -> None:
    assert weighed(ratio, SYSTEM) == words


@given(st.floats(1e-3, 1e3))
def test_words_count_the_dearer_mistake_in_the_cheaper(ratio: float) -> None:
    told = weighed(ratio, SYSTEM)
    times = float((re.search(r"as ([\d,.]+)", told) or ["", "1"])[1].replace(",", ""))
    assert times == pytest.approx(max(ratio, 1 / ratio), rel=0.006)
    assert told.startswith("one missed") == (ratio >= 1)
    share = float(re.search(r"from ([\d.e-]+)%", told)[1])  # type: ignore[index]
    assert share / 100 == pytest.approx(1 / (1 + ratio), rel=0.006)


def test_show_prints_ratio_threshold_and_both_bands() -> None:
    text = charter_text(charter(CHOICE))
    assert text.startswith("Comment moderation: remove the comment\nChosen: one missed violation")
    assert (
        "  For everybody: cost ratio 4 (tolerated 3.2 to 5), so act from 20% on (tolerated 16.7% "
        "to 23.8%).\n    Decided by the policy council on 2026-01-31, review by 2027-01-31.\n"
        "    Reason: Insults drive readers away.\n"
    ) in text


def switched_on() -> str:
    return re.sub(r"^#(?=[\[a-z])", "", STARTER, flags=re.MULTILINE)


def test_the_starter_is_a_charter() -> None:
    found = parse_charter(STARTER)
    assert not found.choices
    # Everything left open is said, and nothing is chosen on anybody's behalf.
    left = [concern.sentence for concern in concerns(found, today=DAY(2026, 1, 1))]
    assert left[0].startswith("No cost ratio is chosen")
    for name in LAYERS:
        assert any(f"The {name} layer has no owner." in sentence for sentence in left)
        for question in QUESTIONS[name].values():
            assert " ".join(question.split()) in " ".join(STARTER.replace("\n# ", " ").split())


def test_the_starter_switched_on_is_a_charter_too() -> None:
    found = parse_charter(switched_on())
    assert [choice.whom for choice in found.choices] == ["everybody", "gender=female"]
    assert len(found.catalogue) == 3
    assert len(found.stakeholders) == 2
    assert found.limits["precision"] == (0.7, 1.0)
    assert found.prevalence == {(None, None): 0.02, ("gender", "female"): 0.03}
    assert found.roles["group"] == ["gender"]
    plain = json.loads(json.dumps(found.plain(), allow_nan=False))
    assert plain["choices"][0]["implied_threshold"] == 0.2
    assert plain["choices"][1]["low"] == 4
    assert plain["sentence"] == charter_sentence(found)
    for word in ("people who comment", "An insult stays up.", "true_positive_rate_gap", "95%"):
        assert word in charter_text(found)


def test_a_date_is_written_plainly_in_the_record() -> None:
    plain = charter(CHOICE).plain()
    assert (plain["choices"][0]["decided_on"], plain["layers"]) == ("2026-01-31", {})


def kinds(found: Charter, today: datetime.date) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for concern in concerns(found, today=today):
        told.setdefault(concern.kind, []).append(concern.sentence)
    return told


def test_a_review_is_overdue_only_after_its_day() -> None:
    assert "review" not in kinds(charter(CHOICE), DAY(2027, 1, 31))
    assert kinds(charter(CHOICE), DAY(2027, 2, 1))["review"] == [
        "The cost ratio of 4 for everybody was to be reviewed by 2027-01-31, 1 day ago. Confirm it "
        "or choose again."
    ]


def test_the_layers_review_belongs_to_the_layer() -> None:
    text = 'schema = "evenhand.charter/1"\n[product]\nowner = "Ada"\nreview_by = 2026-01-01\n'
    late = [c for c in concerns(parse_charter(text), today=DAY(2026, 1, 11)) if c.kind == "review"]
    assert [(c.layer, c.owner, c.sentence) for c in late] == [
        (
            "product",
            "Ada",
            "The product layer was to be reviewed by 2026-01-01, 10 days ago. Confirm it or choose "
            "again.",
        )
    ]


def test_who_should_look_is_whoever_decided_else_the_layers_owner() -> None:
    text = 'schema = "evenhand.charter/1"\n[policy]\nowner = "Bo"\n'
    layers = parse_charter(text).layers
    for decided_by, owner in (("the council", "the council"), (None, "Bo")):
        choice = replace(CHOICE, review_by=None, decided_by=decided_by)
        found = concerns(
            Charter(source="c", layers=layers, choices=(choice,)), today=DAY(2026, 1, 1)
        )
        review = next(concern for concern in found if concern.kind == "review")
        assert (review.layer, review.owner) == ("policy", owner)


def test_groups_that_the_charter_names_without_choosing() -> None:
    text = 'schema = "evenhand.charter/1"\n[prevalence.gender]\nfemale = 0.1\nmale = 0.2\n'
    named = parse_charter(text)
    only = replace(named, choices=(FEMALE,))
    assert kinds(only, DAY(2026, 1, 1))["group"] == [
        "No cost ratio is chosen for gender=male: what it implies is measured and not judged."
    ]
    assert "group" not in kinds(replace(named, choices=(CHOICE, FEMALE)), DAY(2026, 1, 1))


def test_groups_of_the_data() -> None:
    many = [f"g{i}" for i in range(8)]
    found = group_concerns(charter(FEMALE), {"gender": ["femal", "male"], "region": many})
    assert [(c.attribute, c.sentence) for c in found] == [
        (
            "gender",
            "No cost ratio is chosen for gender=femal, male: what they imply is measured and not "
            "judged.",
        ),
        (
            "region",
            "No cost ratio is chosen for region=g0, g1, g2, g3, g4 and 3 more: what they imply is "
            "measured and not judged.",
        ),
        (
            "gender",
            "The charter chooses a cost ratio for gender=female, but the data has no such group. "
            "Did you mean 'femal'?",
        ),
    ]
    assert [c.sentence for c in group_concerns(charter(CHOICE, FEMALE), {"gendr": ["x"]})] == [
        "The charter chooses a cost ratio for gender=female, but the data was not grouped by "
        "gender. Did you mean 'gendr'?"
    ]


def test_a_charter_with_everything_leaves_nothing_open() -> None:
    answers = {name: "".join(f'{key} = "yes"\n' for key in QUESTIONS[name]) for name in LAYERS}
    layers = "".join(
        f'[{name}]\nowner = "A"\nconsulted = ["B"]\n{answers[name]}' for name in LAYERS
    )
    bearers = "".join(
        f'[[catalogue]]\noutcome = "{outcome}"\nborne_by = "B"\nwhat = "w"\n'
        for outcome in ("false_positive", "false_negative", "true_positive")
    )
    system = 'name = "N"\ndecision = "D"\nitem = "x"\ndecided = "y"\ntruth = ["a", "b"]\n'
    text = f'schema = "evenhand.charter/1"\n[system]\n{system}{layers}{bearers}'
    whole = replace(parse_charter(text), choices=(CHOICE,))
    assert concerns(whole, today=DAY(2026, 6, 1)) == []
    costs = replace(whole, catalogue=whole.catalogue[:2])
    assert [c.sentence for c in concerns(costs, today=DAY(2026, 6, 1))] == [
        "The catalogue lists costs and no benefit."
    ]


def test_words_that_are_missing_are_said_by_check_and_shown_where_given() -> None:
    words = [c.sentence for c in concerns(charter(CHOICE), today=DAY(2026, 6, 1))]
    lacking = "The system has no words for item, decided and truth: findings use the table's own "
    assert f"{lacking}labels." in words
    said = replace(
        SYSTEM,
        item=("post", "posts"),
        of="by",
        decided="removed",
        truth=("break the rules", "do not break the rules"),
        class_=("topic", "topics"),
        groups={"gender": {"nonbinary": "nonbinary people"}},
    )
    text = charter_text(replace(charter(CHOICE), system=said))
    assert (
        "\nWords\n  Posts by people; that are removed; that break the rules, or that do not break "
        "the rules; by topic.\n  gender=nonbinary: nonbinary people\n"
    ) in text
    assert "Words" not in charter_text(charter(CHOICE))
    named = replace(charter(CHOICE), system=said)
    told = [c.sentence for c in group_concerns(named, {"gender": ["nonbinery"]})]
    assert told == [
        "The charter has a name for gender=nonbinary, but the data has no such group. Did you mean "
        "'nonbinery'?"
    ]
    # A charter may serve several tables: names of columns that one of them lacks are no mistake.
    assert group_concerns(named, {"region": ["north"]}) == []
