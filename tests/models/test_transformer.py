import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.models import TransformerEmbedding
from evenhand.models.predictor import load_predictor
from evenhand.models.transformer import TransformerPredictor, model_folder

TEXTS = ["she cuts", "he cares for the ward", "", "cuts " * 100]
WORDS = ["she", "he", "cuts", "cares", "for", "the", "ward"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, make_bert):
    """A small BERT with random weights and a head of three classes."""
    import torch
    import transformers

    folder = make_bert(tmp_path_factory.mktemp("tiny"), WORDS)
    torch.manual_seed(0)
    names = {0: "nurse", 1: "surgeon", 2: "teacher"}
    load = transformers.BertForSequenceClassification.from_pretrained
    model = load(folder, num_labels=3, id2label=names).eval()
    model.save_pretrained(folder)
    return folder, model, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.heavy
def test_scores_equal_the_model_asked_one_text_at_a_time(tiny):
    import torch

    folder, model, tokenizer = tiny
    found = load_predictor(str(folder), batch_size=2, device="cpu")
    assert isinstance(found, TransformerPredictor)
    assert found.classes == ("nurse", "surgeon", "teacher")
    scores = found.scores(TEXTS)
    for row, text in enumerate(TEXTS):
        given = tokenizer(text, return_tensors="pt", truncation=True, max_length=32)
        with torch.inference_mode():
            alone = model(**given).logits.softmax(-1)[0].numpy()
        np.testing.assert_allclose(scores[row], alone, atol=1e-5)
    assert found.scores([]).shape == (0, 3)


@pytest.mark.heavy
def test_embedding_is_the_mean_over_words_and_is_cached_by_content(tiny, tmp_path, monkeypatch):
    import torch

    folder, model, tokenizer = tiny
    embedding = TransformerEmbedding(folder, batch_size=2, device="cpu", cache=tmp_path)
    vectors = embedding.features([*TEXTS, TEXTS[0]])
    for row, text in enumerate(TEXTS):
        given = tokenizer(text, return_tensors="pt", truncation=True, max_length=32)
        with torch.inference_mode():
            alone = model.bert(**given).last_hidden_state[0].mean(0).numpy()
        np.testing.assert_allclose(vectors[row], alone, atol=1e-5)
    np.testing.assert_array_equal(vectors[4], vectors[0])

    again = TransformerEmbedding(folder, cache=tmp_path)
    monkeypatch.setattr(TransformerEmbedding, "_embed", None)
    np.testing.assert_array_equal(again.features(TEXTS), vectors[:4])


@pytest.mark.heavy
def test_folder_with_broken_weights(tiny, tmp_path):
    folder, _, _ = tiny
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(DataError, match="could not be opened"):
        load_predictor(str(tmp_path))


def test_sentence_transformers_folder_names_its_model_inside(tmp_path):
    inner = tmp_path / "0_Transformer"
    inner.mkdir()
    (inner / "config.json").write_text("{}")
    (inner / "vocab.txt").write_text("a")
    (tmp_path / "modules.json").write_text('[{"idx": 0, "path": "0_Transformer"}]')
    assert model_folder(tmp_path) == inner


def test_path_that_is_no_folder(tmp_path):
    with pytest.raises(UsageError, match=r"is not a folder\. Give the folder of a transformers"):
        model_folder(tmp_path / "none")
