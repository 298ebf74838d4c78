"""`evenhand swap`: the columns it writes, what it says of them, and what it refuses."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evenhand.cli.output import bar
from evenhand.decisions import batches
from evenhand.simulate.biographies import biographies
from evenhand.stats.estimate import Estimate
from evenhand.text.mask import mask_texts, scrub_texts
from evenhand.text.swap import swap
from evenhand.text.table import swap_table
from evenhand.text.validity import swap_validity

TEXTS = {
    "bio": ["She is a nurse and loves her job.", "He met Alice.", None, "It rained.", "", "He ran"],
    "gender": ["female", "male", "female", "male", "female", None],
    "title": ["nurse", "poet", "nurse", "poet", None, "poet"],
    "name": ["Ann Poe", "Alan Poe", None, None, None, "Bo Ek"],
}  # fmt: skip


@pytest.fixture
def bios(tmp_path):
    pl.DataFrame(TEXTS).write_parquet(tmp_path / "bios.parquet")
    return "bios.parquet"


def test_each_value_gets_a_column_and_the_own_value_keeps_the_text(run, tmp_path):
    frame = biographies(300, seed=3).frame
    frame.write_parquet("bios.parquet")
    flags = ["--text", "text", "--group", "gender", "--out", "swapped.parquet", "--no-probe"]
    code, out, err = run("swap", "bios.parquet", *flags, "--json", "report.json")
    assert (code, err) == (0, "")
    made = pl.read_parquet("swapped.parquet")
    assert made.columns == [*frame.columns, "text@female", "text@male"]
    assert made.select(frame.columns).equals(frame)
    for row in made.iter_rows(named=True):
        own, other = row["gender"], "male" if row["gender"] == "female" else "female"
        assert row[f"text@{own}"] == row["text"]
        assert row[f"text@{other}"] == swap(row["text"], to=other, source=own).text
    report = json.loads(Path("report.json").read_text())
    assert report["schema"] == "evenhand.swap/1"
    assert report["rows"] == 300
    men = int((frame["gender"] == "male").sum())
    assert report["validity"][0]["to"] == "female"
    assert report["validity"][0]["changed"]["value"] == pytest.approx(men / 300)
    assert f"texts changed                               {men / 300:.3f}" in out
    assert "Wrote swapped.parquet with text@female, text@male." in out


@pytest.mark.parametrize("ending", ["csv", "jsonl", "ndjson", "pq"])
def test_the_ending_says_what_is_written(run, monkeypatch, ending):
    monkeypatch.setattr(batches, "MOST_ROWS", 16)
    frame = biographies(50, seed=3).frame.with_columns(
        note=pl.when(pl.col("id") % 3 == 0).then(None).otherwise(pl.lit('He said "no",\ntwice.'))
    )
    frame.write_parquet("bios.parquet")
    flags = ["--text", "text", "--group", "gender", "--no-probe", "--out"]
    for name in ("whole.parquet", f"swapped.{ending}"):
        assert run("swap", "bios.parquet", *flags, name)[0] == 0
    readers = {"csv": pl.read_csv, "pq": pl.read_parquet}
    made = readers.get(ending, pl.read_ndjson)(f"swapped.{ending}")
    whole = pl.read_parquet("whole.parquet")
    assert made.columns == whole.columns
    assert made.cast(dict(whole.schema)).equals(whole)
    # What is written can be read again by the next command.
    code, out, _ = run("audit", f"swapped.{ending}", "--decision", "title", "--group", "gender")
    assert code == 0
    assert "50 rows." in out


@pytest.mark.parametrize(
    ("low", "words"),
    [
        (0.7, "A classifier tells swapped texts from originals better than by chance (AUC 0.5)"),
        (0.4, "A classifier does not tell swapped texts from originals better than by chance"),
        (None, None),
    ],
)
def test_what_telling_swaps_apart_means_is_said(tmp_path, low, words):
    out = tmp_path / "o.parquet"
    report = swap_table({"bio": ["He ran."]}, text="bio", out=out, probe=False)
    leak = Estimate(value=0.75, low=low, high=0.8 if low else None, level=0.95, n=100)
    told = str(replace(report, validity=tuple(replace(v, leak=leak) for v in report.validity)))
    assert ("A classifier" in told) is (words is not None)
    assert words is None or words in told


def test_the_report_is_that_of_the_texts_taken_together(tmp_path, monkeypatch):
    # Counts are merged over batches of 7 rows; every text is in the sample.
    monkeypatch.setattr(batches, "MOST_ROWS", 7)
    frame = biographies(60, seed=4).frame.with_columns(
        pl.when(pl.col("id") % 9 == 0).then(pl.lit("It's Ms. Poe's; he saw her.")).otherwise("text")
        .alias("text")
    )  # fmt: skip
    report = swap_table(frame, text="text", group="gender", out=tmp_path / "o.parquet", probe=False)
    texts, own = frame["text"].to_list(), frame["gender"].to_list()
    for found in report.validity:
        whole = swap_validity(texts, to=found.to, sources=own, probe=False)
        assert found.to_json() == whole.to_json()
    assert pl.read_parquet(tmp_path / "o.parquet")["id"].to_list() == list(range(60))


def test_without_a_group_the_words_of_each_text_decide(run, bios):
    code, out, _ = run("swap", bios, "--text", "bio", "--out", "swapped.parquet")
    assert code == 0
    made = pl.read_parquet("swapped.parquet")
    assert made["bio@male"].to_list() == [
        "He is a nurse and loves his job.", "He met Alice.", None, "It rained.", "", "He ran",
    ]  # fmt: skip
    assert made["bio@female"].to_list() == [
        TEXTS["bio"][0], "She met Alice.", None, "It rained.", "", "She ran",
    ]  # fmt: skip
    assert "6 rows of bios.parquet, 1 without a text; lexicon gender_pronouns." in out
    assert "undefined: the swap changes only" in out


def test_a_group_with_other_names_is_mapped_and_unknown_values_are_said(run, tmp_path):
    table = {"bio": ["He ran.", "She ran.", "She sat."], "sex": ["M", "F", "X"]}
    pl.DataFrame(table).write_csv("bios.csv")
    flags = ["--text", "bio", "--group", "sex", "--value", "F=female", "--value", "M=male"]
    code, out, _ = run("swap", "bios.csv", *flags, "--out", "swapped.parquet")
    assert code == 0
    made = pl.read_parquet("swapped.parquet")
    assert made["bio@F"].to_list() == ["She ran.", "She ran.", "She sat."]
    assert made["bio@M"].to_list() == ["He ran.", "He ran.", "He sat."]
    assert "1 row has another value of sex ('X')" in out


def test_titles_are_masked_in_every_text_and_scrubbing_adds_a_column(run, bios):
    flags = ["--text", "bio", "--out", "swapped.parquet", "--mask-titles", "title", "--scrub"]
    code, out, _ = run("swap", bios, *flags, "--name", "name")
    assert code == 0
    made = pl.read_parquet("swapped.parquet")
    masked = mask_texts(TEXTS["bio"], titles=TEXTS["title"]).texts
    assert made["bio"].to_list() == masked
    assert made["bio@male"][0] == "He is a _ and loves his job."
    assert made["bio:scrubbed"].to_list() == scrub_texts(masked, names=TEXTS["name"]).texts
    assert "  masked                                      0.200" in out
    assert "  scrubbed                                    0.600" in out
    assert "Wrote swapped.parquet with bio@female, bio@male, bio:scrubbed." in out


def test_forms_of_titles_come_from_a_file(run, bios):
    Path("titles.toml").write_text('nurse = ["job"]\n')
    flags = ["--text", "bio", "--mask-titles", "title", "--titles", "titles.toml"]
    assert run("swap", bios, *flags, "--out", "swapped.parquet")[0] == 0
    assert pl.read_parquet("swapped.parquet")["bio"][0] == "She is a _ and loves her _."


def test_names_are_swapped_from_a_table(run, bios):
    pl.DataFrame({"female": ["Alice"], "male": ["Alan"]}).write_csv("names.csv")
    flags = ["--text", "bio", "--names", "names.csv", "--group", "gender"]
    assert run("swap", bios, *flags, "--out", "swapped.parquet")[0] == 0
    assert pl.read_parquet("swapped.parquet")["bio@female"][1] == "She met Alan."
    pl.DataFrame({"name": ["Alice"], "replacement": ["Olu"]}).write_csv("names.csv")
    assert run("swap", bios, *flags, "--out", "swapped.parquet")[0] == 0
    assert pl.read_parquet("swapped.parquet")["bio@female"][1] == "She met Olu."


def test_the_placebo_swaps_neutral_words_only(run):
    pl.DataFrame({"bio": ["He often ran.", "She frequently sat."]}).write_csv("bios.csv")
    code, out, _ = run("swap", "bios.csv", "--text", "bio", "--placebo", "--out", "p.parquet")
    assert code == 0
    made = pl.read_parquet("p.parquet")
    assert made["bio@plain"].to_list() == ["He often ran.", "She often sat."]
    assert made["bio@other"].to_list() == ["He frequently ran.", "She frequently sat."]
    assert "lexicon neutral_synonyms" in out


def test_three_values_give_three_columns_and_unresolved_words_are_listed(run, tmp_path):
    pl.DataFrame({"bio": ["She writes and teaches.", "He is at home."]}).write_csv("bios.csv")
    flags = ["--text", "bio", "--lexicon", "gender_they", "--out", "s.parquet", "--json", "r.json"]
    code, out, _ = run("swap", "bios.csv", *flags)
    assert code == 0
    made = pl.read_parquet("s.parquet")
    assert made.columns == ["bio", "bio@female", "bio@male", "bio@neutral"]
    assert made["bio@neutral"][1] == "They are at home."
    assert "Unresolved words: teaches (1); rows 0." in out
    listed = json.loads(Path("r.json").read_text())["unresolved_rows"]
    assert listed == [{"row": 0, "to": "neutral", "words": ["teaches"]}]


@pytest.mark.parametrize("name", ["bios.csv", "bios.jsonl", "bios.arrow", "bios.csv.gz"])
def test_every_format_reads_alike(run, name):
    frame = pl.DataFrame({"bio": [f"He ran {k} times." for k in range(50)]})
    if name.endswith(".gz"):
        import gzip

        Path(name).write_bytes(gzip.compress(frame.write_csv().encode()))
    else:
        writers = {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "arrow": frame.write_ipc}
        writers[name.split(".")[1]](name)
    assert run("swap", name, "--text", "bio", "--out", "out.parquet", "--no-probe")[0] == 0
    made = pl.read_parquet("out.parquet")["bio@female"].to_list()
    assert made == [f"She ran {k} times." for k in range(50)]


def test_a_text_of_a_megabyte_is_swapped_like_any_other(run):
    pl.DataFrame({"bio": ["He ran. " * 125_000, "He sat."]}).write_parquet("bios.parquet")
    code, _, _ = run("swap", "bios.parquet", "--text", "bio", "--out", "out.parquet")
    assert code == 0
    assert pl.read_parquet("out.parquet")["bio@female"][0] == "She ran. " * 125_000


def test_whatever_goes_wrong_the_old_file_stays_and_nothing_is_left_behind(
    tmp_path, monkeypatch, bios
):
    out = tmp_path / "out.parquet"
    out.write_bytes(b"old")
    monkeypatch.setattr(batches, "MOST_ROWS", 2)
    taken = 0

    def fail(self, texts, sources):
        nonlocal taken
        taken += 1
        if taken == 2:
            raise RuntimeError("power cut")

    monkeypatch.setattr("evenhand.text.table._Sample.add", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        swap_table(tmp_path / bios, text="bio", out=out)
    assert out.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bios.parquet", "out.parquet"]


SWAP = ["--text", "bio", "--out", "out.parquet"]
MISTAKES = [
    (["swap", *SWAP], 2, "Name the file to swap, such as: evenhand swap bios.parquet …"),
    (
        ["swap", "nosuch.parquet", *SWAP],
        4,
        "There is no file 'nosuch.parquet'. Did you mean 'bios.parquet'?",
    ),
    (
        ["swap", "BIOS", "--text", "boi", "--out", "out.parquet"],
        2,
        "text='boi' is not a column of the table. Did you mean 'bio'?",
    ),
    (
        ["swap", "BIOS", "--text", "empty", "--out", "out.parquet"],
        4,
        "text='empty' is null in all 2 rows. Name the column that holds the texts.",
    ),
    (
        ["swap", "BIOS", "--text", "bytes", "--out", "out.parquet"],
        4,
        "text='bytes' holds Binary, not texts. Convert the column to text first.",
    ),
    (
        ["swap", "BIOS", "--text", "done", "--out", "out.parquet"],
        2,
        "The table has 'done@female', so it was swapped already. Swap the original table: a "
        "swapped text does not lead back (mrs, mr, ms).",
    ),
    (
        ["swap", "BIOS", "--text", "done@female", "--out", "out.parquet"],
        2,
        "text='done@female' is swapped already. Swap the original table: a swapped text does not "
        "lead back (mrs, mr, ms).",
    ),
    (
        ["swap", "BIOS", *SWAP, "--group", "sex"],
        4,
        "group='sex' holds 'F', 'M'; the lexicon knows female, male. Say which is which, such as "
        "--value F=female, or leave out the group: the words of each text then decide.",
    ),
    (
        ["swap", "BIOS", *SWAP, "--value", "female"],
        2,
        "--value 'female' is not GROUP=VALUE, such as --value F=female.",
    ),
    (
        ["swap", "BIOS", *SWAP, "--value", "F=femal"],
        2,
        "values='femal' is not a value of the lexicon 'gender_pronouns', which knows female, male. "
        "Did you mean 'female'?",
    ),
    (
        ["swap", "BIOS", *SWAP, "--value", "female=F"],
        2,
        "values={'female': 'F'} is the wrong way round. Write the group's own value first: "
        "values={'F': 'female'} (--value F=female).",
    ),
    (
        ["swap", "BIOS", *SWAP, "--value", "F=female", "--value", "W=female"],
        2,
        "values={'F': 'female', 'W': 'female'} gives two groups one value of the lexicon "
        "'gender_pronouns'. Give each group a value of its own.",
    ),
    (
        ["swap", "BIOS", *SWAP, "--lexicon", "gender_word"],
        2,
        "lexicon='gender_word' is neither a file nor a shipped lexicon (gender_pronouns, "
        "gender_they, gender_words, neutral_synonyms, religion). Did you mean 'gender_words'?",
    ),
    (
        ["swap", "BIOS", *SWAP, "--name", "sex"],
        2,
        "name='sex' is only used when scrubbing. Ask for it with scrub=True (--scrub).",
    ),
    (
        ["swap", "BIOS", *SWAP, "--mask-titles", "titel"],
        2,
        "mask_titles='titel' is not a column of the table. The columns are bio, empty, bytes, "
        "done, done@female, sex.",
    ),
    (
        ["swap", "BIOS", *SWAP, "--titles", "titles.toml"],
        2,
        "--titles 'titles.toml' says how titles are written. Name their column with --mask-titles.",
    ),
    (
        ["swap", "BIOS", *SWAP, "--names", "BIOS"],
        2,
        "names='bios.parquet' has the columns bio, empty, bytes, done, done@female, sex. Give a "
        "column of names for each of female, male, or the columns name and replacement.",
    ),
    (
        ["swap", "BIOS", *SWAP, "--placebo", "--value", "F=female"],
        2,
        "--placebo swaps neutral words only. Leave out --names and --value.",
    ),
    (
        ["swap", "BIOS", "--text", "bio", "--out", "out.csv"],
        2,
        "'out.csv' cannot hold the column 'bytes' of Binary, which is no single value. Name the "
        "output such as out.parquet.",
    ),
    (
        ["swap", "BIOS", "--text", "bio", "--out", "out.tsv"],
        2,
        "'out.tsv' does not say by its ending what to write. Name the output such as out.parquet, "
        "out.csv or out.jsonl.",
    ),
    (
        ["swap", "BIOS", "--text", "bio", "--out", "nowhere/out.parquet"],
        2,
        "'nowhere/out.parquet' cannot be written: there is no folder 'nowhere'. "
        "Choose another place.",
    ),
]


@pytest.mark.parametrize(
    ("typed", "code", "told"), MISTAKES, ids=[" ".join(m[0][2:])[:50] for m in MISTAKES]
)
def test_mistakes_get_one_sentence_and_their_exit_code(run, typed, code, told):
    table = {
        "bio": ["He ran.", "She sat."],
        "empty": pl.Series([None, None], dtype=pl.String),
        "bytes": [b"\xff\x00", b"\xfe"],
        "done": ["He", "She"],
        "done@female": ["She", "She"],
        "sex": ["M", "F"],
    }
    pl.DataFrame(table).write_parquet("bios.parquet")
    found, out, err = run(*("bios.parquet" if part == "BIOS" else part for part in typed))
    assert (found, out, err) == (code, "", f"evenhand: {told}\n")
    assert not Path("out.parquet").exists()


def test_binary_garbage_and_broken_text_are_refused(run):
    Path("bios.parquet").write_bytes(os.urandom(2_000))
    code, _, err = run("swap", "bios.parquet", *SWAP)
    assert code == 4
    assert "'bios.parquet' cannot be read as Parquet" in err
    Path("bios.csv").write_bytes(b"bio\n\xff\xfe\xfa broken\n")
    code, _, err = run("swap", "bios.csv", *SWAP)
    assert code == 4
    assert err.count("\n") == 1
    assert "Save it as UTF-8 and try again." in err
    Path("bios.csv").write_text("bio\n")
    assert run("swap", "bios.csv", *SWAP) == (4, "", "evenhand: 'bios.csv' has no rows.\n")


def test_the_leak_probe_is_left_out_where_scikit_learn_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    frame = biographies(300, seed=5).frame
    report = swap_table(frame, text="text", group="gender", out=tmp_path / "o.parquet")
    assert report.validity[0].leak.undefined == (
        "The leak probe needs the extra 'text', which is not installed. "
        "Run: pip install 'evenhand[text]'"
    )


def test_the_bar_shows_on_a_terminal_only(monkeypatch, capsys):
    with bar("Swapping") as tell:
        assert tell is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with bar("Swapping") as tell:
        assert tell is not None
        tell(3, 10)
    assert "Swapping" in capsys.readouterr().err


def peak_megabytes(*arguments: str) -> float:
    """Peak memory of one command in a process of its own."""
    code = (
        "import resource, sys\n"
        "from evenhand.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


@pytest.mark.heavy
def test_memory_stays_the_same_over_400_000_rows(tmp_path):
    part = biographies(100_000, seed=6).frame
    peaks = {}
    for copies in (1, 4):
        path = tmp_path / f"bios{copies}.parquet"
        pl.concat([part] * copies).write_parquet(path, row_group_size=50_000)
        flags = ["--text", "text", "--group", "gender", "--no-probe"]
        peaks[copies] = peak_megabytes("swap", str(path), *flags, "--out", f"{path}.out.parquet")
    print(f"peak memory {peaks[1]:.0f} MB at 100,000 rows, {peaks[4]:.0f} MB at 400,000")
    # The texts of 300,000 rows more are 130 MB, and the three columns written three times that.
    assert peaks[4] < peaks[1] + 60


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--level", "2"], "level=2.0 is not a confidence level. Choose one such as 0.95."),
        (["--seed", "-1"], "seed=-1 is not a seed. Give 0 or a larger whole number."),
    ],
)
def test_numbers_that_are_none(run, bios, flags, words):
    swap = ["swap", bios, "--text", "bio", "--out", "swapped.parquet"]
    assert run(*swap, *flags) == (2, "", f"evenhand: {words}\n")
    assert not Path("swapped.parquet").exists()
