"""`evenhand verify`: the shared rates and gaps, recomputed with other tools."""

from typing import Any

import click

from evenhand.cli.options import read_roles, roles_options


@click.command("verify")
@click.argument("data", nargs=-1, required=True)
@roles_options
def verify_command(data: tuple[str, ...], **flags: Any) -> int:
    """Recompute rates and gaps of DATA with Fairlearn and AIF360, where they are installed."""
    from evenhand.decisions.table import Decisions
    from evenhand.findings.peers import verify

    decisions = Decisions(data[0] if len(data) == 1 else list(data), **read_roles(flags))
    worst = 0.0
    for check in verify(decisions):
        click.echo(str(check))
        worst = max(worst, check.largest or 0.0)
    return 0 if worst < 1e-9 else 1
