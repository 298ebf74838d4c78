"""`evenhand norms`: learn how groups typically look, and add it to a table."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from evenhand.errors import UsageError


@click.group("norms", invoke_without_command=True)
@click.pass_context
def norms_command(context: click.Context) -> None:
    """Learn a norm scorer, and add its norms to a table that `evenhand audit` then reads."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@norms_command.command("fit")
@click.argument("data", nargs=-1, required=True)
@click.option("--truth", required=True, metavar="COLUMN", help="The class of each row.")
@click.option("--group", required=True, metavar="COLUMN", help="Whose norms.")
@click.option("--text", metavar="COLUMN", help="The texts to learn from.")
@click.option("--features", metavar="A,B,…", help="Number columns to learn from instead.")
@click.option("--name", metavar="COLUMN", help="The person's name, scrubbed from the text.")
@click.option("--vectors", metavar="FILE", help="Word vectors; else learned from the texts.")
@click.option("--bag-of-words", is_flag=True, help="Word counts instead of vectors.")
@click.option("--split", metavar="COLUMN", help="Rows marked 'train' are learned from.")
@click.option("--test-share", default=0.25, show_default=True, help="Held out without --split.")
@click.option("--norm-group", "groups", multiple=True, metavar="VALUE",
              help="Groups to tell apart; repeat. Default: all large enough.")  # fmt: skip
@click.option("--ratings", metavar="FILE", help="People's ratings of words (word,mean).")
@click.option("--ratings-toward", metavar="VALUE", help="The group that a high rating means.")
@click.option("--no-scrub", is_flag=True, help="Keep pronouns, titles and names.")
@click.option("--no-irrelevant", is_flag=True, help="No scorers without each class's words.")
@click.option("--unit", type=click.Choice(["token", "document"]), default="token",
              show_default=True, help="What tests of relevance count.")  # fmt: skip
@click.option("--seed", default=0, show_default=True)
@click.option("--out", required=True, metavar="FOLDER", help="Where the scorer goes.")
def fit_command(data: tuple[str, ...], **flags: Any) -> int:
    """Learn a norm scorer from DATA and print its quality card."""
    from evenhand.models.norm_files import check_norm_folder, save_norms
    from evenhand.models.norm_ratings import read_ratings
    from evenhand.models.norm_table import fit_norms

    out = flags.pop("out")
    check_norm_folder(out)
    path, toward = flags.pop("ratings"), flags.pop("ratings_toward")
    if (path is None) != (toward is None):
        raise UsageError(
            "--ratings and --ratings-toward go together: say which group a high rating means, "
            "such as --ratings-toward female."
        )
    ratings = read_ratings(path, toward=toward) if path else None
    features = [part.strip() for part in (flags.pop("features") or "").split(",") if part.strip()]
    with _busy("Learning norms …"):
        found = fit_norms(
            data[0] if len(data) == 1 else list(data),
            features=features,
            ratings=ratings,
            groups=flags.pop("groups") or None,
            scrub=not flags.pop("no_scrub"),
            irrelevant=not flags.pop("no_irrelevant"),
            **flags,
        )
    save_norms(found.scorer, out, card=found.card.plain())
    click.echo(str(found.card))
    left = f", {found.left_out:,} left out" if found.left_out else ""
    click.echo(f"\n{found.train:,} rows trained, {found.held_out:,} held out{left}. Saved: {out}")
    return 0


@norms_command.command("score")
@click.argument("data", nargs=-1, required=True)
@click.option("--norms", required=True, metavar="FOLDER", help="A folder that `fit` wrote.")
@click.option("--text", metavar="COLUMN", help="The texts to score.")
@click.option("--truth", metavar="COLUMN", help="The class; adds task-irrelevant norms.")
@click.option("--name", metavar="COLUMN", help="The person's name, scrubbed from the text.")
@click.option("--skip-seen", is_flag=True, help="No norms for rows the scorer was trained on.")
@click.option("--out", required=True, metavar="FILE", help="The Parquet file to write.")
def score_command(data: tuple[str, ...], **flags: Any) -> int:
    """Add norm@<group> and norm_irrelevant@<group> to the rows of DATA."""
    from evenhand.models.norm_table import score_norms

    out = flags["out"]
    with _busy("Scoring norms …"):
        done = score_norms(data[0] if len(data) == 1 else list(data), **flags)
    click.echo(f"{done.rows:,} rows, {', '.join(done.columns)} added. Saved: {out}")
    if done.leaked and not flags["skip_seen"]:
        click.echo(
            f"evenhand: {done.leaked:,} of these rows were in the scorer's training split (a "
            "leak): their norms look better than they are. Audit rows that it has not seen, or "
            "use --skip-seen.",
            err=True,
        )
    elif done.leaked:
        click.echo(f"{done.leaked:,} rows of the scorer's training split were given no norm.")
    if done.empty:
        click.echo(f"{done.empty:,} rows have nothing the scorer knows: no norm.")
    if done.unscored:
        click.echo(f"{done.unscored:,} rows are of a class without a task-irrelevant scorer.")
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
