"""`evenhand score`: the decisions of a model on texts and on their counterfactuals."""

import json
import os
import re
from pathlib import Path
from typing import Any

import click

from evenhand.cli.bar import bar
from evenhand.errors import UsageError

SMALL, LARGE = 32, 1_024


@click.command("score")
@click.argument("data", nargs=-1)
@click.option("--text", required=True, metavar="COLUMN", help="The texts.")
@click.option("--model", required=True, metavar="MODEL",
              help="model.joblib, a transformers folder, http://… or module:function.")  # fmt: skip
@click.option("--out", required=True, metavar="FILE", help="Parquet file to write.")
@click.option("--truth", metavar="COLUMN", help="What is the case: adds score:truth.")
@click.option("--trust", is_flag=True, help="Open a joblib file, which can run any code.")
@click.option("--classes", metavar="A,B,…", help="Names, where the model gives scores alone.")
@click.option("--batch-size", type=int, metavar="N",
              help=f"Texts at a time [{SMALL}; {LARGE:,} for joblib and functions].")  # fmt: skip
@click.option("--device", metavar="DEVICE", help="cpu or cuda, for transformers.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for one answer.")
@click.option("--retries", default=4, show_default=True, help="Further tries of a request.")
@click.option("--rate-limit", type=float, metavar="N", help="Requests a second, at most.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VARIABLE",
              help="HTTP header whose value stands in an environment variable: "
              "Authorization=MODEL_TOKEN.")  # fmt: skip
@click.option("--fresh", is_flag=True, help="Do not go on with a run that broke off.")
@click.option("--json", "json_path", metavar="FILE", help="Write what was done.")
def score_command(data: tuple[str, ...], **flags: Any) -> int:
    """Score the texts in DATA, and their counterfactuals, with a model.

    Adds decision and score:<class>, and both with @<value> for each column <text>@<value>. Every
    distinct text is asked once; a run that broke off goes on where it stopped.
    """
    from evenhand.decisions.batches import check_writable
    from evenhand.findings.record import write_text
    from evenhand.models.kept_scores import model_identity
    from evenhand.models.predictor import load_predictor
    from evenhand.models.score_table import score_table

    if not data:
        raise UsageError("Name the file to score, such as: evenhand score swapped.parquet …")
    if flags["json_path"]:
        check_writable(flags["json_path"])
    model = flags["model"]
    far = bool(re.match(r"https?://", model)) or Path(model).is_dir()
    size = flags["batch_size"] if flags["batch_size"] is not None else SMALL if far else LARGE
    predictor = load_predictor(
        model,
        trust=flags["trust"],
        classes=flags["classes"].split(",") if flags["classes"] else (),
        batch_size=size,
        device=flags["device"],
        timeout=flags["timeout"],
        retries=flags["retries"],
        rate=flags["rate_limit"],
        headers=read_headers(flags["headers"]),
    )
    with bar("Scoring") as tell:
        report = score_table(
            data[0] if len(data) == 1 else list(data),
            text=flags["text"],
            model=predictor,
            identity=model_identity(model),
            out=flags["out"],
            truth=flags["truth"],
            batch_size=size,
            fresh=flags["fresh"],
            progress=tell,
        )
    if flags["json_path"]:
        write_text(flags["json_path"], json.dumps(report.to_json(), indent=2, allow_nan=False))
    click.echo(str(report))
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
