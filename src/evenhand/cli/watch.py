"""`evenhand watch`: periods in, the whole sequence judged, why a gap moved out."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from evenhand.cli.options import read_limits, read_roles, roles_options
from evenhand.cli.output import IN, OUT, Guarded, Input, Output, progress, say, write_output
from evenhand.speech import without_secrets

TABLES = "tables of stores"


@click.command("watch", cls=Guarded)
@click.argument("store", type=Input("the store"))
@click.argument("data", nargs=-1, type=Input("the data"))
@roles_options
@click.option("--every", metavar="PERIOD", help="day, week, month, quarter or year.")
@click.option("--tz", metavar="ZONE", help="Where days begin, such as Europe/Berlin.")
@click.option("--period", metavar="PERIOD", help="The period of a tally set, such as 2026-W31.")
@click.option(
    "--charter", type=IN, metavar="FILE", help="Chosen trade-offs, limits and column roles."
)
@click.option("--limit", "limits", multiple=True, metavar="MEASURE=BAND",
              help="Agreed, such as true_positive_rate_gap=0.05; repeat for more.")  # fmt: skip
@click.option("--measure", "measures", multiple=True, metavar="MEASURE",
              help="Watch this too, without a limit; repeat for more.")  # fmt: skip
@click.option("--mature", metavar="TIME", help="How long labels take to arrive, such as 4w.")
@click.option("--horizon", type=int, metavar="N", help="For how many periods alarms are planned.")
@click.option("--as-of", metavar="DATE", help="The day to which the data reach.")
@click.option("--since", metavar="PERIOD", help="Say what moved gaps from before it to after.")
@click.option("--model-version", metavar="V", help="Another one begins a new sequence.")
@click.option("--between", metavar="WORD", help="none: gaps vary by sampling alone.")
@click.option("--replace", is_flag=True, help="Replace judged periods; the old ones are kept.")
@click.option("--level", type=float, metavar="LEVEL",
              help="Over all looks together; 0.95 at first.")  # fmt: skip
@click.option("--seed", type=int, metavar="N", help="Seed of everything drawn; 0 at first.")
@click.option("--out", "out_path", type=OUT, metavar="FILE", help="Write the page (HTML).")
@click.option(
    "--json", "json_path", type=OUT, metavar="FILE", help="Write the document; - prints it."
)
@click.option("--markdown", "markdown_path", type=OUT, metavar="FILE", help="Write a summary.")
@click.option("--junit", "junit_path", type=OUT, metavar="FILE", help="Write test results.")
@click.option("--github", is_flag=True, help="Print annotations of a workflow.")
@click.option("--export", "export_path", type=Output(folder=TABLES), metavar="FOLDER",
              help="Write the store's tables as Parquet.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print the headline only.")
def watch_command(store: str, data: tuple[str, ...], **flags: Any) -> int:
    """Add the periods in DATA (a table, or tally sets) to STORE and judge the whole sequence.

    \b
    evenhand watch removals/ posts.parquet --time decided_at --every week --tz Europe/Berlin \\
        --truth violates --decision removed --group gender --limit true_positive_rate_gap=0.05
    evenhand watch removals/ week-13.parquet
    evenhand watch removals/ --out watch.html

    What is not given is as at the last run. Without DATA the store is reported. Exits 1 where
    something is outside its limit, whoever answered for it, an alarm is open, or a class or group
    is no longer called so.
    """
    from evenhand.report.watch import watch_text
    from evenhand.watching.run import watch

    paths = {k: flags.pop(f"{k}_path") for k in ("out", "json", "markdown", "junit")}
    export, quiet, github = flags.pop("export_path"), flags.pop("quiet"), flags.pop("github")
    limits = read_limits(flags.pop("limits")) or None
    named = {name: flags.pop(name) for name in (
        "every", "tz", "period", "charter", "mature", "horizon", "as_of", "since",
        "model_version",
        "between", "replace", "level", "seed",
    )}  # fmt: skip
    measures = list(flags.pop("measures")) or None
    given = None if not data else data[0] if len(data) == 1 else list(data)
    with progress() as tell:
        result = watch(
            store,
            given,
            limits=limits,
            measures=measures,
            arguments={"command": without_secrets(shlex.join(["evenhand", *sys.argv[1:]]))},
            progress=tell,
            **named,
            **read_roles(flags),
        )
    piped = False
    for form, path in paths.items():
        if path:
            kind = "page" if form == "out" else form
            write_output(path, watch_text(result.document, kind))
            piped = piped or path == "-"
    if export:
        from evenhand.watching.store import Store

        with Store.open(store) as opened:
            made = opened.export(Path(export), kind=TABLES)
        say(f"Wrote {len(made)} tables to {export}.", err=True)
    if github:
        say(watch_text(result.document, "github"))
    elif not piped:
        say(result.sentence if quiet else str(result))
    return int(result.is_outside)
