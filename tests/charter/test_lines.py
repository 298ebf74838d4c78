"""Lines of keys: the walk must agree with what tomllib reads, and with where we wrote it."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.charter.entry import Path, key_lines

TEXT = '''\
# a comment with [brackets] and key = value
plain = 1
text = "a # b = [c]"   # and a comment
long = """
[not.a.table]
not_a_key = 1
"""
literal = \'\'\'
[[nor]]
this = 2\'\'\'
many = [
  1,  # one
  "two ]",
  [3, 4],
]
inline = {a = 1, b = {c = "}"}}
"quoted key" = 2026-01-31

[table]
dotted.key = true
[ table . sub ]
x = 1
[[array]]
y = 1
[array.inner]
z = 2
[[array]]
y = 3
[[array.deep]]
w = 4
'''
LINES = {
    ("plain",): 2,
    ("text",): 3,
    ("long",): 4,
    ("literal",): 8,
    ("many",): 11,
    ("many", 0): 12,
    ("many", 1): 13,
    ("many", 2): 14,
    ("many", 2, 0): 14,
    ("many", 2, 1): 14,
    ("inline",): 16,
    ("inline", "a"): 16,
    ("inline", "b"): 16,
    ("inline", "b", "c"): 16,
    ("quoted key",): 17,
    ("table",): 19,
    ("table", "dotted"): 20,
    ("table", "dotted", "key"): 20,
    ("table", "sub"): 21,
    ("table", "sub", "x"): 22,
    ("array", 0): 23,
    ("array", 0, "y"): 24,
    ("array", 0, "inner"): 25,
    ("array", 0, "inner", "z"): 26,
    ("array", 1): 27,
    ("array", 1, "y"): 28,
    ("array", 1, "deep", 0): 29,
    ("array", 1, "deep", 0, "w"): 30,
}


def paths(value: Any, path: Path = ()) -> set[Path]:
    found = {path} if path else set()
    if isinstance(value, dict):
        return found.union(*(paths(v, (*path, k)) for k, v in value.items()))
    if isinstance(value, list):
        return found.union(*(paths(v, (*path, i)) for i, v in enumerate(value)))
    return found


def test_every_form_of_key_has_its_line() -> None:
    assert key_lines(TEXT) == LINES


def test_the_walk_finds_the_keys_that_tomllib_reads() -> None:
    # An array of tables has no line of its own, only its tables have.
    arrays = {("array",), ("array", 1, "deep")}
    assert paths(tomllib.loads(TEXT)) - arrays == set(key_lines(TEXT))


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\x7f"), max_size=12).filter(
    lambda text: all(c >= " " or c in "\t\n" for c in text)
)


@given(st.lists(words, min_size=1, max_size=6), st.sampled_from(['"""', "plain", "list"]))
def test_no_text_hides_the_next_key(values: list[str], form: str) -> None:
    # Whatever stands in a value, the keys after it are found on the lines where they were written.
    text, expected = "", {}
    for i, value in enumerate(values):
        expected[f"k{i}",] = text.count("\n") + 1
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        flat = escaped.replace("\n", "\\n")
        text += {
            '"""': f'k{i} = """{escaped}"""\n',
            "plain": f'k{i} = "{flat}" # {flat}\n',
            "list": f'k{i} = [\n "{flat}", # {flat}\n]\n',
        }[form]
    assert len(tomllib.loads(text)) == len(values)
    assert {k: v for k, v in key_lines(text).items() if len(k) == 1} == expected


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment"])
def test_nothing_to_find(text: str) -> None:
    assert key_lines(text) == {}
