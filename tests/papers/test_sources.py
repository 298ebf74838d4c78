"""Where the papers' texts come from: simulated, public corpora, or a plain file."""

import polars as pl
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.papers.sources import holds_comments, read_source


def table(n: int = 12) -> pl.DataFrame:
    rows = [
        (f"{who} writes text {title} {k}", title, who)
        for title in ("poet", "nurse")
        for who in ("female", "male")
        for k in range(n)
    ]
    rows += [(f"a rare {k}", "clown", "male") for k in range(3)]
    return pl.DataFrame(rows, schema=["text", "occupation", "gender"], orient="row")


def test_a_plain_file_leaves_small_occupations_out(tmp_path):
    table().write_csv(tmp_path / "bios.csv")
    found = read_source([tmp_path / "bios.csv"], kind="biographies", keep_first=False, seed=0)
    assert found.rows.classes == ("nurse", "poet")
    assert not found.own
    assert "48 biographies of 2 occupations" in found.words
    assert "3 of smaller ones are left out" in found.words


def test_a_file_without_occupations(tmp_path):
    table().drop("occupation").write_csv(tmp_path / "bios.csv")
    with pytest.raises(DataError, match="lacks truth or title or occupation or profession"):
        read_source([tmp_path / "bios.csv"], kind="biographies", keep_first=False, seed=0)
    with pytest.raises(UsageError, match="holds comments"):
        read_source([tmp_path / "bios.csv"], kind="comments", keep_first=False, seed=0)


def test_biasbios_with_and_without_its_first_sentence(tmp_path):
    import pickle

    rows = [
        {"raw": f"Ann is a poet. She wrote {k} books.", "start_pos": 14, "title": "poet",
         "gender": "F" if k % 2 else "M", "name": ("Ann", "", "Poe")}
        for k in range(40)
    ]  # fmt: skip
    rows += [row | {"title": "nurse", "raw": row["raw"] + " Still."} for row in rows]
    (tmp_path / "bios.pkl").write_bytes(pickle.dumps(rows))
    kept = read_source([tmp_path / "bios.pkl"], kind="biographies", keep_first=True, seed=0)
    cut = read_source([tmp_path / "bios.pkl"], kind="biographies", keep_first=False, seed=0)
    assert kept.own
    assert all(text.startswith("Ann is a poet.") for text in kept.rows.people.texts)
    assert all(text.startswith("She wrote") for text in cut.rows.people.texts)


def test_comments_are_known_by_their_files(tmp_path):
    assert not holds_comments(tmp_path)
    (tmp_path / "train.csv").write_text("id\n")
    assert holds_comments(tmp_path)
