"""`evenhand remedy`: the training set of a remedy, written by the ending."""

import json

import polars as pl


def test_a_training_set_for_another_trainer(run, tmp_path):
    table = {"bio": ["She ran.", "He ran.", "He sat."], "job": ["a"] * 3, "sex": ["F", "M", "M"]}
    pl.DataFrame(table).write_csv("train.csv")
    flags = ("--text", "bio", "--truth", "job", "--group", "sex", "--value", "F=female",
             "--value", "M=male")  # fmt: skip
    code, out, err = run("remedy", "augment_undersample", "train.csv", *flags,
                         "--out", "new.jsonl", "--json", "done.json")  # fmt: skip
    assert (code, err) == (0, "")
    assert out == (
        "augment_undersample: 4 rows made of 3 in train.csv, 2 of them counterfactual copies.\n"
        "Total weight by group: F 2.0, M 2.0.\nWrote new.jsonl.\n"
    )
    found = pl.read_ndjson("new.jsonl")
    assert found.columns == ["bio", "job", "sex", "origin", "is_counterfactual", "weight"]
    assert json.loads((tmp_path / "done.json").read_text())["copies"] == 2
    code, _, err = run("remedy", "augment", "train.csv", *flags, "--out", "train.csv")
    assert code == 2
    assert "train.csv" in err
    code, _, err = run("remedy", "augment", *flags, "--out", "x.csv")
    assert (code, err) == (
        2,
        "evenhand: Name the training file, such as: evenhand remedy augment train.parquet …\n",
    )
