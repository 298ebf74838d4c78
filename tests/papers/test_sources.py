"""Where the papers' texts come from: simulated, public corpora, or a plain file."""

import polars as pl
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.papers.sources import holds_comments, read_source, simulated_comments


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


def civil_comments(folder, *, shared=0):
    """The three files of Civil Comments, some test texts of which stand in train.csv too."""
    for name, n in (("train", 60), ("test_public_expanded", 20), ("test_private_expanded", 20)):
        pl.DataFrame(
            {
                "id": range(n),
                "comment_text": [
                    f"comment {k} of {'train' if k < shared else name}" for k in range(n)
                ],
                "target": [0.9 if k % 3 == 0 else 0.1 for k in range(n)],
                "female": [(1.0, 0.1, 0.7)[k % 3] if k % 2 else 0.0 for k in range(n)],
                "male": [0.0 if k % 2 else (0.9, 0.8, 0.6)[k % 3] for k in range(n)],
            }
        ).write_csv(folder / f"{name}.csv")


def test_comments_bring_the_agreement_of_their_annotators(tmp_path):
    civil_comments(tmp_path)
    found = read_source([tmp_path], kind="comments", keep_first=True, seed=0)
    assert found.own
    assert {round(each, 3) for each in found.agreement.values()} == {0.6, 0.7, 0.8, 0.9, 1.0}
    assert set(found.rows.people.texts) == set(found.agreement)


def test_texts_on_both_sides_of_a_public_split_are_not_trained_on(tmp_path):
    civil_comments(tmp_path, shared=4)
    found = read_source([tmp_path], kind="comments", keep_first=True, seed=0)
    texts = found.rows.people.texts
    train, test = ([texts[k] for k in rows] for rows in (found.rows.train, found.rows.test))
    assert not set(train) & set(test)
    assert "3 training rows left out: the same text is among the test rows." in found.rows.notes


def test_a_file_that_is_not_there():
    with pytest.raises(DataError, match=r"^'gone\.csv' does not exist\.$"):
        read_source(["gone.csv"], kind="biographies", keep_first=False, seed=0)


def test_simulated_comments_have_annotators():
    found = simulated_comments(quick=True, seed=0)
    assert min(found.agreement.values()) > 0.5
    # Nobody's gender is what most annotators do not see: few comments are on the other side.
    assert 3000 < len(found.rows.people) < 4000
    assert found.rows.classes == ("civil", "toxic")
