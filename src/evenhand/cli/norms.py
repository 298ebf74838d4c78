"""`evenhand norms`: learn how groups typically look, and add it to a table."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from evenhand.cli.output import IN, OUT, Guarded, Input, Output, say


@click.group("norms", invoke_without_command=True)
@click.pass_context
def norms_command(context: click.Context) -> None:
    """Learn a norm scorer, and add its norms to a table that `evenhand audit` then reads."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@norms_command.command("fit", cls=Guarded)
@click.argument("data", nargs=-1, required=True, type=Input("the data"))
@click.option("--truth", required=True, metavar="COLUMN", help="The class of each row.")
@click.option("--group", required=True, metavar="COLUMN", help="Whose norms.")
@click.option("--text", metavar="COLUMN", help="The texts to learn from.")
@click.option("--features", metavar="A,B,…", help="Number columns to learn from instead.")
@click.option(
    "--name", metavar="COLUMN", help="The person's name; everybody's is scrubbed from all texts."
)
@click.option("--names", type=IN, metavar="FILE", help="More names, one or more on a line.")
@click.option("--tagger", metavar="spacy:MODEL", help="Scrub the people that this model finds.")
@click.option(
    "--capitals",
    is_flag=True,
    help="Scrub all words hardly ever written small: names, and places and months too.",
)
@click.option(
    "--vectors", type=IN, metavar="FILE", help="Word vectors; else learned from the texts."
)
@click.option("--bag-of-words", is_flag=True, help="Word counts instead of vectors.")
@click.option("--split", metavar="COLUMN", help="Rows marked 'train' are learned from.")
@click.option("--test-share", default=0.25, show_default=True, help="Held out without --split.")
@click.option(
    "--norm-group",
    "groups",
    multiple=True,
    metavar="VALUE",
    help="Groups to tell apart; repeat. Default: all large enough.",
)
@click.option("--ratings", type=IN, metavar="FILE", help="People's ratings of words (word,mean).")
@click.option("--ratings-toward", metavar="VALUE", help="The group that a high rating means.")
@click.option("--no-scrub", is_flag=True, help="Keep pronouns, titles and names.")
@click.option("--no-irrelevant", is_flag=True, help="No scorers without each class's words.")
@click.option(
    "--relevant",
    type=float,
    metavar="SHARE|NUMBER",
    help="Words that belong to a class: a share, such as 0.6, or a number of them.",
)
@click.option(
    "--relevant-of",
    type=click.Choice(["use", "vocabulary"]),
    default="use",
    show_default=True,
    help="Share of the words as often as used, or of all there are.",
)
@click.option(
    "--fdr",
    type=float,
    metavar="RATE",
    help="False discovery rate of the test that tells them otherwise.  [default: 0.05]",
)
@click.option("--unit", type=click.Choice(["token", "document"]), default="token",
              show_default=True, help="What tests of relevance count.")  # fmt: skip
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=Output(folder="norms"), required=True, metavar="FOLDER",
              help="Where the scorer goes.")  # fmt: skip
def fit_command(data: tuple[str, ...], **flags: Any) -> int:
    """Learn a norm scorer from DATA and print its quality card."""
    from evenhand.models.norms.table import fit_norms

    features = [part.strip() for part in (flags.pop("features") or "").split(",") if part.strip()]
    with _busy("Learning norms …"):
        found = fit_norms(
            data[0] if len(data) == 1 else list(data),
            features=features,
            groups=flags.pop("groups") or None,
            names=flags.pop("names") or (),
            scrub=not flags.pop("no_scrub"),
            irrelevant=not flags.pop("no_irrelevant"),
            **flags,
        )
    say(str(found.card))
    left = f", {found.left_out:,} left out" if found.left_out else ""
    say(f"\n{found.train:,} rows trained, {found.held_out:,} held out{left}. Saved: {flags['out']}")
    return 0


@norms_command.command("score", cls=Guarded)
@click.argument("data", nargs=-1, required=True, type=Input("the data"))
@click.option(
    "--norms", type=IN, required=True, metavar="FOLDER", help="A folder that `fit` wrote."
)
@click.option("--text", metavar="COLUMN", help="The texts to score.")
@click.option("--truth", metavar="COLUMN", help="The class; adds task-irrelevant norms.")
@click.option("--name", metavar="COLUMN", help="The person's name, scrubbed from the text.")
@click.option("--skip-seen", is_flag=True, help="No norms for rows the scorer was trained on.")
@click.option("--out", type=OUT, required=True, metavar="FILE",
              help="File to write: .parquet, .csv or .jsonl.")  # fmt: skip
def score_command(data: tuple[str, ...], **flags: Any) -> int:
    """Add norm@<group> and norm_irrelevant@<group> to the rows of DATA."""
    from evenhand.models.norms.table import score_norms

    out = flags["out"]
    with _busy("Scoring norms …"):
        done = score_norms(data[0] if len(data) == 1 else list(data), **flags)
    say(f"{done.rows:,} rows, {', '.join(done.columns)} added. Saved: {out}")
    if done.leaked and not flags["skip_seen"]:
        say(
            f"evenhand: {done.leaked:,} of these rows were in the scorer's training split (a "
            "leak): their norms look better than they are. Audit rows that it has not seen, or "
            "use --skip-seen.",
            err=True,
        )
    elif done.leaked:
        say(f"{done.leaked:,} rows of the scorer's training split were given no norm.")
    if done.empty:
        say(f"{done.empty:,} rows have nothing the scorer knows: no norm.")
    if done.unscored:
        say(f"{done.unscored:,} rows are of a class without a task-irrelevant scorer.")
    return 0


@contextmanager
def _busy(words: str) -> Iterator[None]:
    """A spinner on stderr; silent when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield
