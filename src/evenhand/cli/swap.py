"""`evenhand swap`: counterfactual texts beside the texts, and how far they can be trusted."""

import json
from typing import Any

import click

from evenhand.cli.bar import bar
from evenhand.errors import UsageError


@click.command("swap")
@click.argument("data", nargs=-1)
@click.option("--text", required=True, metavar="COLUMN", help="The texts.")
@click.option("--out", required=True, metavar="FILE", help="Parquet file to write.")
@click.option("--group", metavar="COLUMN", help="Each row's own value; else its words decide.")
@click.option("--lexicon", default="gender_pronouns", show_default=True, metavar="NAME|FILE",
              help="A shipped lexicon (gender_words, gender_they …) or a TOML file.")  # fmt: skip
@click.option("--value", "values", multiple=True, metavar="VALUE=NAME",
              help="How the group column writes a value: female=F.")  # fmt: skip
@click.option("--names", metavar="FILE", help="Names to swap too: a table with a column per value, "
              "paired by row, or with columns name and replacement.")  # fmt: skip
@click.option("--tagger", metavar="spacy:MODEL",
              help="Tell his from him by a spaCy model, such as spacy:en_core_web_sm.")  # fmt: skip
@click.option("--mask-titles", metavar="COLUMN", help="Mask the title in this column by '_' first.")
@click.option("--titles", metavar="FILE", help="TOML file with the forms of each title.")
@click.option("--mask-scope", type=click.Choice(["own", "all"]), default="own", show_default=True,
              help="Mask the row's own title, or all titles.")  # fmt: skip
@click.option("--scrub", is_flag=True, help="Add the text without pronouns, titles and names.")
@click.option("--name", metavar="COLUMN", help="The person's name, for --scrub.")
@click.option("--placebo", is_flag=True,
              help="Swap neutral synonyms instead: the baseline without effect.")  # fmt: skip
@click.option("--probe/--no-probe", default=True, show_default=True,
              help="Train a classifier to tell swapped from original texts.")  # fmt: skip
@click.option("--json", "json_path", metavar="FILE", help="Write the validity report.")
@click.option("--level", default=0.95, show_default=True, help="Confidence level.")
@click.option("--seed", default=0, show_default=True)
def swap_command(data: tuple[str, ...], **flags: Any) -> int:
    """Rewrite the texts in DATA under each value of an attribute.

    Adds the column <text>@<value> for each value of the lexicon. Without --group the words of
    each text decide what it is rewritten from, and a text without such a word stays as it is.
    """
    from evenhand.decisions.batches import check_writable
    from evenhand.findings.record import write_text
    from evenhand.text.swap_table import TextChanges, swap_table

    if not data:
        raise UsageError("Name the file to swap, such as: evenhand swap bios.parquet …")
    if flags["json_path"]:
        check_writable(flags["json_path"])
    group, lexicon = _lexicon(flags)
    changes = TextChanges(
        title=flags["mask_titles"],
        scope=flags["mask_scope"],
        scrub=flags["scrub"],
        name=flags["name"],
        **({"forms": _forms(flags)} if flags["titles"] else {}),
    )
    with bar("Swapping") as tell:
        report = swap_table(
            data[0] if len(data) == 1 else list(data),
            text=flags["text"],
            out=flags["out"],
            group=group,
            lexicon=lexicon,
            values=_values(flags["values"]),
            changes=changes,
            tagger=flags["tagger"],
            probe=flags["probe"],
            level=flags["level"],
            seed=flags["seed"],
            progress=tell,
        )
    if flags["json_path"]:
        write_text(flags["json_path"], json.dumps(report.to_json(), indent=2, allow_nan=False))
    click.echo(str(report))
    return 0


def _lexicon(flags: dict[str, Any]) -> tuple[str | None, Any]:
    """The group column that applies, and the lexicon with the names asked for."""
    from evenhand.text.lexicon import load_lexicon

    if flags["placebo"]:
        if flags["names"] or flags["values"]:
            raise UsageError("--placebo swaps neutral words only. Leave out --names and --value.")
        # Wording is not the group: each text's own wording decides what it is rewritten from.
        return None, load_lexicon("neutral_synonyms")
    lexicon = load_lexicon(flags["lexicon"])
    if flags["names"]:
        from evenhand.text.names_table import with_names

        lexicon = with_names(lexicon, flags["names"])
    return flags["group"], lexicon


def _values(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        value, separator, name = text.partition("=")
        if not separator or not value or not name:
            raise UsageError(f"--value {text!r} is not VALUE=NAME, such as --value female=F.")
        found[value] = name
    return found


def _forms(flags: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Titles and their forms from a TOML file: nurse = ["registered nurse", "rn"]."""
    from evenhand.cli.title_forms import read_title_forms

    path = flags["titles"]
    if flags["mask_titles"] is None:
        raise UsageError(f"--titles {path!r} says how titles are written. Name their column with "
                         "--mask-titles.")  # fmt: skip
    return read_title_forms(path)
