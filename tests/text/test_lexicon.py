"""Lexicon files: what ships, and the exact words for what is wrong with one."""

import pytest

from evenhand.errors import DataError, UsageError
from evenhand.text.lexicon import load_lexicon, shipped_lexicons

HEAD = 'attribute = "g"\nvalues = ["x", "y"]\n'


def load(tmp_path, body, head=HEAD):
    path = tmp_path / "mine.toml"
    path.write_text(head + body)
    return load_lexicon(path)


def message(tmp_path, body, head=HEAD, error=DataError):
    with pytest.raises(error) as caught:
        load(tmp_path, body, head)
    return str(caught.value).replace(str(tmp_path / "mine.toml"), "mine.toml")


@pytest.mark.parametrize("name", shipped_lexicons())
def test_shipped_lexicons_load(name):
    lexicon = load_lexicon(name)
    assert lexicon.name == name
    assert lexicon.description
    assert {entry.value for entry in lexicon.entries.values()} == set(lexicon.values)


def test_gender_pronouns_are_exactly_the_published_rules():
    entries = load_lexicon("gender_pronouns").entries
    plain = {
        word: next(iter(entry.to.values())) for word, entry in entries.items() if word != "her"
    }
    assert plain == {
        "he": "she", "she": "he", "himself": "herself", "herself": "himself", "mr": "ms",
        "ms": "mr", "hers": "his", "his": "her", "him": "her", "mrs": "mr",
    }  # fmt: skip
    choice = entries["her"].to["male"]
    assert (choice.possessive, choice.object) == ("his", "him")


def test_gender_words_has_about_200_pairs_and_says_what_must_not_swap():
    lexicon = load_lexicon("gender_words")
    feminine = [entry for entry in lexicon.entries.values() if entry.value == "female"]
    assert len(feminine) >= 400  # 200 with their plurals
    for word in ("actress", "actresses", "mother", "wives", "women", "heroine"):
        assert word in lexicon.entries
    assert {"bachelor", "nurse", "mankind", "host"} <= set(lexicon.never)


def test_religion_has_three_values():
    assert len(load_lexicon("religion").values) == 3


def test_a_lexicon_of_ones_own(tmp_path):
    lexicon = load(tmp_path, 'pairs = [["ab", "cd"], ["ef gh", "ij"]]')
    assert lexicon.entries["ef gh"].to == {"y": "ij"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("paris = []", "The lexicon 'mine.toml' has the unknown key 'paris'. "
         "Did you mean 'pairs'?"),
        ("", "The lexicon 'mine.toml' has no words. Give pairs or one_way rules."),
        ('pairs = [["a", "b"], ["b", "c"]]',
         "The lexicon 'mine.toml' has 'b' on both sides: for y and for x. "
         "A word can stand for one value only."),
        ('pairs = [["a", "b"], ["a", "c"]]',
         "The lexicon 'mine.toml' has two rules for 'a'. Keep one of them."),
        ('one_way = [{word="a", value="x", to={y="b"}}, {word="b", value="y", to={x="a"}}]',
         "The lexicon 'mine.toml' has a loop of one-way rules: a → b → a. "
         "Write a pair for words that swap in both directions."),
        ('one_way = [{word="a", value="x", to={y="b"}}, {word="b", value="y", to={x="c"}}, '
         '{word="c", value="x", to={y="d"}}, {word="d", value="y", to={x="a"}}]',
         "The lexicon 'mine.toml' has a loop of one-way rules: a → b → c → d → a. "
         "Write a pair for words that swap in both directions."),
        ('pairs = [["a", "b"]]\none_way = [{word="c", value="x", to={y="a"}}]',
         "The lexicon 'mine.toml' has 'a' on both sides: 'c' becomes 'a' for y, "
         "but 'a' stands for x."),
        ('pairs = [["a"]]',
         "The lexicon 'mine.toml' has the pair ['a'], but 2 values. Give one word for each of "
         "x, y, or an empty string where there is none."),
        ('pairs = [["A", "b"]]',
         "The lexicon 'mine.toml' has the word 'A'. Words are written in lower case and begin and "
         "end with a letter or digit."),
        ('one_way = [{word="a", value="z", to={y="b"}}]',
         "The lexicon 'mine.toml' gives 'a' the value 'z', which is not among its values x, y."),
        ('one_way = [{word="a", value="x", too={y="b"}}]',
         "The lexicon 'mine.toml' has the unknown key 'too' in one_way. Did you mean 'to'?"),
        ('one_way = [{word="a", value="x"}]',
         "The lexicon 'mine.toml' lacks the key 'to' in one_way."),
        ('one_way = [{word="a", value="x", to={y="b"}, only="big"}]',
         "The lexicon 'mine.toml' has only='big' for 'a'. Write lower, capitalised or upper."),
        ('one_way = {word = "a"}',
         "The lexicon 'mine.toml' has one_way in another form: write [[one_way]]."),
        ('pairs = [["a", "b"]]\ncase = "loud"',
         "The lexicon 'mine.toml' has case='loud'. Write \"copy\" (the new word takes the old "
         "word's case) or \"keep\" (it is written as in the lexicon)."),
        ('pairs = [["a", "b"]]\nnever = [{words = ["a"], why = "so"}]',
         "The lexicon 'mine.toml' swaps 'a' and lists it under never. Remove one of them."),
        ('pairs = [["a", "b"]]\nprotect = [{words = ["a"], after = "(", why = "so"}]',
         "The lexicon 'mine.toml' protects '(', which is not a regular expression: missing ), "
         "unterminated subpattern at position 0."),
        ('pairs = [["a", "b"]]\nprotect = [{words = ["a"], why = "so"}]',
         "The lexicon 'mine.toml' protects a without saying where. Give before, after or both."),
        ('part_of_speech = [{word="a", value="x", possessive={y="b"}, object={}}]',
         "The lexicon 'mine.toml' gives 'a' a possessive and an object for different values. "
         "Give both for each value."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_lexicon(tmp_path, body, expected):
    assert message(tmp_path, body) == expected


def test_values_and_toml_are_checked(tmp_path):
    assert message(tmp_path, "", head='attribute = "g"\nvalues = ["x"]\n') == (
        "The lexicon 'mine.toml' has values=['x']. Give two or more different values of the "
        'attribute, such as ["female", "male"].'
    )
    assert message(tmp_path, "", head='values = ["x", "y"]\n') == (
        "The lexicon 'mine.toml' lacks the key 'attribute'."
    )
    assert "is not valid TOML" in message(tmp_path, "pairs = [")


def test_missing_files_and_names():
    with pytest.raises(UsageError) as caught:
        load_lexicon("gender_pronoun")
    assert str(caught.value) == (
        "lexicon='gender_pronoun' is neither a file nor a shipped lexicon (gender_pronouns, "
        "gender_they, gender_words, neutral_synonyms, religion). Did you mean 'gender_pronouns'?"
    )


def test_a_binary_file_is_not_a_lexicon(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a text file in UTF-8"):
        load_lexicon(path)
