"""A gap that turns round within strata: said first, without a number, wherever it is shown."""

import re
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.labels import SUMMARY
from evenhand.findings.find import find
from evenhand.findings.order import opposed
from evenhand.findings.sentences.opposed import say_opposed
from evenhand.findings.sentences.words import Words
from evenhand.lenses.rows import COLUMNS

DECIDE = "Keeping one limit breaks the other: decide first which comparison the agreement is about."
# Selected and all, by department and sex. Within either department women are selected ten points
# more often; they apply where few are: 420 of 1,000 against 840 of 1,200.
SIMPSON = {
    ("easy", "female"): (180, 200), ("easy", "male"): (800, 1000),
    ("hard", "female"): (240, 800), ("hard", "male"): (40, 200),
}  # fmt: skip
SAID = (
    "Overall, women get decision '1' 28 points less often than men (23 to 32); among people alike "
    "in department, 10 points more often (5 to 14); at most 5 was agreed."
)
Counts = dict[tuple[str, str], tuple[int, int]]
ROLES: dict[str, Any] = {
    "decision": "yes", "group": "sex", "stratum": "department", "positive": "1",
    "reference": {"sex": "male"},
}  # fmt: skip


def table(counts: Counts) -> pl.DataFrame:
    rows = [(*key, int(i < k)) for key, (k, n) in counts.items() for i in range(n)]
    return pl.DataFrame(rows, schema=["department", "sex", "yes"], orient="row")


def audited(counts: Counts, limit: float = 0.05, **more: Any) -> eh.Audit:
    return eh.audit(table(counts), limits={"selection_rate_gap": limit}, **ROLES, **more)


def outside(audit: eh.Audit) -> Any:
    [found] = [one for one in audit.findings if one.verdict == "outside"]
    return found


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_the_conflict_is_the_finding_and_its_owner_is_the_policys(engine: str) -> None:
    audit = audited(SIMPSON, engine=engine)
    found = outside(audit)
    assert audit.sentence.startswith(SAID)
    assert found.headline == (
        "Overall, women get decision '1' 28 points less often than men; among people alike in "
        "department, 10 points more often"
    )
    assert found.detail == (
        "28 points fewer (23 to 32) overall, 10 points more (5 to 14) among people alike in "
        "department; at most 5 was agreed."
    )
    assert (found.line, found.next) == (SAID, DECIDE)
    assert (found.layer, found.whose) == ("policy", "Policy: whoever owns the rules.")
    assert found.sentence == f"{SAID} {DECIDE}"


def test_the_command_line_and_its_files_say_it_first(run, tmp_path) -> None:
    table(SIMPSON).write_csv(tmp_path / "places.csv")
    roles = ("--decision", "yes", "--group", "sex", "--stratum", "department", "--positive", "1",
             "--reference", "sex=male")  # fmt: skip
    forms = [tmp_path / f"a.{ending}" for ending in ("md", "xml", "html")]
    into = zip(("--markdown", "--junit", "--out"), forms)
    roles += ("--limit", "selection_rate_gap=0.05", *(one for pair in into for one in pair))
    code, said, _ = run("audit", tmp_path / "places.csv", *roles)
    assert code == 1
    told = " ".join(said.split())
    assert told.startswith(f"Gap found {SAID}")
    assert f"What to do - {DECIDE} Policy: whoever owns the rules." in told
    assert "would have to" not in told
    markdown, tests, page = (form.read_text() for form in forms)
    assert markdown.startswith(f"### Evenhand: Gap found: {SAID}")
    assert f"- {DECIDE} Policy" in markdown
    assert f"Gap found {SAID}" in " ".join(tests.split())
    assert DECIDE in page
    assert "would have to" not in page


def test_a_notebook_says_it_first() -> None:
    shown = re.sub(r"<[^>]+>", " ", audited(SIMPSON)._repr_html_()).replace("&#x27;", "'")
    assert SAID in " ".join(shown.split()).replace(" ;", ";")
    assert DECIDE in shown


def test_where_the_summary_leads_it_is_said_in_the_same_order() -> None:
    # Within, 29 points more; overall 380 of 1,000 against 576 of 1,200.
    counts = {("easy", "female"): (190, 200), ("easy", "male"): (566, 1000),
              ("hard", "female"): (190, 800), ("hard", "male"): (10, 200)}  # fmt: skip
    found = outside(audited(counts))
    assert found.claim.stratum == SUMMARY
    assert re.match(
        r"Overall, women get decision '1' 10\.0 points less often than men \([\d.]+ to [\d.]+\); "
        r"among people alike in department, 2\d\.\d points more often \([\d.]+ to [\d.]+\); at "
        r"most 5 was agreed\. Outside as well: where department is easy ", found.sentence
    ), found.sentence  # fmt: skip
    assert "over all" not in found.sentence
    assert found.sentence.endswith(DECIDE)


def test_a_stratum_does_not_lead_before_it() -> None:
    # 25 and 20 points more within, 17 points less overall: the strata lie furthest outside.
    counts = {("easy", "female"): (190, 200), ("easy", "male"): (700, 1000),
              ("hard", "female"): (240, 800), ("hard", "male"): (20, 200)}  # fmt: skip
    found = outside(audited(counts))
    assert found.claim.stratum in (None, SUMMARY)
    assert found.headline.startswith("Overall, women get decision '1' 17")
    assert found.next == DECIDE
    assert "Outside as well: where department is easy 25 points more (" in found.sentence


def test_one_outside_and_the_other_opposite_for_sure_is_a_conflict_too() -> None:
    # 10 points more within may be, at most 20 was agreed.
    found = outside(audited(SIMPSON, 0.2))
    assert found.next == DECIDE
    assert found.line.endswith(
        "in department, 10 points more often (5 to 14); at most 20 was agreed."
    )


def test_an_opposite_that_chance_explains_is_no_conflict() -> None:
    counts = {**SIMPSON, ("easy", "female"): (162, 200)}
    counts[("hard", "female")] = (176, 800)
    found = outside(audited(counts))
    assert found.headline.startswith("Women get decision '1' half as often as men")
    assert "Over all strata of department together, " in found.detail
    assert found.layer == "implementation"
    assert found.next != DECIDE


def test_of_error_rates_no_number_is_said_of_either() -> None:
    frame = table(SIMPSON).with_columns(truth=pl.lit(0))
    others = frame.with_columns(truth=pl.lit(1), yes=pl.lit(1, dtype=pl.Int64))
    limits = {"false_positive_rate_gap": 0.05, "false_positive_rate_ratio": 0.8}
    frame = pl.concat([frame.with_columns(pl.col("yes").cast(pl.Int64)), others])
    audit = eh.audit(frame, truth="truth", lenses=["statistical"], limits=limits, **ROLES)
    first, second = [one for one in audit.findings if one.verdict == "outside"][:2]
    both = {first.measure: first, second.measure: second}
    turned = both["false_positive_rate_gap"]
    assert turned.next == DECIDE
    assert turned.headline.startswith("Overall, women whose truth is not '1' get decision '1' 28")
    # Fewer wrong decisions on men would keep the ratio and break the gap's limit within.
    assert str(both["false_positive_rate_ratio"].next).startswith("Look first where it comes from")


# --- by hand ------------------------------------------------------------------------------------


def row(measure: str, value: float, **columns: Any) -> dict[str, Any]:
    ends = {"low": value - 0.02, "high": value + 0.02}
    ends |= {"family_low": value - 0.02, "family_high": value + 0.02}
    whose = {"attribute": "sex", "group": "female", "reference": "male", "class": "1"}
    limits = {"limit_low": -0.05, "limit_high": 0.05, "verdict": "outside"}
    return dict.fromkeys(COLUMNS) | whose | ends | limits | {
        "measure": measure, "value": value, "lens": "statistical", **columns,
    }  # fmt: skip


def test_which_rows_say_the_opposite() -> None:
    lead = row("accuracy_gap", -0.2)
    within = row("accuracy_gap", 0.2, stratum=SUMMARY)
    assert opposed(lead, [lead, within]) is within
    assert opposed(within, [lead, within]) is lead
    for more in (
        {"value": -0.2}, {"group": "other"}, {"class": "0"}, {"stratum": "north"},
        {"verdict": "cannot tell", "family_low": -0.01}, {"value": None},
    ):  # fmt: skip
        assert opposed(lead, [lead, within | more]) is None, more
    # Nobody broke a limit, or the limit itself lies on one side: then one change may keep both.
    inside = {"verdict": "within"}
    assert opposed(lead | inside, [lead, within | inside]) is None
    aside = {"limit_low": 0.3, "limit_high": 0.5}
    assert opposed(lead | aside, [within | aside]) is None
    # What has no middle has no two sides.
    rate = {"measure": "accuracy", "reference": None}
    assert opposed(lead | rate, [within | rate]) is None


def test_what_is_no_rate_is_said_by_its_name() -> None:
    lead = row("criterion_gap", -0.3, lens="labelers")
    within = row("criterion_gap", 0.2, lens="labelers", stratum=SUMMARY)
    said = say_opposed(lead, within, Words(stratum="region", item=("post", "posts")))
    assert said.line == (
        "Difference in the bar, women against men: −0.30 (−0.32 to −0.28) overall, 0.20 (0.18 to "
        "0.22) among posts alike in region; at most 0.05 was agreed."
    )
    assert say_opposed(within, lead, Words()).headline == (
        "Difference in the bar, women against men: the opposite overall and within strata"
    )


def test_nothing_but_the_record_is_needed_to_say_it_again() -> None:
    audit = audited(SIMPSON)
    found = find(audit.rows, Words(stratum="department", positive="1"), positive="1")
    assert [one.line for one in found if one.verdict == "outside"] == [SAID]
