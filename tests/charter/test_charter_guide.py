"""The how-to page: every charter on it is valid and says what the page says it says."""

import datetime
import re
from pathlib import Path

import pytest

from evenhand.charter.concerns import concerns
from evenhand.charter.read import KEYS, parse_charter
from evenhand.charter.words import charter_text
from evenhand.errors import DataError

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-charter.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = {kind: re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL) for kind in ("toml", "text")}


@pytest.mark.parametrize("text", BLOCKS["toml"])
def test_every_charter_on_the_page_is_valid(text: str) -> None:
    assert parse_charter(text).source == "charter"


def test_the_example_leaves_only_what_engineers_have_to_measure() -> None:
    charter = parse_charter(BLOCKS["toml"][0])
    assert charter_text(charter).startswith(BLOCKS["text"][1])
    left = concerns(charter, today=datetime.date(2026, 6, 1))
    kinds = [(one.layer, one.kind) for one in left]
    assert kinds == [("implementation", "words"), ("policy", "conflict")]
    assert BLOCKS["text"][2] == f"- policy ({left[1].owner}): {left[1].sentence}\n"


def test_the_error_on_the_page_is_the_error_of_the_command() -> None:
    line = int(re.search(r"line (\d+)", BLOCKS["text"][0])[1])  # type: ignore[index]
    head = 'schema = "evenhand.charter/1"\n' + "\n" * (line - 3)
    with pytest.raises(DataError) as caught:
        parse_charter(
            f'{head}[[choices]]\ncost_ratio = "3:1"\ntolerance = 1.25\nreview_by = "next spring"\n',
            source="charter.toml",
        )
    assert BLOCKS["text"][0] == f"evenhand: {caught.value}\n"


def test_the_page_names_every_part() -> None:
    for key in KEYS[1:]:
        assert f"[{key}]" in TEXT, key
