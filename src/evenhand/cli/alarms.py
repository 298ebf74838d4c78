"""`evenhand alarms`: what is open in a store, and who has answered it."""

import json

import click

from evenhand.cli.output import OUT, Guarded, Input, say, write_output


@click.command("alarms", cls=Guarded)
@click.argument("store", type=Input("the store"))
@click.option("--acknowledge", type=int, metavar="NUMBER", help="Answer this alarm.")
@click.option("--by", metavar="WHO", help="Who answers it.")
@click.option("--why", metavar="TEXT", help="What was found out, or done.")
@click.option("--webhook", metavar="URL", help="Post each new alarm there as JSON, once.")
@click.option("--json", "json_path", type=OUT, metavar="FILE", help="Write them; - prints them.")
def alarms_command(
    store: str,
    acknowledge: int | None,
    by: str | None,
    why: str | None,
    webhook: str | None,
    json_path: str | None,
) -> int:
    """List the alarms of STORE; answer one, and let its detectors begin again at the onset.

    \b
    evenhand alarms removals/
    evenhand alarms removals/ --acknowledge 1 --by policy --why "the threshold was meant to rise"

    Exits 1 while an alarm is open, or was answered and its gap is still outside its limit.
    """
    from evenhand.watching.alarms import alarms

    found = alarms(store, acknowledge=acknowledge, by=by, why=why, webhook=webhook)
    if json_path:
        text = json.dumps(found.plain(), ensure_ascii=False, indent=1, allow_nan=False)
        write_output(json_path, text + "\n")
    if json_path != "-":
        say(str(found))
    return int(bool(found.open or found.still_outside))
