"""Cuts that a finding names: audited again each says within; where none does, none is named."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.demo import moderation_story
from evenhand.decisions.table import Decisions
from evenhand.findings import recut
from evenhand.findings.record import read_record, record_text
from evenhand.findings.run import Audit, audit
from evenhand.report.terminal import as_text
from evenhand.simulate.moderation import Group, moderation

CHARTER = """\
schema = "evenhand.charter/1"
[system]
name = "Comment removal"
item = ["post", "posts"]
of = "by"
[system.groups.gender]
nonbinary = "nonbinary people"
[roles]
positive_is = "burden"
[[choices]]
cost_ratio = 4.0
tolerance = 1.5
decided_by = "the policy council"
"""
THEIRS_ALONE = {"female": 0.6, "male": 0.6, "nonbinary": 0.35}
LAW = "Whether groups may have cuts of their own is a question of law."
ONE_FOR_ALL = f"Today one cut of 0.60 holds for all. {LAW}"
ROLES: dict[str, Any] = {"truth": "violates", "score": "score", "group": "gender"}
FLAGS = ["--truth", "violates", "--score", "score", "--group", "gender"]


def posts(rows: int = 60_000, *, share: float = 0.12, lifted: bool = False) -> pl.DataFrame:
    """Posts by three groups; nonbinary people's scores are lifted where that is asked for."""
    others = (1 - share) / 2
    shares = {"female": others, "male": others, "nonbinary": share}
    groups = {
        name: Group(share=each, base_rate=0.12, threshold=THEIRS_ALONE[name])
        for name, each in shares.items()
    }
    frame = moderation(rows, groups=groups, seed=0).frame
    higher = pl.when(pl.col("gender") == "nonbinary").then(pl.col("score") ** 0.4)
    return frame.with_columns(score=higher.otherwise(pl.col("score"))) if lifted else frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Path(tmp_path_factory.mktemp("cuts"))
    (place / "charter.toml").write_text(CHARTER)
    posts().write_parquet(place / "theirs_alone.parquet")
    posts(lifted=True, share=0.3).write_parquet(place / "one_for_all.parquet")
    posts(20_000, share=0.05).write_parquet(place / "few.parquet")
    return place


# The cuts of two tables, and the ones that are tried for nonbinary people, with their verdicts.
TABLES: dict[str, tuple[Any, list[tuple[float, str]], str]] = {
    "theirs_alone": (
        THEIRS_ALONE,
        [(0.66, "cannot tell"), (0.65, "within")],
        "A cut of 0.65 for nonbinary people would be within what was agreed (audited again with "
        f"it); today theirs is 0.35, everybody else's 0.60. {LAW}",
    ),
    "one_for_all": (
        0.6,
        [(0.81, "cannot tell"), (0.82, "within")],
        "A cut of 0.82 for nonbinary people would be within what was agreed (audited again with "
        f"it); today one cut of 0.60 holds for all. {LAW}",
    ),
}


def audited(result: Audit | Mapping[str, Any]) -> list[tuple[float, str]]:
    """The cuts that an audit or its record says were tried for nonbinary people."""
    details = result.details if isinstance(result, Audit) else result["details"]
    shown = details["thresholds"].get("audited_cuts", [])
    assert {(one["attribute"], one["group"]) for one in shown} <= {("gender", "nonbinary")}
    return [(one["threshold"], one["verdict"]) for one in shown]


def step(result: Audit) -> str:
    """What to do about the finding of cost ratios."""
    return next(str(one.next) for one in result.findings if one.measure == "cost_ratio")


def with_cut(cuts: Any, cut: float) -> dict[str, float]:
    """The cuts of everybody, with another one for nonbinary people."""
    each = cuts if isinstance(cuts, dict) else dict.fromkeys(THEIRS_ALONE, cuts)
    return {**each, "nonbinary": cut}


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("name", TABLES)
def test_the_cut_that_is_named_is_within_when_audited(folder: Path, name: str, engine: str) -> None:
    cuts, tried, expected = TABLES[name]

    def again(threshold: Any) -> Audit:
        table = folder / f"{name}.parquet"
        decisions = Decisions(table, threshold=threshold, engine=engine, **ROLES)
        return audit(decisions, charter=folder / "charter.toml")

    first = again(cuts)
    assert (first.verdict, audited(first), step(first)) == ("outside", tried, expected)
    for cut, verdict in tried:
        other = again(with_cut(cuts, cut))
        assert other.verdict == verdict
        assert "audited_cuts" not in other.details["thresholds"]


@pytest.mark.parametrize("name", TABLES)
def test_the_cut_that_a_command_names_is_within_when_audited(
    run: Any, folder: Path, name: str
) -> None:
    cuts, tried, expected = TABLES[name]

    def again(threshold: Any) -> tuple[str, dict[str, Any]]:
        given = threshold if isinstance(threshold, dict) else {"": threshold}
        flags = [f"--threshold={f'{one}=' if one else ''}{cut}" for one, cut in given.items()]
        charter = ["--charter", folder / "charter.toml", "--json", "audit.json"]
        _, out, _ = run("audit", folder / f"{name}.parquet", *FLAGS, *flags, *charter)
        return " ".join(out.split()), json.loads(Path("audit.json").read_text())

    out, record = again(cuts)
    assert expected in out
    assert audited(record) == tried
    for cut, verdict in audited(record):
        assert again(with_cut(cuts, cut))[1]["verdict"] == verdict


def test_where_no_cut_is_within_none_is_named(run: Any, folder: Path) -> None:
    expected = (
        "Nonbinary people's cut is 0.35 today, everybody else's 0.60; of the cuts tried none is "
        f"shown to be within what was agreed. {LAW}"
    )
    table, charter = folder / "few.parquet", folder / "charter.toml"
    result = eh.audit(table, threshold=THEIRS_ALONE, charter=charter, **ROLES)
    tried = audited(result)
    assert [verdict for _, verdict in tried] == ["cannot tell"] * recut.MOST_CUTS
    assert step(result) == expected
    flags = [f"--threshold={name}={cut}" for name, cut in THEIRS_ALONE.items()]
    _, out, _ = run("audit", table, *FLAGS, *flags, "--charter", charter)
    told = " ".join(out.split())
    assert expected in told
    assert not any(re.search(rf"\b{cut:.2f}\b", told) for cut, _ in tried if cut != 0.6)


def test_every_limit_on_the_group_is_asked(folder: Path) -> None:
    # At 0.65 fewer of their harmless posts are removed than of men's, by less than 4 in a hundred.
    table, charter = folder / "theirs_alone.parquet", folder / "charter.toml"
    both = {"charter": charter, "threshold": THEIRS_ALONE, **ROLES}
    near = eh.audit(table, limits={"false_positive_rate_gap": (-0.04, 0.04)}, **both)
    assert audited(near) == [(0.66, "cannot tell"), (0.65, "within")]
    # By more than 1 it may be.
    narrow = eh.audit(table, limits={"false_positive_rate_gap": (-0.01, 0.01)}, **both)
    assert {verdict for _, verdict in audited(narrow)} <= {"outside", "cannot tell"}
    assert "of the cuts tried none is shown to be within what was agreed" in step(narrow)


def test_whoever_is_held_against_them_is_asked_too(folder: Path) -> None:
    table, charter = folder / "theirs_alone.parquet", folder / "charter.toml"
    both = {"charter": charter, "threshold": THEIRS_ALONE, "reference": "nonbinary", **ROLES}
    # Women and men are to be selected far less often than they are; with 0.65 they are not.
    result = eh.audit(table, limits={"selection_rate_gap": (-0.3, -0.1)}, **both)
    assert {(0.66, "outside"), (0.65, "outside")} <= set(audited(result))


def test_nobody_else_may_come_to_lie_outside(folder: Path) -> None:
    table, charter = folder / "theirs_alone.parquet", folder / "charter.toml"
    both = {"charter": charter, "reference": "<rest>", **ROLES}
    both["limits"] = {"selection_rate_gap": (-0.06, -0.01)}

    def groups(cuts: Any, verdict: str) -> set[str]:
        rows = eh.audit(table, threshold=cuts, **both).rows
        return {row["group"] for row in rows if row["verdict"] == verdict}

    # Beside everybody else, among whom nonbinary people are, women and men are within today.
    assert groups(THEIRS_ALONE, "outside") == {"nonbinary"}
    with_theirs = with_cut(THEIRS_ALONE, 0.65)
    assert groups(with_theirs, "outside") == {"female", "male"}
    assert "nonbinary" not in groups(with_theirs, "cannot tell")
    assert (0.65, "outside") in audited(eh.audit(table, threshold=THEIRS_ALONE, **both))


def test_a_record_says_the_same_and_an_older_one_names_no_cut(
    run: Any, folder: Path, tmp_path: Path
) -> None:
    cuts, _, expected = TABLES["theirs_alone"]
    table, charter = folder / "theirs_alone.parquet", folder / "charter.toml"
    result = eh.audit(table, threshold=cuts, charter=charter, **ROLES)
    result.save(tmp_path / "audit.json")
    record = read_record(tmp_path / "audit.json")
    assert expected in " ".join(as_text(record).split())
    # As it was written before: the cheapest cut, never audited.
    del record["details"]["thresholds"]["audited_cuts"]
    for finding in record["findings"]:
        if finding["measure"] == "cost_ratio":
            older = f"A cut of 0.66 (0.58 to 0.70) would meet the agreement. {LAW}"
            finding["sentence"] = finding["sentence"].replace(finding["next"], older)
            finding["next"] = older
    (tmp_path / "older.json").write_text(record_text(record))
    said = f"Nonbinary people's cut is 0.35 today, everybody else's 0.60. {LAW}"
    (lead, *_) = read_record(tmp_path / "older.json")["findings"]
    assert lead["next"] == said
    assert lead["sentence"].endswith(said)
    for form in ("md", "html"):
        code, _, _ = run("report", tmp_path / "older.json", "--out", f"page.{form}")
        page = Path(f"page.{form}").read_text().replace("&#39;", "'")
        assert code == 0
        assert said in page
        assert "would meet" not in page
        assert "would be within" not in page


def test_no_other_record_is_read_otherwise(folder: Path, tmp_path: Path) -> None:
    cuts = {
        "outside": THEIRS_ALONE,
        "cannot tell": with_cut(0.6, 0.6),
        "within": with_cut(0.6, 0.65),
    }
    for verdict, threshold in cuts.items():
        table, charter = folder / "theirs_alone.parquet", folder / "charter.toml"
        result = eh.audit(table, threshold=threshold, charter=charter, **ROLES)
        result.save(tmp_path / "audit.json")
        assert result.verdict == verdict
        read = json.loads(json.dumps(read_record(tmp_path / "audit.json")["findings"]))
        assert read == json.loads(json.dumps(result.record()["findings"]))


def test_no_cut_is_named_where_it_cannot_be_audited(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.read_parquet(folder / "one_for_all.parquet")
    unknown = pl.when(pl.col("post") % 50 > 0).then(pl.col("gender"))
    cut_of_all = (pl.col("score") >= 0.6).cast(int)
    decided = frame.with_columns(cut=cut_of_all)
    charter = folder / "charter.toml"
    one = {**ROLES, "threshold": 0.6}
    cases = {
        "decisions that are given": eh.audit(decided, decision="cut", charter=charter, **one),
        "a column": eh.audit(
            frame.with_columns(cut=pl.lit(0.6)), charter=charter, **{**one, "threshold": "cut"}
        ),
        "another lens that is judged": eh.audit(
            frame.with_columns(cut_of_all.alias(f"decision@{one}") for one in THEIRS_ALONE),
            limits={"flip_rate": 0.5},
            charter=charter,
            **one,
        ),
        "a tally set": eh.audit(eh.tally(frame, **one), charter=charter),
        "merged sets": eh.audit(
            eh.tally(frame[:30_000], **one) + eh.tally(frame[30_000:], **one), charter=charter
        ),
        "rows without a group": eh.audit(
            frame.with_columns(gender=unknown), missing="group", charter=charter, **one
        ),
    }
    monkeypatch.setattr(recut, "MOST_ROWS", 59_999)
    cases["many rows"] = eh.audit(frame, charter=charter, **one)
    for name, result in cases.items():
        assert (result.verdict, audited(result), step(result)) == ("outside", [], ONE_FOR_ALL), name


def test_other_attributes_keep_their_rows(folder: Path) -> None:
    frame = pl.read_parquet(folder / "one_for_all.parquet")
    charter = folder / "charter.toml"
    both = {**ROLES, "threshold": 0.6, "group": ["region", "gender"]}
    result = eh.audit(frame, charter=charter, **both)
    shown = result.details["thresholds"]["audited_cuts"]
    theirs = [(one["threshold"], one["verdict"]) for one in shown if one["group"] == "nonbinary"]
    assert theirs == TABLES["one_for_all"][1]
    # Cuts by group would leave rows without one undecided, and out of what is said of regions.
    unknown = pl.when(pl.col("post") % 50 > 0).then(pl.col("gender"))
    result = eh.audit(frame.with_columns(gender=unknown), charter=charter, **both)
    shown = result.details["thresholds"]["audited_cuts"]
    assert {one["attribute"] for one in shown} == {"region"}


def test_the_demo_names_a_cut_that_is_within(tmp_path: Path) -> None:
    story = moderation_story(tmp_path, seed=0, step=lambda words: None)
    steps = [words for mark, words in story if mark.strip() == "What to do:"]
    table, charter = tmp_path / "posts.parquet", tmp_path / "charter.toml"
    result = eh.audit(table, threshold=THEIRS_ALONE, charter=charter, **ROLES)
    (cut,) = [cut for cut, verdict in audited(result) if verdict == "within"]
    assert steps[0].startswith(f"A cut of {cut:.2f} for nonbinary people would be within")
    again = eh.audit(table, threshold=with_cut(THEIRS_ALONE, cut), charter=charter, **ROLES)
    assert again.verdict == "within"
