"""Where results go: never over the data, each to a place of its own, or to a pipe."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

TABLE = pl.DataFrame(
    {"y": [0, 1] * 100, "d": [0, 1, 1, 0] * 50, "g": ["f", "m"] * 100, "g=h": ["a", "b"] * 100}
)
AUDIT = ["--truth", "y", "--decision", "d", "--group", "g"]


@pytest.fixture
def run(run):
    TABLE.write_parquet("data.parquet")
    Path("folder").mkdir()
    TABLE.write_parquet("folder/part.parquet")
    return run


@pytest.mark.parametrize("data", ["data.parquet", "./data.parquet", "dat*.parquet"])
@pytest.mark.parametrize("flag", ["--json", "--out", "--csv", "--markdown", "--junit"])
def test_the_data_is_never_overwritten(run, data, flag):
    told = f"evenhand: {flag} 'data.parquet' would overwrite the data. Choose another place.\n"
    assert run("audit", data, *AUDIT, flag, "data.parquet") == (2, "", told)
    assert pl.read_parquet("data.parquet").equals(TABLE)


def test_out_is_what_its_name_ends_in(run):
    assert run("audit", "data.parquet", *AUDIT, "--json", "a.json", "--out", "a.md")[0] == 0
    assert Path("a.md").read_text(encoding="utf-8").startswith("### Evenhand: Not assessed")
    assert run("report", "a.json", "a.json", "--out", "both.md", "--no-charts")[0] == 0
    assert Path("both.md").read_text(encoding="utf-8").startswith("### Evenhand: Not assessed")
    assert run("report", "a.json", "--out", "a.html", "--no-charts")[0] == 0
    assert Path("a.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_neither_is_a_file_of_a_folder(run):
    for name in ("folder/part.parquet", "folder/audit.json", "folder/new/audit.json"):
        told = (
            f"evenhand: --json '{name}' lies in 'folder', which is read: the next run would read "
            "it too. Choose another place.\n"
        )
        assert run("audit", "folder", *AUDIT, "--json", name) == (2, "", told)
    assert pl.read_parquet("folder/part.parquet").equals(TABLE)
    assert [path.name for path in Path("folder").iterdir()] == ["part.parquet"]


def test_tables_of_texts_are_not_overwritten_either(run):
    pl.DataFrame({"bio": ["He ran."]}).write_parquet("bios.parquet")
    told = "evenhand: --out 'bios.parquet' would overwrite the data. Choose another place.\n"
    flags = ["--text", "bio", "--out", "bios.parquet"]
    assert run("swap", "bio*.parquet", *flags) == (2, "", told)
    assert run("score", "bios.parquet", *flags, "--model", "math:sqrt") == (2, "", told)
    assert pl.read_parquet("bios.parquet").columns == ["bio"]


def test_two_outputs_need_two_places(run):
    told = "evenhand: --json and --csv both name './a.json'. Give each a place of its own.\n"
    assert run("audit", "data.parquet", *AUDIT, "--json", "a.json", "--csv", "./a.json") == (
        2, "", told,
    )  # fmt: skip


def test_a_record_goes_to_a_pipe_alone(run):
    code, out, err = run("audit", "data.parquet", *AUDIT, "--json", "-")
    assert (code, err) == (0, "")
    assert json.loads(out)["data"]["rows"] == 200
    assert not Path("-").exists()
    code, out, _ = run("audit", "data.parquet", *AUDIT, "--csv", "-", "--quiet")
    assert (code, out.startswith("lens,measure,class,")) == (0, True)
    told = "evenhand: --json and --csv both name '-'. Give each a place of its own.\n"
    assert run("audit", "data.parquet", *AUDIT, "--json", "-", "--csv", "-") == (2, "", told)


def test_the_bare_command_helps(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.startswith("Usage: evenhand [OPTIONS] COMMAND")
    code, out, err = run("audit")
    assert (code, out) == (2, "")
    assert err == (
        "evenhand: Name the file to audit, such as: evenhand audit decisions.parquet --decision "
        "approved --group gender. All flags: evenhand audit --help\n"
    )


def test_a_dry_run_says_what_is_lacking_even_where_nothing_can_run(run):
    code, out, err = run("audit", "data.parquet", "--truth", "y", "--group", "g", "--dry-run")
    assert (code, err) == (0, "")
    assert out.splitlines()[:5] == [
        "data.parquet: 4 columns, engine polars.",
        "  truth: y",
        "  group: g",
        "  missing: drop",
        "  lens statistical: needs a decision column, or a score and a threshold",
    ]
    assert run("audit", "data.parquet", "--truth", "y", "--group", "g") == (
        2,
        "",
        "evenhand: No lens can run on this table. Name a decision column (--decision), or a score "
        "and a threshold (--score, --threshold); --dry-run says what each lens needs.\n",
    )


def test_a_column_may_hold_an_equals_sign(run):
    group = ["--truth", "y", "--decision", "d", "--group", "g", "--group", "g=h"]
    flags = [*group, "--reference", "g=h=b", "--reference", "g=m", "--json", "a.json", "--quiet"]
    assert run("audit", "data.parquet", *flags)[0] == 0
    rows = json.loads(Path("a.json").read_text())["results"]
    gaps = {(r["attribute"], r["reference"]) for r in rows if r["measure"] == "accuracy_gap"}
    assert {("g=h", "b"), ("g", "m")} <= gaps


def test_a_negative_seed(run):
    told = "evenhand: seed=-1 is not a seed. Give 0 or a larger whole number.\n"
    assert run("audit", "data.parquet", *AUDIT, "--seed", "-1") == (2, "", told)


def test_the_base_install_audits_pandas_and_writes_every_form(tmp_path):
    """Without a single extra: only charts are missing, and the message says how to add them."""
    code = (
        "import sys\n"
        "for name in ('pyarrow', 'duckdb', 'sklearn', 'joblib', 'vl_convert', 'torch'):\n"
        "    sys.modules[name] = None\n"
        "import pandas as pd, evenhand as eh\n"
        "table = pd.DataFrame({'y': [1, 0] * 200, 'd': [1, 0, 0, 0] * 100})\n"
        "table['sex'] = pd.Categorical(['f', 'f', 'm', 'm'] * 100)\n"
        "result = eh.audit(table, truth='y', decision='d', group='sex')\n"
        "print(result.by_group().shape, len(result._repr_html_()) > 500, len(str(result)) > 200)\n"
        "for ending in ('html', 'md', 'json', 'csv', 'xml'):\n"
        "    result.save(f'audit.{ending}')\n"
        "table.to_csv('t.csv')\n"
        "from evenhand.cli.main import main\n"
        "main(['audit', 't.csv', '--truth', 'y', '--decision', 'd', '--group', 'sex',\n"
        "      '--out', 'page.html', '--quiet'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(4, ")
    assert "True True" in done.stdout
    assert done.stderr == (
        "evenhand: the report has no charts. To add them: pip install 'evenhand[report]'\n"
    )
    made = {path.name for path in tmp_path.iterdir()}
    assert {f"audit.{e}" for e in ("html", "md", "json", "csv", "xml")} | {"page.html"} <= made


def test_an_audit_writes_its_figures(run):
    asked = ("audit", "data.parquet", *AUDIT, "--figures", "figures")
    code, _, told = run(*asked)
    assert (code, told) == (0, "")
    written = {file.name for file in Path("figures").iterdir()}
    assert {"picture.svg", "picture.png", "picture.pdf", "manifest.json"} <= written
    Path("figures/mine.txt").write_text("mine", encoding="utf-8")
    code, _, told = run(*asked)
    assert code == 2
    assert "holds 'mine.txt', which Evenhand did not write" in told
