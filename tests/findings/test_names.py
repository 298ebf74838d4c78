"""Groups are shown by the names that the data gives them."""

from typing import Any

import pytest

import evenhand as eh
from evenhand.findings.sentences.rows import row_sentence
from evenhand.findings.sentences.words import name_of
from evenhand.lenses.rows import COLUMNS
from evenhand.report.terminal import as_text


def audited(groups: dict[str, list[Any]], **limits: float) -> eh.Audit:
    n = len(next(iter(groups.values())))
    # The first half of each block of four is decided 1, the second 0: a gap of 1 by any name.
    table = {"d": [1, 1, 0, 0] * (n // 4), **groups}
    return eh.audit(eh.Decisions(table, decision="d", group=list(groups)), limits=limits)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("female", "female"),
        ("iPhone", "iPhone"),
        ("0", "g=0"),
        ("-1.5", "g=-1.5"),
        ("", "g=''"),
        (" ", "g=' '"),
        ("nan", "g='nan'"),
        ("None", "g='None'"),
        ("<missing>", "<missing>"),
        ("<18", "<18"),
    ],
)
def test_a_name_is_shown_as_it_is_unless_it_is_none(value: str, told: str) -> None:
    assert name_of(value, "g") == told


def test_sentences_never_change_the_case_of_a_name() -> None:
    sentence = audited({"phone": ["iPhone", "iPhone", "other", "other"] * 50}).findings[0].sentence
    assert sentence.startswith("0.0% of group other get decision '1', 100.0% of group iPhone: ")


def test_numbers_carry_their_column() -> None:
    audit = audited({"old": [True, True, False, False] * 50})
    assert audit.findings[0].sentence.startswith(
        "100.0% of group old=1 get decision '1', 0.0% of group old=0: 100.0 points more ("
    )
    text = as_text(audit.record(), verbose=True)
    assert ["old=1", "old=0", "+1.000"] in [line.split()[:3] for line in text.splitlines()]
    assert ["old=1", "100.0%"] in [line.split()[:2] for line in str(audit).splitlines()]


def test_values_of_two_columns_are_told_apart() -> None:
    groups = {"old": ["yes", "yes", "no", "no"] * 50, "ill": ["yes", "no", "yes", "no"] * 50}
    told = " ".join(finding.sentence for finding in audited(groups).findings)
    assert "100.0% of group old=yes get decision '1', 0.0% of group old=no" in told
    assert "By ill, no difference is shown: chance alone could explain the one gap." in told


def test_what_would_settle_it_is_still_found_under_another_name() -> None:
    groups = {"old": [1, 0, 0, 0] * 100}
    told = audited(groups, selection_rate_gap=0.7).findings[0]
    # 100 of 100 against 100 of 300: gap 2/3 with limits around 0.7.
    assert told.verdict == "cannot tell"
    assert told.sentence.startswith(
        "100% of group old=1 get decision '1', 33% of group old=0: 67 points more ("
    )
    # Family interval [0.577, 0.716] at 1.96: se 0.0355, 1/30 from the limit, so
    # ((1.96 + 0.8416) · 0.0355 ÷ 0.0333)² = 8.9 times the 400 cases there are.
    low, high = (
        next(
            iter(
                audited(groups, selection_rate_gap=0.7).rows.where(
                    measure="selection_rate_gap", class_="1"
                )
            )
        )[end]
        for end in ("family_low", "family_high")
    )
    ratio = ((1.959964 + 0.841621) * (high - low) / (2 * 1.959964) * 30) ** 2
    assert told.settle.how_many == pytest.approx(400 * (ratio - 1), rel=1e-4)
    assert told.settle.groups == 2


def test_ranking_is_put_in_words() -> None:
    row = dict.fromkeys(COLUMNS) | {
        "measure": "auc_gap", "class": "1", "attribute": "g", "group": "f", "reference": "m",
        "value": -0.06, "family_low": -0.11, "family_high": -0.01, "n": 478, "n_reference": 479,
    }  # fmt: skip
    assert row_sentence(row) == (
        "Scores tell cases whose truth is '1' from others less well for group f than for group m: "
        "AUC 6 points fewer (1 to 11)."
    )
    assert row_sentence(row | {"family_high": 0.02}) == (
        "The data cannot tell whether scores tell cases whose truth is '1' from others less well "
        "for group f than for group m: AUC anything from 11 points fewer to 2 points more fits."
    )
