"""His or him: sentences tagged by hand, held-out texts, and the training from any corpus."""

import doctest
import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import DataError
from evenhand.text.his_or_him import HerModel, context, shipped_model

HERE = Path(__file__).parent
# The builder of the weights is a tool of the repository, not part of the package.
sys.path.insert(0, str(HERE.parents[1] / "tools"))

from her import constructions, examples, train  # noqa: E402
from her.constructions import PATTERNS, constructed, filled  # noqa: E402
from her.words import WORDS  # noqa: E402

DATA = HERE.parents[2] / "shared" / "data"


def tagged(name):
    return [
        (kind == "possessive", sentence)
        for kind, groups in tomllib.loads((HERE / name).read_text()).items()
        for sentences in groups.values()
        for sentence in sentences
    ]


DEVELOPMENT, SENTENCES = tagged("her_development.toml"), tagged("her_sentences.toml")


def right(model, sentences):
    found = 0
    for possessive, sentence in sentences:
        span = re.search(r"\bher\b", sentence, re.IGNORECASE).span()
        found += (model.possessive(sentence, *span) > 0.5) == possessive
    return found


def test_sentences_written_apart_from_the_classifier():
    """Scored once, after the weights were fixed: 195 of 200 (possessive 96, object 99)."""
    assert len(SENTENCES) == 200
    assert right(shipped_model(), SENTENCES) >= 190


def test_development_sentences():
    assert len(DEVELOPMENT) == 200
    assert right(shipped_model(), DEVELOPMENT) >= 190


def test_development_sentences_in_capitals():
    # Names and the openings of sentences look alike in capitals, so less is asked.
    capitals = [(possessive, sentence.upper()) for possessive, sentence in DEVELOPMENT]
    assert right(shipped_model(), capitals) >= 180


@pytest.mark.parametrize("mark", [".", "!", "?", ",", ";", ")", '"', "”", "…", ""])
def test_before_a_closing_mark_it_is_an_object(mark):
    assert shipped_model().possessive(f"We met her{mark}", 7, 10) < 0.5


def test_a_quotation_mark_opens_or_closes():
    closes, opens = ('"I miss her" was all.', 'He ruined her "secret" plan.')
    assert context(closes, 8, 11)[2] == '"'
    assert context(opens, 10, 13)[2] == "<open>"
    assert context("She met her ex-wife.", 8, 11)[2:4] == ("ex", "<join>")
    assert context("I saw her once - again.", 6, 9)[2:4] == ("once", "-")


def test_constructed_sentences_are_whole_and_seeded():
    made = constructed(1_000)
    assert made == constructed(1_000)
    assert made != constructed(1_000, seed=1)
    assert constructed(0) == []
    words = {word for _, around in made for word in around}
    assert "_" not in words
    assert "her" not in words
    share = sum(possessive for possessive, _ in made) / len(made)
    assert 0.4 < share < 0.6


def test_every_pattern_marks_one_place():
    for pattern in PATTERNS:
        assert len(re.findall("_[PO]_", pattern)) == 1
        assert set(re.findall(r"<(\w+)>", pattern)) <= set(WORDS)


def test_no_development_sentence_is_constructed():
    random = Random(0)
    made = (filled(pattern, random) for pattern in PATTERNS for _ in range(200))
    sentences = {re.sub("_[PO]_", "her", each).lower() for each in made}
    assert sentences.isdisjoint(sentence.lower() for _, sentence in DEVELOPMENT)


def test_the_weights_are_small():
    assert len(files("evenhand.text").joinpath("his_or_him.tsv.gz").read_bytes()) < 200_000


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_fast_score_is_the_plain_one(before, after):
    text = f"{before} her {after}"
    found = context(text, len(before) + 1, len(before) + 4)
    model = shipped_model()
    assert model.score(found) == pytest.approx(model.score_plainly(found), abs=1e-9)


def test_weights_survive_being_written():
    model = HerModel({"n1=.": -0.5, "@_x": 0.25}, intercept=0.1, classes={"dog": "cn"})
    again = HerModel.from_bytes(model.to_bytes())
    assert again.weights == pytest.approx(model.weights)
    assert (again.intercept, again.classes) == (pytest.approx(0.1), {"dog": "cn"})
    shipped = shipped_model()
    assert HerModel.from_bytes(shipped.to_bytes()).weights == pytest.approx(shipped.weights)


@pytest.mark.parametrize("module", [constructions, examples, train])
def test_the_builders_examples_run(module):
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed


def test_training_needs_both_kinds():
    with pytest.raises(DataError) as caught:
        train.train(["I saw his dog."] * 5, held_out=frozenset())
    assert str(caught.value) == (
        "The corpus of 5 texts has no contexts to learn from: it needs both possessives (his) "
        "and objects (him). Give a larger English corpus."
    )


def test_the_training_script_runs_on_any_corpus(tmp_path, capsys):
    corpus = tmp_path / "corpus.txt"
    nouns = ["dog", "cat", "house", "car", "book", "idea"]
    lines = [f"We saw his {noun} number {k}." for k, noun in enumerate(nouns * 8)]
    lines += [f"We told him about a {noun} {k}." for k, noun in enumerate(nouns * 8)]
    corpus.write_text("\n".join(lines))
    out = tmp_path / "w.tsv.gz"
    train.main([str(corpus), "--out", str(out), "--constructed", "0"])
    assert "possessive: 1.0000 of" in capsys.readouterr().out
    assert HerModel.from_bytes(out.read_bytes()).possessive("We told her about it.", 8, 11) < 0.5


@pytest.mark.heavy
@pytest.mark.skipif(not DATA.exists(), reason="no real data beside the repository")
def test_held_out_contexts_of_the_real_corpora():
    texts = [
        text
        for name in ("biographies_wikipedia.csv", "edos_sexism.csv")
        for text in train.read_texts(DATA / name, column="text")
    ]
    found = train.accuracy(shipped_model(), texts)
    (right_his, his), (right_him, him) = found["possessive"], found["object"]
    assert his > 2000
    assert him > 400
    assert (right_his + right_him) / (his + him) >= 0.965
    assert right_his / his >= 0.94
    assert right_him / him >= 0.94
