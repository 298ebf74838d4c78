"""`evenhand words`: what words weigh in a model and in a norm, and which two models differ by."""

from typing import Any

import click

from evenhand.cli.output import IN, OUT, Guarded, Input, say

OF = click.option("--of", metavar="GROUP", help="Whose model, where there is one for each group.")
TRUST = click.option("--trust", is_flag=True, help="Open joblib files, which can run any code.")
GROUP = click.option("--group", metavar="VALUE", help="Whose norm: its weights are positive.")
SAVE = click.option("--out", type=OUT, metavar="FILE",
                    help="CSV, JSON Lines or Parquet, by the ending.")  # fmt: skip


@click.group("words", invoke_without_command=True)
@click.pass_context
def words_command(context: click.Context) -> None:
    """What words weigh in a linear model of texts, and in a norm scorer."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@words_command.command("weights", cls=Guarded)
@click.argument("model", type=Input("the model"))
@click.option("--norms", type=IN, metavar="FOLDER", help="A norm scorer, beside the model.")
@GROUP
@OF
@TRUST
@SAVE
def weights_command(**flags: Any) -> int:
    """Weight of every word in every class of MODEL, a joblib file.

    Models of `evenhand compare` are taken, and pipelines of word counts and a linear model. Prints
    the words that weigh most; --out writes them all.
    """
    from evenhand.models.word_tables import heaviest, word_table

    found = word_table(**flags)
    for line in heaviest(found):
        say(line)
    if flags["out"]:
        say(f"Wrote {flags['out']}: {len(found.words):,} words of {len(found.classes)} classes.")
    return 0


@words_command.command("filter", cls=Guarded)
@click.argument("model", type=Input("the model"))
@click.argument("other", type=Input("the other model"))
@click.option("--norms", type=IN, required=True, metavar="FOLDER", help="The norm scorer.")
@click.option("--threshold", default=0.5, show_default=True,
              help="Least weight in the model and in the norm.")  # fmt: skip
@click.option("--ratio", default=0.7, show_default=True,
              help="Least share of the weight in the other model.")  # fmt: skip
@GROUP
@OF
@click.option("--other-of", metavar="GROUP", help="The same of the other model.")
@TRUST
@SAVE
def filter_command(**flags: Any) -> int:
    """Words that weigh in MODEL and in the norm, and enough against OTHER; both joblib files."""
    from evenhand.models.word_tables import filter_words

    say(filter_words(flags.pop("model"), flags.pop("other"), **flags))
    if flags["out"]:
        say(f"Wrote {flags['out']}.")
    return 0
