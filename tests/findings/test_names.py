"""Groups are shown by the names that the data gives them."""

from typing import Any

import pytest

import evenhand as eh
from evenhand.findings.names import name_of
from evenhand.findings.sentences import row_sentence
from evenhand.lenses.rows import COLUMNS


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
    assert sentence.startswith("'1' is decided less often for other than for iPhone: gap −1.000")


def test_numbers_carry_their_column() -> None:
    audit = audited({"old": [True, True, False, False] * 50})
    assert audit.findings[0].sentence.startswith(
        "'1' is decided more often for old=1 than for old=0: gap +1.000 ["
    )
    assert ["old=1", "old=0", "+1.000"] in [line.split()[:3] for line in str(audit).splitlines()]


def test_values_of_two_columns_are_told_apart() -> None:
    groups = {"old": ["yes", "yes", "no", "no"] * 50, "ill": ["yes", "no", "yes", "no"] * 50}
    told = " ".join(finding.sentence for finding in audited(groups).findings)
    assert "more often for old=yes than for old=no" in told
    assert "By ill, the one gap cannot be told from chance." in told


def test_what_would_settle_it_is_still_found_under_another_name() -> None:
    groups = {"old": [1, 0, 0, 0] * 100}
    told = audited(groups, selection_rate_gap=0.7).findings[0]
    # 100 of 100 against 100 of 300: gap 2/3 with limits around 0.7.
    assert told.verdict == "cannot tell"
    assert told.sentence.startswith(
        "'1' is decided more often for old=1 than for old=0: gap +0.667"
    )
    assert told.sentence.endswith(
        "No number of this group would settle it: the reference is too small."
    )


def test_ranking_is_put_in_words() -> None:
    row = dict.fromkeys(COLUMNS) | {
        "measure": "auc_gap", "class": "1", "attribute": "g", "group": "f", "reference": "m",
        "value": -0.06, "family_low": -0.11, "family_high": -0.01, "n": 478, "n_reference": 479,
    }  # fmt: skip
    assert row_sentence(row) == (
        "Scores tell '1' from the rest less well for f than for m: "
        "AUC gap −0.060 [−0.110, −0.010], n = 478 and 479."
    )
    assert "as well for f as for m: AUC gap 0.000" in row_sentence(row | {"value": 0.0})
