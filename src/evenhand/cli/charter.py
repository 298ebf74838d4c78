"""`evenhand charter`: start a charter, check it, read it in words."""

from datetime import date

import click

from evenhand.cli.output import Guarded, Input, say


@click.group("charter", invoke_without_command=True)
@click.pass_context
def charter_command(context: click.Context) -> None:
    """Record which trade-offs were chosen, by whom, until when and why."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@charter_command.command("new", cls=Guarded)
def new_command() -> int:
    """Print a commented starter: evenhand charter new > charter.toml"""
    from evenhand.charter.words import STARTER

    say(STARTER, end="")
    return 0


@charter_command.command("check", cls=Guarded)
@click.argument("file", nargs=-1, required=True, type=Input("the charter"))
@click.option("--today", metavar="DATE", help="The day to check review dates against.")
def check_command(file: tuple[str, ...], today: str | None) -> int:
    """Say what FILE leaves open. Exits 0 when an audit can use it and 4 when not."""
    from evenhand.charter.read import read_charter
    from evenhand.charter.words import charter_sentence

    day = _day(today)
    for place, one in enumerate(file):
        charter = read_charter(one)
        concerns = charter.concerns(today=day)
        say("\n" * (place > 0) + f"{one} can be used.")
        say(charter_sentence(charter))
        if not concerns:
            say("Nothing is left open.")
            continue
        things = "thing is" if len(concerns) == 1 else "things are"
        say(f"\n{len(concerns)} {things} left open:")
        for concern in concerns:
            who = f" ({concern.owner})" if concern.owner else ""
            say(f"- {concern.layer}{who}: {concern.sentence}")
    return 0


@charter_command.command("show", cls=Guarded)
@click.argument("file", type=Input("the charter"))
def show_command(file: str) -> int:
    """Print FILE in words, with the thresholds it implies."""
    from evenhand.charter.read import read_charter

    say(str(read_charter(file)), end="")
    return 0


def _day(text: str | None) -> date | None:
    from evenhand.errors import UsageError

    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--today {text} is not a date. Write it as 2026-01-31.") from None
