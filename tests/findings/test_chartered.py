"""The charter at work in an audit: bands, verdicts, findings at their layer."""

import datetime
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.charter.charter import Charter, Choice
from evenhand.charter.read import parse_charter
from evenhand.decisions.table import Decisions
from evenhand.errors import DataError
from evenhand.findings.charter import (
    KEPT,
    assign,
    charter_findings,
    charter_limits,
    groups_of,
    with_settings,
)
from evenhand.findings.finding import Finding
from evenhand.findings.limits import judge
from evenhand.findings.run import Audit, audit
from evenhand.lenses.rows import Rows
from evenhand.report.formats import as_markdown
from evenhand.report.terminal import as_text
from evenhand.simulate.labelers import LabelerGroup, simulate_labelers
from evenhand.simulate.scores import ScoreGroup, simulate_scores
from evenhand.stats.thresholds.required import rates_at_cost_ratio

TODAY = datetime.date(2026, 6, 1)
FOR_ALL = Choice(
    cost_ratio=4, low=3.2, high=5, decided_by="the council", review_by=datetime.date(2027, 1, 1)
)
FEMALE = replace(FOR_ALL, cost_ratio=2, low=1.6, high=2.5, attribute="gender", group="female")
TEXT = """\
schema = "evenhand.charter/1"
[policy]
owner = "Bo"
[implementation]
owner = "the engineers"
[[choices]]
cost_ratio = 4
tolerance = 1.25
positive_is = "burden"
decided_by = "the council"
review_by = 2000-01-01
[[choices]]
attribute = "sex"
group = "x"
cost_ratio = 4
tolerance = 1.25
decided_by = "the council"
review_by = 2999-01-01
[limits]
selection_rate_gap = 0.1
"""


def rows(**columns: object) -> Rows:
    shape = (len(columns["group"]),)  # type: ignore[arg-type]
    return Rows.block(shape, **({"lens": "thresholds", "n": 500, "level": 0.95} | columns))


def decisions(**roles: object) -> Decisions:
    table = {
        "bad": [1, 0] * 200,
        "removed": [1, 0, 0, 0] * 100,
        "sex": ["f", "f", "m", "m"] * 100,
    }
    return Decisions(table, **({"truth": "bad", "decision": "removed", "group": "sex"} | roles))


def test_a_choice_judges_cost_ratio_and_threshold_alike() -> None:
    found = rows(
        measure=["cost_ratio"] * 3 + ["implied_threshold"] * 3,
        attribute="gender",
        group=["a", "b", "c"] * 2,
        value=[4, 8, 5, 1 / 5, 1 / 9, 1 / 6],
        family_low=[3.5, 7, 4.5, 1 / 5.9, 1 / 10, 1 / 6.5],
        family_high=[4.9, 9, 5.5, 1 / 4.5, 1 / 8, 1 / 5.5],
    )
    judged = judge(found, charter_limits(Charter(source="c", choices=(FOR_ALL,))))
    assert judged["verdict"].tolist() == ["within", "outside", "cannot tell"] * 2
    assert judged["limit_low"].tolist() == pytest.approx([3.2] * 3 + [1 / 6] * 3)
    assert judged["limit_high"].tolist() == pytest.approx([5] * 3 + [1 / 4.2] * 3)


@pytest.mark.parametrize("choices", [(FOR_ALL, FEMALE), (FEMALE, FOR_ALL)])
def test_a_groups_own_choice_goes_before_the_one_for_all(choices: tuple[Choice, ...]) -> None:
    found = rows(
        measure="cost_ratio",
        attribute=["gender", "gender", "role"],
        group=["female", "male", "female"],
    )
    judged = judge(found, charter_limits(Charter(source="c", choices=choices)))
    # A group of the same name in another column is another group.
    assert judged["limit_low"].tolist() == [1.6, 3.2, 3.2]
    assert judged["limit_high"].tolist() == [2.5, 5, 5]


@given(st.floats(0.01, 100), st.floats(1.05, 4), st.floats(0.01, 100), st.floats(1.01, 3))
def test_both_measures_always_get_the_same_verdict(
    chosen: float, factor: float, value: float, spread: float
) -> None:
    choice = Choice(cost_ratio=chosen, low=chosen / factor, high=chosen * factor)
    ends = value / spread, value * spread
    found = rows(
        measure=["cost_ratio", "implied_threshold"],
        group=["a", "a"],
        family_low=[ends[0], 1 / (1 + ends[1])],
        family_high=[ends[1], 1 / (1 + ends[0])],
    )
    verdicts = judge(found, charter_limits(Charter(source="c", choices=(choice,))))["verdict"]
    assert verdicts[0] == verdicts[1]


def test_a_group_that_mixes_pairs_with_different_choices_is_not_judged() -> None:
    pair = replace(FEMALE, attribute="writer*reader", group="a*b")
    charter = Charter(source="c.toml", choices=(FOR_ALL, pair))
    told = {
        "attribute": ["writer", "writer", "reader", "writer*reader", "writer*reader"],
        "group": ["a", "b", "b", "a*b", "b*b"],
    }
    found = rows(measure="cost_ratio", value=4.0, family_low=3.9, family_high=4.1, **told)
    verdicts = judge(found, charter_limits(charter)).plain("verdict")
    assert verdicts == ["not assessed", "within", "not assessed", "outside", "within"]
    said = [f.sentence for f in charter_findings(charter, found, today=TODAY)]
    assert (
        "writer=a mixes pairs with different choices (writer*reader=a*b has its own): what it "
        "implies is measured and not judged." in said
    )
    # Whoever chooses for writer=a all the same is taken at their word.
    own = replace(FEMALE, attribute="writer", group="a")
    chosen = Charter(source="c.toml", choices=(FOR_ALL, pair, own))
    assert judge(found, charter_limits(chosen)).plain("verdict")[:3] == [
        "outside",
        "within",
        "not assessed",
    ]


def test_no_charter_changes_nothing() -> None:
    assert charter_limits(None) == []
    assert charter_findings(None, rows(group=["a"]), today=TODAY) == []
    assert audit(decisions()).charter is None


def test_findings_name_layer_and_owner() -> None:
    charter = replace(parse_charter(TEXT), choices=(FEMALE,))
    found = charter_findings(
        charter, rows(attribute="gender", group=["female", "male"]), today=TODAY
    )
    told = [(f.lens, f.layer, f.owner, f.verdict, f.sentence) for f in found]
    assert told == [
        (
            "charter",
            "product",
            None,
            "not assessed",
            "The product layer has no owner. Ask whoever leads the product.",
        ),
        (
            "charter",
            "policy",
            "Bo",
            "not assessed",
            "No cost ratio is chosen for gender=male: what it implies is measured and not judged.",
        ),
    ]


OWNED = '[implementation]\nowner = "the model team"\n'
WHOSE_LABELERS = {
    "nobody": ("", "Implementation: label operations.", None),
    "the layer's owner": (OWNED, "Implementation: label operations (ask the model team).",
                          "the model team"),
    "their own": (OWNED + 'labelers_follow = {owner = "guidelines and training"}\n',
                  "Implementation: guidelines and training.", "guidelines and training"),
    "the same people": (OWNED + 'labelers_follow = {owner = "the model team"}\n',
                        "Implementation: the model team.", "the model team"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOSE_LABELERS)
def test_guidelines_are_not_the_model_teams_unless_the_charter_says_so(name: str) -> None:
    layers, whose, owner = WHOSE_LABELERS[name]
    charter = parse_charter(f'schema = "evenhand.charter/1"\n{layers}')
    shared = {"layer": "implementation", "verdict": "outside", "sentence": "", "attribute": None,
              "measure": "cost_ratio", "rows": (), "next": "Do so."}  # fmt: skip
    lenses = ("labelers", "thresholds")
    labels, model = assign([Finding(lens=lens, **shared) for lens in lenses], charter)
    assert (labels.whose, labels.owner) == (whose, owner)
    asked = "the model team" if layers else "engineers and label operations"
    assert model.whose == f"Implementation: {asked}."
    # What is found of labels by another lens is of the same people.
    [rates] = assign([Finding(lens="statistical", **shared)], charter, labels=True)
    assert (rates.whose, rates.owner) == (whose, owner)


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (["within", "within"], True),
        (["within", "cannot tell"], False),
        (["within", "outside"], False),
        (["not assessed", "not assessed"], False),
    ],
)
def test_where_choices_are_kept_concern_goes_to_policy(verdicts: list[str], told: bool) -> None:
    shared = {"measure": "cost_ratio", "attribute": "gender", "group": ["female", "male"]}
    charter = replace(parse_charter(TEXT), choices=(FOR_ALL,))
    found = charter_findings(charter, rows(verdict=verdicts, **shared), today=TODAY)
    assert [(f.layer, f.owner) for f in found if f.sentence == KEPT] == [("policy", "Bo")] * told


def test_findings_speak_in_the_words_of_the_charter() -> None:
    system = "[system]\nfalse_positive = 'wrongful removal'\nfalse_negative = 'oversight'\n"
    charter = parse_charter(TEXT.replace("[policy]", f"{system}[policy]"))
    made = simulate_scores({"f": ScoreGroup(), "m": ScoreGroup(shift=1.0)}, seed=1).frame
    table = Decisions(made, truth="truth", score="score", threshold=0.5, group="group")
    told = {f.measure: f.sentence for f in audit(table, charter=charter).findings}
    assert told["cost_ratio"].startswith(
        "Group m gets decision '1' (a burden) only on far stronger evidence than agreed: from a "
    )
    assert re.search(
        r"For group m one oversight is treated as seriously as [\d.]+ wrongful removals \(",
        told["cost_ratio"],
    )
    # The comparison would say the same again.
    assert "cost_ratio_ratio" not in told
    assert "missed '1'" not in " ".join(told.values())


def test_a_charter_may_speak_of_more_attributes_than_the_audit() -> None:
    more = "[prevalence.age]\nold = 0.02\n[truth_quality.age]\nold = {sensitivity = 0.9, "
    charter = parse_charter(TEXT + more + "specificity = 0.9}\n")
    for made, roles in (
        (simulate_scores(seed=1).frame, {"score": "score", "threshold": 0.5}),
        (simulate_labelers(seed=1).frame, {"decision": "decision", "labeler": "labeler"}),
    ):
        table = Decisions(made, truth="truth", group="group", **roles)
        told = [f.sentence for f in audit(table, charter=charter).findings]
        away = "but the data was not grouped by"
        assert f"The charter chooses a cost ratio for sex=x, {away} sex." in told
        assert f"The charter gives a prevalence for age=old, {away} age." in told
        assert f"The charter tells the quality of the truth for age=old, {away} age." in told


def test_a_prevalence_for_a_group_misspelt_is_said() -> None:
    charter = parse_charter(TEXT + "[prevalence.group]\na = 0.02\nB = 0.03\n")
    table = Decisions(
        simulate_labelers(seed=1).frame,
        truth="truth",
        decision="decision",
        labeler="labeler",
        group="group",
    )
    told = [(f.layer, f.owner, f.sentence) for f in audit(table, charter=charter).findings]
    said = (
        "The charter gives a prevalence for group=a, but the data has no such group. "
        "Did you mean 'A'?"
    )
    assert ("policy", "Bo", said) in told
    assert not any("group=B" in sentence for _, _, sentence in told)


def test_groups_without_a_name_need_no_choice() -> None:
    found = rows(attribute=["a", "a", "a", None], group=["x", "<missing>", None, "y"])
    assert groups_of(found) == {"a": ["x"]}


def test_an_audit_by_charter(tmp_path: Path) -> None:
    file = tmp_path / "charter.toml"
    file.write_text(TEXT, encoding="utf-8")
    result = audit(decisions(), charter=file)
    # f is removed in 1/2 of 200 cases and m in none: outside ±0.1 whatever the interval.
    assert result.verdict == "outside"
    gap = next(f for f in result.findings if f.measure == "selection_rate_gap")
    assert (gap.layer, gap.owner, gap.verdict) == ("implementation", "the engineers", "outside")
    said = {f.sentence: (f.layer, f.owner) for f in result.findings if f.lens == "charter"}
    review = "The cost ratio of 4 for everybody was to be reviewed by 2000-01-01, "
    unknown = "The charter chooses a cost ratio for sex=x, but the data has no such group."
    late = next(sentence for sentence in said if sentence.startswith(review))
    assert said[late] == said[unknown] == ("policy", "the council")
    assert result.data["roles"]["positive_is"] == "burden"
    record = json.loads(result.to_json())
    assert record["charter"]["choices"][0] | {"reason": None} == {
        "cost_ratio": 4.0,
        "low": 3.2,
        "high": 5.0,
        "attribute": None,
        "group": None,
        "positive_is": "burden",
        "decided_by": "the council",
        "decided_on": None,
        "review_by": "2000-01-01",
        "reason": None,
        "implied_threshold": 0.2,
        "implied_threshold_low": pytest.approx(1 / 6),
        "implied_threshold_high": pytest.approx(1 / 4.2),
    }
    assert record["charter"]["layers"]["policy"]["owner"] == "Bo"
    assert record["findings"][0]["owner"] == "the engineers"
    for shown in (as_text(record, verbose=True), as_markdown(record)):
        told = " ".join(shown.split())
        assert "Implementation: the engineers." in told
        assert "Ask whoever leads the product. Product: nobody is named yet." in told


def test_what_the_caller_says_goes_before_the_charter() -> None:
    charter = parse_charter(TEXT)
    result = audit(
        decisions(positive_is="benefit"), charter=charter, limits={"selection_rate_gap": 0.9}
    )
    assert result.data["roles"]["positive_is"] == "benefit"
    assert result.verdict == "within"


def test_lenses_are_told_what_the_charter_knows() -> None:
    more = (
        "[prevalence]\nall = 0.02\n[truth_quality.sex]\nf = {sensitivity = 0.9, specificity = 1}\n"
    )
    charter = parse_charter(TEXT + more)
    quality = {"sex": {"f": {"sensitivity": 0.9, "specificity": 1.0}}}
    assert with_settings({"bandwidth": 0.1}, charter) == {
        "prevalence": {"all": 0.02},
        "truth_quality": quality,
        "cost_ratio": {"all": 4.0, "sex": {"x": 4.0}},
        "bandwidth": 0.1,
    }
    assert with_settings({"prevalence": 0.5}, charter)["prevalence"] == 0.5
    assert with_settings(None, None) == {}


def test_a_bad_charter_stops_the_audit(tmp_path: Path) -> None:
    file = tmp_path / "charter.toml"
    file.write_text(TEXT.replace("cost_ratio = 4", "cost_ratio = 0"), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 7: choices\.cost_ratio = 0 is zero"):
        audit(decisions(), charter=str(file))
    with pytest.raises(DataError, match="There is no file"):
        audit(decisions(), charter=str(tmp_path / "none.toml"))


def bar_for(cost_ratio: float, prevalence: float, separation: float = 2.0) -> LabelerGroup:
    odds = np.log((1 - prevalence) / prevalence)
    t = float((odds - np.log(cost_ratio)) / separation + separation / 2)
    return LabelerGroup(prevalence=prevalence, separation=separation, criterion=t)


def labelled(groups: dict[str, LabelerGroup]) -> Decisions:
    frame = simulate_labelers(groups, labelers=20, items_each=2000, seed=4).frame
    roles = {"truth": "truth", "decision": "decision", "labeler": "labeler", "group": "group"}
    return Decisions(frame, reference={"group": "A"}, **roles)


def chartered(decisions: Decisions, limits: str, tolerance: float = 1.5) -> Audit:
    text = TEXT.split("[[choices]]")[0] + f"[[choices]]\ncost_ratio = 4\ntolerance = {tolerance}\n"
    lenses = ["statistical", "labelers"]
    return audit(decisions, charter=parse_charter(f"{text}[limits]\n{limits}\n"), lenses=lenses)


def test_a_gap_that_the_chosen_weight_makes_goes_to_the_policys_owner() -> None:
    table = labelled({"A": bar_for(4, 0.25), "B": bar_for(4, 0.10)})
    for limit in ("false_negative_rate_gap = 0.03", "true_positive_rate_gap = 0.03",
                  "false_positive_rate_ratio = 0.8", "selection_rate_gap = 0.03"):  # fmt: skip
        found = chartered(table, limit).findings[0]
        assert (found.layer, found.owner, found.verdict) == ("policy", "Bo", "outside"), limit
        assert re.fullmatch(
            r"Decide which of the two gives way: the limit, which is broken by [\d.]+ (points )?"
            r"\([\d.]+ to [\d.]+\), or the weight of the two mistakes\.",
            str(found.next),
        ), found.next
        said = re.search(
            r"would have to weigh as much as ([\d.]+) wrongful decisions for group B, or ([\d.]+) "
            r"for group A\. Decide which of the two gives way",
            found.sentence,
        )
        assert said is not None, found.sentence
        more, less = float(said[1]), float(said[2])
        assert more > 6 > 8 / 3 > less  # both beyond the band that was chosen
        # With the ratio named, signal detection keeps the limit as its reference stands.
        if limit.startswith("false_neg"):
            rates = [rates_at_cost_ratio(c, prevalence=p, separation=2.0).false_negative_rate
                     for c, p in ((more, 0.10), (4, 0.25))]  # fmt: skip
            assert rates[0] - rates[1] == pytest.approx(0.03, abs=0.02)


def test_a_gap_beside_another_weight_stays_with_engineering() -> None:
    table = labelled({"A": bar_for(4, 0.25), "B": bar_for(1.5, 0.25)})
    found = [f for f in chartered(table, "false_negative_rate_gap = 0.03").findings
             if f.measure == "false_negative_rate_gap"]  # fmt: skip
    assert [(f.layer, f.owner) for f in found] == [("implementation", "the engineers")]
    assert "gives way" not in found[0].sentence


def test_the_majority_outside_its_own_band_is_told() -> None:
    table = labelled({"A": bar_for(9, 0.25), "B": bar_for(1.2, 0.25)})
    [found] = [f for f in chartered(table, "accuracy_gap = 0.9", 1.25).findings
               if f.measure == "cost_ratio" and f.rows and f.claim is not None
               and f.claim.group]  # fmt: skip
    assert found.claim is not None
    assert found.claim.group == "B"
    assert "where 3.2 to 5 was agreed. Group A 9.1. Outside as well: group A." in found.sentence
    alone = labelled({"A": bar_for(9, 0.25), "B": bar_for(4, 0.25)})
    first = chartered(alone, "accuracy_gap = 0.9", 1.5).findings[0]
    assert first.claim is not None
    assert (first.measure, first.claim.group, first.verdict) == ("cost_ratio", "A", "outside")


def test_one_bar_is_a_limit_on_the_criterion_and_recorded() -> None:
    text = 'schema = "evenhand.charter/1"\n[[choices]]\ncompare = "bar"\ntolerance = 0.2\n'
    table = labelled({"A": bar_for(4, 0.25), "B": bar_for(4, 0.10)})
    found = audit(table, charter=parse_charter(text), lenses=["labelers"])
    assert found.charter is not None
    assert found.charter["bar"]["tolerance"] == 0.2
    first = found.findings[0]
    assert (first.measure, first.verdict) == ("criterion_gap", "outside")
    assert first.sentence.startswith(
        "Labelers ask for more evidence about group B than about group A: their bar (how much "
    )


def test_of_bars_that_one_standard_asks_for_the_weights_are_told_first() -> None:
    table = labelled({"A": bar_for(4, 0.25), "B": bar_for(4, 0.10)})
    found = audit(table, lenses=["labelers"])
    names = [one.measure for one in found.findings]
    assert names.index("cost_ratio") < names.index("criterion_gap_average")
    assert "as one standard asks for where cases whose truth is" in found.findings[0].sentence
