import json
import re
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evenhand.errors import DataError, UsageError
from evenhand.models.endpoint import EndpointPredictor

ANSWER = 'It must answer {"classes": ["a", "b"], "scores": [[0.9, 0.1], …]}.'


def good(texts):
    return 200, {"classes": ["a", "b"], "scores": [[len(t), -len(t)] for t in texts]}


@contextmanager
def server(*script, last=good):
    """A server that plays the script, one step a request, then `last`; keeps what it was asked."""
    asked, steps = [], list(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body["texts"])
            step = steps.pop(0) if steps else last
            if callable(step):
                step = step(body["texts"]) if step is good else step(self)
            if step is None:
                return
            code, content, *headers = step
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(code)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    service = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{service.server_port}/predict", asked
    finally:
        service.shutdown()
        thread.join()
        service.server_close()


def says(words):
    return pytest.raises(DataError, match=f"^{re.escape(words)}$")


def test_asks_in_batches_and_keeps_the_order():
    with server() as (url, asked):
        model = EndpointPredictor(url, batch_size=2)
        assert model.classes == ()
        scores = model.scores(["a", "bb", "ccc", "éé", "e"])
    assert scores[:, 0].tolist() == [1, 2, 3, 2, 1]
    assert model.classes == ("a", "b")
    assert asked == [["a", "bb"], ["ccc", "éé"], ["e"]]
    assert model.scores([]).shape == (0, 2)


def test_server_errors_are_tried_again_with_longer_pauses_and_answers_never_sent_twice():
    pauses = []
    with server(good, (500, b"x"), (503, b"x", ("Retry-After", "3")), (429, b"")) as (url, asked):
        model = EndpointPredictor(url, batch_size=1, sleep=pauses.append)
        assert model.scores(["a", "b"]).shape == (2, 2)
    assert asked == [["a"], ["b"], ["b"], ["b"], ["b"]]
    assert pauses == [0.5, 3.0, 2.0]


def test_errors_that_stay():
    pauses = []
    with server(last=lambda _: (500, b"x")) as (url, asked):
        words = (
            f"{url} answered 500 Internal Server Error (tried 3 times). "
            "See whether the server is up, then run again; what is scored is kept."
        )
        with says(words):
            EndpointPredictor(url, retries=2, sleep=pauses.append).scores(["a"])
    assert len(asked) == 3
    assert pauses == [0.5, 1.0]


def test_request_that_is_refused_is_not_tried_again():
    with server(last=lambda _: (404, b"x")) as (url, asked):
        words = f'{url} refused the request: 404 Not Found. It must take POST {{"texts": ["…"]}}.'
        with says(words):
            EndpointPredictor(url).scores(["a"])
    assert len(asked) == 1


def test_hanging_server_is_given_up():
    release = threading.Event()
    with server(last=lambda _: release.wait(5) and None) as (url, _):
        words = (
            f"{url} did not answer within 0.2 seconds (tried once). "
            "See whether the server is up, then run again; what is scored is kept."
        )
        with says(words):
            EndpointPredictor(url, timeout=0.2, retries=0).scores(["a"])
        release.set()


def test_trickling_server_is_given_up():
    def trickle(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(1000):
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                return
            sent.append(1)
            time.sleep(0.05)

    # No single byte comes late, and the whole answer would take most of a minute.
    sent = []
    late = pytest.raises(DataError, match=r"did not answer within 0\.2 seconds")
    with server(last=trickle) as (url, _), late:
        EndpointPredictor(url, timeout=0.2, retries=0).scores(["a"])
    assert 0 < len(sent) < 1000


def test_answer_that_breaks_off_is_asked_again():
    def half(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"scores"')

    with server(half) as (url, asked):
        model = EndpointPredictor(url, sleep=lambda _: None)
        assert model.scores(["a"]).tolist() == [[1, -1]]
    assert len(asked) == 2


def test_server_that_is_not_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = EndpointPredictor(f"http://127.0.0.1:{port}/", retries=1, sleep=lambda _: None)
    with pytest.raises(DataError, match=r"cannot be reached: .*refused.* \(tried 2 times\)"):
        model.scores(["a"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html>hello", f"answered with something that is not JSON: '<html>hello'. {ANSWER}"),
        ([1, 2], f"answered JSON without 'scores'. {ANSWER}"),
        (
            {"classes": ["a", "b"], "scores": [[1, 2]]},
            "returned 1 × 2 scores for 2 texts. "
            "It must return one row for each text, in the same order.",
        ),
        (
            {"classes": ["a"], "scores": [[1, 2], [1, 2]]},
            "returned 2 scores a text and has 1 classes. There must be one score for each class.",
        ),
    ],
)
def test_bad_answers_in_words(content, words):
    with server(last=lambda _: (200, content)) as (url, _), says(f"{url} {words}"):
        EndpointPredictor(url).scores(["a", "b"])


def test_classes_that_change_between_batches():
    later = {"classes": ["b", "a"], "scores": [[1, 2]]}
    with server(good, (200, later)) as (url, _):
        words = (
            f"{url} returned the classes b, a after a, b. "
            "They must stay the same, in the same order."
        )
        with says(words):
            EndpointPredictor(url, batch_size=1).scores(["x", "y"])


def test_rate_is_kept():
    pauses = []
    with server() as (url, _):
        EndpointPredictor(url, batch_size=1, rate=10, sleep=pauses.append).scores(["a"] * 3)
    assert len(pauses) == 2
    assert all(0.03 < pause <= 0.2 for pause in pauses)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "ftp://x"}, "url='ftp://x' is not an address. It must start with http://."),
        ({"timeout": 0}, "timeout=0 is not a time. Give seconds above 0."),
        ({"retries": -1}, "retries=-1 is negative. Give 0 or more."),
        ({"rate": 0}, "rate=0 is not above 0. Give requests a second, or None."),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(UsageError, match=f"^{re.escape(words)}$"):
        EndpointPredictor(**{"url": "http://127.0.0.1:1/", **arguments})
