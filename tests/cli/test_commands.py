"""The commands as a newcomer runs them: what they print, what they write, how they exit."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from evenhand.cli.main import COMMANDS
from evenhand.simulate.moderation import moderation

ROLES = ["--truth", "violates", "--decision", "removed", "--group", "gender"]


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    path = tmp_path_factory.mktemp("posts") / "decisions.parquet"
    moderation(20_000, seed=1).frame.write_parquet(path)
    return str(path)


def test_audit_says_the_verdict_first_and_fits_the_screen(run, posts):
    code, out, _ = run("audit", posts, *ROLES, "--limit", "true_positive_rate_gap=0.05")
    assert code == 1
    tag, headline, *_ = out.splitlines()
    assert tag == "Gap found"
    assert headline.startswith("Women whose truth is '1' get decision '1' ")
    # Piped, and with no window to fit.
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["60", "200"])
def test_a_window_is_used_whole(run, posts, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    _, out, _ = run("audit", posts, *ROLES)
    longest = max(map(len, out.splitlines()))
    assert longest <= int(columns)
    assert longest > int(columns) / 2


@pytest.mark.parametrize(
    ("limit", "fail_on", "expected"),
    [
        ("0.05", "outside", 1),
        ("0.5", "outside", 0),
        ("0.145", "outside", 0),
        ("0.145", "cannot-tell", 3),
    ],
)
def test_exit_codes_follow_the_verdict(run, posts, limit, fail_on, expected):
    arguments = [*ROLES, "--limit", f"true_positive_rate_gap={limit}", "--fail-on", fail_on]
    assert run("audit", posts, *arguments, "--quiet")[0] == expected


def test_no_limit_means_nothing_is_judged(run, posts):
    code, out, _ = run("audit", posts, *ROLES, "--quiet")
    assert code == 0
    assert out.startswith("Not assessed: Women whose truth is not '1' get decision '1' less than")
    assert out.endswith(
        "No limits are set, so nothing is judged; `evenhand charter new` starts that "
        "conversation.\n"
    )


def test_every_output_is_written_and_readable(run, posts, tmp_path):
    paths = {k: tmp_path / f"audit.{k}" for k in ("json", "csv", "markdown", "junit")}
    flags = [part for kind, path in paths.items() for part in (f"--{kind}", str(path))]
    run("audit", posts, *ROLES, "--limit", "selection_rate_gap=0.01", *flags)
    record = json.loads(paths["json"].read_text())
    assert record["schema"] == "evenhand.audit/2"
    assert record["verdict"] == "outside"
    assert record["data"]["rows"] == 20_000
    assert len(pl.read_csv(paths["csv"], infer_schema_length=None)) == len(record["results"])
    assert (
        paths["markdown"].read_text().startswith("### Evenhand: Gap found: Women get decision '1' ")
    )
    suite = ElementTree.fromstring(paths["junit"].read_text())
    assert int(suite.get("failures", "0")) >= 1
    assert int(suite.get("tests", "0")) == len(suite.findall("testcase"))


def test_dry_run_computes_nothing(run, posts):
    code, out, _ = run("audit", posts, *ROLES, "--dry-run")
    assert code == 0
    assert "lens statistical: will run" in out
    assert out.endswith("Nothing was computed.\n")


def test_reference_threshold_and_strata_flags_reach_the_record(run, posts, tmp_path):
    path = tmp_path / "audit.json"
    arguments = ["--truth", "violates", "--score", "score", "--threshold", "female=0.6"]
    arguments += ["--threshold", "male=0.4", "--threshold", "nonbinary=0.4", "--group", "gender"]
    arguments += ["--reference", "gender=female", "--stratum", "region", "--json", str(path)]
    assert run("audit", posts, *arguments)[0] == 0
    record = json.loads(path.read_text())
    assert record["data"]["roles"]["threshold"] == {"female": 0.6, "male": 0.4, "nonbinary": 0.4}
    gaps = [r for r in record["results"] if r["measure"] == "true_positive_rate_gap"]
    assert {r["reference"] for r in gaps} == {"female", "<rest>"}
    assert {"east", "<summary>", None} <= {r["stratum"] for r in gaps}


# What is typed, the exit code and the one sentence that answers it.
MISTAKES = [
    (["audti"], 2, "'audti' is not a command. Did you mean 'audit'? See: evenhand --help"),
    (
        ["xyz"],
        2,
        f"'xyz' is not a command. The commands are {', '.join(COMMANDS)}. See: evenhand --help",
    ),
    (
        ["audit"],
        2,
        "Name the file to audit, such as: evenhand audit decisions.parquet --decision approved "
        "--group gender. All flags: evenhand audit --help",
    ),
    (
        ["audit", "POSTS", "--truth", "violates", "--decision", "removed", "--group", "gendre"],
        2,
        "group='gendre' is not a column of the table. Did you mean 'gender'?",
    ),
    (
        ["audit", "POSTS", *ROLES, "--limit", "tpr_gap=0.05"],
        2,
        "'tpr_gap' is not a measure. Did you mean 'true_positive_rate_gap'? "
        "See the list with: evenhand audit --list-measures",
    ),
    (
        ["audit", "POSTS", *ROLES, "--limit", "true_positive_rate_gap"],
        2,
        "--limit 'true_positive_rate_gap' is not MEASURE=BAND, "
        "such as true_positive_rate_gap=0.05.",
    ),
    (
        ["audit", "POSTS", *ROLES, "--reference", "gender=fmale"],
        2,
        "reference='fmale' is not a group. Did you mean 'female'? "
        "The groups are female, male, nonbinary; or write <rest> or <overall>.",
    ),
    (
        ["audit", "POSTS", *ROLES, "--engine", "polar"],
        2,
        "engine='polar' is not an engine. Did you mean 'polars'? "
        "Choose one of polars, duckdb, spark.",
    ),
    (
        ["audit", "POSTS", *ROLES, "--threshold", "a=high"],
        2,
        "--threshold 'a=high' is not GROUP=NUMBER, such as --threshold A=0.8.",
    ),
    (
        ["audit", "POSTS", "--truth", "violates", "--decision", "removed", "--group", "post"],
        4,
        "group='post' has more than 1,000 values (20,000 among the first 20,000 rows). It looks "
        "like an id column: name the column that says which group a person belongs to.",
    ),
    (
        ["audit", "POSTS", *ROLES, "--json", "nowhere/audit.json"],
        2,
        "'nowhere/audit.json' cannot be written: there is no folder 'nowhere'. "
        "Choose another place.",
    ),
    (["plan", "--rate", "2", "--gap", "0.1"], 2, None),
]


@pytest.mark.parametrize(
    ("typed", "code", "told"), MISTAKES, ids=[" ".join(m[0])[:50] for m in MISTAKES]
)
def test_mistakes_get_one_sentence_and_their_exit_code(run, posts, typed, code, told):
    found, out, err = run(*(posts if part == "POSTS" else part for part in typed))
    assert found == code
    assert out == ""
    assert err.startswith("evenhand: ")
    assert err.count("\n") == 1
    if told is not None:
        assert err == f"evenhand: {told}\n"


def test_unknown_flag_names_the_help(run, posts):
    code, _, err = run("audit", posts, "--grup", "gender")
    assert code == 2
    assert "No such option" in err
    assert err.rstrip().endswith("See: evenhand audit --help")


@pytest.mark.parametrize(
    ("flag", "ours"), [("--y-pred", "decision"), ("--sensitive_features", "group")]
)
def test_a_flag_of_another_tool_is_answered_with_ours(run, posts, flag, ours):
    code, out, err = run("audit", posts, flag, "removed")
    told = f"No such option '{flag}': it is called --{ours} here. See: evenhand audit --help"
    assert (code, out, err) == (2, "", f"evenhand: {told}\n")


@pytest.mark.parametrize(
    ("typed", "answer"), [("au", "plain,audit"), ("audit --trut", "plain,--truth"),
                          ("audit pos", "file,pos")]
)  # fmt: skip
def test_shells_complete_commands_flags_and_files(run, monkeypatch, typed, answer):
    words = f"evenhand {typed}"
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    monkeypatch.setenv("_EVENHAND_COMPLETE", "bash_complete")
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == answer


def test_unwritable_output_leaves_the_old_file(run, posts, tmp_path):
    folder = tmp_path / "audit.json"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    code, _, err = run("audit", posts, *ROLES, "--json", str(folder))
    assert code == 2
    assert "it is a folder" in err
    assert (folder / "kept").read_text() == "kept"


def test_plan_answers_in_a_sentence(run):
    code, out, _ = run("plan", "--rate", "0.1", "--gap", "0.03", "--groups", "5")
    assert (code, out) == (
        0,
        "2,521 cases in each of 5 groups, 12,605 in all.\n"
        "With them a gap of +0.03 from a rate of 0.1 is found with probability 0.8, where each of "
        "the 4 other groups is compared with the reference and all comparisons together hold at "
        "level 0.95.\n",
    )


def test_verify_agrees_with_fairlearn(run, posts):
    code, out, _ = run("verify", posts, *ROLES)
    assert code == 0
    assert "Fairlearn" in out
    assert "largest difference" in out


@pytest.mark.heavy
def test_verify_agrees_with_aif360(run, posts):
    code, out, _ = run("verify", posts, *ROLES)
    assert code == 0
    told = next(line for line in out.splitlines() if line.startswith("AIF360"))
    assert " agrees: 70 rates and gaps, largest difference" in told


def test_demo_tells_what_was_planted_and_found(run, tmp_path):
    folder = tmp_path / "demo"
    code, out, _ = run("demo", "--folder", str(folder), "--no-text")
    assert code == 0
    told = " ".join(out.split())
    assert "Planted: posts by nonbinary people come down from a score of 0.35" in told
    assert "Gap found. Posts by nonbinary people are removed on far weaker evidence" in told
    assert (
        "What to do: A cut of 0.65 for nonbinary people would be within what was agreed (audited "
        "again with it); today theirs is 0.35, everybody else's 0.60. Whether groups may have "
        "cuts of their own is a question of law."
    ) in told
    assert "Implementation: the model team." in told
    assert "Implementation: guidelines and training." in told
    # Commands are to be copied: they are the only lines that may be wider than the window.
    assert max(len(line) for line in out.splitlines() if not line.startswith("$ ")) <= 80
    for page in ("report.html", "labelers.html"):
        assert (folder / page).read_text().startswith("<!doctype html>")


@pytest.mark.heavy
def test_demo_tells_all_three_stories(run, tmp_path):
    code, out, _ = run("demo", "--folder", str(tmp_path / "demo"))
    assert code == 0
    told = " ".join(out.split())
    # Planted: what is typical of women helps the more, the more women an occupation has.
    bias = re.search(r"for women the rank correlation of norm bias is (0\.\d+) \[(0\.\d+), ", told)
    assert float(bias[1]) > float(bias[2]) > 0.3
    assert "Remedy: Start from " in told
    assert "Found: a change since 2025-W31" in told
    assert (tmp_path / "demo" / "occupations.html").exists()


def test_list_measures_names_what_limits_take(run):
    _, out, _ = run("audit", "--list-measures")
    assert "true_positive_rate_gap" in out
    assert "null_level" not in out


def test_help_is_instant_and_loads_nothing_heavy():
    code = (
        "import sys; from evenhand.cli.main import evenhand;"
        "heavy = {'polars', 'narwhals', 'rich', 'scipy', 'numpy'} & set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_bug_is_told_apart_from_a_mistake(run, posts, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("evenhand.lenses.statistical.lens.measure", broken)
    code, _, err = run("audit", posts, *ROLES)
    assert code == 5
    assert err.startswith("evenhand: something went wrong inside (ZeroDivisionError: oops).")
    assert "Traceback" not in err


def test_readme_mentions_only_commands_that_exist():
    from evenhand.cli.main import COMMANDS, HELP

    assert set(COMMANDS) == set(HELP)
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    used = {line.split()[1] for line in readme.splitlines() if line.startswith("evenhand ")}
    assert used <= set(COMMANDS)


def test_an_audit_imports_the_lenses_that_look_and_no_page(tmp_path):
    # Importing all of it took longer than a small audit.
    table = tmp_path / "t.csv"
    table.write_text("y,d,g\n" + "1,1,f\n0,1,m\n1,0,f\n0,0,m\n" * 30)
    asked = ["audit", str(table), "--truth", "y", "--decision", "d", "--group", "g"]
    code = (
        "import sys, scipy.special; brought = set(sys.modules)  # older SciPy brings sparse\n"
        "from evenhand.cli.main import evenhand\n"
        f"evenhand({asked!r}, standalone_mode=False)\n"
        "names = ['models', 'remedies', 'report.page', 'lenses.labelers.lens', 'scipy.sparse',\n"
        "         'lenses.thresholds.lens', 'lenses.norms.lens', 'lenses.counterfactual.lens']\n"
        "new = set(sys.modules) - brought\n"
        "print('loaded:', [n for n in names if n in new or f'evenhand.{n}' in new])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"
