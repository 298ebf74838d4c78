"""`evenhand swap`: counterfactual texts beside the texts, and how far they can be trusted."""

import json
from typing import Any

import click

from evenhand.cli.options import read_values
from evenhand.cli.output import IN, OUT, Guarded, Input, bar, say, write_output
from evenhand.errors import UsageError
from evenhand.files.places import is_screen


@click.command("swap", cls=Guarded)
@click.argument("data", nargs=-1, type=Input("the data"))
@click.option("--text", required=True, metavar="COLUMN", help="The texts.")
@click.option(
    "--out",
    type=OUT,
    required=True,
    metavar="FILE",
    help="File to write: .parquet, .csv or .jsonl.",
)
@click.option("--group", metavar="COLUMN", help="Each row's own value; else its words decide.")
@click.option("--lexicon", type=IN, default="gender_pronouns", show_default=True,
              metavar="NAME|FILE",
              help="A shipped lexicon (gender_words, gender_they …) or a TOML file.")  # fmt: skip
@click.option("--value", "values", multiple=True, metavar="GROUP=VALUE",
              help="What a value of the group column is in the lexicon: F=female.")  # fmt: skip
@click.option("--names", type=IN, metavar="FILE",
              help="Names to swap too: a table with a column per value, paired by row, or with "
              "columns name and replacement.")  # fmt: skip
@click.option("--tagger", metavar="spacy:MODEL",
              help="Tell his from him by a spaCy model, such as spacy:en_core_web_sm.")  # fmt: skip
@click.option(
    "--mask-titles", metavar="COLUMN", help="Mask the titles in this column by '_' first."
)
@click.option("--titles", type=IN, metavar="FILE", help="TOML file with the forms of each title.")
@click.option("--mask-scope", type=click.Choice(["all", "own"]), default="all", show_default=True,
              help="Mask all titles, or the row's own, which leaks it.")  # fmt: skip
@click.option("--scrub", is_flag=True, help="Add the text without pronouns, titles and names.")
@click.option("--name", metavar="COLUMN", help="The person's name, for --scrub.")
@click.option("--placebo", is_flag=True,
              help="Swap neutral synonyms instead: the baseline without effect.")  # fmt: skip
@click.option("--probe/--no-probe", default=True, show_default=True,
              help="Train a classifier to tell swapped from original texts.")  # fmt: skip
@click.option("--json", "json_path", type=OUT, metavar="FILE", help="Write the validity report.")
@click.option("--level", default=0.95, show_default=True, help="Confidence level.")
@click.option("--seed", default=0, show_default=True)
def swap_command(data: tuple[str, ...], **flags: Any) -> int:
    """Rewrite the texts in DATA under each value of an attribute.

    Adds the column <text>@<value> for each value of the lexicon. Without --group the words of
    each text decide what it is rewritten from, and a text without such a word stays as it is.
    """
    from evenhand.text.table import swap_table

    if not data:
        raise UsageError("Name the file to swap, such as: evenhand swap bios.parquet …")
    changes: dict[str, Any] = {
        name: flags[flag]
        for name, flag in (("title", "mask_titles"), ("scope", "mask_scope"), ("scrub", "scrub"),
                           ("name", "name"))
    }  # fmt: skip
    if flags["titles"]:
        changes["forms"] = _forms(flags)
    same = (
        *("text", "out", "group", "lexicon", "names", "placebo", "tagger", "probe", "level"),
        "seed",
    )
    with bar("Swapping") as tell:
        report = swap_table(
            data[0] if len(data) == 1 else list(data),
            values=read_values(flags["values"]),
            changes=changes,
            progress=tell,
            **{name: flags[name] for name in same},
        )
    if flags["json_path"]:
        document = json.dumps(report.to_json(), indent=2, allow_nan=False)
        write_output(flags["json_path"], document)
    if not is_screen(flags["json_path"]):
        say(report)
    return 0


def _forms(flags: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Titles and their forms from a TOML file: nurse = ["registered nurse", "rn"]."""
    from evenhand.cli.output import read_title_forms

    path = flags["titles"]
    if flags["mask_titles"] is None:
        raise UsageError(f"--titles {path!r} says how titles are written. Name their column with "
                         "--mask-titles.")  # fmt: skip
    return read_title_forms(path)
