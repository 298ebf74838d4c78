"""`evenhand charter`: start a charter, check it, read it in words."""

from datetime import UTC, date, datetime

import click


@click.group("charter", invoke_without_command=True)
@click.pass_context
def charter_command(context: click.Context) -> None:
    """Record which trade-offs were chosen, by whom, until when and why."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@charter_command.command("new")
def new_command() -> int:
    """Print a commented starter: evenhand charter new > charter.toml"""
    from evenhand.charter.starter import STARTER

    click.echo(STARTER, nl=False)
    return 0


@charter_command.command("check")
@click.argument("file")
@click.option("--today", metavar="DATE", help="The day to check review dates against.")
def check_command(file: str, today: str | None) -> int:
    """Say what FILE leaves open. Exits 0 when an audit can use it and 4 when not."""
    from evenhand.charter.concerns import concerns
    from evenhand.charter.read import read_charter
    from evenhand.charter.words import charter_sentence

    charter = read_charter(file)
    found = concerns(charter, today=_day(today))
    click.echo(f"{file} can be used.")
    click.echo(charter_sentence(charter))
    if not found:
        click.echo("Nothing is left open.")
        return 0
    click.echo(f"\n{len(found)} {'thing is' if len(found) == 1 else 'things are'} left open:")
    for concern in found:
        who = f" ({concern.owner})" if concern.owner else ""
        click.echo(f"- {concern.layer}{who}: {concern.sentence}")
    return 0


@charter_command.command("show")
@click.argument("file")
def show_command(file: str) -> int:
    """Print FILE in words, with the thresholds it implies."""
    from evenhand.charter.read import read_charter
    from evenhand.charter.words import charter_text

    click.echo(charter_text(read_charter(file)), nl=False)
    return 0


def _day(text: str | None) -> date:
    from evenhand.errors import UsageError

    if text is None:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--today {text} is not a date. Write it as 2026-01-31.") from None
