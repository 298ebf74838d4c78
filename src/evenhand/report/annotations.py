"""Findings as annotations of a GitHub workflow: one line each, printed to standard output."""

from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.report.labels import spoken
from evenhand.report.view import headline

_LEVELS = {"outside": "error", "cannot tell": "warning"}
# GitHub shows at most ten of each kind for a step.
MOST = 10


def as_annotations(record: Mapping[str, Any]) -> str:
    """Workflow commands: outside is an error, cannot tell a warning, the verdict a notice.

    Examples:
        >>> finding = {"verdict": "outside", "lens": "statistical", "sentence": "A, b: gap +0.1."}
        >>> print(as_annotations({"findings": [finding], "sentence": "Gap found: 1 of 1."}))
        ::notice title=Evenhand::Gap found: 1 of 1.
        ::error title=Evenhand%3A A%2C b::A, b: gap +0.1.
    """
    return "\n".join(_lines(record))


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    yield f"::notice title=Evenhand::{_message(str(record['sentence']))}"
    counts = dict.fromkeys(_LEVELS.values(), 0)
    for finding in record["findings"]:
        level = _LEVELS.get(finding["verdict"])
        if level is None or counts[level] == MOST:
            continue
        counts[level] += 1
        title = _property(f"Evenhand: {headline(finding['sentence'])}")
        yield f"::{level} title={title}::{_message(finding['sentence'])}"


def _message(text: str) -> str:
    return spoken(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
