"""`evenhand verify`: the shared rates and gaps, recomputed with other tools."""

from typing import Any

import click

from evenhand.cli.options import read_roles, roles_options
from evenhand.cli.output import Guarded, Input, say


@click.command("verify", cls=Guarded)
@click.argument("data", nargs=-1, type=Input("the data"))
@roles_options
def verify_command(data: tuple[str, ...], **flags: Any) -> int:
    """Recompute rates and gaps of DATA with Fairlearn and AIF360, where they are installed.

    Compared are the rows that have a truth, a decision and a group, each counted once. Exits 0
    when all tools agree, 1 when one differs.
    """
    from evenhand.decisions.table import Decisions
    from evenhand.errors import UsageError
    from evenhand.findings.peers import verify

    if not data:
        raise UsageError(
            "Name the file to verify, such as: evenhand verify decisions.parquet --truth violates "
            "--decision removed --group gender. All flags: evenhand verify --help"
        )
    decisions = Decisions(data[0] if len(data) == 1 else list(data), **read_roles(flags))
    left = [f"{role} {name}" for role in ("weight", "review_share", "cluster", "stratum")
            if (name := getattr(decisions.roles, role))]  # fmt: skip
    if left:
        say(f"Left out, since other tools know nothing of it: {', '.join(left)}.")
    checks = verify(decisions)
    for check in checks:
        say(str(check))
    if all(check.largest is None for check in checks):
        raise UsageError("Nothing was compared: no other tool is installed.")
    return 0 if all(check.agrees for check in checks if check.largest is not None) else 1
