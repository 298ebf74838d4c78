"""`evenhand words`: weights of words and the filter between two models, from files on disk."""

import dataclasses
import json

import polars as pl
import pytest

from evenhand.models.norms.table import fit_norms
from evenhand.remedies.ledger.compare import compare
from evenhand.simulate.biographies import biographies, occupations

TITLES = ("nurse", "surgeon", "teacher", "professor", "poet")
ROLES = {"text": "text", "truth": "title", "group": "gender"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two models of a ledger and a norm scorer of the same biographies."""
    folder = tmp_path_factory.mktemp("words")
    known = occupations()
    chosen = {title: dataclasses.replace(known[title], size=1.0) for title in TITLES}
    frame = biographies(700, occupations=chosen, seed=2, leak="class_words").frame
    compare(frame, **ROLES, remedies=["decoupled"], seeds=1, out=folder / "ledger",
            texts={"representations": ["bow"]})  # fmt: skip
    fit_norms(frame, **ROLES, groups=["female", "male"], irrelevant=False, bag_of_words=True,
              out=folder / "norms")  # fmt: skip
    frame.write_parquet(folder / "bios.parquet")
    return folder


def test_weights_and_filter(run, made):
    models = made / "ledger" / "models"
    base, own = (str(models / f"{name}-bow.joblib") for name in ("baseline", "decoupled"))
    norms = ("--norms", str(made / "norms"), "--trust")
    code, out, err = run("words", "weights", base, *norms, "--out", "words.csv")
    assert (code, err) == (0, "")
    assert out.startswith("nurse: ")
    columns = ["class", "word", "weight", "norm_weight", "relevant"]
    assert pl.read_csv("words.csv").columns == columns
    code, out, err = run("words", "filter", own, base, *norms, "--of", "female",
                         "--threshold", "0.1", "--out", "passed.parquet")  # fmt: skip
    assert (code, err) == (0, "")
    assert "|norm| > 0.1 and |weight| > 0.7" in out
    assert set(pl.read_parquet("passed.parquet")["class"]) <= set(TITLES)
    code, _, err = run("words", "weights", own, *norms)
    assert code == 2
    assert "has a model for each of female, male" in err
    code, _, err = run("words", "weights", base)
    assert code == 2
    assert "is a pickle, which can run any code" in err


def test_audits_take_models_of_a_ledger(run, made, tmp_path):
    """--model tells the words that carry norm bias, of a remedy's own model too."""
    model, norms = str(made / "ledger" / "models" / "baseline-bow.joblib"), str(made / "norms")
    assert run("score", str(made / "bios.parquet"), "--text", "text", "--model", model, "--trust",
               "--truth", "title", "--out", "scored.parquet")[0] == 0  # fmt: skip
    assert run("norms", "score", "scored.parquet", "--norms", norms, "--text", "text",
               "--out", "normed.parquet")[0] == 0  # fmt: skip
    code, _, err = run("audit", "normed.parquet", "--truth", "title", "--group", "gender",
                       "--lens", "norms", "--norms", norms, "--model", model, "--trust",
                       "--json", "audit.json")  # fmt: skip
    assert (code, err) == (0, "")
    assert '"classifier"' in (tmp_path / "audit.json").read_text()
    assert json.loads((tmp_path / "audit.json").read_text())["verdict"] == "not assessed"
