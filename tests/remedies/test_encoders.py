"""Transformers folders in a ledger: frozen or fine-tuned, kept, and refused in words."""

import pytest

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.simulate.biographies import Occupation, biographies

FEW = {
    "nurse": Occupation(female_share=0.85, words=("ward", "care", "clinic", "patients")),
    "surgeon": Occupation(female_share=0.2, words=("incision", "theatre", "organ", "operates")),
    "poet": Occupation(female_share=0.5, words=("verse", "stanza", "lyric", "sonnet")),
}
ROLES = {"truth": "title", "group": "gender", "text": "text"}


@pytest.fixture(scope="module")
def people():
    return biographies(600, occupations=FEW, seed=5).frame


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, make_bert, people):
    words = sorted({w for text in people["text"] for w in text.lower().replace(".", " ").split()})
    folder = tmp_path_factory.mktemp("models") / "tiny"
    return make_bert(folder, ["_", ".", *words], width=24, longest=128)


def test_what_is_neither_a_word_nor_a_folder(people, tmp_path):
    with pytest.raises(UsageError, match=r"'bert' is neither bow, vectors nor a folder\."):
        eh.compare(people, **ROLES, texts={"representations": ["bert"]})
    with pytest.raises(DataError, match=r"has no config\.json"):
        eh.compare(people, **ROLES, texts={"representations": [str(tmp_path)]})
    with pytest.raises(UsageError, match="fine_tune trains a transformers model"):
        eh.compare(people, **ROLES, texts={"fine_tune": True})
    with pytest.raises(UsageError, match="training says how a folder is fine-tuned"):
        eh.compare(people, **ROLES, texts={"training": {"epochs": 1}})


@pytest.mark.heavy
def test_frozen_folder_is_read_once_and_kept(people, tiny, tmp_path, monkeypatch):
    from evenhand.models.transformer import TransformerEmbedding

    out = tmp_path / "ledger"
    options = {
        "texts": {"representations": ["bow", str(tiny)], "norm_scorer": str(tiny)},
        "remedies": ["alpha_weights"],
        "seeds": 1,
        "out": out,
    }
    ledger = eh.compare(people, **ROLES, **options)
    row = ledger.row("baseline", "tiny")
    # Random vectors of the words still tell three occupations apart.
    assert row["measures"]["accuracy"]["all"]["value"] > 0.6
    assert list(out.glob("parts/embeddings/*/*.npz"))
    monkeypatch.setattr(TransformerEmbedding, "_embed", None)
    again = eh.compare(people, **ROLES, **options | {"remedies": ["oversample"]})
    assert again.row("baseline", "tiny")["measures"] == row["measures"]
    assert again.row("oversample", "tiny")["status"] == "measured"


@pytest.mark.heavy
def test_fine_tuned_rows(people, tiny, tmp_path):
    out = tmp_path / "ledger"
    shares: list[float] = []
    ledger = eh.compare(
        people,
        **ROLES,
        texts={
            "representations": [str(tiny)],
            "fine_tune": True,
            "training": {"epochs": 6, "learning_rate": 3e-3, "batch_size": 8},
        },
        remedies=["alpha_weights", "augment", "thresholds", "decoupled", "cocl"],
        seeds=1,
        out=out,
        progress=lambda done, total: shares.append(done / total),
    )
    rows = {row["remedy"]: row for row in ledger.rows}
    assert {row["representation"] for row in ledger.rows} == {"tiny-fine-tuned"}
    for name in ("baseline", "alpha_weights", "augment", "thresholds", "decoupled"):
        assert rows[name]["status"] == "measured", rows[name]["reason"]
        assert rows[name]["measures"]["accuracy"]["all"]["value"] > 0.45, name  # chance is a third
    assert rows["cocl"]["status"] == "skipped"
    assert "works on the weights of a linear model" in rows["cocl"]["reason"]
    assert any(share * 6 % 1 > 0.01 for share in shares)  # a fit tells how far it is
    assert not list(out.glob("parts/checkpoints/*"))
    import joblib

    model = joblib.load(out / "models" / "augment-tiny-fine-tuned.joblib")
    found = model.predict(people["text"].to_list()[:60])
    assert (found == people["title"].to_numpy()[:60]).mean() > 0.45
