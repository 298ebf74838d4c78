"""Entries of several words: every case and joiner, word by word, and entries that no text has."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from work import calls

import evenhand as eh
from evenhand.text.compiled import compiled
from evenhand.text.lexicon import Lexicon, load_lexicon, parse_lexicon
from evenhand.text.swap import swap_texts

PAIRS = [
    ["african american", "european american"],
    ["african americans", "european americans"],
    ["black", "white"],
    ["south-side boy", "north-side boy"],
]
TOML = f"""
name = "race"
attribute = "race"
values = ["black", "white"]
pairs = {json.dumps(PAIRS)}
"""


def lexicon(pairs: list[list[str]], **more: object) -> Lexicon:
    table = {"attribute": "race", "values": ["black", "white"], "pairs": pairs, **more}
    return parse_lexicon(table, origin="race")


RACE = lexicon(PAIRS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An African American woman.", "A European American woman."),
        ("African-American voters", "European-American voters"),
        ("african american", "european american"),
        ("African american", "European american"),
        ("AFRICAN AMERICAN", "EUROPEAN AMERICAN"),
        ("AFRICAN-AMERICAN", "EUROPEAN-AMERICAN"),
        ("AFRICAN American", "EUROPEAN American"),
        ("african American", "european American"),
        # The longest entry first, and single words as ever.
        ("Two African Americans, both Black.", "Two European Americans, both White."),
        ("a South-Side Boy", "a North-Side Boy"),
        ("a south side-boy", "a north side-boy"),
        # Neither parts of words nor two spaces.
        ("Pan-African Americanism", "Pan-African Americanism"),
        ("African  American", "African  American"),
        ("African", "African"),
    ],
)
def test_each_word_keeps_its_case_and_each_joiner_stays(text: str, expected: str) -> None:
    swapped = eh.swap(text, to="white", lexicon=RACE, source="black")
    assert swapped.text == expected
    assert swapped.changed is (text != expected)


def test_an_entry_with_a_hyphen_finds_a_space_and_words_beyond_take_the_last_case() -> None:
    hyphens = lexicon([["african-american", "person of european descent"]])
    for text, expected in (
        ("African American", "Person Of European Descent"),
        ("African-American", "Person Of European Descent"),
        ("AFRICAN AMERICAN", "PERSON OF EUROPEAN DESCENT"),
        ("African-american", "Person of european descent"),
        ("african american", "person of european descent"),
    ):
        assert eh.swap(text, to="white", lexicon=hyphens, source="black").text == expected
    kept = lexicon([["african american", "afrikaner"]], case="keep")
    assert eh.swap("African American", to="white", lexicon=kept, source="black").text == "afrikaner"


def test_shipped_entries_of_several_words_are_found() -> None:
    religion = load_lexicon("religion")
    for text, expected in (
        ("She taught at Sunday School.", "She taught at Madrasa."),
        ("a sunday-school class", "a madrasa class"),
        # As before.
        ("She taught at Sunday school.", "She taught at Madrasa."),
        ("SUNDAY SCHOOL", "MADRASA"),
    ):
        found = eh.swap(text, to="muslim", lexicon=religion, source="christian")
        assert found.text == expected
    words = load_lexicon("gender_words")
    assert eh.swap("His Great-Grandmother", to="male", lexicon=words, source="female").text == (
        "Her Great-Grandfather"
    )
    assert eh.swap("an ex wife", to="male", lexicon=words, source="female").text == "an ex husband"


def test_what_protects_an_entry_protects_it_in_every_case() -> None:
    guarded = lexicon(
        PAIRS, protect=[{"words": ["african american"], "after": " Studies", "why": "a subject"}]
    )
    text = "African American Studies by African Americans and an African-American"
    found = eh.swap(text, to="white", lexicon=guarded, source="black")
    assert found.text == ("African American Studies by European Americans and a European-American")


CASES = st.sampled_from([str.lower, str.capitalize, str.upper])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["african american", "african americans"]),
            CASES,
            CASES,
            st.sampled_from(" -"),
            st.sampled_from(["", ", who ran, ", " and THE other, ", ". Then: "]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_swapping_twice_gives_the_text_again(parts: list[tuple]) -> None:
    text = " ".join(
        joiner.join(case(word) for case, word in zip(cases, entry.split(), strict=True)) + after
        for entry, *cases, joiner, after in parts
    )
    there = eh.swap(text, to="white", lexicon=RACE, source="black")
    assert there.replaced == len(parts)
    assert "frican" not in there.text.lower()
    back = eh.swap(there.text, to="black", lexicon=RACE, source="white")
    assert back.text == text


def test_a_thousand_entries_take_no_more_steps_than_one() -> None:
    names = [f"{a}{b}o" for a in "bcdfghjklm" for b in "aeiouäöüyé"]
    many = lexicon([[f"{a} {b}ta", f"{a} {b}to"] for a in names for b in names[:10]])
    assert len(many) == 2_000
    texts = ["An old tale of Bao Baota and of nobody else."] * 200
    few = lexicon([["bao baota", "bao baoto"]])
    compiled(many), compiled(few)
    steps = [calls(lambda words=each: swap_texts(texts, to="white", lexicon=words, sources=None))
             for each in (few, many)]  # fmt: skip
    assert steps[1] <= 1.1 * steps[0]


def test_entries_that_no_text_has_are_listed(tmp_path: Path) -> None:
    texts = {"bio": ["She taught at Sunday School.", "A church by the mosque.", None]}
    report = eh.swap_table(texts, text="bio", lexicon="religion", out=tmp_path / "s.parquet")
    entries = list(load_lexicon("religion").entries)
    found = {"sunday school", "church", "mosque"}
    assert report.never_found == tuple(word for word in entries if word not in found)
    first = ", ".join(repr(word) for word in report.never_found[:5])
    left = len(report.never_found) - 5
    assert f"Entries never found: {first} and {left} more." in str(report)
    assert report.to_json()["never_found"] == report.never_found


def test_a_race_lexicon_on_the_command_line(run, tmp_path: Path) -> None:
    Path("race.toml").write_text(TOML)
    bios = ["An African American pilot.", "European-American poets", "It rained."]
    pl.DataFrame({"bio": bios}).write_csv("bios.csv")
    flags = ("--text", "bio", "--lexicon", "race.toml", "--out", "s.parquet", "--json", "r.json")
    code, out, _ = run("swap", "bios.csv", *flags, "--no-probe")
    assert code == 0
    made = pl.read_parquet("s.parquet")
    assert made["bio@white"].to_list() == ["A European American pilot.", *bios[1:]]
    assert made["bio@black"].to_list() == [bios[0], "African-American poets", bios[2]]
    said = " ".join(out.split())
    assert (
        "Entries never found: 'african americans', 'european americans', 'black', 'white', "
        "'south-side boy' and 1 more." in said
    )
    listed = json.loads(Path("r.json").read_text())["never_found"]
    assert listed == ["african americans", "european americans", "black", "white",
                      "south-side boy", "north-side boy"]  # fmt: skip
    # Where every entry is found, nothing is said.
    every = " ".join(word.title() for pair in PAIRS for word in pair)
    pl.DataFrame({"bio": [every]}).write_csv("bios.csv")
    code, out, _ = run("swap", "bios.csv", *flags, "--no-probe")
    assert "never found" not in out
    assert json.loads(Path("r.json").read_text())["never_found"] == []
