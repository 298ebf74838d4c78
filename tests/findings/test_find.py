"""Findings are data: what is claimed, on which rows, how sure; words are made from that alone."""

import ast
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand
import evenhand as eh
from evenhand.findings.find import find
from evenhand.findings.finding import Certainty, Claim, Settle, direction
from evenhand.findings.order import leading
from evenhand.findings.sentences.finding import say, settle_sentence
from evenhand.findings.sentences.words import Words
from evenhand.lenses.rows import COLUMNS, Rows
from evenhand.report.view import View
from evenhand.simulate.labelers import simulate_labelers
from evenhand.simulate.moderation import moderation
from evenhand.simulate.scores import ScoreGroup, simulate_scores
from evenhand.speech import count_words, opening

EMPTY: dict[str, Any] = dict.fromkeys(COLUMNS)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"measure": "accuracy_gap", "value": 0.1}, "more"),
        ({"measure": "accuracy_gap", "value": -0.1}, "less"),
        ({"measure": "accuracy_gap", "value": 0.0004}, "same"),
        ({"measure": "accuracy_ratio", "value": 0.9}, "less"),
        ({"measure": "norm_bias", "value": 0.3}, "more"),
        ({"measure": "accuracy_gap_rms", "value": 0.3}, "none"),
        ({"measure": "cost_ratio", "value": 3.0}, "none"),
        ({"measure": "cost_ratio", "value": 3.0, "limit_low": 4.0, "limit_high": 6.0}, "less"),
        ({"measure": "cost_ratio", "value": 7.0, "limit_low": 4.0, "limit_high": 6.0}, "more"),
        ({"measure": "cost_ratio", "value": 5.0, "limit_low": 4.0, "limit_high": 6.0}, "none"),
        ({"measure": "accuracy_gap", "value": None}, "undefined"),
    ],
)
def test_directions(row: dict[str, Any], expected: str) -> None:
    assert direction(EMPTY | row) == Claim.of(EMPTY | row).direction == expected


def test_certainty() -> None:
    row = EMPTY | {"measure": "accuracy_gap", "value": 0.1, "level": 0.9}
    ends = {"family_low": 0.05, "family_high": 0.2}
    assert Certainty.of(row) == Certainty(kind="undefined", level=0.9)
    assert Certainty.of(row | ends).kind == "proven difference"
    assert Certainty.of(row | ends | {"family_low": -0.1}).kind == "none proven"
    costs = row | ends | {"measure": "cost_ratio"}
    assert Certainty.of(costs | {"verdict": "outside"}).kind == "proven difference"
    assert Certainty.of(costs | {"verdict": "cannot tell"}).kind == "none proven"


@pytest.mark.parametrize(
    ("settle", "words"),
    [
        (Settle(unit="cases", how_many=1.0, groups=1,
                condition="if the value is what it looks like"),
         "If the value is what it looks like, about 1 more case of this group would settle it four "
         "times out of five."),
        (Settle(unit="classes", how_many=9.0),
         "If it is what it looks like, about 9 more classes would settle it four times out of "
         "five."),
        (Settle(unit="labels", how_many=112.0, groups=3),
         "If it is what it looks like, about 120 more labels across all 3 groups would settle it "
         "four times out of five."),
        (Settle(unit="pairs", how_many=1873.0),
         "If it is what it looks like, about 1,900 more pairs of texts would settle it four times "
         "out of five."),
        (Settle(unit="cases", how_many=1873.0, groups=2, among="true", alone=640.0,
                condition="if the gap is what it looks like"),
         "If the gap is what it looks like, about 1,900 more reviewed cases whose truth is '1' "
         "across both groups, or about 640 of this group alone, would settle it four times out of "
         "five."),
        (Settle(unit="clusters", how_many=40.0, groups=2, column="author"),
         "If it is what it looks like, about 40 more clusters (by author) across both groups would "
         "settle it four times out of five."),
        (Settle(unit="labelers", how_many=40.0, groups=2, column="reviewer"),
         "If it is what it looks like, about 40 more labelers would settle it four times "
         "out of five."),
        (Settle(unit="cases", how_many=1500.0, groups=2, lacking="reference"),
         "Fewer than 50 cases of the reference are too few for any limit: about 1,500 more cases "
         "across both groups would bring enough of them."),
        (
            Settle(unit="cases", reason="too close"),
            "It lies so close to the limit that more cases would hardly settle it, so decide "
            "whether that is near enough.",
        ),
        (Settle(unit="cases", reason="no number"), "No number of further cases would settle it."),
        (Settle(unit="labels", reason="not judged", why="few errors"),
         "No limit can be held against it: few errors."),
        (Settle(unit="cases", reason="unknown"),
         "How many more cases would settle it is not known."),
    ],
)  # fmt: skip
def test_what_would_settle_it_names_its_unit(settle: Settle, words: str) -> None:
    assert settle_sentence(asdict(settle), Words(), "1") == words


def records() -> dict[str, Any]:
    posts = moderation(4000, seed=2).frame
    roles = {"truth": "violates", "decision": "removed", "group": ["gender", "region"]}
    scores = simulate_scores({"f": ScoreGroup(), "m": ScoreGroup(shift=1.0)}, seed=1).frame
    people = simulate_labelers(labelers=8, items_each=120, seed=3).frame
    rng = np.random.default_rng(1)
    many = pl.DataFrame({name: rng.choice(list("abc"), 3000) for name in ("y", "d", "g")})
    wide = {"true_positive_rate_gap_rms": 0.02, "selection_rate_spread": 0.001}
    return {
        "gaps": eh.audit(posts, limits={"true_positive_rate_gap": 0.05}, **roles),
        "no limit": eh.audit(posts, positive_is="burden", **roles),
        "sizes": eh.audit(many, limits=wide, truth="y", decision="d", group="g"),
        "scores": eh.audit(scores, limits={"cost_ratio": "0.5:2"}, truth="truth", score="score",
                           threshold=0.5, group="group"),
        "labelers": eh.audit(people, limits={"cost_ratio": "0.5:2", "criterion_gap": 0.2},
                             truth="truth", decision="decision", group="group",
                             labeler="labeler"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def audits() -> dict[str, Any]:
    return records()


def test_a_record_can_be_said_again_from_its_data(audits: dict[str, Any]) -> None:
    said = 0
    for audit in audits.values():
        record = json.loads(audit.to_json())
        view = View.of(record)
        for finding, recorded in zip(view.findings, record["findings"], strict=True):
            assert finding["sentence"] == recorded["sentence"]
            for field in ("headline", "line", "summary", "short", "next"):
                assert finding[field] == recorded[field], field
            said += 1
    assert said >= 15


def test_numbers_are_those_that_the_sentence_states(audits: dict[str, Any]) -> None:
    for audit in audits.values():
        rows = list(audit.rows)
        for finding in audit.findings:
            if not finding.rows:
                continue
            assert finding.numbers[0] in finding.rows
            stated = [rows[i] for i in finding.numbers if rows[i]["measure"] == finding.measure]
            for row in stated:
                if finding.measure == "cost_ratio" and row["labeler"] is None:
                    assert f"group {row['group']}" in finding.sentence
            lead = stated[0]
            assert finding.claim is not None
            # Who labels is never named; how many lie outside is what the numbers are.
            group = lead["group"] if lead["labeler"] is None else None
            assert (finding.claim.group, finding.claim.class_) == (group, lead["class"])
            if lead["labeler"] is not None:
                outside = {row["labeler"] for row in stated if row["verdict"] == "outside"}
                assert finding.sentence.startswith(opening(count_words(len(outside))))


def test_what_is_open_says_how_much_would_settle_it(audits: dict[str, Any]) -> None:
    units = {
        finding.settle.unit
        for audit in audits.values()
        for finding in audit.findings
        if finding.settle is not None
    }
    assert units <= {"cases", "labels", "labelers", "classes", "pairs"}
    for audit in audits.values():
        for finding in audit.findings:
            assert (finding.settle is not None) == (finding.verdict == "cannot tell")
            if finding.settle is not None and finding.settle.how_many is not None:
                assert re.search(
                    r"If the \w+ is what it looks like, about [\d,]+ more .* would settle it four "
                    r"times out of five\.$|^.*Fewer than 50 cases", finding.sentence
                )  # fmt: skip


def test_one_lens_keeps_its_references(audits: dict[str, Any]) -> None:
    whole = audits["labelers"]
    alone = whole.lens("labelers")
    own = [finding for finding in whole.findings if finding.lens == "labelers"]
    for before, after in zip(own, alone.findings, strict=True):
        for name in ("rows", "numbers"):
            then = [next(iter(whole.rows.take([i]))) for i in getattr(before, name)]
            now = [next(iter(alone.rows.take([i]))) for i in getattr(after, name)]
            assert then == now


def test_words_come_in_as_data() -> None:
    rows = Rows.block(
        (2,), lens="thresholds", measure="cost_ratio", attribute="sex", group=["f", "m"],
        value=[2.3, 1.1], low=[2.0, 1.0], high=[2.6, 1.2], family_low=[1.8, 0.9],
        family_high=[2.9, 1.3], level=0.95, n=500, **{"class": "1"}, limit_low=1.0,
        limit_high=1.5, verdict=["outside", "within"],
    )  # fmt: skip
    [plain] = find(rows, Words())
    assert plain.sentence == (
        "Group f gets decision '1' on weaker evidence than agreed: from a 30% chance of '1' on "
        "(26% to 36%), where 40% to 50% was agreed. Group m 48%. For group f one missed '1' is "
        "treated as seriously as 2.3 wrong ones (1.8 to 2.9); for group m 1.1. Agreed: 1 to 1.5. "
        "Move the cut for group f to where the chance of '1' is 40%; today it is 30% (26% to 36%). "
        "Whether groups may have cuts of their own is a question of law."
    )
    words = Words(
        item=("post", "posts"), link="by", decided="cut", missed=("oversight", "oversights"),
        wrong=("alarm", "alarms"), positive="1", people_names={"sex": {"f": "women", "m": "men"}},
    )  # fmt: skip
    [own] = find(rows, words)
    assert own.line == (
        "Posts by women are cut on weaker evidence than agreed: from a 30% chance of '1' on (26% "
        "to 36%), where 40% to 50% was agreed. Men 48%. For women one oversight is treated as "
        "seriously as 2.3 alarms (1.8 to 2.9); for men 1.1. Agreed: 1 to 1.5."
    )
    # The claim keeps the data's own names.
    unsaid = dict.fromkeys(
        ("sentence", "line", "headline", "detail", "short", "summary", "next"), ""
    )
    assert replace(own, **unsaid) == replace(plain, **unsaid)
    assert own.numbers == (0, 1)
    assert own.next == (
        "Move the cut for posts by women to where the chance of '1' is 40%; today it is 30% (26% "
        "to 36%). Whether groups may have cuts of their own is a question of law."
    )
    said = say(own.plain(), list(rows), words)
    assert said.headline == "Posts by women are cut on weaker evidence than agreed"
    assert said.detail == (
        "From a 30% chance of '1' on (26% to 36%), where 40% to 50% was agreed. Men 48%. For women "
        "one oversight is treated as seriously as 2.3 alarms (1.8 to 2.9); for men 1.1. Agreed: 1 "
        "to 1.5."
    )
    assert said.summary == (
        "Posts by women are cut on weaker evidence than agreed: from a 30% chance of '1' on (26% "
        "to 36%), where 40% to 50% was agreed. Men 48%."
    )


def test_groups_without_a_number_say_why() -> None:
    rows = Rows.block(
        (2,), lens="thresholds", measure="cost_ratio", attribute="sex", group=["f", "m"],
        level=0.95, limit_low=1.0, limit_high=1.5, verdict="cannot tell", n=5,
        undefined=["no score", "fewer than 10 cases: hidden"],
    )  # fmt: skip
    [finding] = find(rows, Words())
    assert finding.sentence == (
        "The weight of a miss for group f is undefined: no score; that for group m is hidden: "
        "fewer than 10 cases."
    )
    assert finding.claim is not None
    assert finding.claim.direction == "undefined"
    assert finding.certainty == Certainty(kind="undefined", level=0.95)
    assert finding.settle is None


def test_the_surest_leads_and_then_the_largest() -> None:
    base = EMPTY | {"measure": "accuracy_gap"}
    wide = base | {"value": 0.5, "family_low": -0.1, "family_high": 0.9}
    sure = base | {"value": 0.1, "family_low": 0.05, "family_high": 0.2}
    larger = base | {"value": -0.2, "family_low": -0.3, "family_high": -0.1}
    assert leading([wide, sure, larger]) is larger
    assert leading([wide, base]) is wide
    assert leading([base]) is None
    # A group under 50 cases never leads while another can, however far it lies.
    few = larger | {"value": -0.9, "family_low": -0.95, "family_high": -0.85, "n": 38}
    assert leading([few, sure, wide]) is sure
    assert leading([few | {"n": 500, "n_reference": 49}, wide]) is wide
    assert leading([few]) is few


def test_nothing_is_claimed_of_a_group_under_fifty_alone() -> None:
    def gaps(n: int) -> Rows:
        return Rows.block(
            (2,), lens="statistical", measure="accuracy_gap", attribute="sex", group=["f", "x"],
            reference="m", value=[0.01, -0.6], low=[-0.1, -0.7], high=[0.1, -0.5],
            family_low=[-0.1, -0.7], family_high=[0.1, -0.5], level=0.95, n=[500, n],
            n_reference=900, verdict="not assessed", **{"class": "1"},
        )  # fmt: skip

    [claimed] = find(gaps(50), Words())
    assert claimed.claim is not None
    assert claimed.claim.group == "x"
    [nothing] = find(gaps(38), Words())
    assert nothing.sentence == (
        "By sex, no difference is shown: chance alone could explain each of the 2 gaps."
    )


CUTTING = {"split", "partition", "rpartition", "removeprefix", "removesuffix", "startswith",
           "endswith", "find", "index", "replace"}  # fmt: skip
# What is made for people: no verdict, claim or sentence may come of looking into it.
PROSE = re.compile(
    r"(\b|_)(sentences?|statement|heading|headline|detail|remark|note|methods?)(['\"]\]?|\b)"
    r"( or ''\))?(\[0(, 0)?\])?$"
    r"|\.(people|subject|theirs)\(.*\)$|\b(who|subject|people)$"
)


def looked_into(node: ast.AST) -> str:
    """The text that an expression splits, cuts or searches; nothing for other expressions."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return ast.unparse(node.comparators[0])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in CUTTING:
            return ast.unparse(node.func.value)
        if ast.unparse(node.func).startswith("re.") and node.args:
            return ast.unparse(node.args[-1])
    return ""


def test_nothing_reads_a_sentence_back() -> None:
    """No code splits, searches or cuts what was made for people to read."""
    source = Path(evenhand.__file__).parent
    read = [
        f"{path.relative_to(source)}: {ast.unparse(node)}"
        for path in sorted(source.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if PROSE.search(looked_into(node))
    ]
    assert read == [
        # A record of the first schema has nothing but its words.
        "findings/record.py: str(method or '').partition('cannot be told: ')",
        # Grammar: nothing hangs on the end of "people over 60"; "Black defendants" may be "Black
        # ones", and women's is not men's'.
        "findings/sentences/crossed.py: who.split()",
        "findings/sentences/words.py: who.endswith(f' {self.item[1]}')",
        "findings/sentences/words.py: who.endswith('s')",
        "findings/sentences/words.py: ' ' in who",
        "findings/sentences/words.py: who.removesuffix(self.item[1])",
    ]
