"""Training sets for other trainers: what a remedy writes is what the ledger trains on."""

import json

import polars as pl
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.remedies.ledger.registry import REMEDIES
from evenhand.remedies.table import ADDED, remedy_table

# Class a: one woman, three men; class b: two women, one man. A row without a class, one without
# a group.
ROWS = {
    "bio": ["She ran.", "He ran.", "He sat.", "His cat.", "She sang.", "Her cat.", "He won.", "x",
            "She."],
    "job": ["a", "a", "a", "a", "b", "b", "b", None, "b"],
    "sex": ["F", "M", "M", "M", "F", "F", "M", "M", None],
    "age": [1, 2, 3, 4, 5, 6, 7, 8, 9],
}  # fmt: skip
ROLES = {"truth": "job", "group": "sex", "text": "bio", "values": {"F": "female", "M": "male"}}
SETS = [name for name, each in REMEDIES.items() if each.recipe is not None]


def made(tmp_path, remedy: str, **more) -> pl.DataFrame:
    out = tmp_path / "train.parquet"
    remedy_table(pl.DataFrame(ROWS), remedy=remedy, out=out, **ROLES | more)
    return pl.read_parquet(out)


@pytest.mark.parametrize("remedy", SETS)
def test_every_row_leads_back_to_its_original(tmp_path, remedy):
    found = made(tmp_path, remedy)
    assert found.columns == [*ROWS, *ADDED]
    original = pl.DataFrame(ROWS)[found["origin"].to_numpy()]
    for column in ("job", "age"):
        assert found[column].to_list() == original[column].to_list()
    own = ~found["is_counterfactual"]
    assert found.filter(own)["bio"].to_list() == original.filter(own)["bio"].to_list()
    assert found.filter(own)["sex"].to_list() == original.filter(own)["sex"].to_list()
    assert (found.filter(~own)["sex"] != original.filter(~own)["sex"]).all()
    assert found["origin"].max() <= 6  # rows without a class or a group are left out
    copied = REMEDIES[remedy].recipe.get("order") != "plain"
    assert found["is_counterfactual"].any() == copied


def test_counts_of_all_compositions_of_both_orders(tmp_path):
    """Cells a: 1 F, 3 M; b: 2 F, 1 M. Over: 3+3+2+2 = 10, doubled 20; under: 1+1+1+1 = 4, so 8.

    Copied first, originals and copies are drawn apart: copies have a: 3 F, 1 M; b: 1 F, 2 M.
    """
    sizes = {name: len(made(tmp_path, name)) for name in SETS}
    assert sizes["oversample_augment"] == sizes["augment_oversample"] == 20
    assert sizes["undersample_augment"] == sizes["augment_undersample"] == 8
    assert (sizes["oversample"], sizes["undersample"], sizes["augment"]) == (10, 4, 14)
    found = made(tmp_path, "augment_undersample")
    cells = found.group_by("job", "sex", "is_counterfactual").len()
    assert cells["len"].to_list() == [1] * 8
    # Drawn apart, so pairs may break; copied last, every row has its pair.
    pairs = made(tmp_path, "undersample_augment").group_by("origin").len()
    assert set(pairs["len"]) == {2}


def test_weights_are_those_of_the_paper(tmp_path):
    """Kamiran–Calders: n_y·n_g/(n·n_yg) with n = 7; a woman in a: 4·3/(7·1), a man 4·4/(7·3)."""
    found = made(tmp_path, "reweigh_augment")
    for sex, weight in (("F", 12 / 7), ("M", 16 / 21)):
        own = found.filter(pl.col("job") == "a", pl.col("sex") == sex, ~pl.col("is_counterfactual"))
        assert own["weight"].to_list() == pytest.approx([weight] * len(own))
    by_origin = found.group_by("origin").agg(pl.col("weight").n_unique())
    assert set(by_origin["weight"]) == {1}
    one = made(tmp_path, "reweigh_augment_one")
    assert set(one.filter("is_counterfactual")["weight"]) == {1.0}


def test_the_ending_says_what_is_written_and_the_seed_what_is_drawn(tmp_path):
    frames = []
    for ending, read in (("csv", pl.read_csv), ("jsonl", pl.read_ndjson), ("pq", pl.read_parquet)):
        out = tmp_path / f"train.{ending}"
        report = remedy_table(ROWS, remedy="augment_oversample", out=out, seed=4, **ROLES)
        frames.append(read(out))
    assert frames[0].equals(frames[1])
    assert frames[1].equals(frames[2].with_columns(pl.col("origin").cast(pl.Int64)))
    assert (report.rows, report.made, report.left_out) == (7, 20, {"no job": 1, "no sex": 1})
    assert sum(report.weights.values()) == 20
    assert json.loads(json.dumps(report.to_json()))["schema"] == "evenhand.remedy/1"
    drawn = [made(tmp_path, "undersample", seed=seed)["origin"].to_list() for seed in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1]
    assert len({tuple(each) for each in drawn}) > 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"remedy": "thresholds"}, "remedy='thresholds' acts after training and is no training"),
        ({"remedy": "augmnt"}, "remedy='augmnt' is not a remedy. Did you mean 'augment'?"),
        ({"text": None}, "remedy='augment' rewrites texts. Name the column that holds them"),
        ({"truth": "jb"}, "truth='jb' is not a column of the table. Did you mean 'job'?"),
        ({"out": "train.xls"}, "does not say by its ending what to write. Name the output such"),
    ],
)
def test_what_is_refused(tmp_path, changed, words):
    given = {"remedy": "augment", "out": "train.parquet"} | ROLES | changed
    with pytest.raises(UsageError) as told:
        remedy_table(ROWS, **given | {"out": tmp_path / given["out"]})
    assert words in str(told.value)


def test_tables_that_cannot_be_used(tmp_path):
    given = {"remedy": "oversample", "out": tmp_path / "t.csv"} | ROLES
    with pytest.raises(UsageError, match=r"^The table has a column 'weight' already, which a"):
        remedy_table({**ROWS, "weight": [1.0] * 9}, **given)
    with pytest.raises(DataError, match=r"has no row with a text, a truth and a group\.$"):
        remedy_table({**ROWS, "job": [None] * 9}, **given)


@pytest.mark.parametrize("remedy", ["undersample", "alpha_weights"])
def test_a_rare_group_that_takes_away_the_rows_of_all_others_is_named(tmp_path, remedy):
    """Ten nurses and ten pilots of either gender, and one nonbinary nurse and pilot."""
    groups = ["female"] * 10 + ["male"] * 10 + ["nonbinary"]
    rows = {
        "text": [f"She or he wrote {k}." for k in range(42)],
        "title": ["nurse"] * 21 + ["pilot"] * 21,
        "gender": groups * 2,
    }
    names = {"text": "text", "truth": "title", "group": "gender"}
    report = remedy_table(rows, remedy=remedy, **names, out=tmp_path / "out.csv")
    told = (
        "Each class is brought down to its smallest group: 6 of 42 rows' worth is left, and 40 "
        "would be without nonbinary (2 rows)."
    )
    assert told in report.notes
