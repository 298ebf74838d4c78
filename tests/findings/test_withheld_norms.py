"""Numbers of the norms lens of which nothing is claimed: classes pooled, and norms not known."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.tallies import by_cluster
from evenhand.decisions.tallies.sets import Tallies
from evenhand.lenses.rows import Row
from evenhand.simulate.norms import simulate_norms

ROLES: dict[str, Any] = {"truth": "title", "group": "gender"}
AUDIT = ("audit", "--truth", "title", "--group", "gender", "--lens", "norms")


def unrelated(classes: int = 4, rows: int = 1_200, *, seed: int = 0) -> pl.DataFrame:
    """Scores of every class that within each have nothing to do with norms, and over all do.

    Women are more typical of women everywhere, the people of later classes more than others; and
    the score of the first class is the higher, the later the class.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    female = rng.random(rows) < 0.5
    norm = rng.standard_normal(rows) + 0.8 * truth + np.where(female, 0.5, -0.5)
    scores = rng.standard_normal((rows, classes)) + 0.8 * truth[:, None]
    return pl.DataFrame(
        {
            "title": [f"c{k}" for k in truth],
            "gender": np.where(female, "female", "male"),
            **{f"score:c{k}": 1 / (1 + np.exp(-scores[:, k])) for k in range(classes)},
            "norm@female": 1 / (1 + np.exp(-norm)),
            "norm@male": 1 / (1 + np.exp(norm)),
        }
    )


def correlations(result: Any, *, pooled: bool) -> list[Row]:
    rows = result.rows.where(measure="norm_correlation")
    return [row for row in rows if row["class"].startswith("not:") is pooled]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_classes_that_are_pooled_claim_nothing(engine: str) -> None:
    table = unrelated()
    if engine == "duckdb":
        table = pytest.importorskip("duckdb").from_arrow(table.to_arrow())
    result = eh.audit(table, lenses=["norms"], **ROLES)
    pooled = correlations(result, pooled=True)
    # The trap is there: every correlation over several classes leaves out 0, none within one does.
    assert len(pooled) == 16
    assert all(row["family_low"] > 0 or row["family_high"] < 0 for row in pooled)
    own = correlations(result, pooled=False)
    assert not any(row["family_low"] > 0 or row["family_high"] < 0 for row in own)
    assert [one.sentence for one in result.findings] == [
        "By gender, no difference is shown: chance alone could explain each of the 16 correlations "
        "with a norm."
    ]
    assert result.record()["headline"] == result.findings[0].sentence
    assert "not:" not in str(result)


def test_thirty_tables_without_norm_bias_accuse_nobody() -> None:
    claims = [
        one
        for seed in range(30)
        for one in eh.audit(
            unrelated(3, 400, seed=seed),
            lenses=["norms"],
            settings={"bootstrap": False},
            **ROLES,
        ).findings
        if one.claim is not None and str(one.claim.class_).startswith("not:")
    ]
    assert claims == []


def test_no_limit_is_held_against_classes_that_are_pooled(run, tmp_path: Path) -> None:
    path = tmp_path / "scored.parquet"
    unrelated(rows=6_000).write_parquet(path)
    told, page = tmp_path / "audit.json", tmp_path / "audit.html"
    code, out, _ = run(*AUDIT, path, "--limit", "norm_correlation=0.3", "--json", told,
                       "--out", page)  # fmt: skip
    record = json.loads(told.read_text())
    assert (code, record["verdict"]) == (0, "within")
    assert "not:" not in out
    rows = [row for row in record["results"] if row["measure"] == "norm_correlation"]
    pooled = [row for row in rows if row["class"].startswith("not:")]
    assert len(pooled) == 16
    assert max(abs(row["value"]) for row in pooled) > 0.3
    assert {row["verdict"] for row in pooled} == {"not assessed"}
    assert {row["limit_low"] for row in pooled} == {None}
    assert all(
        row["method"].endswith(
            "; no limit is held against it: the rows of all other classes are pooled"
        )
        for row in pooled
    )
    assert {row["verdict"] for row in rows if row not in pooled} == {"within"}
    screen = page.read_text().split('id="norms"')[0]
    assert "not:" not in screen


def test_of_two_classes_the_other_is_judged_as_before() -> None:
    table = unrelated(2, 6_000).with_columns(
        pl.col("score:c0") + 2 * pl.col("norm@female") * (pl.col("title") == "c1")
    )
    result = eh.audit(table, lenses=["norms"], limits={"norm_correlation": 0.3}, **ROLES)
    other = [row for row in correlations(result, pooled=True) if row["class"] == "not:c0"]
    assert {row["verdict"] for row in other} == {"outside"}
    assert result.verdict == "outside"
    assert result.findings[0].claim.class_ == "not:c0"
    assert not any("pooled" in str(row["method"]) for row in other)


def shuffled(rows: int = 400, **changes: Any) -> pl.DataFrame:
    """Norms that rise with the share of women as a norm's do, and know no woman from a man."""
    return simulate_norms(rows, **{"scatter": 0.2, "apart": 0.0, "seed": 1, **changes}).frame


def of(table: pl.DataFrame, engine: str) -> Any:
    if engine == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(table.to_arrow())
    return table.to_pandas() if engine == "pandas" else table


UNKNOWN = (
    "Cannot tell: the norm of women is not known. Its score tells women from others no better than "
    "chance (right in 51% of pairs within a class, 50% to 52%)."
)
OF_MEN = UNKNOWN.replace("women", "men")
REASON = (
    "the norm is not known, since its score tells 'female' from others no better than chance "
    "(right in 51% of pairs within a class, 50% to 52%)"
)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "pandas"])
def test_a_norm_no_better_than_chance_claims_nothing(engine: str) -> None:
    result = eh.audit(of(shuffled(), engine), **ROLES)
    # What such a norm shows could not look more like norm bias.
    bias = next(iter(result.rows.where(measure="norm_bias", group="female")))
    assert bias["value"] > 0.9
    assert bias["low"] > 0.7
    assert bias["unjudged"] == REASON
    assert bias["method"].endswith(f"; no limit is held against it: {REASON}")
    assert [one.sentence for one in result.findings] == [f"{UNKNOWN} {OF_MEN}"]
    assert result.record()["headline"] == f"{UNKNOWN} {OF_MEN}"
    assert "rank correlation" not in str(result)
    assert "0.9" not in str(result)
    assert [one["norm"] for one in result.details["norms"]["unknown"]] == ["female", "male"]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_limits_cannot_be_held_against_a_norm_that_is_not_known(engine: str) -> None:
    limits = {"norm_bias": 0.3, "norm_correlation": 0.1, "norm_slope": 0.2}
    limits["norm_correlation_mean"] = 0.1
    result = eh.audit(of(shuffled(), engine), limits=limits, **ROLES)
    assert result.verdict == "cannot tell"
    judged = [row for row in result.rows if row["verdict"] != "not assessed"]
    assert len(judged) == 2 + 4 * 28 + 2 + 4
    assert {row["verdict"] for row in judged} == {"cannot tell"}
    assert result.findings[0].sentence.endswith(f" No limit can be held against it: {REASON}.")
    assert all(
        one.sentence.startswith("The data cannot tell whether ") and "0." not in one.sentence
        for one in result.findings
    )
    assert str(result).count(UNKNOWN[:60]) == 1
    eh.check(result)


def test_on_the_command_line_and_on_the_page(run, tmp_path: Path) -> None:
    path, told, page = (tmp_path / name for name in ("scored.parquet", "a.json", "a.html"))
    shuffled().write_parquet(path)
    code, out, _ = run(*AUDIT, path, "--json", told, "--out", page)
    assert code == 0
    assert " ".join(out.split()).startswith(f"Not assessed {UNKNOWN} {OF_MEN}")
    record = json.loads(told.read_text())
    assert len(record["results"]) == 186
    assert len(record["asides"]["unjudged"][REASON]) == 28 * 2 + 6 + 3
    html = page.read_text()
    section = html.split('id="norms"')[1]
    words = section.split("What was measured with norms that are not known")
    assert UNKNOWN in words[0].replace("\u00a0", " ")
    assert "ρ" not in words[0]
    assert "Norm bias of female" in words[1]
    # Read again, the record says the same.
    code, out, _ = run("report", told, "--out", tmp_path / "again.html")
    assert code == 0
    assert (tmp_path / "again.html").read_text() == html
    limited = ("--limit", "norm_bias=0.3")
    assert run(*AUDIT, path, *limited)[0] == 0
    assert run(*AUDIT, path, *limited, "--fail-on", "cannot-tell")[0] == 3
    code, out, _ = run(*AUDIT, path, *limited, "--out", page)
    section = page.read_text().split('id="norms"')[1].replace("\u00a0", " ")
    assert UNKNOWN in section
    assert OF_MEN in section


def test_a_norm_that_is_known_is_told_as_before() -> None:
    result = eh.audit(shuffled(apart=1.0), limits={"norm_bias": 0.3}, **ROLES)
    assert "unknown" not in result.details["norms"]
    assert result.verdict == "outside"
    assert set(result.rows["unjudged"].tolist()) == {None}


def test_of_two_norms_the_one_that_is_known_is_told() -> None:
    known = shuffled(apart=1.0)["norm@male"]
    result = eh.audit(shuffled().with_columns(known), **ROLES)
    assert {one.claim.group for one in result.findings if one.measure == "norm_bias"} == {"male"}
    assert {row["norm"] for row in result.rows if row["unjudged"] is not None} == {"female"}
    shown = " ".join(str(result).split())
    assert UNKNOWN in shown
    assert OF_MEN not in shown


def test_norms_by_words_that_say_nothing_stand_for_themselves() -> None:
    table = shuffled(apart=1.0)
    table = table.with_columns(shuffled()["norm@female"].alias("norm_irrelevant@female"))
    result = eh.audit(table, **ROLES)
    withheld = {row["measure"] for row in result.rows if row["unjudged"] is not None}
    assert withheld
    assert all(name.endswith("_irrelevant") for name in withheld)
    shown = " ".join(str(result).split())
    assert "the norm of women in words that say nothing of the class is not known." in shown


def area_by_hand(table: pl.DataFrame, group: str, column: str) -> float:
    """Pairs of one class in which the group's has the higher norm, classes weighed as pairs are."""
    right = weight = 0.0
    for part in table.partition_by("title"):
        own = part.filter(pl.col("gender") == group)[column].to_numpy()
        rest = part.filter(pl.col("gender") != group)[column].to_numpy()
        omega = own.size * rest.size / (own.size + rest.size)
        pairs = (own[:, None] > rest) + 0.5 * (own[:, None] == rest)
        right, weight = right + omega * pairs.mean(), weight + omega
    return right / weight


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_pairs_are_of_one_class_and_against_all_other_groups(engine: str) -> None:
    rng = np.random.default_rng(4)
    rows = 900
    truth = rng.integers(0, 3, rows)
    # Over all rows the norm knows who is female, for classes differ in both; within none it does.
    gender = np.where(rng.random(rows) < 0.2 + 0.3 * truth, "female",
                      np.where(rng.random(rows) < 0.5, "male", "nonbinary"))  # fmt: skip
    table = pl.DataFrame(
        {
            "title": [f"c{k}" for k in truth],
            "gender": gender,
            "region": rng.choice(["north", "south"], rows),
            "score:truth": rng.random(rows),
            "norm@female": np.round(rng.standard_normal(rows) + 2 * truth, 1),
            "norm@male": rng.standard_normal(rows) + (gender == "male"),
        }
    )
    result = eh.audit(
        of(table, engine), truth="title", group=["gender", "region"], crossed=True, lenses=["norms"]
    )
    (unknown,) = result.details["norms"]["unknown"]
    assert (unknown["attribute"], unknown["norm"], unknown["why"]) == (
        "gender",
        "female",
        "guessed",
    )
    assert unknown["value"] == pytest.approx(area_by_hand(table, "female", "norm@female"))
    assert unknown["low"] < 0.5 < unknown["high"]
    # The norm is of gender, wherever it is looked at.
    for attribute in ("gender", "region", "gender*region"):
        norms = {
            (row["norm"], row["unjudged"] is None)
            for row in result.rows.where(attribute=attribute, measure="norm_correlation")
        }
        assert norms == {("female", False), ("male", True)}


def test_weights_and_clusters_are_heeded() -> None:
    table = shuffled(20, apart=0.1, seed=1)
    alone = eh.audit(table, lenses=["norms"], **ROLES).details["norms"]
    again = pl.concat([table.with_row_index("who")] * 4)
    # Copies of people make no norm known.
    assert "unknown" not in eh.audit(again, lenses=["norms"], **ROLES).details["norms"]
    copied = eh.audit(again, cluster="who", lenses=["norms"], **ROLES).details["norms"]
    for one, other in zip(alone["unknown"], copied["unknown"], strict=True):
        assert other["value"] == pytest.approx(one["value"], abs=0.001)
        assert other["low"] == pytest.approx(one["low"], abs=0.01)
    weighed = table.with_columns(w=pl.lit(0.25))
    found = eh.audit(weighed, weight="w", lenses=["norms"], **ROLES).details["norms"]["unknown"]
    for one, other in zip(alone["unknown"], found, strict=True):
        assert [other[end] for end in ("value", "low", "high")] == pytest.approx(
            [one[end] for end in ("value", "low", "high")]
        )


def test_a_norm_that_nothing_is_known_of(run, tmp_path: Path) -> None:
    women = shuffled(40, apart=1.0).with_columns(gender=pl.lit("women"))
    told = eh.audit(women, lenses=["norms"], **ROLES).findings[0].sentence
    assert told.startswith(
        "Cannot tell: the norm of women is not known. No group is called 'female', so that nothing "
        "says whether its score tells them from others."
    )
    one = shuffled(40, apart=1.0).filter(pl.col("gender") == "female").drop("norm@male")
    path = tmp_path / "women.csv"
    one.write_csv(path)
    _, out, _ = run(*AUDIT, path)
    assert " ".join(out.split()).startswith(
        "Not assessed Cannot tell: the norm of women is not known. No class has two women and two "
        "others, so that nothing says whether its score tells them apart."
    )


def test_tally_sets_know_what_their_rows_knew(run, tmp_path: Path) -> None:
    for apart, site in ((0.0, None), (1.0, None), (0.0, "site")):
        table = shuffled(60, apart=apart)
        table = table.with_columns(site=pl.int_range(pl.len()) % 300)
        roles = {**ROLES, "lenses": ["norms"]} | ({"cluster": site} if site else {})
        rows = eh.audit(table, **roles)
        tallied = {k: v for k, v in roles.items() if k != "lenses"}
        kept = Tallies.from_bytes(eh.tally(table, **tallied).to_bytes())
        again = eh.audit(kept, lenses=["norms"])
        assert again.details["norms"].get("unknown") == rows.details["norms"].get("unknown")
        assert [one.sentence for one in again.findings] == [one.sentence for one in rows.findings]
    old = {name: table for name, table in kept.finished.items() if "norm_areas" not in name}
    assert len(old) < len(kept.finished)
    path = tmp_path / "old.tallies"
    replace(kept, finished=old).save(path)
    code, out, _ = run("audit", path, "--lens", "norms", "--limit", "norm_bias=0.3",
                       "--json", tmp_path / "a.json")  # fmt: skip
    assert code == 0
    assert (
        "Cannot tell: the norm of women is not known. This tally set does not say how well it "
        "tells them from others: tally again."
    ) in " ".join(out.split())
    record = json.loads((tmp_path / "a.json").read_text())
    assert record["verdict"] == "cannot tell"
    assert list(record["asides"]["unjudged"]) == [
        "whether the norm is known is not in this tally set"
    ]


@pytest.mark.heavy
@pytest.mark.parametrize(("cluster", "most"), [(None, None), ("who", None), ("who", 10)])
def test_spark_knows_the_same_norms(
    spark: Any, monkeypatch: pytest.MonkeyPatch, cluster: str | None, most: int | None
) -> None:
    table = shuffled(40, shares={"a": 0.4, "b": 0.6}).with_columns(who=pl.int_range(pl.len()) % 50)
    roles = {**ROLES, "lenses": ["norms"], "cluster": cluster}
    here = eh.audit(table, **roles).details["norms"]["unknown"]
    if most is not None:
        monkeypatch.setattr(by_cluster, "MOST_AT_DRIVER", most)
    there = eh.audit(spark.createDataFrame(table.to_pandas()), **roles).details["norms"]["unknown"]
    for one, other in zip(here, there, strict=True):
        assert [one[end] for end in ("value", "low", "high")] == pytest.approx(
            [other[end] for end in ("value", "low", "high")], abs=1e-9
        )
