import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline

from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.models.endpoint import EndpointPredictor
from evenhand.models.predictor import CallablePredictor, Predictor, load_predictor

TEXTS = ["cuts with a scalpel", "cares for the ward", "scalpel in hand", "on the ward"]
TITLES = ["surgeon", "nurse", "surgeon", "nurse"]


def pipeline(model=None):
    return make_pipeline(CountVectorizer(), model or LogisticRegression()).fit(TEXTS, TITLES)


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def test_callable_with_rows_single_scores_or_names():
    rows = load_predictor(lambda texts: [[0.1, 0.2, 0.7]] * len(texts))
    assert rows.scores(["a", "b"]).shape == (2, 3)
    assert rows.classes == ("0", "1", "2")
    single = load_predictor(lambda texts: [0.25] * len(texts), classes=["no", "yes"])
    assert single.scores(["a"]).tolist() == [[0.75, 0.25]]
    assert single.classes == ("no", "yes")
    named = load_predictor(lambda texts: {"classes": ["x", "y"], "scores": [[1, 0]] * len(texts)})
    assert named.scores(["a"]).tolist() == [[1.0, 0.0]]
    assert named.classes == ("x", "y")
    assert isinstance(named, Predictor)
    assert load_predictor(named) is named


def test_no_texts_give_no_rows():
    model = load_predictor(lambda texts: [], classes=["a", "b"])
    assert model.scores([]).shape == (0, 2)
    assert load_predictor(pipeline()).scores([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            [[0.5, 0.5]],
            "The model returned 1 × 2 scores for 2 texts. "
            "It must return one row for each text, in the same order.",
        ),
        (
            0.5,
            "The model returned a single number scores for 2 texts. "
            "It must return one row for each text, in the same order.",
        ),
        (
            [[0.5, 0.5, 0.0]] * 2,
            "The model returned 3 scores a text and has 2 classes. "
            "There must be one score for each class.",
        ),
        (
            [[0.5, 0.5], [0.5, float("nan")]],
            "The model returned a score that is not a finite number for text 1 of 2. "
            "Every score must be finite.",
        ),
        (
            [[0.5, 0.5], [0.5]],
            "The model returned list that is not a table of numbers. "
            "It must return one row of scores for each text, all of the same length.",
        ),
        (
            {"classes": ["b", "a"], "scores": [[0, 1], [0, 1]]},
            "The model returned the classes b, a after a, b. "
            "They must stay the same, in the same order.",
        ),
        (
            {"classes": ["a", "a"], "scores": [[0, 1], [0, 1]]},
            "The model returned a class twice: a, a.",
        ),
        (
            {"classes": "ab", "scores": [[0, 1], [0, 1]]},
            "The model returned classes='ab'. It must return a list of names.",
        ),
    ],
)
def test_bad_answers_in_words(answer, words):
    model = CallablePredictor(lambda texts: answer, classes=("a", "b"))
    with says(DataError, words):
        model.scores(["x", "y"])


def test_text_that_is_not_a_string():
    model = load_predictor(lambda texts: [0.5] * len(texts))
    words = "Text 1 is None, not a string. Drop or fill rows without text first."
    with says(DataError, words):
        model.scores(["a", None])


@pytest.mark.parametrize("suffix", [".joblib", ".pkl"])
def test_joblib_file_with_trust(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    model = pipeline()
    joblib.dump(model, path)
    found = load_predictor(str(path), trust=True)
    assert found.classes == ("nurse", "surgeon")
    np.testing.assert_allclose(found.scores(TEXTS), model.predict_proba(TEXTS))
    assert load_predictor(path, trust=True).classes == found.classes


def test_decision_function_where_there_are_no_probabilities():
    found = load_predictor(pipeline(RidgeClassifier()))
    scores = found.scores(TEXTS)
    assert [found.classes[k] for k in scores.argmax(1)] == TITLES


def test_pickle_is_not_opened_without_trust(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "opened",))

    path = tmp_path / "model.joblib"
    path.write_bytes(pickle.dumps(Trap()))
    words = (
        f"model={str(path)!r} is a pickle, which can run any code when it is opened. "
        "Pass trust=True (--trust) if you know where it comes from."
    )
    with says(UsageError, words):
        load_predictor(str(path))
    assert not (tmp_path / "opened").exists()


def test_pickle_that_is_not_a_model(tmp_path):
    path = tmp_path / "model.joblib"
    joblib.dump({"weights": [1, 2]}, path)
    words = (
        f"model={str(path)!r} holds dict, not a fitted classifier. "
        "It must have classes_ and predict_proba or decision_function."
    )
    with says(DataError, words):
        load_predictor(str(path), trust=True)


def test_unfitted_model_and_model_without_vectoriser(tmp_path):
    with pytest.raises(DataError, match="not a fitted classifier"):
        load_predictor(LogisticRegression())
    bare = LogisticRegression().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(DataError, match=r"does not take raw texts: .* Save the whole pipeline"):
        load_predictor(bare).scores(["a"])


def test_garbage_instead_of_a_pickle(tmp_path):
    path = tmp_path / "model.joblib"
    path.write_bytes(b"\x00\xffnot a pickle")
    with pytest.raises(
        DataError, match=r"could not be opened as a joblib file \(.*joblib\.dump\.$"
    ):
        load_predictor(str(path), trust=True)


def test_pickle_of_a_missing_module(tmp_path):
    path = tmp_path / "model.joblib"
    path.write_bytes(b"cno_such_package\nModel\n.")
    words = (
        f"model={str(path)!r} needs the module 'no_such_package', which is not installed. "
        "Install what the model was made with."
    )
    with says(DataError, words):
        load_predictor(str(path), trust=True)


def test_joblib_missing(tmp_path, monkeypatch):
    path = tmp_path / "model.joblib"
    joblib.dump(1, path)
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'evenhand\[text\]'"):
        load_predictor(str(path), trust=True)


def test_module_function_in_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "my_scorer_of_tests.py").write_text(
        "def predict(texts):\n    return [len(t) / 10 for t in texts]\n"
        "predict.classes = ('short', 'long')\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    found = load_predictor("my_scorer_of_tests:predict")
    assert found.scores(["abc"]).tolist() == [[0.7, 0.3]]
    assert found.classes == ("short", "long")
    assert sys.path == before
    words = (
        "model='my_scorer_of_tests:predictt': my_scorer_of_tests has no 'predictt'. "
        "Did you mean 'predict'?"
    )
    with says(UsageError, words):
        load_predictor("my_scorer_of_tests:predictt")


def test_module_that_cannot_be_found():
    words = (
        "model='no_such_module_here:f' needs the module 'no_such_module_here', "
        "which cannot be found. Run from the folder that holds it, or install it."
    )
    with says(UsageError, words):
        load_predictor("no_such_module_here:f")


def test_what_is_neither():
    forms = "Give a joblib file, a folder of a transformers model, http://… or module:function."
    with says(UsageError, f"model='nothing.joblib' is no file or folder that exists. {forms}"):
        load_predictor("nothing.joblib")
    with says(UsageError, f"The model is int, which cannot be called on texts. {forms}"):
        load_predictor(3)
    with says(UsageError, "batch_size=0 is not a number of texts. Give 1 or more."):
        load_predictor("x:y", batch_size=0)


def test_address_becomes_an_endpoint():
    found = load_predictor("http://127.0.0.1:9/predict", batch_size=7, timeout=3, retries=1, rate=2)
    assert isinstance(found, EndpointPredictor)
    assert (found.batch_size, found.timeout, found.retries, found.rate) == (7, 3, 1, 2)


def test_folder_without_configuration_or_tokenizer(tmp_path):
    words = (
        f"The folder {str(tmp_path)!r} has no config.json, so it is not a transformers model. "
        "Save the model there with save_pretrained."
    )
    with says(DataError, words):
        load_predictor(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    words = (
        f"The folder {str(tmp_path)!r} has no tokenizer. "
        "Save it beside the model with tokenizer.save_pretrained."
    )
    with says(DataError, words):
        load_predictor(str(tmp_path))


def test_torch_missing(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'evenhand\[torch\]'"):
        load_predictor(str(tmp_path))


def test_models_load_nothing_heavy_before_it_is_needed():
    code = (
        "import sys, evenhand.models.predictor, evenhand.models.endpoint, "
        "evenhand.models.transformer, evenhand.models.corpus, evenhand.models.vectors, "
        "evenhand.models.logistic; "
        "print([m for m in ('sklearn', 'torch', 'transformers', 'joblib', 'scipy.stats', 'pandas') "
        "if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
