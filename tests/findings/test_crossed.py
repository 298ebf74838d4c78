"""Crossed groups spoken as people, whoever named which of their columns."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.findings.sentences.rows import say_row
from evenhand.findings.sentences.words import Words, group_names, possessive
from evenhand.lenses.rows import COLUMNS

RACE = {"race": {"b": "Black people", "w": "white people"}}
AGE = {"age": {"60+": "people over 60", "u30": "young people"}}
STATUS = {"status": {"imm": "immigrants"}}
DEFENDANTS = {"race": {"b": "Black defendants"}}


def words(*named: dict[str, dict[str, str]], **held: Any) -> Words:
    return Words(people_names={k: v for one in named for k, v in one.items()}, **held)


@pytest.mark.parametrize(
    ("given", "attribute", "group", "spoken"),
    [
        (words(RACE), "sex*race", "female*b", "Black women"),
        (words(RACE), "race*sex", "b*male", "Black men"),
        (words(RACE, AGE), "race*age", "b*60+", "Black people over 60"),
        (words(RACE, AGE), "sex*race*age", "female*b*u30", "Black young women"),
        (words(RACE), "race*region", "b*north", "Black people whose region is north"),
        (words(AGE), "age*sex", "60+*female", "women over 60"),
        (words(STATUS), "sex*status", "male*imm", "men whose status is imm"),
        (words(), "sex*colour", "Male*Black", "men whose colour is Black"),
        (words(), "a*b*c", "x*1*", "people whose a is x and b is 1 and c is ''"),
        (words(), "sex*region", "female*<missing>", "women whose region is missing"),
        (words(), "sex*region", "female*'a*b'", "women whose region is a*b"),
        (
            words({"sex*race": {"female*b": "Black sisters"}}),
            "sex*race",
            "female*b",
            "Black sisters",
        ),
        (
            words(DEFENDANTS, item=("defendant", "defendants")),
            "race*age",
            "b*old",
            "Black defendants whose age is old",
        ),
        (
            words(DEFENDANTS, item=("defendant", "defendants")),
            "race*sex",
            "b*female",
            "Black women",
        ),
    ],
)
def test_people_of_crossed_groups(given: Words, attribute: str, group: str, spoken: str) -> None:
    assert given.people(attribute, group) == spoken
    assert not given.is_one(attribute, group)


def test_two_persons_are_never_made_one() -> None:
    """A writer and a reader: women who are men, or Black white people, nobody has met."""
    groups = [("writer", "b"), ("writer", "w"), ("reader", "b"), ("reader", "w")]
    named = {"writer": RACE["race"], "reader": RACE["race"]}
    system = {"system": {"groups": named}}
    said = Words.of(charter=system, roles={}, details={}, groups=groups)
    assert said.people("writer*reader", "b*w") == "Black people whose reader is w"
    plain = Words(names=group_names([("writer", "female"), ("reader", "female")]))
    assert plain.people("writer*reader", "female*female") == (
        "people whose writer is female and reader is female"
    )


@pytest.mark.parametrize(
    ("who", "whose"),
    [
        ("women", "women's"),
        ("Black men", "Black men's"),
        ("people over 60", "those of people over 60"),
        ("men whose colour is Black", "those of men whose colour is Black"),
    ],
)
def test_whose(who: str, whose: str) -> None:
    assert possessive(who) == whose


def test_a_clause_follows_another_one_with_and() -> None:
    row = dict.fromkeys(COLUMNS) | {"lens": "statistical", "class": "1", "level": 0.95}
    row |= {"measure": "true_positive_rate_gap", "value": -0.1, "n": 500}
    row |= {"attribute": "sex*region", "group": "female*north", "reference": "male*north"}
    row |= {"family_low": -0.15, "family_high": -0.05, "verdict": "not assessed"}
    assert say_row(row, Words(positive="1")).headline == (
        "Women whose region is north and whose truth is '1' get decision '1' 10 points less often "
        "than men whose region is north (5 to 15)"
    )


def test_a_picture_names_them_shortly() -> None:
    assert words(RACE).label("sex*race", "female*b") == "Black women"
    assert words().label("sex*colour", "male*Black") == "men, Black"
    assert words().label("colour*employed", "Black*Yes") == "Black, Yes"


def test_an_audit_speaks_of_them_so(tmp_path: Any) -> None:
    rng = np.random.default_rng(4)
    n = 8000
    sex, colour = rng.integers(0, 2, n), rng.integers(0, 2, n)
    kept = rng.random(n) < 0.2 + 0.25 * ((sex == 1) & (colour == 1))
    frame = pl.DataFrame(
        {
            "sex": np.where(sex == 1, "Male", "Female"),
            "colour": np.where(colour == 1, "Black", "White"),
            "kept": kept.astype(int),
        }
    )
    limits = {"selection_rate_gap": 0.05}
    roles = {"decision": "kept", "group": ["sex", "colour"], "crossed": True}
    plain = eh.audit(frame, **roles, limits=limits)
    assert "men whose colour is Black" in str(plain).replace("\n", " ")
    charter = tmp_path / "charter.toml"
    charter.write_text(
        'schema = "evenhand.charter/1"\n[system]\nname = "Arrests"\n'
        '[system.groups.colour]\nBlack = "Black people"\nWhite = "white people"\n'
        "[limits]\nselection_rate_gap = 0.05\n",
        encoding="utf-8",
    )
    named = str(eh.audit(frame, **roles, charter=charter)).replace("\n", " ")
    assert "Black men" in named
    assert "colour is" not in named
