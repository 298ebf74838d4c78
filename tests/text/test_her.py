"""His or him: sentences tagged by hand, held-out texts, and the training from any corpus."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import DataError
from evenhand.text.her import train
from evenhand.text.her.contexts import context
from evenhand.text.her.model import HerModel, shipped_model

HERE = Path(__file__).parent
DATA = HERE.parents[2] / "shared" / "data"
SENTENCES = [
    (kind == "possessive", sentence)
    for kind, groups in tomllib.loads((HERE / "her_sentences.toml").read_text()).items()
    for sentences in groups.values()
    for sentence in sentences
]


def right_by_hand():
    right = 0
    for possessive, sentence in SENTENCES:
        found = re.search(r"\bher\b", sentence, re.IGNORECASE)
        right += (shipped_model().possessive(sentence, *found.span()) > 0.5) == possessive
    return right


def test_sentences_tagged_by_hand():
    assert len(SENTENCES) == 200
    assert right_by_hand() >= 186


@pytest.mark.xfail(reason="189 of 200 are right; the aim of 95 % is not reached yet", strict=True)
def test_sentences_tagged_by_hand_reach_95_percent():
    assert right_by_hand() >= 190


def test_the_weights_are_small():
    assert len(files("evenhand.text.her").joinpath("weights.tsv.gz").read_bytes()) < 200_000


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_fast_score_is_the_plain_one(before, after):
    text = f"{before} her {after}"
    found = context(text, len(before) + 1, len(before) + 4)
    model = shipped_model()
    assert model.score(found) == pytest.approx(model.score_plainly(found), abs=1e-9)


def test_weights_survive_a_file(tmp_path):
    model = HerModel({"n1=.": -0.5, "@_x": 0.25}, intercept=0.1, classes={"dog": "cn"})
    path = tmp_path / "w.gz"
    path.write_bytes(model.to_bytes())
    again = HerModel.read(path)
    assert again.weights == pytest.approx(model.weights)
    assert (again.intercept, again.classes) == (pytest.approx(0.1), {"dog": "cn"})
    path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match="is not a file of his-or-him weights"):
        HerModel.read(path)


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
    train.main([str(corpus), "--out", str(out)])
    assert "possessive: 1.0000 of" in capsys.readouterr().out
    assert HerModel.read(out).possessive("We told her about it.", 8, 11) < 0.5


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
