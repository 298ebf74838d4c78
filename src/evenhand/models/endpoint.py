"""A model behind an HTTP address, asked in batches with JSON, retries and a rate limit."""

import io
import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import numpy as np

from evenhand.errors import DataError, UsageError
from evenhand.files.documents import parse_json
from evenhand.models.predictor import checked_scores, checked_texts, merged_classes
from evenhand.stats.estimate import FloatArray

# Worth asking again: time-outs, too many requests, and whatever the server calls its own fault.
PASSING = {408, 425, 429}
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LARGEST_ANSWER = 64 * 2**20  # bytes, headers included
ANSWER = 'It must answer {"classes": ["a", "b"], "scores": [[0.9, 0.1], …]}.'


class NoRedirect(HTTPRedirectHandler):
    """Redirects are refused: headers, which may hold a secret, stay with the address given."""

    def redirect_request(self, *_: Any) -> None:
        return None


class AnswerTooLarge(Exception):
    """More bytes than any answer needs."""


class _Reader(io.RawIOBase):
    """What a server sends, until a moment and up to a size, however slowly it comes."""

    def __init__(self, connection: socket.socket, *, until: float) -> None:
        self.connection, self.until, self.left = connection, until, LARGEST_ANSWER
        self.raw = connection.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.connection.settimeout(_left(self.until))
        count = self.raw.readinto(buffer)
        self.left -= count or 0
        if self.left < 0:
            raise AnswerTooLarge
        return count

    def close(self) -> None:
        if not self.closed:
            self.raw.close()
        super().close()


def _left(until: float) -> float:
    """Seconds left, as a time-out where there are none."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Door:
    """A connection as a response opens it: read through a reader with a limit."""

    def __init__(self, connection: socket.socket, *, until: float) -> None:
        self.connection, self.until = connection, until

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self.connection, until=self.until))


class _Until(HTTPConnection):
    """A connection that ends at a moment: its time-out is for all of it, not for each byte."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.until = time.monotonic() + float(self.timeout or 0)
        self.response_class = self._response  # type: ignore[assignment]

    def _response(self, connection: socket.socket, *arguments: Any, **options: Any) -> HTTPResponse:
        door: Any = _Door(connection, until=self.until)
        return HTTPResponse(door, *arguments, **options)

    def send(self, data: Any) -> None:
        if self.sock is not None:
            self.sock.settimeout(_left(self.until))
        super().send(data)


class _SecureUntil(_Until, HTTPSConnection):
    """The same for https."""


class _Plain(HTTPHandler):
    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_Until, request)


class _Secure(HTTPSHandler):
    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_SecureUntil, request)


_OPENER = build_opener(NoRedirect, _Plain, _Secure)


class PassingError(Exception):
    """An attempt that failed in a way that may pass, with the wait that the server asked for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(slots=True)
class EndpointPredictor:
    """A model that answers POST {"texts": […]} with {"classes": […], "scores": [[…], …]}.

    Asked `batch_size` texts at a time and at most `rate` requests a second. Server errors and
    time-outs are tried again `retries` times, each after twice the pause; nothing that was answered
    is sent twice. `timeout` bounds a whole call, from the look-up of the name to the last byte.
    `headers` go with every request and nowhere else; messages show no secret of the address.

    Examples:
        >>> EndpointPredictor("http://127.0.0.1:8000/predict", classes=("no", "yes")).classes
        ('no', 'yes')
    """

    url: str = field(repr=False)
    batch_size: int = 32
    timeout: float = 60.0
    retries: int = 4
    rate: float | None = None
    classes: tuple[str, ...] = ()
    # Not in the repr: a header may hold a secret.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    sleep: Callable[[float], None] = time.sleep
    _next: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_url()
        if not 0 < self.timeout < math.inf:
            raise UsageError(f"timeout={self.timeout} is not a time. Give seconds above 0.")
        if self.retries < 0:
            raise UsageError(f"retries={self.retries} is negative. Give 0 or more.")
        if self.rate is not None and not self.rate > 0:
            raise UsageError(f"rate={self.rate} is not above 0. Give requests a second, or None.")

    @property
    def shown(self) -> str:
        """The address without its secrets."""
        head, mark, _ = self.url.partition("?")
        return re.sub("://[^/]*@", "://…@", head) + ("?…" if mark else "")

    def _check_url(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"url={self.shown!r} is not an address. It must start with http://.")
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host = None
        if not host or not re.fullmatch(r"[\x21-\x7e]+", self.url):
            raise UsageError(
                f"url={self.shown!r} is not an address: it has no host, a port that is none, or a "
                "character that must be written as %20."
            )
        if "@" in parts.netloc:
            raise UsageError(
                f"url={self.shown!r} holds a password, which others can see. Put it into a header: "
                "--header Authorization=VARIABLE."
            )

    def scores(self, texts: Sequence[str]) -> FloatArray:
        """Scores of the texts, asked in batches."""
        asked = checked_texts(texts)
        starts = range(0, len(asked), self.batch_size)
        parts = [self._batch(asked[start : start + self.batch_size]) for start in starts]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes)))

    def _batch(self, texts: list[str]) -> FloatArray:
        answer = self._ask(json.dumps({"texts": texts}).encode())
        try:
            document = parse_json(answer)
        except ValueError:
            start = answer[:60].decode("utf-8", "replace")
            raise DataError(
                f"{self.shown} answered with something that is not JSON: {start!r}. {ANSWER}"
            ) from None
        if not isinstance(document, dict) or "scores" not in document:
            raise DataError(f"{self.shown} answered JSON without 'scores'. {ANSWER}")
        if "classes" in document:
            self.classes = merged_classes(self.classes, document["classes"], source=self.shown)
        scores, self.classes = checked_scores(
            document["scores"], rows=len(texts), classes=self.classes, source=self.shown
        )
        return scores

    def _ask(self, body: bytes) -> bytes:
        attempts = self.retries + 1
        for attempt in range(attempts):
            self._keep_rate()
            try:
                return self._post(body)
            except PassingError as error:
                reason = str(error)
                if attempt + 1 < attempts:
                    pause = max(FIRST_PAUSE * 2**attempt, error.wait)
                    self.sleep(min(pause, LONGEST_PAUSE))
        tries = "once" if attempts == 1 else f"{attempts} times"
        raise DataError(
            f"{self.shown} {reason} (tried {tries}). "
            "See whether the server is up, then run again; what is scored is kept."
        )

    def _keep_rate(self) -> None:
        if self.rate is None:
            return
        now = time.monotonic()
        if now < self._next:
            self.sleep(self._next - now)
        self._next = max(now, self._next) + 1.0 / self.rate

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self.headers}
        request = Request(self.url, data=body, headers=headers, method="POST")
        slow = f"did not answer within {self.timeout:g} seconds"
        try:
            return bounded(lambda: self._answer(request), seconds=self.timeout)
        except AnswerTooLarge:
            raise DataError(
                f"{self.shown} answered with more than {LARGEST_ANSWER / 2**20:.0f} MiB. Ask for "
                f"fewer texts at a time (--batch-size). {ANSWER}"
            ) from None
        except HTTPError as error:
            with error:
                told = f"{error.code} {str(error.reason)[:60]}".strip()
                if error.code < 500 and error.code not in PASSING:
                    raise DataError(
                        f"{self.shown} refused the request: {told}. "
                        'It must take POST {"texts": ["…"]}.'
                    ) from None
                asked = error.headers.get("Retry-After", "")
                wait = float(asked) if re.fullmatch("[0-9]{1,9}", asked) else 0.0
                raise PassingError(f"answered {told}", wait) from None
        except TimeoutError:
            raise PassingError(slow) from None
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise PassingError(slow) from None
            raise PassingError(f"cannot be reached: {error.reason}") from None
        except (HTTPException, OSError) as error:
            broken = type(error).__name__
            raise PassingError(f"broke off its answer ({broken})") from None

    def _answer(self, request: Request) -> bytes:
        with _OPENER.open(request, timeout=self.timeout) as response:
            answer: bytes = response.read()
            return answer


def bounded(call: Callable[[], bytes], *, seconds: float) -> bytes:
    """What a call gives, or a time-out: also where it hangs before there is a connection to end.

    Looking up a name cannot be stopped; it is left to itself, in a thread of its own.

    Examples:
        >>> bounded(lambda: b"answer", seconds=5)
        b'answer'
    """
    results: list[bytes] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
