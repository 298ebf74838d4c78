"""Truth known unequally often on one side of the decision: no verdict rests on it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.lenses.rows import KNOWN_SHARES, UNEQUALLY_KNOWN
from evenhand.report.render import render

# Of 6,000 refused rows of a group: known good, known bad, unknown. Of 4,000 accepted: good, bad.
HALF, FIFTH, ALL = (600, 2400, 3000), (240, 960, 4800), (1200, 4800, 0)
ACCEPTED = (2800, 1200, 0)
ROLES: dict[str, Any] = {
    "truth": "good",
    "decision": "hired",
    "group": "sex",
    "reference": {"sex": "male"},
}
LIMIT = {"true_positive_rate_gap": 0.05}
SENTENCE = (
    "The data cannot tell whether women whose truth is '1' get decision '1' more often than men: "
    "the truth is known for 20% of women and 50% of men who do not get decision '1'."
)
AGREED = " At most 5 points was agreed."
NEXT = (
    "More cases reviewed in the same way would not settle it. Review a random sample of the "
    "unreviewed ones in each group."
)
TRUTH_GAPS = (
    "true_positive_rate_gap",
    "true_positive_rate_ratio",
    "true_positive_rate_gap_worst",
    "false_positive_rate_gap",
    "false_negative_rate_gap",
    "true_negative_rate_ratio",
    "equalised_odds",
    "accuracy_gap",
    "precision_gap",
)


def people(
    name: str, refused: tuple[int, ...], accepted: tuple[int, ...] = ACCEPTED
) -> pl.DataFrame:
    """The rows of one group, by what is known of those refused and accepted."""
    parts = [
        pl.DataFrame(
            {
                "sex": [name] * n,
                "hired": [hired] * n,
                "good": pl.Series([truth] * n, dtype=pl.Int64),
            }
        )
        for hired, counts in ((0, refused), (1, accepted))
        for truth, n in zip((1, 0, None), counts)
    ]
    return pl.concat(parts)


def table(**refused: tuple[int, ...]) -> pl.DataFrame:
    return pl.concat([people(name, counts) for name, counts in refused.items()])


def example() -> pl.DataFrame:
    return table(male=HALF, female=FIFTH)


def verdicts(result: eh.Audit, **asked: Any) -> dict[tuple[str, str | None], str]:
    """The verdicts of judged rows, by measure and group."""
    rows = [row for row in result.rows.where(**asked) if row["verdict"] != "not assessed"]
    return {(row["measure"], row["group"]): row["verdict"] for row in rows}


def withheld(result: eh.Audit) -> set[tuple[str, str | None]]:
    rows = result.rows.where(unjudged=UNEQUALLY_KNOWN)
    return {(row["measure"], row["group"]) for row in rows}


def test_the_command_line_says_whose_truth_is_known_and_exits_0(run, tmp_path: Path) -> None:
    example().write_parquet("rows.parquet")
    code, out, _ = run(
        "audit", "rows.parquet", "--truth", "good", "--decision", "hired", "--group", "sex",
        "--reference", "sex=male", "--limit", "true_positive_rate_gap=0.05",
    )  # fmt: skip
    said = " ".join(out.split())
    assert code == 0
    assert said.startswith(
        f"Cannot tell {SENTENCE}{AGREED} (Nothing is shown to lie outside its limit.)"
    )
    assert f"- True positive rate gap, women: {NEXT[0].lower()}{NEXT[1:]}" in said
    assert "four times out of five" not in said


def test_python_gives_the_same_on_every_engine_and_from_tallies() -> None:
    frame = example()
    relation = duckdb.connect()
    relation.register("decisions", frame.to_arrow())
    tables = {
        "polars": frame,
        "duckdb": relation.sql("select * from decisions"),
        "tallies": eh.tally(frame, **ROLES),
    }
    for name, held in tables.items():
        roles = {} if name == "tallies" else ROLES
        result = eh.audit(held, limits=LIMIT, **roles)
        assert result.verdict == "cannot tell", name
        (finding,) = [one for one in result.findings if one.rows and one.verdict == "cannot tell"]
        assert finding.line == SENTENCE + AGREED, name
        assert finding.next == NEXT, name
        assert finding.settle is not None
        assert (finding.settle.how_many, finding.settle.reason) == (None, "unreviewed")
        eh.check(result)


def test_every_comparison_that_needs_a_truth_is_withheld_and_no_other() -> None:
    limits = dict.fromkeys(TRUTH_GAPS, 0.02) | {
        "selection_rate_gap": 0.02,
        "true_positive_rate_ratio": 0.99,
        "true_negative_rate_ratio": 0.99,
        "impact_ratio": 0.9,
    }
    result = eh.audit(example(), limits=limits, **ROLES)
    found = verdicts(result)
    assert {found[name, "female"] for name in TRUTH_GAPS} == {"cannot tell"}
    assert found["selection_rate_gap", "female"] == "within"
    assert found["impact_ratio", "male"] == "within"
    assert "outside" not in found.values()


def test_the_row_says_why_beside_its_columns_and_in_its_method() -> None:
    result = eh.audit(example(), limits=LIMIT, **ROLES)
    (row,) = result.rows.where(measure="true_positive_rate_gap", class_="1")
    assert row["unjudged"] == UNEQUALLY_KNOWN
    assert row["method"].endswith(f"; no limit is held against it: {UNEQUALLY_KNOWN}")
    # The raw numbers are what they are.
    assert row["value"] == pytest.approx(2800 / 3040 - 2800 / 3400)
    known = [
        one
        for one in result.details["statistical"][KNOWN_SHARES]
        if (one["class"], one["over_groups"]) == ("1", False)
    ]
    assert [(one["who"], one["whom"], one["shares"]) for one in known] == [
        ("female", "male", [0.2, 0.5])
    ]


def test_five_points_exactly_are_not_more_than_five() -> None:
    nearly, more = (540, 2160, 3300), (540, 2159, 3301)  # 45.0% of 6,000, and one row fewer
    same = eh.audit(table(male=HALF, female=nearly), limits=LIMIT, **ROLES)
    assert same.rows.asides()["unjudged"] == {}
    assert same.verdict != "cannot tell"
    differs = eh.audit(table(male=HALF, female=more), limits=LIMIT, **ROLES)
    assert differs.verdict == "cannot tell"
    # Nor is whoever is known more often by exactly as much.
    other = eh.audit(table(male=nearly, female=HALF), limits=LIMIT, **ROLES)
    assert other.rows.asides()["unjudged"] == {}


def test_five_points_are_said_with_a_decimal() -> None:
    more = (540, 2159, 3301)
    line = eh.audit(table(male=HALF, female=more), limits=LIMIT, **ROLES).findings[0].line
    assert "known for 45.0% of women and 50.0% of men who" in line


def test_cells_of_fewer_than_ten_rows_are_not_compared() -> None:
    few = pl.concat([people("male", HALF), people("female", (4, 3, 2))])
    assert eh.audit(few, limits=LIMIT, **ROLES).rows.asides()["unjudged"] == {}
    ten = pl.concat([people("male", HALF), people("female", (4, 3, 3))])
    assert ("true_positive_rate_gap", "female") in withheld(eh.audit(ten, limits=LIMIT, **ROLES))


def test_a_review_share_accounts_for_what_was_reviewed() -> None:
    refused = pl.when(pl.col("sex") == "male").then(0.5).otherwise(0.2)
    share = pl.when(pl.col("hired") == 1).then(1.0).otherwise(refused)
    frame = example().with_columns(share.alias("share"))
    result = eh.audit(frame, review_share="share", limits=LIMIT, **ROLES)
    assert result.rows.asides()["unjudged"] == {}
    assert verdicts(result)["true_positive_rate_gap", "female"] == "within"


def test_nothing_changes_where_truth_is_complete_or_equally_known() -> None:
    for refused in (ALL, HALF):
        result = eh.audit(table(male=refused, female=refused), limits=LIMIT, **ROLES)
        assert result.rows.asides()["unjudged"] == {}
        assert KNOWN_SHARES not in result.details["statistical"]
        assert not any("no limit is held" in row["method"] for row in result.rows)
        assert result.verdict == "within"


def simulated(seed: int) -> pl.DataFrame:
    """No gap in true positive rates; all accepted cases are reviewed, refused ones unequally."""
    rng = np.random.default_rng(seed)
    sex = np.repeat(["male", "female"], 3000)
    good = rng.random(6000) < 0.4
    hired = rng.random(6000) < np.where(good, 0.7, 0.2)
    known = hired | (rng.random(6000) < np.where(sex == "male", 0.5, 0.2))
    truth = pl.Series(good.astype(int)).set(pl.Series(~known), None)
    return pl.DataFrame({"sex": sex, "hired": hired.astype(int), "good": truth})


def test_no_audit_of_the_simulation_finds_a_gap() -> None:
    found = [eh.audit(simulated(seed), limits=LIMIT, **ROLES).verdict for seed in range(40)]
    assert found == ["cannot tell"] * 40


def test_of_three_groups_only_comparisons_with_the_one_are_withheld() -> None:
    worse = (3000, 3000, 0)
    frame = table(male=worse, other=ALL, female=FIFTH)
    limits = LIMIT | {
        "true_positive_rate_gap_worst": 0.05,
        "true_positive_rate_spread": 0.01,
        "equalised_odds": 0.05,
    }
    result = eh.audit(frame, limits=limits, **ROLES)
    found = verdicts(result)
    assert found["true_positive_rate_gap", "other"] == "outside"
    assert found["true_positive_rate_gap", "female"] == "cannot tell"
    assert {found[name, who] for name, who in found if name in limits and name not in LIMIT} == {
        "cannot tell"
    }
    assert result.verdict == "outside"
    assert "group other" in result.findings[0].line
    assert "female" not in {one.claim.group for one in result.findings if one.verdict == "outside"}


def test_everybody_else_is_known_as_often_as_all_the_others_together() -> None:
    frame = table(male=HALF, other=HALF, female=FIFTH)
    roles = ROLES | {"reference": {"sex": "<rest>"}}
    line = eh.audit(frame, limits=LIMIT, **roles).findings[0].line
    assert "50% of everybody else who do not get decision '1'" in line
    # Of men, the rest are men's equals and the women: 50% against 35%.
    found = verdicts(eh.audit(frame, limits=LIMIT, **roles))
    assert set(found.values()) == {"cannot tell"}


def test_of_many_classes_those_whose_cells_differ_are_withheld() -> None:
    cells = {
        # group, truth, decided: rows; the truth is None where nobody looked.
        ("f", "cook", "cook"): 800, ("f", "nurse", "nurse"): 800, ("f", "clerk", "clerk"): 800,
        ("f", "nurse", "clerk"): 200, ("f", "clerk", "nurse"): 200, ("f", "cook", "nurse"): 100,
        ("m", "cook", "cook"): 800, ("m", "nurse", "nurse"): 800, ("m", "clerk", "clerk"): 800,
        ("m", "nurse", "clerk"): 200, ("m", "clerk", "nurse"): 200, ("m", "cook", "nurse"): 100,
        ("f", None, "nurse"): 1000,
    }  # fmt: skip
    rows = [key for key, n in cells.items() for _ in range(n)]
    frame = pl.DataFrame(rows, schema=["sex", "job", "told"], orient="row")
    result = eh.audit(
        frame, truth="job", decision="told", group="sex", reference={"sex": "m"},
        limits={"true_positive_rate_gap": 0.2, "true_positive_rate_gap_rms": 0.2,
                "selection_rate_gap": 0.5},
    )  # fmt: skip
    judged = {
        (row["measure"], row["class"]): row["verdict"]
        for row in result.rows
        if row["verdict"] != "not assessed"
    }
    # Of those not told 'cook' fewer are known among women, too: 71% of 3,300 against all.
    assert judged["true_positive_rate_gap", "nurse"] == "cannot tell"
    assert judged["true_positive_rate_gap_rms", None] == "cannot tell"
    assert judged["selection_rate_gap", "nurse"] == "within"
    (size,) = [one for one in result.findings if one.measure == "true_positive_rate_gap_rms"]
    assert size.line == (
        "The data cannot tell whether group f and group m are recognised equally well in their own "
        "class: the truth is known for 52% of group f and 100% of group m who get decision "
        "'nurse'. At most 20 points was agreed."
    )


def test_without_limits_nobody_claims_the_difference() -> None:
    result = eh.audit(example(), **ROLES)
    assert result.verdict == "not assessed"
    (finding,) = result.findings
    assert finding.line == SENTENCE
    assert finding.certainty is not None
    assert finding.certainty.kind == "none proven"
    assert result.sentence.startswith(SENTENCE)
    text = " ".join(str(result).split())
    assert f"True positive rate gap, women: {NEXT[0].lower()}{NEXT[1:]}" in text
    assert "Agree on how large" not in text
    assert "chance alone" not in text


def test_without_limits_a_difference_that_needs_no_truth_leads() -> None:
    frame = pl.concat([people("male", HALF), people("female", FIFTH, (1400, 600, 0))])
    first, second = eh.audit(frame, **ROLES).findings
    assert (first.measure, second.line) == ("selection_rate_gap", SENTENCE)
    # Where a limit asks for it, that is where it is said.
    judged = eh.audit(frame, limits={"accuracy_gap": 0.05}, **ROLES).findings
    assert [one.measure for one in judged] == ["accuracy_gap", "selection_rate_gap"]


def test_a_rate_of_one_group_is_judged_where_both_its_sides_are_known_alike() -> None:
    limits = {"true_positive_rate": (0.5, 1.0), "precision": (0.5, 1.0), "selection_rate": 0.9}
    result = eh.audit(table(male=HALF, female=ALL), limits=limits, **ROLES)
    found = verdicts(result)
    assert found["true_positive_rate", "male"] == "cannot tell"
    assert found["true_positive_rate", "female"] == "within"
    # Precision counts one side of the decision alone.
    assert (found["precision", "male"], found["selection_rate", "male"]) == ("within", "within")
    (finding,) = [one for one in result.findings if one.measure == "true_positive_rate"]
    assert finding.line == (
        "The data cannot tell the true positive rate for men: of men, the truth is known for 100% "
        "of those who get decision '1' and 50% of those who do not get decision '1'. At least 50% "
        "was agreed."
    )


def as_said(text: str) -> str:
    """What a form says, without its marks."""
    plain = re.sub(r"&#39;|&apos;|&#x27;", "'", text.replace("\\", ""))
    return " ".join(plain.replace("%25", "%").split())


@pytest.mark.parametrize("limits", [LIMIT, {}])
def test_every_form_says_the_same(limits: Mapping[str, float], tmp_path: Path) -> None:
    result = eh.audit(example(), limits=limits, **ROLES)
    path = tmp_path / "audit.json"
    result.save(path)
    record = eh.read_record(path)
    texts = {
        "terminal": str(result),
        "markdown": render(record, form="markdown"),
        "junit": render(record, form="junit"),
        "page": render(record, form="page", charts=False),
        "notebook": result._repr_html_(),
        "github": render(record, form="github"),
    }
    core = "the truth is known for 20% of women and 50% of men who do not get decision '1'"
    for name, text in texts.items():
        said = as_said(text)
        if name == "github" and not limits:
            continue
        assert core in said or core.replace("the truth", "The truth") in said, name
        for claim in ("more often than men (", "points more (", "four times out of five"):
            assert claim not in said, name


def test_what_was_reviewed_is_no_movement_between_audits() -> None:
    before = eh.audit(table(male=ALL, female=ALL), **ROLES)
    moved = eh.audit(example(), **ROLES).compare(before).moved
    assert "true_positive_rate_gap" not in {one.now["measure"] for one in moved}


def test_strata_are_asked_by_themselves_and_their_summary_by_all() -> None:
    frame = pl.concat(
        [
            table(male=HALF, female=HALF).with_columns(site=pl.lit("north")),
            example().with_columns(site=pl.lit("south")),
        ]
    )
    result = eh.audit(frame, stratum="site", limits=LIMIT, **ROLES)
    found = {
        row["stratum"]: row["verdict"]
        for row in result.rows.where(measure="true_positive_rate_gap", class_="1", group="female")
    }
    assert found["north"] == "within"
    assert found["south"] == found[None] == found["<summary>"] == "cannot tell"


def test_weights_leave_the_shares_of_rows_as_they_are() -> None:
    weight = pl.when(pl.col("good").is_null()).then(0.001).otherwise(1.0)
    result = eh.audit(example().with_columns(w=weight), weight="w", limits=LIMIT, **ROLES)
    assert SENTENCE in result.sentence


def test_scores_with_a_cut_and_implied_thresholds_compared() -> None:
    rng = np.random.default_rng(3)
    sex = np.repeat(["male", "female"], 6000)
    score = rng.random(12_000)
    good = rng.random(12_000) < np.where(sex == "male", score, score**2)
    known = (score >= 0.5) | (rng.random(12_000) < np.where(sex == "male", 0.5, 0.2))
    frame = pl.DataFrame({"sex": sex, "score": score, "good": good.astype(int)})
    roles: dict[str, Any] = {
        "truth": "good", "score": "score", "threshold": 0.5, "group": "sex",
        "reference": {"sex": "male"},
    }  # fmt: skip
    limits = {"auc_gap": 0.01, "implied_threshold_gap": 0.02, "cost_ratio_ratio": 0.9}
    complete = eh.audit(frame, limits=limits, **roles)
    assert verdicts(complete)["implied_threshold_gap", "female"] == "outside"
    partly = frame.with_columns(good=pl.Series(good.astype(int)).set(pl.Series(~known), None))
    for lenses in (None, ["thresholds"], ["statistical"]):
        result = eh.audit(partly, limits=limits, lenses=lenses, **roles)
        assert set(verdicts(result).values()) == {"cannot tell"}
    line = {one.measure: one.line for one in eh.audit(partly, limits=limits, **roles).findings}
    assert re.fullmatch(
        r"The data cannot tell whether women get decision '1' on weaker evidence than men: the "
        r"truth is known for \d\d% of women and \d\d% of men who do not get decision '1'\. At most "
        r"2 points was agreed\.",
        line["implied_threshold_gap"],
    )
    assert line["auc_gap"].startswith("The data cannot tell whether scores tell cases whose truth")
    # Without limits no side-by-side weights take the place of the comparison.
    free = [one for one in eh.audit(partly, **roles).findings if one.lens == "thresholds"]
    assert [one.line.startswith("The data cannot tell") for one in free] == [True]
    # A score alone decides nothing.
    alone = eh.audit(partly, **{k: v for k, v in roles.items() if k != "threshold"})
    assert alone.rows.asides()["unjudged"] == {}


def test_labelers_compared_are_withheld_too() -> None:
    rng = np.random.default_rng(5)
    frame = example().with_columns(who=pl.Series(rng.integers(0, 40, 20_000).astype(str)))
    result = eh.audit(frame, labeler="who", limits={"criterion_gap": 0.05}, **ROLES)
    (gap,) = result.rows.where(measure="criterion_gap", labeler=None, stratum=None)
    assert (gap["verdict"], gap["unjudged"]) == ("cannot tell", UNEQUALLY_KNOWN)
    (finding,) = [one for one in result.findings if one.verdict == "cannot tell"]
    assert "known for 20% of women and 50% of men who do not get decision '1'" in finding.line
    costs = eh.audit(frame, labeler="who", limits={"cost_ratio": (0.5, 5.0)}, **ROLES)
    (weight,) = [one for one in costs.findings if one.measure == "cost_ratio"]
    assert weight.verdict == "cannot tell"
    assert re.search(
        r"The data cannot tell whether that is so: Of (wo)?men, the truth is known for 100% of "
        r"those who get decision '1' and [25]0% of those who do not get decision '1'\.",
        weight.line,
    )
    quiet = eh.audit(frame, labeler="who", lenses=["labelers"], **ROLES)
    assert [one.line[:20] for one in quiet.findings] == ["The data cannot tell"]


def test_many_open_comparisons_say_what_to_review() -> None:
    groups = {f"g{i}": FIFTH for i in range(4)}
    result = eh.audit(table(male=HALF, **groups), limits=LIMIT, **ROLES)
    text = " ".join(str(result).split())
    assert (
        "True positive rate gap by sex: 4 of 4 comparisons are open (at most 5 points was agreed). "
        f"For them {UNEQUALLY_KNOWN}, so more cases reviewed in the same way would settle nothing: "
        "review a random sample of the unreviewed ones in each group." in text
    )
    assert "Widest is" not in text


def test_a_record_says_it_again_with_a_charter_s_words(tmp_path: Path) -> None:
    (tmp_path / "charter.toml").write_text(
        'schema = "evenhand.charter/1"\n[system]\nname = "x"\nitem = ["post", "posts"]\nof = "by"\n'
        'decided = "removed"\ntruth = ["break the rules", "do not break the rules"]\n'
        "[limits]\ntrue_positive_rate_gap = 0.05\n",
        encoding="utf-8",
    )
    result = eh.audit(example(), charter=tmp_path / "charter.toml", **ROLES)
    line = (
        "The data cannot tell whether posts by women that break the rules are removed more often "
        "than men's: of posts that are not removed, the truth is known for 20% of women's and 50% "
        "of men's. At most 5 points was agreed."
    )
    assert result.findings[0].line == line
    result.save(tmp_path / "audit.json")
    assert line in render(eh.read_record(tmp_path / "audit.json"), form="markdown").replace(
        "\\", ""
    )
    document = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert UNEQUALLY_KNOWN in document["asides"]["unjudged"]


def test_without_limits_the_whole_table_speaks_before_its_strata() -> None:
    frame = example().with_columns(site=pl.Series(["a", "b"] * 10_000))
    assert eh.audit(frame, stratum="site", **ROLES).findings[0].line == SENTENCE


def test_a_record_whose_shares_were_changed_by_hand_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    eh.audit(example(), limits=LIMIT, **ROLES).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["details"]["statistical"][KNOWN_SHARES][0]["shares"]
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(eh.errors.DataError, match="shares"):
        eh.read_record(path)


def test_rows_without_a_cluster_count_on_neither_side() -> None:
    named = table(male=HALF, female=HALF)
    named = named.with_columns(home=pl.int_range(named.height).cast(pl.String))
    homeless = people("female", (1, 1, 5_000), (1, 1, 0)).with_columns(
        home=pl.lit(None, dtype=pl.String)
    )
    result = eh.audit(pl.concat([named, homeless]), cluster="home", limits=LIMIT, **ROLES)
    assert result.rows.asides()["unjudged"] == {}


def test_one_labeler_beside_all_others_is_not_two_groups_compared() -> None:
    who = pl.Series(["ann", "bob", "eve", "kim"] * 5_000)
    result = eh.audit(example().with_columns(who=who), labeler="who", lenses=["labelers"], **ROLES)
    beside = [row for row in result.rows.where(reference="<rest>") if row["labeler"] is not None]
    assert beside
    assert {row["unjudged"] for row in beside} == {None}
