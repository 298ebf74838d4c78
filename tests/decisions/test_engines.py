"""Every engine, source and column type gives what plain loops over the rows give."""

import gzip
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import plain
import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError
from evenhand.lenses.measures import counted_rates

EVERY = ["polars", "polars lazy", "pandas", "pandas arrow", "pyarrow", "pyarrow dataset", "duckdb"]
HEAVY = ("spark", "dask", "ibis")
ENGINES = [*EVERY, *(pytest.param(name, marks=pytest.mark.heavy) for name in HEAVY)]
JOBS = ("clerk", "nurse", "smith")


def made(n: int = 420, *, seed: int = 3) -> pl.DataFrame:
    """Decisions with ties, nulls in every column, weights and several classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    score = np.round(np.clip(rng.normal(0.4 + 0.2 * truth, 0.2), 0, 1), 2)
    job = rng.integers(0, 3, n)
    picked = np.where(rng.random(n) < 0.7, job, rng.integers(0, 3, n))
    columns: dict[str, Any] = {
        "group": [("a", "b", "c")[i] for i in rng.choice(3, n, p=[0.5, 0.3, 0.2])],
        "truth": truth.tolist(),
        "decision": (score > 0.5).astype(int).tolist(),
        "score": score.tolist(),
        "weight": rng.choice([0.5, 1.0, 2.5], n).tolist(),
        "job": [JOBS[i] for i in job],
        "picked": [JOBS[i] for i in picked],
        "site": [f"s{i}" for i in rng.integers(0, 12, n)],
    }
    for place, name in enumerate(columns):
        if name != "site":
            for i in range(place, n, 37):
                columns[name][i] = None
    return pl.DataFrame(columns)


TABLE = made()
ROWS = plain.rows_of(TABLE.to_dict(as_series=False))


def on(engine: str, table: pl.DataFrame, request: pytest.FixtureRequest) -> Any:
    if engine == "polars":
        return table
    if engine == "polars lazy":
        return table.lazy()
    if engine == "pandas":
        return table.to_pandas()
    if engine == "pandas arrow":
        return table.to_pandas(use_pyarrow_extension_array=True)
    if engine == "pyarrow":
        return table.to_arrow()
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.from_arrow(table.to_arrow())
    if engine == "pyarrow dataset":
        return pytest.importorskip("pyarrow.dataset").dataset(table.to_arrow())
    if engine == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(
            table.to_pandas(use_pyarrow_extension_array=True), npartitions=3
        )
    if engine == "ibis":
        return pytest.importorskip("ibis").memtable(table.to_arrow())
    spark = request.getfixturevalue("spark")
    return spark.createDataFrame(table.rows(), schema=_spark_schema(table))


def _spark_schema(table: pl.DataFrame) -> str:
    kinds = {pl.String: "string", pl.Int64: "bigint", pl.Float64: "double", pl.Boolean: "boolean"}
    return ", ".join(f"`{name}` {kinds[type(kind)]}" for name, kind in table.schema.items())


def audited(data: Any, **roles: Any) -> eh.Audit:
    roles = {"truth": "truth", "decision": "decision", "group": "group", **roles}
    return eh.audit(eh.Decisions(data, **roles), keep_small=True, lenses=["statistical"])


def values(audit: eh.Audit, measure: str) -> dict[tuple[Any, ...], float | None]:
    rows = audit.rows.where(measure=measure, stratum=None)
    return {(r["group"], r["class"], r["reference"]): r["value"] for r in rows}


def same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= 1e-9


def check_rates(audit: eh.Audit, rows: list[Any], classes: tuple[str, ...], **columns: Any) -> None:
    sizes: dict[str, float] = {}
    for (g, _), (_, n) in plain.rates(
        rows,
        rate="selection_rate",
        classes=classes[:1],
        **{k: v for k, v in columns.items() if k != "weight"},
    ).items():
        sizes[g] = n
    reference = min(sizes, key=lambda g: (-sizes[g], g))
    for rate in counted_rates():
        table = plain.rates(rows, rate=rate, classes=classes, **columns)
        found = values(audit, rate)
        assert {(g, c) for g, c, _ in found} == set(table)
        for (g, c), pair in table.items():
            assert same(found[g, c, None], plain.share(pair)), (rate, g, c)
        gaps, ratios = values(audit, f"{rate}_gap"), values(audit, f"{rate}_ratio")
        for (g, c), pair in table.items():
            if g == reference:
                continue
            mine, theirs = plain.share(pair), plain.share(table[reference, c])
            known = mine is not None and theirs is not None
            assert same(gaps[g, c, reference], mine - theirs if known else None)
            assert same(ratios[g, c, reference], mine / theirs if known and theirs else None)
            if len(sizes) == 2:
                continue
            others = [p for (h, k), p in table.items() if k == c and h != g]
            rest = plain.share((sum(p[0] for p in others), sum(p[1] for p in others)))
            known = mine is not None and rest is not None
            assert same(gaps[g, c, "<rest>"], mine - rest if known else None)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_classes_and_scores(engine: str, request: pytest.FixtureRequest) -> None:
    audit = audited(on(engine, TABLE, request), score="score")
    check_rates(audit, ROWS, ("0", "1"))
    areas = values(audit, "auc")
    for group in "abc":
        own = [row for row in ROWS if row["group"] == group]
        expected = plain.area(own, score="score", truth="truth", positive="1")
        assert same(areas[group, "1", None], expected)
    gaps = values(audit, "auc_gap")
    assert same(gaps["b", "1", "a"], areas["b", "1", None] - areas["a", "1", None])  # type: ignore[operator]
    assert audit.data["fingerprint"] == audited(TABLE, score="score").data["fingerprint"]
    assert audit.data["rows"] == len(TABLE)


@pytest.mark.parametrize("engine", ENGINES)
def test_several_classes_with_weights(engine: str, request: pytest.FixtureRequest) -> None:
    roles = {"truth": "job", "decision": "picked", "weight": "weight"}
    audit = audited(on(engine, TABLE, request), **roles)
    check_rates(audit, ROWS, JOBS, **roles)
    assert audit.data["fingerprint"] == audited(TABLE, **roles).data["fingerprint"]


@pytest.mark.parametrize("engine", ENGINES)
def test_threshold_decides(engine: str, request: pytest.FixtureRequest) -> None:
    audit = audited(on(engine, TABLE, request), decision=None, score="score", threshold=0.45)
    decided = [
        {**row, "decision": None if row["score"] is None else int(row["score"] >= 0.45)}
        for row in ROWS
    ]
    check_rates(audit, decided, ("0", "1"))
    without = next(e for e in audit.data["excluded"] if e["reason"] == "no decision")
    assert without["rows"] == sum(row["score"] is None for row in ROWS)


@pytest.mark.parametrize("engine", ENGINES)
def test_threshold_per_group_and_from_a_column(engine: str, request: pytest.FixtureRequest) -> None:
    cuts = {"a": 0.4, "b": 0.5, "c": 0.6}
    table = TABLE.with_columns(cut=pl.col("group").replace_strict(cuts, default=None))
    data = on(engine, table, request)
    decided = [
        {
            **row,
            "decision": None
            if row["score"] is None or row["group"] is None
            else int(row["score"] >= cuts[row["group"]]),
        }
        for row in ROWS
    ]
    by_group = audited(data, decision=None, score="score", threshold=cuts)
    check_rates(by_group, decided, ("0", "1"))
    by_column = audited(data, decision=None, score="score", threshold="cut")
    check_rates(by_column, decided, ("0", "1"))


SHARES = np.random.default_rng(1).dirichlet([1, 1, 1], len(TABLE))
WIDE = TABLE.with_columns(**{f"score:{j}": SHARES[:, i] for i, j in enumerate(JOBS)})
RULES: list[dict[str, Any]] = [
    {"stratum": "score", "stratum_edges": [0.3, 0.5]},
    {"cluster": "site"},
    {"truth": "job", "decision": None, "rule": "argmax"},
    {"truth": "job", "decision": None, "rule": "one-versus-rest", "cluster": "site"},
]


@cache
def on_polars(rule: int) -> eh.Audit:
    return audited(WIDE, **RULES[rule])


@pytest.mark.parametrize("engine", ENGINES)
def test_strata_clusters_and_wide_scores(engine: str, request: pytest.FixtureRequest) -> None:
    data = on(engine, WIDE, request)
    for place, roles in enumerate(RULES):
        if engine == "dask" and roles.get("rule") == "argmax":
            with pytest.raises(DataError, match="Write it to Parquet, or tally its parts"):
                audited(data, **roles)
            continue
        ours, polars = audited(data, **roles), on_polars(place)
        assert ours.data["fingerprint"] == polars.data["fingerprint"]
        for column in ("value", "low", "high", "family_low", "family_high", "p"):
            assert np.allclose(
                ours.rows[column], polars.rows[column], rtol=0, atol=1e-9, equal_nan=True
            )
    if engine == "dask":
        return
    decided = [{**row, "picked": JOBS[int(np.argmax(SHARES[i]))]} for i, row in enumerate(ROWS)]
    argmax = audited(data, truth="job", decision=None, rule="argmax")
    check_rates(argmax, decided, JOBS, truth="job", decision="picked")


KINDS: dict[str, tuple[list[Any], Any, list[str]]] = {
    "strings": (["x", "y"], pl.String, ["x", "y"]),
    "integers": ([10, 9], pl.Int64, ["9", "10"]),
    "booleans": ([True, False], pl.Boolean, ["0", "1"]),
    "floats": ([1.0, 2.5], pl.Float64, ["1", "2.5"]),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_column_types_of_groups(kind: str, engine: str, request: pytest.FixtureRequest) -> None:
    pair, dtype, names = KINDS[kind]
    group = [pair[i % 5 < 3] if i % 9 else None for i in range(120)]
    table = pl.DataFrame(
        {
            "group": pl.Series(group, dtype=dtype),
            "truth": pl.Series([i % 3 == 0 for i in range(120)], dtype=pl.Boolean),
            "decision": [float(i % 4 == 0) for i in range(120)],
        }
    )
    audit = audited(on(engine, table, request))
    assert list(dict.fromkeys(audit.rows.where(measure="selection_rate")["group"])) == names
    assert audit.data["fingerprint"] == audited(table).data["fingerprint"]
    check_rates(audit, plain.rows_of(table.to_dict(as_series=False)), ("0", "1"))


@pytest.mark.parametrize("engine", EVERY)
def test_categorical_columns(engine: str, request: pytest.FixtureRequest) -> None:
    table = TABLE.with_columns(pl.col("group", "job", "picked").cast(pl.Categorical))
    roles = {"truth": "job", "decision": "picked"}
    audit = audited(on(engine, table, request), **roles)
    assert audit.data["fingerprint"] == audited(TABLE, **roles).data["fingerprint"]


def write(table: pl.DataFrame, kind: str, folder: Path) -> Any:
    """The table in one form on disk, or in memory."""
    half = len(table) // 2
    if kind == "parquet":
        table.write_parquet(folder / "t.parquet")
    elif kind == "csv":
        table.write_csv(folder / "t.csv")
    elif kind == "jsonl":
        table.write_ndjson(folder / "t.jsonl")
    elif kind == "arrow":
        table.write_ipc(folder / "t.arrow", compression="uncompressed")
    elif kind in {"csv.gz", "jsonl.gz"}:
        plain_file = write(table, kind.removesuffix(".gz"), folder)
        (folder / f"t.{kind}").write_bytes(gzip.compress(plain_file.read_bytes()))
    elif kind in {"several files", "glob", "folder"}:
        (folder / "parts").mkdir()
        table[:half].write_parquet(folder / "parts" / "one.parquet")
        table[half:].write_parquet(folder / "parts" / "two.parquet")
        parts = folder / "parts"
        return {
            "several files": [parts / "one.parquet", str(parts / "two.parquet")],
            "glob": str(parts / "*.parquet"),
            "folder": parts,
        }[kind]
    elif kind == "arrays":
        return table.to_dict(as_series=False)
    return folder / f"t.{kind}"


SOURCES = ("parquet", "csv", "csv.gz", "jsonl", "jsonl.gz", "arrow", "several files", "glob")
FILES = (*SOURCES, "folder")


@pytest.mark.parametrize(
    "engine", ["polars", "duckdb", pytest.param("spark", marks=pytest.mark.heavy)]
)
@pytest.mark.parametrize("kind", FILES)
def test_files(kind: str, engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    decisions = eh.Decisions(
        write(TABLE, kind, tmp_path),
        truth="truth",
        decision="decision",
        score="score",
        group="group",
        engine=engine,
        spark_master="local[2]",
    )
    assert decisions.engine == engine
    found, expected = eh.audit(decisions, lenses=["statistical"]), audited(TABLE, score="score")
    assert found.data["fingerprint"] == expected.data["fingerprint"]
    assert values(found, "auc") == pytest.approx(values(expected, "auc"), abs=1e-9)
    assert found.made["engine"] == engine


def test_arrays() -> None:
    expected = audited(TABLE).data["fingerprint"]
    columns = TABLE.to_dict(as_series=False)
    assert audited(columns).data["fingerprint"] == expected
    given = eh.Decisions.from_arrays(columns["truth"], columns["decision"], group=columns["group"])
    assert eh.audit(given).data["fingerprint"] == expected
    named = eh.Decisions.from_arrays(
        TABLE["truth"], TABLE["decision"], group={"sex": TABLE["group"], "site": TABLE["site"]}
    )
    assert named.roles.group == ("sex", "site")
    numbers = {name: np.array([0, 1, 1, 0] * 30) for name in ("truth", "decision")}
    numpy = audited({**numbers, "group": np.array(["a", "b"] * 60)})
    assert values(numpy, "selection_rate")["a", "1", None] == 0.5


def test_gzipped_lines_of_several_shapes(tmp_path: Path) -> None:
    # A column that is empty in the first rows still gets its type.
    lines = ['{"truth": 1, "decision": 1, "group": null}'] * 3
    lines += [
        '{"truth": 0, "decision": 1, "group": "a"}',
        '{"truth": 1, "decision": 0, "group": "b"}',
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(lines * 30))
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress("\n".join(lines * 30).encode()))
    one, two = (audited(tmp_path / name) for name in ("t.jsonl", "t.jsonl.gz"))
    assert one.data["fingerprint"] == two.data["fingerprint"]


@pytest.mark.parametrize("engine", ["pandas", "pandas arrow", "pyarrow", "duckdb"])
def test_every_lens_sees_missing_values_alike(engine: str, request: pytest.FixtureRequest) -> None:
    roles = {"truth": "truth", "score": "score", "threshold": 0.45, "group": "group"}
    ours = eh.audit(eh.Decisions(on(engine, TABLE, request), **roles), keep_small=True)
    polars = eh.audit(eh.Decisions(TABLE, **roles), keep_small=True)
    assert set(ours.rows["lens"]) == {"statistical", "thresholds"}
    assert ours.data["excluded"] == polars.data["excluded"]
    for column in ("value", "low", "high", "n"):
        assert np.allclose(
            ours.rows[column], polars.rows[column], rtol=0, atol=1e-9, equal_nan=True
        )


def test_pandas_columns_of_several_types() -> None:
    pandas = pytest.importorskip("pandas")
    mixed = pandas.Series(["f", 1, None, 2.5] * 20, dtype=object)
    table = pandas.DataFrame({"truth": [0, 1] * 40, "decision": [1, 0] * 40, "group": mixed})
    audit = audited(table)
    assert list(dict.fromkeys(audit.rows.where(measure="accuracy")["group"])) == ["1", "2.5", "f"]
    assert audit.data["excluded"] == [{"reason": "no group", "rows": 20}]
