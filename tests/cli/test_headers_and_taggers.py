"""Secrets go to the model alone, and a tagger of the user's own tells his from him."""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest

from evenhand.errors import UsageError
from evenhand.models.endpoint import EndpointPredictor
from evenhand.models.predictor import load_predictor
from evenhand.text.compiled import load_tagger
from evenhand.text.table import swap_table

SECRET = "Bearer 7f3a-secret"


@pytest.fixture
def serve():
    """A server that takes only the right token; `to` sends everybody elsewhere."""
    started: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(*, to: str | None = None) -> tuple[str, list[str | None]]:
        seen: list[str | None] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["texts"]
                seen.append(self.headers["Authorization"])
                body = json.dumps({"classes": ["no", "yes"], "scores": [[0.2, 0.8]] * len(texts)})
                self.send_response(302 if to else 200 if seen[-1] == SECRET else 401)
                if to:
                    self.send_header("Location", to)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        started.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}/predict", seen

    yield start
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.server_close()


SCORE = ["score", "bios.parquet", "--text", "bio", "--out", "scored.parquet", "--json", "did.json"]


@pytest.fixture
def bios(tmp_path):
    pl.DataFrame({"bio": ["He ran.", "She sat."]}).write_parquet(tmp_path / "bios.parquet")
    return tmp_path


def test_a_header_reaches_the_model_and_no_file(run, serve, bios, monkeypatch):
    url, seen = serve()
    monkeypatch.setenv("MODEL_TOKEN", SECRET)
    code, out, err = run(*SCORE, "--model", url, "--header", "Authorization=MODEL_TOKEN")
    assert (code, err, seen) == (0, "", [SECRET])
    assert SECRET not in out
    for path in Path(bios).rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def test_without_the_header_the_refusal_is_told(run, serve, bios):
    url, _ = serve()
    told = f'evenhand: {url} refused the request: 401 Unauthorized. It must take POST {{"texts"'
    code, _, err = run(*SCORE, "--model", url)
    assert (code, err.startswith(told)) == (4, True)


def test_a_redirect_takes_no_secret_elsewhere(run, serve, bios, monkeypatch):
    other, stolen = serve()
    url, seen = serve(to=other)
    monkeypatch.setenv("MODEL_TOKEN", SECRET)
    code, _, err = run(*SCORE, "--model", url, "--header", "Authorization=MODEL_TOKEN")
    assert (code, seen, stolen) == (4, [SECRET], [])
    assert "refused the request: 302 Found." in err


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        (
            "Authorization: Bearer abc",
            "--header takes NAME=VARIABLE: a header and the environment variable that holds its "
            "value, such as --header Authorization=MODEL_TOKEN.",
        ),
        (
            "Authorization=NOT_SET",
            "--header Authorization: the environment variable NOT_SET is not set. Set it to the "
            "header's whole value, such as export NOT_SET='Bearer …'.",
        ),
        (
            "X-Key=BROKEN",
            "--header X-Key: the value of BROKEN holds a line break or a character that no header "
            "may hold.",
        ),
    ],
)
def test_bad_headers_in_words_that_never_repeat_a_value(run, bios, monkeypatch, flag, words):
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.setenv("BROKEN", "secret\nX-Other: 1")
    model = ["--model", "http://127.0.0.1:9/predict", "--header", flag]
    assert run(*SCORE, *model) == (2, "", f"evenhand: {words}\n")


def test_headers_are_for_addresses_and_not_shown():
    with pytest.raises(UsageError) as caught:
        load_predictor("module:function", headers={"X": "secret"})
    assert (
        str(caught.value) == "Headers go to an http address, and model='module:function' is none."
    )
    assert "secret" not in repr(EndpointPredictor("http://a", headers={"X": "secret"}))


class Pipeline:
    """What spaCy gives: called on a text, tokens with their place and tag."""

    pipe_names = ("tok2vec", "tagger", "attribute_ruler")

    def __call__(self, text: str) -> list[SimpleNamespace]:
        # Wrong on purpose, to be told from the shipped classifier: every "her" is an object.
        return [
            SimpleNamespace(idx=m.start(), tag_="PRP" if m[0].lower() == "her" else "NN")
            for m in re.finditer(r"\w+", text)
        ]


@pytest.fixture
def spacy(monkeypatch):
    """A stand-in for the spaCy package with one model."""
    module: Any = ModuleType("spacy")
    asked: list[tuple[str, list[str]]] = []

    def load(name: str, *, exclude: list[str]) -> Any:
        asked.append((name, exclude))
        if name == "blank":
            return SimpleNamespace(pipe_names=("sentencizer",))
        if name != "en_core_web_sm":
            raise OSError(f"[E050] Can't find model '{name}'.")
        return Pipeline()

    module.load, module.asked = load, asked
    monkeypatch.setitem(sys.modules, "spacy", module)
    return module


SWAP = ["swap", "bios.parquet", "--text", "bio", "--out", "swapped.parquet", "--no-probe"]


def test_swap_takes_a_spacy_tagger(run, bios, spacy):
    pl.DataFrame({"bio": ["She walks her dog.", "He ran."]}).write_parquet("bios.parquet")
    assert run(*SWAP)[0] == 0
    assert pl.read_parquet("swapped.parquet")["bio@male"][0] == "He walks his dog."
    code, out, err = run(*SWAP, "--tagger", "spacy:en_core_web_sm", "--json", "did.json")
    assert (code, err) == (0, "")
    assert pl.read_parquet("swapped.parquet")["bio@male"][0] == "He walks him dog."
    assert out.startswith(
        "2 rows of bios.parquet; lexicon gender_pronouns, his or him by spacy:en_core_web_sm.\n"
    )
    assert json.loads(Path("did.json").read_text())["tagger"] == "spacy:en_core_web_sm"
    assert spacy.asked == [("en_core_web_sm", ["parser", "ner", "lemmatizer"])]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nltk", "tagger='nltk' is no tagger. Write spacy:MODEL, such as spacy:en_core_web_sm."),
        (
            "spacy:",
            "tagger='spacy:' is no tagger. Write spacy:MODEL, such as spacy:en_core_web_sm.",
        ),
        (
            "spacy:de_dep",
            "tagger='spacy:de_dep': spaCy has no model 'de_dep'. "
            "Run: python -m spacy download de_dep",
        ),
        (
            "spacy:blank",
            "tagger='spacy:blank': the model 'blank' tags no parts of speech. "
            "Name one that does, such as spacy:en_core_web_sm.",
        ),
    ],
)
def test_taggers_that_are_none(run, bios, spacy, name, words):
    assert run(*SWAP, "--tagger", name) == (2, "", f"evenhand: {words}\n")
    assert not Path("swapped.parquet").exists()


def test_spacy_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UsageError) as caught:
        load_tagger("spacy:en_core_web_sm")
    assert str(caught.value) == (
        "tagger='spacy:en_core_web_sm' needs spaCy, which is not installed. Run: pip install spacy"
    )


def test_a_tagger_of_ones_own_is_named_by_its_class(tmp_path):
    table = {"bio": ["She walks her dog."]}
    report = swap_table(table, text="bio", out=tmp_path / "o.parquet", tagger=Pipeline())
    assert report.tagger == "Pipeline"
    assert pl.read_parquet(tmp_path / "o.parquet")["bio@male"].to_list() == ["He walks him dog."]
