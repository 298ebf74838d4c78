"""`evenhand score`, and the way from texts to an audit in three commands."""

import json
import sqlite3
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from evenhand.decisions import batches
from evenhand.simulate.biographies import biographies, occupations

FOUR = {name: occupations()[name] for name in ("professor", "nurse", "surgeon", "dietitian")}
SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Six hundred biographies and a model of others, trained with every word it saw."""
    place = tmp_path_factory.mktemp("bios")
    train = biographies(1_500, occupations=FOUR, seed=1).frame
    model = make_pipeline(CountVectorizer(), LogisticRegression(C=0.1, max_iter=500))
    model.fit(train["text"].to_list(), train["title"].to_list())
    joblib.dump(model, place / "model.joblib")
    biographies(600, occupations=FOUR, seed=2).frame.write_parquet(place / "bios.parquet")
    return place


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that gave up waiting is what the tests ask for, not an error to print."""


@pytest.fixture
def serve():
    """Starts HTTP servers on 127.0.0.1 that answer texts by a function, and stops them."""
    started = []

    def start(answer):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code, content = answer(json.loads(body)["texts"])
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        server = QuietServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        started.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}/predict"

    yield start
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.server_close()


def shout(texts):
    """Classes by the first word: a model that only sees she and he."""
    return [[1.0, 0.0] if text.lower().startswith("she") else [0.2, 0.8] for text in texts]


def answer_of(scores, classes=("no", "yes")):
    return 200, json.dumps({"classes": list(classes), "scores": scores}).encode()


SCORE = ["--text", "bio", "--out", "scored.parquet"]


@pytest.fixture
def swapped(run):
    table = {
        "bio": ["She ran.", "He sat.", None, "He sat.", ""],
        "bio@female": ["She ran.", "She sat.", None, "She sat.", ""],
        "bio@male": ["He ran.", "He sat.", None, "He sat.", ""],
        "truth": ["no", "yes", "no", "maybe", None],
    }
    pl.DataFrame(table).write_parquet("swapped.parquet")
    return "swapped.parquet"


def test_three_commands_lead_from_texts_to_an_audit(run, made):
    flags = ["--text", "text", "--group", "gender", "--out", "swapped.parquet"]
    assert run("swap", made / "bios.parquet", *flags)[0] == 0
    flags = ["--text", "text", "--truth", "title", "--out", "scored.parquet"]
    model = ["--model", made / "model.joblib", "--trust"]
    code, out, err = run("score", "swapped.parquet", *flags, *model, "--json", "score.json")
    assert (code, err) == (0, "")
    assert "1,200 distinct texts scored; 4 classes: dietitian, nurse, professor, surgeon." in out
    assert json.loads(Path("score.json").read_text())["asked"] == 1_200

    scored = pl.read_parquet("scored.parquet")
    pipeline = joblib.load(made / "model.joblib")
    for column, mark in (("text", ""), ("text@female", "@female"), ("text@male", "@male")):
        expected = pipeline.predict_proba(scored[column].to_list())
        names = pipeline.classes_.tolist()
        found = scored.select(f"score:{name}{mark}" for name in names).to_numpy()
        assert found == pytest.approx(expected)
        assert scored[f"decision{mark}"].to_list() == pipeline.predict(scored[column]).tolist()
        own = [names.index(title) for title in scored["title"]]
        assert scored[f"score:truth{mark}"].to_numpy() == pytest.approx(
            np.take_along_axis(expected, np.array(own)[:, None], axis=1)[:, 0]
        )

    flags = ["--truth", "title", "--group", "gender", "--json", "audit.json"]
    code, out, _ = run("audit", "scored.parquet", *flags)
    assert code == 0
    assert "Changing nothing but the gendered words changes the answer" in out
    rows = json.loads(Path("audit.json").read_text())["results"]
    pairs = {
        row["class"]: row["value"]
        for row in rows
        if row["measure"] == "counterfactual_selection_rate_gap" and row["group"] == "female"
    }
    for name in FOUR:
        by_hand = (scored["decision@female"] == name).mean() - (
            scored["decision@male"] == name
        ).mean()
        assert pairs[name] == pytest.approx(by_hand)
    assert {row["lens"] for row in rows} >= {"statistical", "counterfactual"}


def test_a_function_and_an_address_decide_as_the_file_does(run, made, serve, monkeypatch):
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    flags = ["--text", "text", "--out", "swapped.parquet", "--no-probe"]
    assert run("swap", made / "bios.parquet", *flags)[0] == 0
    code = (
        "import joblib\n"
        f"pipeline = joblib.load({str(made / 'model.joblib')!r})\n"
        "def ask(texts):\n"
        "    scores = pipeline.predict_proba(texts)\n"
        "    return {'classes': list(pipeline.classes_), 'scores': scores}\n"
    )
    Path("mymodel.py").write_text(code)
    pipeline = joblib.load(made / "model.joblib")
    sent: Counter[str] = Counter()

    def answer(texts):
        sent.update(texts)
        return answer_of(pipeline.predict_proba(texts).tolist(), pipeline.classes_)

    models = {"file": [made / "model.joblib", "--trust"], "function": ["mymodel:ask"]}
    models["address"] = [serve(answer), "--batch-size", "100"]
    found = {}
    for name, model in models.items():
        flags = ["--text", "text", "--truth", "title", "--out", f"{name}.parquet", "--model"]
        assert run("score", "swapped.parquet", *flags, *model)[0] == 0
        found[name] = pl.read_parquet(f"{name}.parquet")
    for name in ("function", "address"):
        assert found[name].columns == found["file"].columns
        numbers = pl.selectors.numeric()
        assert found[name].select(~numbers).equals(found["file"].select(~numbers))
        assert found[name].select(numbers).to_numpy() == pytest.approx(
            found["file"].select(numbers).to_numpy()
        )
    assert set(sent.values()) == {1}
    assert len(sent) == 1_200


def test_nulls_stay_null_and_unknown_truths_are_counted(run, swapped, serve):
    url = serve(lambda texts: answer_of(shout(texts)))
    code, out, _ = run("score", swapped, *SCORE, "--truth", "truth", "--model", url)
    assert code == 0
    assert out.splitlines() == [
        "5 rows of swapped.parquet; texts in bio, bio@female, bio@male.",
        "5 distinct texts scored; 2 classes: no, yes.",
        "1 rows have no text and no decision.",
        "1 rows have a truth that the model does not know ('maybe'): score:truth is null there.",
        "Wrote scored.parquet.",
    ]
    scored = pl.read_parquet("scored.parquet")
    assert scored["decision"].to_list() == ["no", "yes", None, "yes", "yes"]
    assert scored["decision@female"].to_list() == ["no", "no", None, "no", "yes"]
    assert scored["score:yes@male"].to_list() == [0.8, 0.8, None, 0.8, 0.8]
    assert scored["score:truth"].to_list() == [1.0, 0.8, None, None, None]
    assert not Path("scored.parquet.partial").exists()


def test_a_run_that_broke_off_goes_on_where_it_stopped(run, serve, monkeypatch):
    monkeypatch.setattr(batches, "MOST_ROWS", 20)
    texts = [f"She ran {k % 60} times." for k in range(100)]
    pl.DataFrame({"bio": texts}).write_parquet("swapped.parquet")
    sent: Counter[str] = Counter()
    alive = 4

    def answer(asked):
        nonlocal alive
        if alive == 0:
            return 500, b"down"
        alive -= 1
        sent.update(asked)
        return answer_of(shout(asked))

    url = serve(answer)
    flags = [*SCORE, "--model", url, "--batch-size", "8", "--retries", "0"]
    code, out, err = run("score", "swapped.parquet", *flags)
    assert (code, out) == (4, "")
    assert err == (
        f"evenhand: {url} answered 500 Internal Server Error (tried once). "
        "See whether the server is up, then run again; what is scored is kept.\n"
    )
    # Batches of 20 rows, asked 8, 8, 4 and 8 at a time: 28 texts were answered.
    assert len(sent) == 28
    assert Path("scored.parquet.partial").exists()
    assert not Path("scored.parquet").exists()

    alive = 1_000
    code, out, _ = run("score", "swapped.parquet", *flags)
    assert code == 0
    assert "32 distinct texts scored, 28 were kept from before; 2 classes: no, yes." in out
    assert set(sent.values()) == {1}
    assert len(sent) == 60
    assert pl.read_parquet("scored.parquet")["decision"].to_list() == ["no"] * 100
    assert [p.name for p in Path().iterdir() if "scored" in p.name] == ["scored.parquet"]


def test_what_another_model_scored_is_never_mixed_in(run, swapped, serve):
    with sqlite3.connect("scored.parquet.partial") as file:
        file.execute("CREATE TABLE kept (text BLOB PRIMARY KEY, scores BLOB) WITHOUT ROWID")
        file.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value)")
        file.execute("INSERT INTO about VALUES ('model', 'other')")
        file.executemany("INSERT INTO kept VALUES (?, ?)", [(b"1", b""), (b"2", b"")])
    file.close()
    flags = [*SCORE, "--model", serve(lambda texts: answer_of(shout(texts)))]
    code, _, err = run("score", swapped, *flags)
    assert code == 4
    assert err == (
        "evenhand: The side file 'scored.parquet.partial' has 2 texts scored by another model, or "
        "by this one before it changed. Go on with that one, or start anew with --fresh.\n"
    )
    assert run("score", swapped, *flags, "--fresh")[0] == 0
    Path("scored.parquet.partial").write_bytes(b"not a database, by any means" * 50)
    code, _, err = run("score", swapped, *flags)
    assert code == 4
    assert err == (
        "evenhand: The side file 'scored.parquet.partial' is damaged: file is not a database. "
        "Remove it or start anew with --fresh.\n"
    )
    assert run("score", swapped, *flags, "--fresh")[0] == 0


def test_a_model_that_never_answered_binds_nobody(run, swapped, serve):
    broken = serve(lambda texts: (404, b""))
    assert run("score", swapped, *SCORE, "--model", broken)[0] == 4
    assert Path("scored.parquet.partial").exists()
    works = serve(lambda texts: answer_of(shout(texts)))
    assert run("score", swapped, *SCORE, "--model", works)[0] == 0
    assert not Path("scored.parquet.partial").exists()


def test_classes_that_change_on_the_way_are_refused(run, swapped, serve):
    calls = 0

    def answer(texts):
        nonlocal calls
        calls += 1
        return answer_of(shout(texts), ("no", "yes") if calls == 1 else ("no", "maybe"))

    url = serve(answer)
    code, _, err = run("score", swapped, *SCORE, "--model", url, "--batch-size", "3")
    assert code == 4
    assert err == (
        f"evenhand: {url} returned the classes no, maybe after no, yes. "
        "They must stay the same, in the same order.\n"
    )
    # The same after a restart, when only the side file remembers the first classes.
    code, _, err = run("score", swapped, *SCORE, "--model", url, "--batch-size", "3")
    assert code == 4
    assert err == (
        "evenhand: The model has the classes no, maybe; the texts scored before, in "
        "'scored.parquet.partial', have no, yes. Start anew with --fresh.\n"
    )


ANSWERS = [
    (
        lambda texts: answer_of(shout(texts)[1:]),
        "URL returned 4 × 2 scores for 5 texts. It must return one row for each text, in the same "
        "order.",
    ),
    (
        lambda texts: (200, b"<html>It works</html>"),
        "URL answered with something that is not JSON: '<html>It works</html>'. It must answer "
        '{"classes": ["a", "b"], "scores": [[0.9, 0.1], …]}.',
    ),
    (
        lambda texts: (500, b""),
        "URL answered 500 Internal Server Error (tried once). See whether the server is up, then "
        "run again; what is scored is kept.",
    ),
    (
        lambda texts: time.sleep(1) or answer_of(shout(texts)),
        "URL did not answer within 0.2 seconds (tried once). See whether the server is up, then "
        "run again; what is scored is kept.",
    ),
]


@pytest.mark.parametrize(("answer", "told"), ANSWERS, ids=["length", "json", "500", "hangs"])
def test_endpoints_that_misbehave_get_one_sentence(run, swapped, serve, answer, told):
    url = serve(answer)
    flags = ["--model", url, "--retries", "0", "--timeout", "0.2"]
    assert run("score", swapped, *SCORE, *flags) == (
        4,
        "",
        f"evenhand: {told.replace('URL', url)}\n",
    )
    assert not Path("scored.parquet").exists()


MISTAKES = [
    (["score", *SCORE, "--model", "m:f"], 2,
     "Name the file to score, such as: evenhand score swapped.parquet …"),
    (["score", "DATA", "--text", "boi", "--out", "o.parquet", "--model", "good:ask"], 2,
     "text='boi' is not a column of the table. Did you mean 'bio'?"),
    (["score", "DATA", "--text", "none", "--out", "o.parquet", "--model", "good:ask"], 4,
     "text='none' is null in all 2 rows. Name the column that holds the texts."),
    (["score", "taken.parquet", *SCORE, "--model", "good:ask"], 2,
     "The table has a column 'decision' already. Score the table that swap wrote, or drop that "
     "column."),
    (["score", "DATA", *SCORE, "--model", "good:ask", "--truth", "bio"], 4,
     "truth='bio' holds 'He sat.', 'She ran.', and the model knows 0, 1: none is the same. Name "
     "the column with the classes that the model was trained on."),
    (["score", "DATA", *SCORE, "--model", "list.joblib"], 2,
     "model='list.joblib' is a pickle, which can run any code when it is opened. Pass trust=True "
     "(--trust) if you know where it comes from."),
    (["score", "DATA", *SCORE, "--model", "list.joblib", "--trust"], 4,
     "model='list.joblib' holds list, not a fitted classifier. It must have classes_ and "
     "predict_proba or decision_function."),
    (["score", "DATA", *SCORE, "--model", "folder"], 4,
     "The folder 'folder' has no tokenizer. Save it beside the model with "
     "tokenizer.save_pretrained."),
    (["score", "DATA", *SCORE, "--model", "nowhere.joblib"], 2,
     "model='nowhere.joblib' is no file or folder that exists. Give a joblib file, a folder of a "
     "transformers model, http://… or module:function."),
    (["score", "DATA", *SCORE, "--model", "good:aks"], 2,
     "model='good:aks': good has no 'aks'. Did you mean 'ask'?"),
    (["score", "DATA", *SCORE, "--model", "broken:ask"], 2,
     "model='broken:ask': broken cannot be imported (ZeroDivisionError: division by zero). Mend "
     "it and run again."),
    (["score", "DATA", *SCORE, "--model", "good:fails"], 4,
     "The model failed on 2 texts, the first of which begins 'He sat.': KeyError: 'weights'. What "
     "is scored is kept; mend it and run again."),
    (["score", "DATA", *SCORE, "--model", "good:ask", "--batch-size", "0"], 2,
     "batch_size=0 is not a number of texts. Give 1 or more."),
    (["score", "DATA", "--text", "bio", "--out", "o.xlsx", "--model", "good:ask"], 2,
     "'o.xlsx' does not say by its ending what to write. Name the output such as out.parquet, "
     "out.csv or out.jsonl."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "code", "told"), MISTAKES, ids=[" ".join(m[0][2:])[-40:] for m in MISTAKES]
)
def test_mistakes_get_one_sentence_and_their_exit_code(run, typed, code, told, monkeypatch):
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    texts = pl.DataFrame({"bio": ["He sat.", "She ran."]})
    none = pl.lit(None, dtype=pl.String)
    texts.with_columns(none.alias("none")).write_parquet("swapped.parquet")
    texts.with_columns(decision=pl.lit("no")).write_parquet("taken.parquet")
    joblib.dump([1, 2], "list.joblib")
    Path("folder").mkdir()
    Path("folder/config.json").write_text("{}")
    Path("good.py").write_text(
        "def ask(texts):\n    return [0.3] * len(texts)\n"
        "def fails(texts):\n    raise KeyError('weights')\n"
    )
    Path("broken.py").write_text("1 / 0\n")
    found = run(*("swapped.parquet" if part == "DATA" else part for part in typed))
    assert found == (code, "", f"evenhand: {told}\n")
    assert not Path("scored.parquet").exists()


def test_missing_extras_are_named(run, swapped, monkeypatch):
    joblib.dump([1], "model.joblib")
    monkeypatch.setitem(sys.modules, "joblib", None)
    code, _, err = run("score", swapped, *SCORE, "--model", "model.joblib", "--trust")
    assert code == 2
    assert err == (
        "evenhand: model='model.joblib' needs the extra 'text', which is not installed. "
        "Run: pip install 'evenhand[text]'\n"
    )


def test_classes_of_numbers_are_named_as_the_truth_is(run):
    texts = ["good film", "bad film", "good", "bad"] * 5
    truth = [True, False, True, False] * 5
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, truth)
    joblib.dump(model, "model.joblib")
    pl.DataFrame({"bio": texts, "truth": truth}).write_parquet("t.parquet")
    flags = [*SCORE, "--truth", "truth", "--model", "model.joblib", "--trust"]
    assert run("score", "t.parquet", *flags)[0] == 0
    scored = pl.read_parquet("scored.parquet")
    assert scored["decision"].unique().sort().to_list() == ["0", "1"]
    assert scored["score:truth"].min() > 0.5


# The three commands on real texts.

WIKIPEDIA, SEXISM = SHARED / "biographies_wikipedia.csv", SHARED / "edos_sexism.csv"
real = pytest.mark.skipif(not WIKIPEDIA.exists(), reason="the real data is not there")


def train_on(frame, *, text, title, path, without=()):
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(min_df=2, sublinear_tf=True, stop_words=list(without) or None)
    model = make_pipeline(words, LogisticRegression(C=10, max_iter=2_000))
    model.fit(frame[text].to_list(), frame[title].to_list())
    joblib.dump(model, path)
    return model


def counterfactual_rows(path):
    record = json.loads(Path(path).read_text())
    return [row for row in record["results"] if row["lens"] == "counterfactual"], record


@pytest.mark.heavy
@real
def test_biographies_from_wikipedia_with_masked_titles(run):
    frame = pl.read_csv(WIKIPEDIA)
    sizes = frame.group_by("occupation", "gender").len().filter(pl.col("len") >= 30)
    both = sizes.group_by("occupation").len().filter(pl.col("len") == 2)["occupation"]
    frame = frame.filter(pl.col("occupation").is_in(both.to_list())).sample(
        fraction=1.0, shuffle=True, seed=0
    )
    assert both.len() == 9
    half = len(frame) // 2
    frame.write_parquet("bios.parquet")
    swap_flags = ["--text", "text", "--group", "gender", "--mask-titles", "occupation"]
    code, out, err = run(
        "swap", "bios.parquet", *swap_flags, "--out", "swapped.parquet", "--json", "swap.json"
    )
    assert (code, err) == (0, "")
    print(out)
    validity = json.loads(Path("swap.json").read_text())["validity"]
    made = pl.read_parquet("swapped.parquet")
    for each in validity:
        others = (frame["gender"] != each["to"]).mean()
        assert 0.8 * others < each["changed"]["value"] <= others
        assert each["articles"]["value"] < 0.02
    assert (
        not made["text"]
        .str.contains(r"(?i)\bathletes?\b")
        .filter(made["occupation"] == "athlete")
        .any()
    )

    train, test = made.head(half), made.tail(-half)
    test.write_parquet("test.parquet")
    model = train_on(train, text="text", title="occupation", path="model.joblib")
    pronouns = ["he", "she", "him", "her", "his", "hers", "himself", "herself", "mr", "mrs", "ms"]
    train_on(train, text="text", title="occupation", path="blind.joblib", without=pronouns)
    accuracy = (test["occupation"].to_numpy() == model.predict(test["text"].to_list())).mean()
    print(f"{len(train)} to train, {len(test)} to test, accuracy {accuracy:.3f}")
    assert accuracy > 0.6
    for name in ("model", "blind"):
        flags = ["--text", "text", "--truth", "occupation", "--out", f"{name}.parquet"]
        code, out, _ = run("score", "test.parquet", *flags, "--model", f"{name}.joblib", "--trust")
        assert code == 0
        print(out)
        flags = ["--truth", "occupation", "--group", "gender", "--json", f"{name}.json"]
        code, out, _ = run("audit", f"{name}.parquet", *flags)
        assert code == 0
        print(out)
        rows, record = counterfactual_rows(f"{name}.json")
        gaps = [r for r in rows if r["measure"] == "counterfactual_true_positive_rate_gap"]
        assert {r["class"] for r in gaps} >= set(both)
        assert {"statistical", "counterfactual"} <= {r["lens"] for r in record["results"]}
        flips = next(r for r in rows if r["measure"] == "flip_rate" and r["class"] is None)
        if name == "blind":
            # What it cannot see cannot change its decision: every gap and every flip is 0.
            assert flips["value"] == 0
            assert all(r["value"] in (0, None) for r in gaps)
            assert all(r["low"] <= 0 <= r["high"] for r in gaps if r["value"] is not None)
        else:
            assert 0 < flips["value"] < 0.2


@pytest.mark.heavy
@real
def test_posts_without_a_group_run_the_counterfactual_lens_alone(run):
    frame = pl.read_csv(SEXISM)
    swap_flags = ["--text", "text", "--lexicon", "gender_words", "--out", "swapped.parquet"]
    code, out, _ = run("swap", SEXISM, *swap_flags, "--json", "swap.json")
    assert code == 0
    print(out)
    made = pl.read_parquet("swapped.parquet")
    assert len(made) == len(frame)
    validity = json.loads(Path("swap.json").read_text())["validity"]
    neutral = (made["text@female"] == made["text"]) & (made["text@male"] == made["text"])
    shares = [each["changed"]["value"] for each in validity]
    assert sum(shares) + neutral.mean() == pytest.approx(1, abs=1e-6)
    assert 0.3 < sum(shares) < 0.95

    train, test = made.filter(pl.col("split") == "train"), made.filter(pl.col("split") != "train")
    test.write_parquet("test.parquet")
    train_on(train, text="text", title="label_sexist", path="model.joblib")
    flags = ["--text", "text", "--truth", "label_sexist", "--out", "scored.parquet"]
    code, out, _ = run("score", "test.parquet", *flags, "--model", "model.joblib", "--trust")
    assert code == 0
    print(out)
    flags = ["--truth", "label_sexist", "--positive", "sexist", "--text", "text"]
    code, out, _ = run("audit", "scored.parquet", *flags, "--json", "audit.json")
    assert code == 0
    print(out)
    rows, record = counterfactual_rows("audit.json")
    assert {row["lens"] for row in record["results"]} == {"counterfactual"}
    gap = next(
        r
        for r in rows
        if r["measure"] == "counterfactual_selection_rate_gap"
        and r["class"] == "sexist"
        and (r["group"], r["reference"]) == ("male", "female")
    )
    # The corpus is about sexism against women: the same post about men looks less sexist.
    assert gap["low"] <= gap["value"] <= gap["high"] < 0
    assert gap["n"] == len(test)
    changed = next(r for r in rows if r["measure"] == "changed_share")
    assert changed["value"] == pytest.approx((test["text@female"] != test["text@male"]).mean())
