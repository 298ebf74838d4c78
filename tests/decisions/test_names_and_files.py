"""Values and columns under odd names, and files that do not fit together."""

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.csv_text import START, look_through, read_head
from evenhand.decisions.read import open_table, unreadable
from evenhand.errors import DataError, UsageError

TABLE = {"y": [0, 1] * 100, "d": [0, 1, 1, 0] * 50, "g": ["f", "m"] * 100}
ROLES: dict[str, Any] = {"truth": "y", "decision": "d", "group": "g"}


def groups(table: dict[str, Any], attribute: str = "g", **roles: Any) -> list[str]:
    decisions = eh.Decisions(table, **{**ROLES, **roles})
    rows = eh.audit(decisions).rows.where(measure="selection_rate", attribute=attribute, class_="1")
    return rows.plain("group")


def references(table: dict[str, Any], reference: Any) -> set[str]:
    audit = eh.audit(eh.Decisions(table, **ROLES, reference=reference))
    rows = audit.rows.where(measure="selection_rate_gap", class_="1")
    return {name for name in rows.plain("reference") if name != "<rest>"}


@pytest.mark.parametrize("reference", ["1", "1.0", 1, 1.0, {"g": 1.0}, "true", {"g": "True"}, True])
@pytest.mark.parametrize("kind", [pl.Int64, pl.Float64, pl.Boolean])
def test_a_number_names_its_group_however_it_is_written(reference: Any, kind: Any) -> None:
    table = TABLE | {"g": pl.Series([0, 1] * 100).cast(kind)}
    assert references(table, reference) == {"1"}


def test_words_that_look_like_numbers_stay_words() -> None:
    table = TABLE | {"g": ["1.0", "2.0"] * 100}
    assert references(table, "1.0") == {"1.0"}
    with pytest.raises(UsageError, match="reference='1' is not a group"):
        references(table, "1")


def test_thresholds_and_the_positive_value_are_read_the_same_way() -> None:
    table = TABLE | {"g": [False, True] * 100, "s": [0.2, 0.7, 0.4, 0.9] * 50}
    cut = eh.Decisions(
        table, truth="y", score="s", group="g", threshold={"true": 0.8, "0.0": 0.3}, positive="1.0"
    )
    assert cut.roles.threshold == {"1": 0.8, "0": 0.3}
    assert cut.roles.positive == "1"


def test_crossed_values_with_a_star_stay_apart() -> None:
    # ("a*b", "c") and ("a", "b*c") would both be a*b*c.
    table = TABLE | {"g": ["a*b", "a"] * 100, "h": ["c", "b*c"] * 100}
    found = groups(table, "g*h", group=["g", "h"], crossed=True)
    assert found == ["'a*b'*c", "a*'b*c'"]
    assert groups(table) == ["a", "a*b"]


@pytest.mark.parametrize("name", ["<rest>", "<overall>"])
def test_names_that_results_use_are_refused(name: str) -> None:
    with pytest.raises(DataError) as caught:
        groups(TABLE | {"g": [name, "m"] * 100})
    assert str(caught.value) == (
        f"group='g' holds '{name}', which results use for a comparison. "
        "Give that group another name."
    )


@pytest.mark.parametrize("names", [("", "m"), ("nan", "None"), ("é ü", "日本"), ("a.b", "a b")])
def test_any_other_name_is_kept_as_it_is(names: tuple[str, str]) -> None:
    assert set(groups(TABLE | {"g": list(names) * 100})) == set(names)


def test_a_stratum_of_many_values_is_refused() -> None:
    table = {k: v * 10 for k, v in TABLE.items()} | {"s": [i / 2000 for i in range(2000)]}
    with pytest.raises(DataError) as caught:
        eh.Decisions(table, **ROLES, stratum="s")
    assert str(caught.value) == (
        "stratum='s' has more than 1,000 values (2,000 among the first 2,000 rows). Cut numbers "
        "into a few with stratum_edges (--stratum-edges 18,30,65), or name another column."
    )
    assert eh.Decisions(table, **ROLES, stratum="s", stratum_edges=[0.5]).roles.stratum == "s"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_column_name_that_stands_twice(tmp_path: Path, engine: str, packed: bool) -> None:
    text = "y,d,g,g\n" + "1,0,f,a\n0,1,m,b\n" * 20
    path = tmp_path / ("twice.csv.gz" if packed else "twice.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(DataError) as caught:
        eh.Decisions(path, **ROLES, engine=engine)
    assert str(caught.value) == f"'{path}' has two columns named 'g'. Rename one of them."


def test_pandas_columns_of_one_name() -> None:
    table = pd.DataFrame(TABLE | {"h": TABLE["g"]})
    with pytest.raises(DataError, match=r"have one name\. Rename one of"):
        eh.Decisions(table.set_axis(["y", "d", "g", "g"], axis=1), **ROLES)
    with pytest.raises(DataError, match=r"are named '1'\. Rename one\."):
        eh.Decisions(table.set_axis(["y", "d", "1", 1], axis=1), **ROLES)


def test_files_that_differ(tmp_path: Path) -> None:
    frame = pl.DataFrame(TABLE | {"s": [0.5] * 200})
    one, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    frame.write_parquet(one)
    frame.with_columns(extra=1).write_parquet(other)
    assert eh.audit(eh.Decisions([one, other], **ROLES)).data["rows"] == 400
    frame.with_columns(pl.col("y").cast(pl.Float64)).write_parquet(other)
    with pytest.raises(DataError) as caught:
        eh.audit(eh.Decisions([one, other], **ROLES))
    assert str(caught.value).endswith("Give files with the same columns, each of one type.")
    frame.drop("d").write_parquet(other)
    with pytest.raises(DataError) as caught:
        eh.audit(eh.Decisions([one, other], **ROLES))
    assert str(caught.value).endswith(
        "did not find column d. Give files with the same columns, each of one type."
    )


def test_a_file_given_twice_and_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame(TABLE).write_parquet(path)
    with pytest.raises(UsageError) as caught:
        eh.Decisions([path, tmp_path / "*.parquet"], **ROLES)
    assert str(caught.value) == f"'{path}' is given twice, so its rows would count twice."
    with pytest.raises(UsageError) as caught:
        eh.Decisions("-", **ROLES)
    assert str(caught.value) == (
        "A table is read from files, not from standard input. Save it first."
    )


def test_decisions_say_what_they_are() -> None:
    assert repr(eh.Decisions(TABLE, **ROLES)) == (
        "Decisions('arrays', truth='y', decision='d', rule='given', group=['g'], missing='drop')"
    )


def test_what_spark_says_is_put_in_one_line() -> None:
    told = (
        "An error occurred while calling o53.csv.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
        "\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:56)\n"
        "Caused by: java.lang.RuntimeException: a.parquet is not a Parquet file.\n\t... 3 more"
    )
    assert str(unreadable("a.parquet", "parquet", RuntimeError(told))) == (
        "'a.parquet' cannot be read as Parquet: a.parquet is not a Parquet file. "
        "It may be damaged, truncated or of another format."
    )


def test_text_is_looked_through_before_any_engine_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("g\ncafé\n".encode("latin-1"))
    with pytest.raises(DataError) as caught:
        read_head(path)
    assert str(caught.value) == (
        f"'{path}' cannot be read as CSV: line 2 is not UTF-8. Save it as UTF-8 and try again."
    )
    # A character cut in two by the end of a block is no mistake.
    path.write_text("g\n" + "x" * (START - 3) + "é")
    assert look_through(read_head(path), names=["g"]).kinds == {"g": "text"}


@pytest.mark.heavy
def test_spark_answers_in_sentences_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def refused(path: Path, **roles: Any) -> str:
        with pytest.raises(DataError) as caught:
            eh.audit(eh.Decisions(path, engine="spark", **{**ROLES, **roles}))
        assert "\n" not in str(caught.value)
        return str(caught.value).removeprefix(f"'{path}' ")

    dotted = tmp_path / "dotted.parquet"
    pl.DataFrame(TABLE | {"a.b": TABLE["g"]}).write_parquet(dotted)
    assert refused(dotted, group="a.b") == (
        "group='a.b' has a dot, which Spark takes for a field of a column. Rename the column."
    )
    (tmp_path / "bad.jsonl").write_text('{"y": 1, "d": 0, "g": "f"}\n{oops\n')
    assert refused(tmp_path / "bad.jsonl").startswith("cannot be read as JSON Lines: ")
    (tmp_path / "ragged.csv").write_text("y,d,g\n1,0,f\n0,1\n1,1,m,9\n")
    assert refused(tmp_path / "ragged.csv").startswith("has 2 cells in line 3 and 3 in its header.")
    (tmp_path / "half.parquet").write_bytes(dotted.read_bytes()[:300])
    assert "is not a Parquet file" in refused(tmp_path / "half.parquet")
    said = capfd.readouterr()
    assert "Exception" not in said.out + said.err
    assert "[Stage" not in said.err


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_csv_file_with_an_index_that_has_no_name(tmp_path: Path, engine: str) -> None:
    # As pandas writes it: the first column has no name.
    path = tmp_path / "table.csv"
    rows = "\n".join(f"{i},{i % 2},{int(i % 4 == 1)},{'fm'[i % 3 == 0]}" for i in range(120))
    path.write_text(f",y,d,sex\n{rows}\n")
    decisions = eh.Decisions(path, truth="y", decision="d", group="sex", engine=engine)
    assert decisions.columns == ["column1", "y", "d", "sex"]
    tally = decisions.count(decisions.roles.attributes[0])
    assert tally.dense(["group"], "n").tolist() == [80, 40]


def test_json_lines_keep_the_order_of_their_columns(tmp_path: Path) -> None:
    names = ["id", *(f"score:{i}" for i in range(40)), "text"]
    frame = pl.DataFrame({name: [0.5, 0.25] for name in names})
    frame.write_ndjson(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress((tmp_path / "t.jsonl").read_bytes()))
    for name in ("t.jsonl", "t.jsonl.gz"):
        assert open_table(tmp_path / name).frame.collect_schema().names() == names
