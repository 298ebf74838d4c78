"""`evenhand compare`: what it prints and writes, and what it refuses."""

import json

import pytest

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
                         "--remedy", "augment", "--remedy", "decoupled")  # fmt: skip
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    assert "Remedies on word counts" in out
    assert "decoupled (bow): " in out
    assert "Needs the group at decision time." in " ".join(out.split())
    assert "One training set: no spread over seeds and no intervals." in out
    document = json.loads((tmp_path / "ledger" / "ledger.json").read_text())
    assert [row["remedy"] for row in document["rows"]] == ["baseline", "augment", "decoupled"]
    assert document["data"]["test_rows"] == 300
    assert (tmp_path / "ledger" / "models" / "augment-bow.joblib").is_file()


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
        (("t.parquet", "--value", "female"), "--value 'female' is not VALUE=NAME", 2),
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
        "evenhand: 'ledger' cannot be written: it is a folder of other things. "
        "Choose another folder.\n"
    )
