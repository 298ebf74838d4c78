"""What a look leads with: what lies furthest beyond its limit, by its evidence."""

from types import SimpleNamespace
from typing import Any

from evenhand.findings.sentences.words import Words
from evenhand.watching.sentences import headline
from evenhand.watching.vocabulary import Vocabulary

NO_ALARM: Any = SimpleNamespace(open_alarms=[], still_outside=[], vocabulary=Vocabulary())


def outside(group: str, value: float, half: float, *, measure: str = "selection_rate_gap",
            n: int = 4000) -> dict[str, Any]:  # fmt: skip
    nothing = dict.fromkeys(("stratum", "labeler", "norm", "undefined", "set_low", "set_high"))
    return nothing | {
        "lens": "statistical", "measure": measure, "class": "1", "attribute": "g", "group": group,
        "reference": "m", "value": value, "low": value - half, "high": value + half,
        "family_low": value - half, "family_high": value + half, "level": 0.95, "n": n,
        "n_reference": 5000, "limit_low": -0.05, "limit_high": 0.05, "verdict": "outside",
    }  # fmt: skip


def led(*rows: dict[str, Any]) -> str:
    return headline(NO_ALARM, rows, Words(positive="1"))


def test_the_surest_beyond_its_limit_leads_and_not_the_largest() -> None:
    # (0.10 − 0.05) ÷ (0.01 ÷ 1.96) = 9.8 standard errors; (0.30 − 0.05) ÷ (0.2 ÷ 1.96) = 2.5.
    sure, large = outside("a", 0.10, 0.01), outside("b", 0.30, 0.20)
    for rows in ((sure, large), (large, sure)):
        assert led(*rows).startswith("On average so far, group a gets decision '1' 10 points more")


def test_a_small_group_never_leads_and_errors_go_before_selection() -> None:
    few = outside("b", 0.90, 0.05, n=40)
    assert "group a" in led(few, outside("a", 0.10, 0.03))
    error = outside("b", 0.10, 0.01, measure="false_positive_rate_gap")
    assert "people of group b whose truth is not '1'" in led(outside("a", 0.10, 0.01), error)
