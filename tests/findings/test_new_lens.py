"""A lens adds itself with one module and one line, and everything else follows."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import UsageError
from evenhand.findings.registry import LENSES, register_lens
from evenhand.lenses.kinds import Measure
from evenhand.lenses.measures import CATALOGUE
from evenhand.lenses.rows import COLUMNS, LensResult, Options, Rows
from evenhand.report.formats import as_junit, as_markdown
from evenhand.report.page import as_page, summarise
from evenhand.stats.rates import newcombe

N = 2000
RNG = np.random.default_rng(3)
TABLE = pl.DataFrame(
    {
        "g": ["f", "m"] * (N // 2),
        "d": RNG.integers(0, 2, N),
        # Every second of f's is answered late, every tenth of m's.
        "seconds": np.where(RNG.random(N) < np.tile([0.5, 0.1], N // 2), 90.0, 10.0),
    }
)


def run(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def lacks(decisions: eh.Decisions) -> str | None:
    """What the table would need for this lens."""
    return None if decisions.roles.seconds else "a column of seconds"


def measure(decisions: eh.Decisions, options: Options) -> LensResult:
    """How much more often each group waits than the other, from the rows at hand."""
    hits = {g: TABLE.filter((pl.col("g") == g) & (pl.col("seconds") > 60)).height for g in "fm"}
    cases = N // 2
    low, high = newcombe(hits["f"], cases, hits["m"], cases, z=1.96)
    rows = Rows.block(
        (1,),
        lens="waiting",
        measure="late_answers_gap",
        attribute="g",
        group="f",
        reference="m",
        value=(hits["f"] - hits["m"]) / cases,
        low=low,
        high=high,
        family_low=low,
        family_high=high,
        level=options.level,
        n=cases,
        n_reference=cases,
        method="newcombe",
    )
    return LensResult(lens="waiting", rows=rows)


WAITING = SimpleNamespace(
    lacks=lacks,
    measure=measure,
    MEASURES=(
        Measure(
            name="late_answers_gap",
            label="gap in late answers",
            lenses=("waiting",),
            kind="gap",
            leads=True,
        ),
    ),
)
ROLES = {"decision": "d", "group": "g", "seconds": "seconds"}


@pytest.fixture
def waiting() -> Any:
    with register_lens("waiting", WAITING):
        yield
    assert "waiting" not in LENSES
    assert "late_answers_gap" not in CATALOGUE


def gap() -> float:
    late = TABLE.filter(pl.col("seconds") > 60)["g"].value_counts()
    counts = dict(late.iter_rows())
    return (counts["f"] - counts["m"]) / (N // 2)


@pytest.mark.usefixtures("waiting")
def test_rows_verdict_sentence_and_json() -> None:
    result = eh.audit(TABLE, limits={"late_answers_gap": 0.1}, **ROLES)
    assert result.verdict == "outside"
    [row] = result.rows.where(lens="waiting")
    assert row["verdict"] == "outside"
    assert row["value"] == pytest.approx(gap())
    first = result.findings[0]
    assert (first.lens, first.measure, first.verdict) == ("waiting", "late_answers_gap", "outside")
    assert first.line.startswith(
        f"Gap in late answers, group f against group m: {100 * gap():.1f} points more ("
    )
    assert first.line.endswith("); at most 10 points was agreed.")
    record = json.loads(result.to_json())
    held = [one for one in record["results"] if one["lens"] == "waiting"]
    assert [list(one) for one in held] == [list(COLUMNS)]
    assert record["data"]["lenses"]["waiting"] is None
    assert result.lens("waiting").verdict == "outside"


@pytest.mark.usefixtures("waiting")
def test_without_a_limit_it_may_lead() -> None:
    result = eh.audit(TABLE, lenses=["waiting"], **ROLES)
    assert result.verdict == "not assessed"
    assert [one.measure for one in result.findings] == ["late_answers_gap"]
    assert result.findings[0].certainty is not None
    assert result.findings[0].certainty.kind == "proven difference"


@pytest.mark.usefixtures("waiting")
def test_terminal_markdown_junit_page_and_chart() -> None:
    result = eh.audit(TABLE, limits={"late_answers_gap": 0.1}, **ROLES)
    shown = f"{100 * gap():.1f} points more"
    record = result.record()
    for text in (str(result), as_markdown(record), as_junit(record)):
        assert shown in text
    page = summarise(record)
    assert shown in " ".join(page["screen"]["detail"])
    sections = {one["id"]: one for one in page["sections"]}
    own = sections["waiting"]
    assert own["heading"] == "Gap in late answers, group f against group m"
    figures = [block for block in own["blocks"] if block["kind"] == "figure"]
    assert [block["id"] for block in figures] == ["late-answers-gap-g"]
    assert figures[0]["charts"][0]["zero"] == 0
    # Said once: the section of the finding that leads the page links to the first screen.
    assert figures[0]["said"][0]["link"]["href"] == "#summary"
    page = as_page(record, charts=False)
    assert 'id="waiting"' in page
    assert 'href="#waiting"' in page
    chart = result.lens("waiting").chart()
    assert chart.name == "late-answers-gap-g"
    assert [mark["value"] for mark in figures[0]["charts"][0]["rows"]] == [pytest.approx(gap())]


@pytest.mark.usefixtures("waiting")
def test_the_command_line_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, rows = tmp_path / "t.parquet", tmp_path / "rows.csv"
    TABLE.write_parquet(data)
    roles = ["--decision", "d", "--group", "g", "--seconds", "seconds"]
    limit = ["--limit", "late_answers_gap=0.1"]
    assert run(["audit", str(data), *roles, *limit, "--csv", str(rows)]) == 1
    assert "Gap in late answers, group f against group m" in capsys.readouterr().out
    held = pl.read_csv(rows, infer_schema_length=None).filter(pl.col("lens") == "waiting")
    assert held["value"].to_list() == pytest.approx([gap()])
    assert run(["audit", "--list-measures"]) == 0
    assert "late_answers_gap" in capsys.readouterr().out
    assert run(["audit", str(data), *roles[:4], "--dry-run"]) == 0
    assert "lens waiting: needs a column of seconds" in capsys.readouterr().out


def test_lenses_are_named_once_and_whole() -> None:
    with pytest.raises(UsageError) as caught:
        register_lens("causal", WAITING)
    assert str(caught.value) == "There is a lens 'causal' already. Choose another name."
    with pytest.raises(UsageError, match="needs two functions, lacks and measure"):
        register_lens("half", SimpleNamespace(lacks=lacks))
    assert "half" not in LENSES
