"""`evenhand audit --norms … --model …`: the words that weigh, from the files to the page."""

import json
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from evenhand.models.norms.scorer import load_norms
from evenhand.simulate.biographies import biographies, occupations

TITLES = ("professor", "nurse", "surgeon", "teacher", "physician", "journalist")


@pytest.fixture
def folder(run, tmp_path) -> Path:
    """Biographies scored by a saved model, with norms, as the commands leave them."""
    few = {name: occupations()[name] for name in TITLES}
    for part, seed in (("train", 1), ("test", 2)):
        biographies(1_500, occupations=few, seed=seed).frame.write_parquet(
            tmp_path / f"{part}.parquet"
        )
    train = biographies(1_500, occupations=few, seed=1).frame
    model = make_pipeline(CountVectorizer(), LogisticRegression(C=0.1, max_iter=500))
    model.fit(train["text"].to_list(), train["title"].to_list())
    joblib.dump(model, tmp_path / "model.joblib")
    roles = ("--text", "text", "--truth", "title")
    run("norms", "fit", tmp_path / "train.parquet", *roles, "--group", "gender", "--bag-of-words",
        "--out", tmp_path / "norms")  # fmt: skip
    run("score", tmp_path / "test.parquet", *roles, "--model", tmp_path / "model.joblib",
        "--trust", "--out", tmp_path / "scored.parquet")  # fmt: skip
    run("norms", "score", tmp_path / "scored.parquet", "--norms", tmp_path / "norms", *roles,
        "--out", tmp_path / "normed.parquet")  # fmt: skip
    return tmp_path


def test_words_reach_the_record_and_the_page(run, folder):
    audit = ("audit", folder / "normed.parquet", "--truth", "title", "--group", "gender",
             "--norms", folder / "norms", "--model", folder / "model.joblib")  # fmt: skip
    code, _, _ = run(*audit, "--trust", "--json", folder / "a.json", "--out", folder / "a.html")
    assert code == 0
    held = json.loads((folder / "a.json").read_text())["details"]["norms"]
    assert held["words_toward"] == "female"
    assert {one["class"] for one in held["words"]} == set(TITLES)
    model, scorer = joblib.load(folder / "model.joblib"), load_norms(folder / "norms")[0]
    for one in held["words"][:5]:
        at = list(model[0].get_feature_names_out()).index(one["word"])
        assert one["classifier"] == model[-1].coef_[list(model.classes_).index(one["class"]), at]
        weight = scorer.word_weights("female")[scorer.names.index(one["word"])]
        assert np.isclose(one["norm"], weight)
    assert 'id="norm-words"' in (folder / "a.html").read_text(encoding="utf-8")
    code, _, told = run(*audit)
    assert (code, "is a pickle, which can run any code" in told) == (2, True)


def test_refusals_in_words(run, folder):
    plain = ("audit", folder / "scored.parquet", "--truth", "title", "--group", "gender")
    code, _, told = run(*plain, "--norms", folder / "norms")
    assert (code, told) == (
        2,
        "evenhand: --norms and --model go together: the norm scorer's folder and the model that "
        "decided, such as --norms norms --model model.joblib --trust.\n",
    )
    both = ("--norms", folder / "norms", "--model", folder / "model.joblib", "--trust")
    code, _, told = run(*plain, *both)
    assert code == 2
    assert told == (
        "evenhand: The words belong to the norms lens, which needs norm columns 'norm@<group>' "
        "(evenhand norms score adds them).\n"
    )
