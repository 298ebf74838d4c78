"""Rows behind findings appear where asked for, short and harmless."""

from typing import Any

import polars as pl

import evenhand as eh
from evenhand.report.evidence import LONGEST, evidence_lines, marked
from evenhand.report.page import as_page
from evenhand.simulate.moderation import moderation

TEXTS = pl.DataFrame(
    {
        "bio": ["She likes her job.", "He ran.", "It rained."],
        "bio@female": ["She likes her job.", "She ran.", "It rained."],
        "bio@male": ["He likes his job.", "He ran.", "It rained."],
        "decision@female": [1, 0, 0],
        "decision@male": [0, 0, 0],
        "gender": ["female", "male", "male"],
        "truth": [1, 1, 0],
    }
)


def shown(table: Any, evidence: int | None, **roles: Any) -> list[str]:
    settings = {} if evidence is None else {"evidence": evidence}
    return list(evidence_lines(eh.audit(table, settings=settings, **roles).record()))


def test_nothing_is_shown_unless_asked_for() -> None:
    assert shown(TEXTS, None, truth="truth", lenses=["counterfactual"]) == []


def test_a_flipped_pair_is_one_text_with_both_words() -> None:
    lines = shown(TEXTS, 5, truth="truth", group="gender", lenses=["counterfactual"])
    assert lines == [
        "Texts decided differently (1 shown):",
        "  1. '1' as female, '0' as male (truth 1, group female)",
        "     [She|He] likes [her|his] job.",
    ]
    audit = eh.audit(TEXTS, truth="truth", lenses=["counterfactual"], settings={"evidence": 5})
    assert "[She|He] likes [her|his] job." in str(audit)


def test_long_texts_are_cut_and_control_characters_taken_out() -> None:
    long = TEXTS.with_columns(
        (pl.col("bio@female", "bio@male") + "\x1b[31m\n" + "word " * 200).name.keep()
    )
    line = shown(long, 1, lenses=["counterfactual"])[-1]
    assert len(line) <= LONGEST + 5
    assert line.endswith("…")
    assert line.isprintable()


def test_rows_nearest_the_threshold() -> None:
    posts = moderation(2_000, seed=1).frame
    lines = shown(
        posts, 2, truth="violates", score="score", threshold=0.5, group="gender", item="post"
    )
    assert lines[0] == "Rows of female nearest its threshold:"
    assert len(lines) == 9
    near = posts.filter(pl.col("gender") == "female").sort((pl.col("score") - 0.5).abs()).row(0)
    post, _, _, violates, score, _ = near
    assert lines[1] == f"     score {score:.3f}, truth {violates}, item {post}"


def test_words_that_only_one_text_has() -> None:
    assert marked("Ms. Poe sat", "Poe sat down") == "[Ms.|] Poe sat [|down]"


def test_the_page_shows_what_was_asked_for_and_nothing_else() -> None:
    evil = TEXTS.with_columns((pl.col("bio@female", "bio@male") + " <script>alert(1)").name.keep())
    asked = eh.audit(evil, truth="truth", lenses=["counterfactual"], settings={"evidence": 5})
    page = as_page(asked.record(), charts=False)
    assert "[She|He] likes [her|his] job. &lt;script&gt;alert(1)" in page
    assert "<script" not in page
    without = as_page(
        eh.audit(TEXTS, truth="truth", lenses=["counterfactual"]).record(), charts=False
    )
    assert "likes" not in without

    posts = moderation(2_000, seed=1).frame
    roles = {"truth": "violates", "score": "score", "threshold": 0.5, "group": "gender"}
    near = eh.audit(posts, settings={"evidence": 2}, **roles)
    assert "Rows of female nearest its threshold" in as_page(near.record(), charts=False)
