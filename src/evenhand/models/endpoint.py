"""A model behind an HTTP address, asked in batches with JSON, retries and a rate limit."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np

from evenhand.errors import DataError, UsageError
from evenhand.models.predictor import checked_scores, checked_texts, merged_classes
from evenhand.stats.estimate import FloatArray

# Worth asking again: time-outs, too many requests, and whatever the server calls its own fault.
PASSING = {408, 425, 429}
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
ANSWER = 'It must answer {"classes": ["a", "b"], "scores": [[0.9, 0.1], …]}.'


class NoRedirect(HTTPRedirectHandler):
    """Redirects are refused: headers, which may hold a secret, stay with the address given."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = build_opener(NoRedirect)


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
    is sent twice. `timeout` bounds a whole answer, not only its first byte. `headers` go with every
    request and nowhere else.

    Examples:
        >>> EndpointPredictor("http://127.0.0.1:8000/predict", classes=("no", "yes")).classes
        ('no', 'yes')
    """

    url: str
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
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"url={self.url!r} is not an address. It must start with http://.")
        if not self.timeout > 0:
            raise UsageError(f"timeout={self.timeout} is not a time. Give seconds above 0.")
        if self.retries < 0:
            raise UsageError(f"retries={self.retries} is negative. Give 0 or more.")
        if self.rate is not None and not self.rate > 0:
            raise UsageError(f"rate={self.rate} is not above 0. Give requests a second, or None.")

    def scores(self, texts: Sequence[str]) -> FloatArray:
        """Scores of the texts, asked in batches."""
        asked = checked_texts(texts)
        starts = range(0, len(asked), self.batch_size)
        parts = [self._batch(asked[start : start + self.batch_size]) for start in starts]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes)))

    def _batch(self, texts: list[str]) -> FloatArray:
        answer = self._ask(json.dumps({"texts": texts}).encode())
        try:
            document = json.loads(answer)
        except ValueError:
            start = answer[:60].decode("utf-8", "replace")
            raise DataError(
                f"{self.url} answered with something that is not JSON: {start!r}. {ANSWER}"
            ) from None
        if not isinstance(document, dict) or "scores" not in document:
            raise DataError(f"{self.url} answered JSON without 'scores'. {ANSWER}")
        if "classes" in document:
            self.classes = merged_classes(self.classes, document["classes"], source=self.url)
        scores, self.classes = checked_scores(
            document["scores"], rows=len(texts), classes=self.classes, source=self.url
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
            f"{self.url} {reason} (tried {tries}). "
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
        deadline = time.monotonic() + self.timeout
        slow = f"did not answer within {self.timeout:g} seconds"
        try:
            with _OPENER.open(request, timeout=self.timeout) as response:
                return read_until(response, deadline=deadline, slow=slow)
        except HTTPError as error:
            with error:
                if error.code < 500 and error.code not in PASSING:
                    raise DataError(
                        f"{self.url} refused the request: {error.code} {error.reason}. "
                        'It must take POST {"texts": ["…"]}.'
                    ) from None
                asked = error.headers.get("Retry-After", "")
                wait = float(asked) if asked.isdigit() else 0.0
                raise PassingError(f"answered {error.code} {error.reason}", wait) from None
        except TimeoutError:
            raise PassingError(slow) from None
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise PassingError(slow) from None
            raise PassingError(f"cannot be reached: {error.reason}") from None
        except (HTTPException, ConnectionError) as error:
            broken = type(error).__name__
            raise PassingError(f"broke off its answer ({broken})") from None


def read_until(response: HTTPResponse, *, deadline: float, slow: str) -> bytes:
    """The whole answer, given up at the deadline even while bytes still trickle in."""
    parts = []
    while part := response.read1(65_536):
        parts.append(part)
        if time.monotonic() > deadline:
            raise PassingError(slow)
    # read1 takes a connection that broke early for the end of the answer.
    if response.length:
        raise PassingError(f"broke off its answer ({response.length} bytes missing)")
    return b"".join(parts)
