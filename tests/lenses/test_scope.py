"""What an attribute's rows share, and the rules that every lens takes from one place."""

import ast
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.labels import MISSING, OVERALL, REST, SUMMARY
from evenhand.decisions.roles import Roles
from evenhand.errors import DataError, UsageError
from evenhand.findings.limits import CANNOT_TELL, judge, read_limits
from evenhand.findings.settle import NOT_JUDGED, settle
from evenhand.lenses.rows import ASIDES, COLUMNS, Rows
from evenhand.lenses.scope import (
    REST_ALONE,
    Scope,
    choose_reference,
    rule_name,
    threshold_rule,
)

LENSES = Path(eh.__file__).parent / "lenses"
TABLE = pl.DataFrame(
    {
        "y": [1, 0, 1, 0] * 3,
        "s": [0.9, 0.1, 0.5, 0.6, *[0.9, 0.1, 0.2, 0.7] * 2],
        "g": ["f"] * 4 + ["m"] * 8,
    }
)


def scope(**more: Any) -> Scope:
    return Scope(**({"lens": "labelers", "attribute": "sex", "level": 0.9, "seed": 3} | more))


def test_a_block_has_the_shared_columns_and_its_own() -> None:
    shared = scope(rule="given", positive="1")
    (row,) = shared.block((1,), measure="criterion", group="f", value=0.5)
    assert {name: row[name] for name in ("lens", "class", "attribute", "rule", "level")} == {
        "lens": "labelers",
        "class": "1",
        "attribute": "sex",
        "rule": "given",
        "level": 0.9,
    }
    (other,) = shared.block((1,), **{"class": "nurse"}, measure="criterion")
    assert other["class"] == "nurse", "a row's own class goes before the shared one"
    assert tuple(row) == (*COLUMNS, *ASIDES)
    # 0.95 quantile of the standard normal distribution.
    assert shared.z == pytest.approx(1.644854, abs=1e-6)


def test_the_place_of_the_reference() -> None:
    groups = ("f", "m", "x")
    assert scope(groups=groups, reference="m").place == 1
    for reference in (REST, OVERALL, None):
        assert scope(groups=groups, reference=reference).place is None


def test_rows_have_the_columns_of_the_design_in_its_order() -> None:
    assert " ".join(COLUMNS) == (
        "lens measure class attribute group reference stratum labeler norm period value set_low "
        "set_high low high level family_low family_high n n_reference p p_adjusted method rule "
        "undefined no_interval limit_low limit_high verdict"
    )
    frame = Rows.block((1,), period="2026-W12", set_low=0.1, no_interval="one cluster").to_frame()
    assert frame.schema["period"] == frame.schema["no_interval"] == pl.String
    assert frame.schema["set_low"] == frame.schema["set_high"] == pl.Float64
    assert frame.row(0, named=True)["set_low"] == 0.1
    assert frame.row(0, named=True)["set_high"] is None


def test_the_reference_is_the_largest_group_unless_one_is_asked_for() -> None:
    assert choose_reference(("a", "b", "c"), [3, 5, 5], None) == "b"
    assert choose_reference(("a", "b"), [3, 5], "a") == "a"
    assert choose_reference(("a", "b"), [3, 5], OVERALL) == OVERALL
    assert choose_reference(("a", "b"), [3, 5], OVERALL, others=REST_ALONE) == REST
    assert choose_reference(("a", "b"), [3, 5], REST, others=REST_ALONE) == REST


def test_an_unknown_reference_is_refused_in_the_same_words_everywhere() -> None:
    with pytest.raises(UsageError) as caught:
        choose_reference(("female", "male"), [1, 1], "femal")
    assert str(caught.value) == (
        "reference='femal' is not a group. Did you mean 'female'? The groups are female, male; or "
        "write <rest> or <overall>."
    )
    with pytest.raises(UsageError) as caught:
        choose_reference(("female", "male"), [1, 1], REST, others={})
    assert str(caught.value) == ("reference='<rest>' is not a group. The groups are female, male.")


@pytest.mark.parametrize("lens", ["statistical", "thresholds", "labelers"])
def test_lenses_refuse_an_unknown_reference_alike(lens: str) -> None:
    table = TABLE.with_columns(who=pl.Series(["ann", "bob"] * 6))
    decisions = eh.Decisions(
        table, truth="y", score="s", threshold=0.5, group="g", labeler="who", reference="q"
    )
    with pytest.raises(UsageError) as caught:
        eh.audit(decisions, lenses=[lens])
    assert str(caught.value) == (
        "reference='q' is not a group. The groups are f, m; or write <rest> or <overall>."
    )


def test_the_name_of_a_rule() -> None:
    assert rule_name(Roles(rule="given", threshold=0.5)) == "given"
    assert threshold_rule(Roles(rule="given", threshold=0.5)) == "score>=0.5"
    assert rule_name(Roles(rule="score>=t", threshold="cut")) == "score>=t"
    assert rule_name(Roles(rule="score>=t", threshold={"f": 0.4})) == "score>=t"
    assert rule_name(Roles(rule="one-versus-rest")) == "one-versus-rest@0.5"
    assert rule_name(Roles(rule="argmax")) == "argmax"
    assert rule_name(Roles()) is None


def test_no_limit_is_held_against_a_row_whose_lens_says_so() -> None:
    ends = {"value": 0.01, "low": 0.0, "high": 0.02, "family_low": 0.0, "family_high": 0.02}
    scope = Scope(lens="statistical", attribute="g", level=0.95, seed=0)
    # Whatever a method says in words, a verdict comes from what a lens says as data.
    rows = scope.block(
        (3,), measure="selection_rate_gap", group="f", reference="m", n=500, n_reference=500,
        method=["wilson", "wilson", "no limit is held against it: no"],
        unjudged=[None, "few errors", None], **ends,
    )  # fmt: skip
    judged = judge(rows, read_limits({"selection_rate_gap": 0.05}))
    assert judged.plain("verdict") == ["within", CANNOT_TELL, "within"]
    assert judged["method"][1] == "wilson; no limit is held against it: few errors"
    found = settle(list(judged)[1], lambda **_: [])
    assert found is not None
    assert (found.reason, found.why) == (NOT_JUDGED, "few errors")


def test_check_refuses_before_anything_is_counted() -> None:
    bad = TABLE.with_columns(s=pl.Series([float("nan")] + [0.5] * 11))
    decisions = eh.Decisions(bad, truth="y", score="s", threshold=0.5, group="g")
    reason = (
        "score='s' holds 1 value that is not finite (NaN or infinite). Replace them or leave them "
        "empty."
    )
    with pytest.raises(DataError) as caught:
        decisions.check()
    assert str(caught.value) == reason
    started: list[str] = []
    for lenses in (None, ["thresholds"]):
        with pytest.raises(DataError) as caught:
            eh.audit(decisions, lenses=lenses, progress=started.append)
        assert str(caught.value) == reason
    assert started == []
    with pytest.raises(DataError) as caught:
        eh.cost_curve(decisions, cost_ratio=2)
    assert str(caught.value) == reason
    known = {"f": {"f": 0.9, "m": 0.1}, "m": {"f": 0.1, "m": 0.9}}
    with pytest.raises(DataError) as caught:
        eh.inferred_groups(decisions, confusion=known)
    assert str(caught.value) == reason


def test_check_takes_what_can_be_used() -> None:
    weighted = TABLE.with_columns(w=pl.lit(2.0))
    roles = {"truth": "y", "score": "s", "threshold": 0.5, "group": "g"}
    assert eh.Decisions(weighted, **roles, weight="w").check() is None
    with pytest.raises(DataError, match="weight='w' holds negative weights"):
        eh.Decisions(weighted.with_columns(w=pl.lit(-1.0)), **roles, weight="w").check()


def test_reserved_names_are_written_in_one_place() -> None:
    reserved = {REST, OVERALL, SUMMARY, MISSING}
    for path in LENSES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not reserved & words, path


def test_lenses_do_not_look_at_the_numbers_by_themselves() -> None:
    for path in LENSES.rglob("lens.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & {"survey", "check"}, path
