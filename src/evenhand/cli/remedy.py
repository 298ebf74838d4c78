"""`evenhand remedy`: the training set that a remedy makes, as a table."""

import json
from typing import Any

import click

from evenhand.cli.options import read_values
from evenhand.cli.output import IN, OUT, Guarded, Input, say, write_output
from evenhand.errors import UsageError
from evenhand.files.places import is_screen


@click.command("remedy", cls=Guarded)
@click.argument("remedy", metavar="NAME")
@click.argument("data", nargs=-1, type=Input("the data"))
@click.option("--truth", required=True, metavar="COLUMN", help="The class of each row.")
@click.option("--group", required=True, metavar="COLUMN", help="Who belongs to which group.")
@click.option("--text", metavar="COLUMN", help="The texts, for remedies that copy them.")
@click.option("--out", type=OUT, required=True, metavar="FILE",
              help="CSV, JSON Lines or Parquet, by the ending.")  # fmt: skip
@click.option("--lexicon", type=IN, default="gender_pronouns", show_default=True,
              metavar="NAME|FILE", help="The words that are swapped.")  # fmt: skip
@click.option("--value", "values", multiple=True, metavar="GROUP=VALUE",
              help="What a value of the group column is in the lexicon: F=female.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Seed of what is drawn.")
@click.option("--json", "json_path", type=OUT, metavar="FILE", help="Write what was done.")
def remedy_command(data: tuple[str, ...], **flags: Any) -> int:
    """Write the rows that the remedy NAME trains on, made of those in TRAIN, for any trainer.

    \b
    evenhand remedy augment_undersample train.parquet --text bio --truth title
                    --group gender --out new.parquet

    Adds origin (the row's number in TRAIN, from 0), is_counterfactual and weight. `evenhand
    compare --list` names the remedies; those that act before training are training sets.
    """
    from evenhand.remedies.table import remedy_table

    if not data:
        raise UsageError("Name the training file, such as: evenhand remedy augment train.parquet …")
    json_path = flags.pop("json_path")
    flags["values"] = read_values(flags["values"])
    report = remedy_table(data[0] if len(data) == 1 else list(data), **flags)
    if json_path:
        write_output(json_path, json.dumps(report.to_json(), indent=2, allow_nan=False))
    if not is_screen(json_path):
        say(report)
    return 0
