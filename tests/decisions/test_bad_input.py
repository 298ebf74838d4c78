"""What a user can give wrongly, and the exact words that come back."""

import gzip
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.roles import Roles
from evenhand.errors import DataError, EvenhandError, MissingExtra, UsageError

GOOD = pl.DataFrame(
    {
        "y": [0, 1] * 100,
        "d": [0, 1, 1, 0] * 50,
        "gender": ["f", "m"] * 100,
        "s": [0.1, 0.9, 0.4, 0.6] * 50,
        "w": [1.0] * 200,
        "id": list(range(200)),
    }
)
SCORED = {"decision": None, "score": "s", "threshold": 0.5}


def audited(data: Any = GOOD, **roles: Any) -> eh.Audit:
    asked = {k: roles.pop(k) for k in ("limits", "lenses", "level") if k in roles}
    roles = {"truth": "y", "decision": "d", "group": "gender", **roles}
    return eh.audit(eh.Decisions(data, **roles), **asked)


def refused(error: type[EvenhandError], words: str, data: Any = GOOD, **roles: Any) -> None:
    with pytest.raises(error) as caught:
        audited(data, **roles)
    assert str(caught.value) == words
    assert "Traceback" not in str(caught.value)


ROLES: list[tuple[dict[str, Any], str]] = [
    ({"group": "gendre"}, "group='gendre' is not a column of the table. Did you mean 'gender'?"),
    (
        {"truth": "why"},
        "truth='why' is not a column of the table. The columns are y, d, gender, s, w, id.",
    ),
    ({"group": "Gender"}, "group='Gender' is not a column of the table. Did you mean 'gender'?"),
    ({"treuth": "y"}, "'treuth' is not a role. Did you mean 'truth'?"),
    (
        {"y_pred": "d"},
        "'y_pred' is not a role. It is called 'decision' here. The roles are "
        f"{', '.join(Roles.__slots__)}.",
    ),
    ({"zzz": "d"}, f"'zzz' is not a role. The roles are {', '.join(Roles.__slots__)}."),
    (
        {"group": None},
        "No group is named. Say which column holds it, such as group='gender' (--group). "
        "The columns are y, d, gender, s, w, id.",
    ),
    (
        {"decision": "y"},
        "decision='y' is also the truth, so there is nothing to compare. Name two columns.",
    ),
    (
        {"group": ["gender", "y"]},
        "group='y' is also the truth, so there is nothing to compare. Name two columns.",
    ),
    (
        {"stratum": "gender"},
        "group='gender' is also the stratum, so there is nothing to compare. Name two columns.",
    ),
    (
        {"group": ["gender", "gender"]},
        "group='gender' is given twice. Name each group column once.",
    ),
    ({"engine": "dask"}, "engine='dask' is not an engine. Choose one of polars, duckdb, spark."),
    (
        {"reference": "x"},
        "reference='x' is not a group. The groups are f, m; or write <rest> or <overall>.",
    ),
    (
        {"reference": {"region": "x"}},
        "reference for 'region', which is not a group column. The group columns are gender.",
    ),
    (
        {"reference": "F"},
        "reference='F' is not a group. Did you mean 'f'? The groups are f, m; or write <rest> or "
        "<overall>.",
    ),
    ({"missing": "keep"}, "missing='keep' is not a policy. Choose one of drop, group, error."),
    (
        {"positive_is": "good"},
        "positive_is='good' is not known. Say 'benefit' or 'burden': what a positive decision is "
        "for the person decided about.",
    ),
    (
        {"rule": "agmax"},
        "rule='agmax' is not a rule. Did you mean 'argmax'? Choose one of given, score>=t, argmax, "
        "one-versus-rest.",
    ),
    ({"rule": "argmax"}, "rule='argmax' needs one score column per class, named 'score:<class>'."),
    ({"decision": None, "rule": "given"}, "rule='given' needs a decision column."),
    (
        {"decision": None, "rule": "score>=t"},
        "rule='score>=t' needs a score column and a threshold.",
    ),
    (
        {"scores": "p:"},
        "scores='p:': no column of the table starts with 'p:'. Name the columns <prefix><class>, "
        "such as 'score:nurse'.",
    ),
    (
        {"stratum": "s", "stratum_edges": [2, 1]},
        "stratum_edges=[2, 1] do not rise. Give the cut points in rising order, such as 18,30,65.",
    ),
    ({"positive": "2"}, "positive='2' is not a value of the data, which has 0 and 1."),
    (
        {**SCORED, "threshold": 75},
        "threshold=75 is outside the scores, which lie between 0.1 and 0.9. For a 75% cut write "
        "threshold=0.75.",
    ),
    (
        {**SCORED, "threshold": -1},
        "threshold=-1 is outside the scores, which lie between 0.1 and 0.9. Choose a threshold "
        "among the scores.",
    ),
    (
        {**SCORED, "threshold": {"female": 0.5, "m": 0.4}},
        "threshold for 'female', which is not a value of group='gender'. It has f, m.",
    ),
    (
        {**SCORED, "threshold": {"m": 0.4}},
        "There is a threshold for m and none for 'f'. Give every value of group='gender' one.",
    ),
    ({"level": 2}, "level=2 is not a confidence level. Choose one such as 0.95."),
    (
        {"limits": {"true_positive_gap": 0.05}},
        "'true_positive_gap' is not a measure. Did you mean 'true_positive_rate_gap'? See the list "
        "with: evenhand audit --list-measures",
    ),
    (
        {"limits": {"demographic_parity": 0.1}},
        "'demographic_parity' is not a measure. Did you mean 'selection_rate_gap'? See the list "
        "with: evenhand audit --list-measures",
    ),
    (
        {"limits": {"selection_rate_gap": "abc"}},
        "limit selection_rate_gap=abc is not a number or a band. Write selection_rate_gap=0.05, or "
        "selection_rate_gap=-0.02:0.05 for both sides.",
    ),
    (
        {"limits": {"selection_rate_gap": "0.1:-0.1"}},
        "limit selection_rate_gap=0.1:-0.1 leaves no room between 0.1 and -0.1. The lower end "
        "comes first and must be smaller.",
    ),
    (
        {"limits": {"selection_rate_gap_worst_null_level": 0.1}},
        "selection_rate_gap_worst_null_level is shown beside another measure and takes no limit.",
    ),
    (
        {"limits": {"calibration": 0.1}},
        "calibration is the share of true cases at each score, which no one limit can judge. Set "
        "one on calibration_slope (1 is right), such as calibration_slope=0.8:1.25, or on "
        "calibration_intercept (0 is right).",
    ),
]


@pytest.mark.parametrize(("roles", "words"), ROLES)
def test_roles_and_settings(roles: dict[str, Any], words: str) -> None:
    refused(UsageError, words, **roles)


def test_lenses_that_cannot_run() -> None:
    with pytest.raises(UsageError, match=r"^lens 'statistcal' does not exist\. Did you mean"):
        audited(lenses=["statistcal"])
    nothing = "a decision column, or a score and a threshold"
    with pytest.raises(UsageError, match=rf"^The statistical lens needs {nothing}\.$"):
        audited(decision=None, lenses=["statistical"])
    with pytest.raises(UsageError, match=r"^No lens can run on this table\. Name a decision"):
        audited(decision=None)


def test_amounts_as_a_group_ask_for_edges() -> None:
    ages = GOOD.with_columns(age=pl.int_range(200) % 70, income=pl.int_range(200) % 30 + 0.5)
    for column, count in (("age", 70), ("income", 30)):
        refused(
            DataError,
            f"group={column!r} holds amounts, {count} different ones among the first 200 rows, and "
            "each would be a group of its own. Cut them at a few edges first, as pandas.cut does, "
            "or audit by it as a stratum (--stratum, --stratum-edges 18,30,65). Codes are groups "
            "when they are words.",
            ages,
            group=column,
        )
    # Codes are few, or words.
    assert audited(ages.with_columns(pl.col("age") % 50), group="age").rows
    assert audited(ages.with_columns(pl.format("{} years", "age").alias("age")), group="age").rows


def test_two_words_need_to_be_told_apart() -> None:
    words = GOOD.with_columns(pl.col("y", "d").replace_strict({0: "no", 1: "yes"}))
    refused(
        UsageError,
        "The classes are 'no' and 'yes': say which one counts as positive with positive='yes' "
        "(--positive).",
        words,
    )
    refused(
        UsageError,
        "positive='yse' is not a value of the data. Did you mean 'yes'? It has no, yes.",
        words,
        positive="yse",
    )
    assert audited(words, positive="yes").details["statistical"]["positive"] == "yes"
    three = pl.DataFrame(
        {"y": ["a", "b", "c"] * 40, "gender": ["f", "m"] * 60, "s": [0.1, 0.5, 0.9] * 40}
    )
    refused(
        UsageError,
        "truth='y' has 3 values and a threshold decides between two. Say which value counts as "
        "positive (--positive).",
        three,
        **SCORED,
    )


@pytest.mark.parametrize("positive", [1, True, 1.0, "1"])
def test_any_spelling_of_the_positive_value(positive: Any) -> None:
    booleans = GOOD.with_columns(pl.col("y", "d").cast(pl.Boolean))
    for table in (GOOD, booleans):
        assert audited(table, positive=positive).details["statistical"]["positive"] == "1"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    GOOD.write_parquet(tmp_path / "data.parquet")
    wrong = tmp_path / "dta.parquet"
    refused(DataError, f"There is no file '{wrong}'. Did you mean 'data.parquet'?", wrong)
    lost = tmp_path / "nowhere" / "q.csv"
    refused(DataError, f"There is no file '{lost}'.", lost)
    refused(DataError, f"No file matches '{tmp_path}/*.csv'.", f"{tmp_path}/*.csv")


def test_files_of_the_wrong_kind(tmp_path: Path) -> None:
    for name in ("empty.csv", "empty.parquet", "empty.jsonl"):
        (tmp_path / name).write_text("")
        told = f"'{tmp_path / name}' is empty. Give a file with a header and at least one row."
        refused(DataError, told, tmp_path / name)
    (tmp_path / "book.xlsx").write_text("x")
    refused(
        UsageError,
        f"'{tmp_path / 'book.xlsx'}' is of no known format. Give Parquet (.parquet), CSV (.csv), "
        "JSON Lines (.jsonl) or Arrow (.arrow), gzipped if you like.",
        tmp_path / "book.xlsx",
    )
    (tmp_path / "head.csv").write_text("y,d,gender\n")
    refused(
        DataError,
        f"Nothing is left to measure: '{tmp_path / 'head.csv'}' has no rows.",
        tmp_path / "head.csv",
    )
    GOOD.write_parquet(tmp_path / "a.parquet")
    refused(
        UsageError,
        "The files are of 2 formats (csv, parquet). Give files of one format.",
        [tmp_path / "a.parquet", tmp_path / "head.csv"],
    )


def test_folders_and_files_that_do_not_go_together(tmp_path: Path) -> None:
    (tmp_path / "csvs").mkdir()
    GOOD.write_csv(tmp_path / "csvs" / "a.csv")
    refused(
        DataError,
        f"'{tmp_path / 'csvs'}' holds no Parquet file. Give a folder of .parquet files, or name "
        "the files themselves.",
        tmp_path / "csvs",
    )
    GOOD.rename({"gender": "sex"}).write_csv(tmp_path / "csvs" / "b.csv")
    pair = [tmp_path / "csvs" / "a.csv", tmp_path / "csvs" / "b.csv"]
    for engine in ("polars", "duckdb"):
        refused(
            DataError,
            f"'{pair[1]}' has no column 'gender', which '{pair[0]}' has. Give files with the same "
            "columns.",
            pair,
            engine=engine,
        )
        # Columns go by their names, and those that the first file lacks are not needed.
        GOOD.select("s", "gender", "y", "d").with_columns(x=1).write_csv(tmp_path / "other.csv")
        GOOD.select("y", "d", "gender").write_csv(tmp_path / "csvs" / "a.csv")
        audit = audited([pair[0], tmp_path / "other.csv"], engine=engine)
        assert audit.rows.where(measure="accuracy", class_="1").plain("n") == [200, 200]


def test_truth_and_decisions_in_different_words() -> None:
    mixed = GOOD.with_columns(pl.col("y").replace_strict({0: "no", 1: "yes"}))
    told = (
        "truth='y' has the values no, yes and the decisions are 0, 1: they share none. "
        "Write both in the same words."
    )
    refused(UsageError, told, mixed, positive="yes")
    refused(UsageError, told, mixed)


DAMAGED = r"It may be damaged, truncated or of another format\."


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_damaged_files(tmp_path: Path, engine: str) -> None:
    GOOD.write_parquet(tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    zipped = gzip.compress(GOOD.write_csv().encode())
    broken: dict[str, tuple[bytes, str]] = {
        "text.parquet": (b"this is text, not Parquet. " * 9, "Parquet"),
        "half.parquet": (whole[: len(whole) // 2], "Parquet"),
        "half.csv.gz": (zipped[: len(zipped) // 2], "CSV"),
        "half.jsonl.gz": (zipped[: len(zipped) // 2], "JSON Lines"),
        "half.jsonl": (b'{"y": 1, "d": 1, "gender": "f"}\n{"y":', "JSON Lines"),
        "text.arrow": (b"neither is this Arrow", "Arrow"),
    }
    if engine == "duckdb" and int(duckdb.__version__.split(".")[0]) < 2:
        # DuckDB before 2.0 reads a gzipped CSV as far as it goes, and says nothing.
        del broken["half.csv.gz"]
    for name, (content, kind) in broken.items():
        path = tmp_path / name
        path.write_bytes(content)
        form = rf"^'{re.escape(str(path))}' cannot be read as {kind}: [^\n]+\. {DAMAGED}$"
        with pytest.raises(DataError, match=form):
            audited(path, engine=engine)
        assert path.read_bytes() == content


@pytest.mark.parametrize("rows_before", [0, 20_000])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_text_that_is_not_utf8(tmp_path: Path, engine: str, rows_before: int) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(b"y,d,gender\n" + b"1,1,f\n" * rows_before + "0,1,féminin\n".encode("latin-1"))
    form = rf"^'{re.escape(str(path))}' cannot be read as CSV: .* Save it as UTF-8 and try again\.$"
    with pytest.raises(DataError, match=form):
        audited(path, engine=engine)


def test_mixed_types(tmp_path: Path) -> None:
    told = "which is not a number. Correct it, or leave the cell empty."
    (tmp_path / "mix.csv").write_text("y,gender,s\n" + "1,f,0.5\n" * 20 + "0,m,high\n")
    # In the second file the word comes after the rows that the type was read from.
    (tmp_path / "late.csv").write_text("y,gender,s\n" + "1,f,0.5\n" * 20_000 + "0,m,high\n")
    for engine in ("polars", "duckdb"):
        for name, line in (("mix.csv", "22"), ("late.csv", "20,002")):
            words = f"score='s' holds 'high' in line {line} of '{tmp_path / name}', {told}"
            refused(DataError, words, tmp_path / name, **SCORED, engine=engine)
    refused(
        DataError,
        "score='s' holds String, not numbers. Some value in it may be text; clean or convert the "
        "column.",
        GOOD.with_columns(pl.col("s").cast(pl.String)),
        **SCORED,
    )
    nested = GOOD.with_columns(gender=pl.concat_list("y", "d"))
    refused(
        DataError,
        "group='gender' holds List(Int64), not single values. Name a column of texts, numbers or "
        "booleans.",
        nested,
    )
    mixed = {"y": [0, 1, "x", None] * 20, "d": [1, 0, 1, 0] * 20, "gender": ["f", "m"] * 40}
    assert audited(mixed).details["statistical"]["classes"] == ["0", "1", "x"]


@pytest.mark.parametrize(
    ("data", "kind"), [(5, "int"), (pl.Series([1]), "Series"), ([], "list"), (np.eye(2), "ndarray")]
)
def test_things_that_are_no_table(data: Any, kind: str) -> None:
    told = (
        f"data of type {kind} is not a table. Give a path, a pandas, Polars, PyArrow, DuckDB, "
        "Spark, Dask or Ibis table, or a dict of arrays."
    )
    refused(UsageError, told, data)


def test_arrays_of_different_lengths() -> None:
    told = (
        "The arrays differ in length: y has 2, d has 1, gender has 2. Give one value per row in "
        "each."
    )
    refused(DataError, told, {"y": [0, 1], "d": [1], "gender": ["a", "b"]})


def test_scores_that_are_not_finite() -> None:
    for value, count in ((float("nan"), 3), (float("inf"), 1)):
        bad = GOOD.with_columns(s=pl.when(pl.col("id") < count).then(value).otherwise(pl.col("s")))
        values = "1 value that is" if count == 1 else f"{count} values that are"
        refused(
            DataError,
            f"score='s' holds {values} not finite (NaN or infinite). Replace them or leave them "
            "empty.",
            bad,
            **SCORED,
        )


def test_scores_need_not_be_probabilities() -> None:
    margins = GOOD.with_columns(s=pl.col("s") * 20 - 10)
    audit = audited(margins, decision=None, score="s", threshold=0)
    assert len(audit.rows.where(measure="auc")) == 2
    assert len(audit.rows.where(measure="calibration_slope")) == 0
    assert len(audited(**SCORED).rows.where(measure="calibration_slope")) == 2


WEIGHTS: list[tuple[Any, str]] = [
    (-1.0, "weight='w' holds negative weights (down to -1). Weights must be 0 or more."),
    (0.0, "weight='w' is 0 in every row. Give at least one positive weight."),
    (
        float("inf"),
        "weight='w' holds 200 values that are not finite (NaN or infinite). Replace them or leave "
        "them empty.",
    ),
    (
        "heavy",
        "weight='w' holds String, not numbers. Some value in it may be text; clean or convert the "
        "column.",
    ),
]


@pytest.mark.parametrize(("weight", "words"), WEIGHTS)
def test_weights(weight: Any, words: str) -> None:
    refused(DataError, words, GOOD.with_columns(w=pl.lit(weight)), weight="w")


def test_weights_that_are_not_there() -> None:
    empty = GOOD.with_columns(w=pl.lit(None, dtype=pl.Float64))
    told = "weight='w' has no value in any row. Give at least one positive weight."
    refused(DataError, told, empty, weight="w")
    for share in (0.0, 2.0):
        told = (
            f"review_share='w' lies between {share:g} and {share:g}. It is the probability that a "
            "row was reviewed: above 0 and at most 1."
        )
        refused(DataError, told, GOOD.with_columns(w=pl.lit(share)), review_share="w")


def test_id_columns_as_groups() -> None:
    ids = pl.DataFrame({"y": [0, 1] * 6000, "d": [1, 0] * 6000, "gender": list(range(12_000))})
    looks = "It looks like an id column: name the column that says which group a person belongs to."
    first = "group='gender' has more than 1,000 values (12,000 among the first 12,000 rows). "
    refused(DataError, first + looks, ids)
    named = ids.with_columns(gender=pl.format("user {}", "gender"))
    refused(DataError, first + looks, named)
    late = pl.DataFrame(
        {
            "y": [0, 1] * 11_000,
            "d": [1, 0] * 11_000,
            "gender": [1] * 20_500 + list(range(2, 1502)),
        }
    )
    refused(DataError, f"group='gender' has more than 1,000 values (1,501). {looks}", late)
    # A row-level key in a small table is reported, not refused.
    assert audited(group="id").notes == (f"group='id' has 200 values of one case each. {looks}",)
    assert audited(group="id").rows.where(measure="selection_rate").plain("value") == [None] * 400


def test_names_of_groups_are_refused_beyond_a_hundred_thousand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    towns = pl.DataFrame({"y": [0, 1] * 6000, "d": [1, 0] * 6000, "gender": ["a", "b"] * 6000})
    towns = towns.with_columns(gender=pl.format("town {}", pl.int_range(pl.len()) // 5))
    decisions = eh.Decisions(towns, truth="y", decision="d", group="gender")
    assert len(decisions.count(decisions.roles.attributes[0]).labels["group"]) == 2_400
    monkeypatch.setattr("evenhand.decisions.table.MOST_GROUPS", 2_000)
    looks = "It looks like an id column: name the column that says which group a person belongs to."
    seen = "(2,400 among the first 12,000 rows)"
    refused(DataError, f"group='gender' has more than 2,000 values {seen}. {looks}", towns)


def test_one_group_and_one_class_are_reported() -> None:
    alone = audited(GOOD.with_columns(gender=pl.lit("f")))
    assert alone.notes == (
        "group='gender' has one value, 'f': there is nothing to compare it with.",
    )
    assert set(alone.rows["reference"]) == {None}
    single = audited(GOOD.with_columns(y=pl.lit(1)))
    assert single.notes == (
        "Class '0' was decided 100 times and never occurs in the truth: its true positive rate is "
        "undefined.",
        "The truth has one class, '1': rates that need another class are undefined.",
    )
    unseen = pl.DataFrame(
        {"y": ["a", "b"] * 50, "d": ["a", "b", "c", "b"] * 25, "gender": ["f", "m"] * 50}
    )
    audit = audited(unseen)
    assert audit.notes == (
        "Class 'c' was decided 25 times and never occurs in the truth: its true positive rate is "
        "undefined.",
    )
    kept = audit.rows.where(measure="selection_rate", class_="c", group="f")
    assert kept.plain("value") == [0.5]
    gone = audit.rows.where(measure="true_positive_rate", class_="c", group="f")
    assert (gone.plain("value"), gone.plain("undefined")) == ([None], ["no cases in the group"])


def test_nulls_everywhere() -> None:
    nothing = (
        "Nothing is left to measure for group='gender': no row has both a group and a decision."
    )
    for column in ("d", "gender"):
        kind = GOOD.schema[column]
        refused(DataError, nothing, GOOD.with_columns(pl.lit(None, dtype=kind).alias(column)))
    empty = "Nothing is left to measure: 'polars table' has no rows."
    refused(DataError, empty, GOOD.head(0))
    unknown = audited(GOOD.with_columns(y=pl.lit(None, dtype=pl.Int64)))
    assert unknown.data["excluded"] == [
        {"reason": "no truth (kept for selection rates)", "rows": 200}
    ]
    assert not set(unknown.rows["measure"]) & {"true_positive_rate", "accuracy"}


HOLES = GOOD.with_columns(
    pl.when(pl.col("id") < 3).then(None).otherwise(pl.col("gender")).alias("gender"),
    pl.when(pl.col("id").is_between(10, 14)).then(None).otherwise(pl.col("y")).alias("y"),
    pl.when(pl.col("id") == 20).then(None).otherwise(pl.col("d")).alias("d"),
)


def test_policy_drop() -> None:
    audit = audited(HOLES)
    assert audit.data["excluded"] == [
        {"reason": "no gender", "rows": 3},
        {"reason": "no decision", "rows": 1},
        {"reason": "no truth (kept for selection rates)", "rows": 5},
    ]
    # 100 of f, less rows 0 and 2 without a group and row 20 without a decision; of these,
    # rows 10, 12 and 14 have no truth and leave accuracy alone.
    cases = {
        m: audit.rows.where(measure=m, group="f", class_="1").plain("n")
        for m in ("selection_rate", "accuracy")
    }
    assert cases == {"selection_rate": [97], "accuracy": [94]}


def test_policy_group() -> None:
    audit = audited(HOLES, missing="group")
    found = audit.rows.where(measure="selection_rate", class_="1", group="<missing>")
    assert found.plain("n") == [3]
    assert "no gender" not in {item["reason"] for item in audit.data["excluded"]}


def test_policy_error() -> None:
    refused(
        DataError,
        "missing='error' and the data has 3 rows with no gender, 1 row with no decision, 5 rows "
        "with no truth. Fill them in, or choose missing='drop' or 'group'.",
        HOLES,
        missing="error",
    )
    assert audited(missing="error").data["excluded"] == []


def test_missing_weights_scores_and_clusters_are_counted() -> None:
    holes = GOOD.with_columns(
        pl.when(pl.col("id") < 7).then(None).otherwise(pl.col("w")).alias("w"),
        pl.when(pl.col("id") < 4).then(None).otherwise(pl.col("s")).alias("s"),
        k=pl.when(pl.col("id") < 5).then(None).otherwise(pl.col("id") % 20),
    )
    cases = [
        ({"weight": "w"}, "no w", 7),
        ({"cluster": "k"}, "no k", 5),
        (SCORED, "no decision", 4),
    ]
    for roles, reason, rows in cases:
        audit = audited(holes, lenses=["statistical"], **roles)
        assert audit.data["excluded"] == [{"reason": reason, "rows": rows}]
        counted = sum(audit.rows.where(measure="selection_rate", class_="1").plain("n"))
        assert counted == 200 - rows


def test_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] in {"duckdb", "pyspark"}:
            raise ImportError(name)
        return real(name, *rest, **more)

    GOOD.write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(builtins, "__import__", without)
    for engine in ("duckdb", "spark"):
        told = (
            f"engine='{engine}' needs the extra '{engine}', which is not installed. "
            f"Run: pip install 'evenhand[{engine}]'"
        )
        refused(MissingExtra, told, tmp_path / "t.parquet", engine=engine)
