"""`evenhand compare`: what it prints and writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from evenhand.remedies.ledger.sentences import recommend
from evenhand.simulate.biographies import Occupation, biographies

TITLES = {"nurse": 0.8, "surgeon": 0.2, "teacher": 0.6, "dj": 0.3, "poet": 0.5}


@pytest.fixture
def run(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    return run


def write(name: str, n: int, seed: int) -> None:
    chosen = {title: Occupation(female_share=share) for title, share in TITLES.items()}
    biographies(n, occupations=chosen, seed=seed).frame.write_parquet(name)


FLAGS = ("--text", "text", "--truth", "title", "--group", "gender", "--out", "ledger",
         "--representation", "bow")  # fmt: skip


def test_two_files_give_a_ledger_on_one_page(run, tmp_path):
    write("train.parquet", 700, 1)
    write("test.parquet", 300, 2)
    code, out, err = run("compare", "train.parquet", "test.parquet", *FLAGS, "--seeds", "1",
                         "--remedy", "augment", "--remedy", "decoupled",
                         "--reference", "gender=female")  # fmt: skip
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    assert "Remedies on word counts" in out
    assert "Norm bias ρ over classes" in out
    assert "Gaps class by class, one class against its rest" in out
    assert "- decoupled: " in out
    header = next(line for line in out.splitlines() if line.startswith(" remedy"))
    baseline = next(line for line in out.splitlines() if line.startswith(" baseline"))
    assert "TP gap" in header
    assert "*" not in baseline
    document = json.loads((tmp_path / "ledger" / "ledger.json").read_text())
    groups = document["data"]["groups"]
    first = recommend(document["rows"], groups=groups, budget=0.01)
    assert first in " ".join(out[: out.index(header)].split())
    assert "Needs the group at decision time." in " ".join(out.split())
    assert "One training set: no spread over seeds and no intervals." in out
    document = json.loads((tmp_path / "ledger" / "ledger.json").read_text())
    assert [row["remedy"] for row in document["rows"]] == ["baseline", "augment", "decoupled"]
    assert document["data"]["test_rows"] == 300
    assert document["data"]["reference"] == "female"
    assert (tmp_path / "ledger" / "models" / "augment-bow.joblib").is_file()


@pytest.mark.parametrize("columns", ["50", "80"])
def test_a_ledger_in_a_narrow_window_loses_no_number(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    write("train.parquet", 500, 1)
    flags = (*FLAGS, "--seeds", "1", "--remedy", "augment", "--remedy", "adversarial")
    code, out, _ = run("compare", "train.parquet", *flags)
    assert code == 0
    assert max(map(len, out.splitlines())) <= int(columns)
    assert "…" not in out
    told = " ".join(out.split())
    document = json.loads(Path("ledger/ledger.json").read_text())
    for row in document["rows"][:2]:
        for name in ("accuracy", "true_positive_rate_gap_rms"):
            assert f" {100 * row['measures'][name]['all']['value']:.1f} " in told


def test_the_remedies_are_listed(run):
    code, out, _ = run("compare", "--list")
    assert code == 0
    assert "adversarial" in out
    assert "needs extra 'torch'" in out
    assert "needs the group at decision time" in out


def test_forms_of_titles_come_from_a_file(run, tmp_path):
    write("train.parquet", 300, 1)
    (tmp_path / "titles.toml").write_text('nurse = ["registered nurse", "rn"]')
    flags = (*FLAGS, "--seeds", "1", "--remedy", "augment", "--titles")
    code, _, err = run("compare", "train.parquet", *flags, "titles.toml")
    assert (code, err) == (0, "")
    document = json.loads((tmp_path / "ledger" / "ledger.json").read_text())
    assert document["made"]["arguments"]["titles"] == {"nurse": ["registered nurse", "rn"]}
    code, _, err = run("compare", "train.parquet", *flags, "none.toml")
    assert (code, err) == (2, "evenhand: There is no file 'none.toml'.\n")


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (
            (),
            "0 files were given. Name the training and the test file, such as: "
            "evenhand compare train.parquet test.parquet …",
            2,
        ),
        (("t.parquet", "--remedy", "cda"), "remedy='cda' is not a remedy.", 2),
        (("t.parquet", "--value", "female"), "--value 'female' is not GROUP=VALUE", 2),
        (("t.parquet", "t.parquet"), "test texts stand in the training rows as well", 4),
        (("t.parquet", "u.parquet", "--split", "id"), "split='id' divides one table", 2),
    ],
)
def test_what_is_refused(run, arguments, words, code):
    write("t.parquet", 60, 1)
    write("u.parquet", 60, 2)
    found, _, err = run("compare", *arguments, *FLAGS)
    assert words in err
    assert found == code


def test_a_folder_of_other_things_is_not_written_to(run, tmp_path):
    write("t.parquet", 60, 1)
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "diary.txt").write_text("mine")
    code, _, err = run("compare", "t.parquet", *FLAGS)
    assert code == 2
    assert err == (
        "evenhand: 'ledger' cannot be written: it holds 'diary.txt', which Evenhand did not write. "
        "Choose another place.\n"
    )


def test_columns_in_the_place_of_texts(run, tmp_path):
    import polars as pl

    pl.DataFrame(
        {
            "age": [20.0, 30.0, 40.0, 50.0] * 60,
            "town": ["n", "s", "s"] * 80,
            "repaid": ["no", "no", "yes", "yes"] * 60,
            "gender": ["f", "m", "m"] * 80,
        }
    ).write_parquet("loans.parquet")
    flags = ("--truth", "repaid", "--group", "gender", "--out", "ledger", "--seeds", "1")
    code, out, err = run("compare", "loans.parquet", "--features", "age,town", *flags,
                         "--remedy", "decoupled")  # fmt: skip
    assert (code, err) == (0, "")
    assert "Remedies on columns of the table" in out
    assert (tmp_path / "ledger" / "models" / "decoupled-columns.joblib").is_file()
    code, _, err = run("compare", "loans.parquet", "--features", "age", *flags, "--lexicon", "x")
    assert code == 2
    assert "texts= says how texts are prepared" in err
    code, _, err = run("compare", "loans.parquet", *flags)
    assert code == 2
    assert "Name either the column of texts" in err
