"""`evenhand score`: the decisions of a model on texts and on their counterfactuals."""

import json
import os
import re
from typing import Any

import click

from evenhand.cli.output import OUT, Guarded, Input, ModelInput, Output, bar, say, write_output
from evenhand.errors import UsageError
from evenhand.files.places import is_screen

# What is scored is kept here until all is written; SQLite adds the last two.
SIDE_ENDINGS = (".partial", ".partial-wal", ".partial-shm", ".partial-journal")


@click.command("score", cls=Guarded)
@click.argument("data", nargs=-1, type=Input("the data"))
@click.option("--text", required=True, metavar="COLUMN", help="The texts.")
@click.option("--model", type=ModelInput(), required=True, metavar="MODEL",
              help="model.joblib, a transformers folder, http://… or module:function.")  # fmt: skip
@click.option("--out", type=Output(beside=SIDE_ENDINGS), required=True, metavar="FILE",
              help="File to write: .parquet, .csv or .jsonl.")  # fmt: skip
@click.option("--truth", metavar="COLUMN", help="What is the case: adds score:truth.")
@click.option("--group", metavar="COLUMN",
              help="Each row's group, for a model that decides by it.")  # fmt: skip
@click.option("--trust", is_flag=True, help="Open a joblib file, which can run any code.")
@click.option("--classes", metavar="A,B,…", help="Names, where the model gives scores alone.")
@click.option("--batch-size", type=int, metavar="N",
              help="Texts at a time [32; 1,024 for joblib and functions].")  # fmt: skip
@click.option("--device", metavar="DEVICE", help="cpu or cuda, for transformers.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for one answer.")
@click.option("--retries", default=4, show_default=True, help="Further tries of a request.")
@click.option("--rate-limit", type=float, metavar="N", help="Requests a second, at most.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VARIABLE",
              help="HTTP header whose value stands in an environment variable: "
              "Authorization=MODEL_TOKEN.")  # fmt: skip
@click.option("--fresh", is_flag=True, help="Do not go on with a run that broke off.")
@click.option("--json", "json_path", type=OUT, metavar="FILE", help="Write what was done.")
def score_command(data: tuple[str, ...], **flags: Any) -> int:
    """Score the texts in DATA, and their counterfactuals, with a model.

    Adds decision and score:<class>, and both with @<value> for each column <text>@<value>. Every
    distinct text is asked once; a run that broke off goes on where it stopped.
    """
    from evenhand.models.table import score_table

    if not data:
        raise UsageError("Name the file to score, such as: evenhand score swapped.parquet …")
    json_path = flags.pop("json_path")
    flags["classes"] = flags["classes"].split(",") if flags["classes"] else None
    flags["headers"] = read_headers(flags["headers"])
    with bar("Scoring") as tell:
        report = score_table(data[0] if len(data) == 1 else list(data), progress=tell, **flags)
    if json_path:
        write_output(json_path, json.dumps(report.to_json(), indent=2, allow_nan=False))
    if not is_screen(json_path):
        say(report)
    return 0


def read_headers(given: tuple[str, ...]) -> dict[str, str]:
    """Headers with their values from the environment, so that no secret stands in a command.

    No message repeats a value.
    """
    found: dict[str, str] = {}
    for text in given:
        name, separator, variable = text.partition("=")
        if not separator or not variable or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise UsageError(
                "--header takes NAME=VARIABLE: a header and the environment variable that holds "
                "its value, such as --header Authorization=MODEL_TOKEN."
            )
        value = os.environ.get(variable)
        if not value:
            raise UsageError(
                f"--header {name}: the environment variable {variable} is not set. Set it to the "
                f"header's whole value, such as export {variable}='Bearer …'."
            )
        if not value.isprintable() or not value.isascii():
            raise UsageError(
                f"--header {name}: the value of {variable} holds a line break or a character that "
                "no header may hold."
            )
        found[name] = value
    return found
