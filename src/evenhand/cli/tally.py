"""`evenhand tally`: what an audit needs of a table, without its rows."""

from typing import Any

import click

from evenhand.cli.options import read_roles, roles_options
from evenhand.cli.output import IN, OUT, Guarded, Input, say


@click.command("tally", cls=Guarded)
@click.argument("data", nargs=-1, type=Input("the data"))
@roles_options
@click.option("--out", "out_path", type=OUT, metavar="FILE", help="Write the set; - prints it.")
@click.option("--lens", "lenses", multiple=True, metavar="LENS",
              help="What this lens needs; by default all that can run.")  # fmt: skip
@click.option("--pseudonyms", type=IN, metavar="KEYFILE",
              help="Replace names of labelers, items and clusters by keyed hashes.")  # fmt: skip
@click.option("--names", is_flag=True, help="Keep those names; by default they are numbered.")
@click.option("--floor", type=int, default=0, show_default=True, metavar="N",
              help="Withhold cells of fewer rows.")  # fmt: skip
@click.option(
    "--longest-seconds", type=float, metavar="S", help="Leave longer labels out of times."
)
def tally_command(data: tuple[str, ...], **flags: Any) -> int:
    """Count what an audit of DATA needs: a small file without anybody's row.

    \b
    evenhand tally week-12.parquet --truth violates --decision removed --group gender \\
        --out week-12.tallies
    evenhand audit week-*.tallies

    Sets of the same roles merge. Those that number labelers, items or clusters do not: give them
    pseudonyms from one key.
    """
    from evenhand.errors import UsageError
    from evenhand.findings.tallying import tally
    from evenhand.speech import plural

    out = flags.pop("out_path")
    if not data or not out:
        raise UsageError(
            "Name the table and the file to write, such as: evenhand tally decisions.parquet "
            "--decision approved --group gender --out week.tallies. All flags: evenhand tally "
            "--help"
        )
    found = tally(
        data[0] if len(data) == 1 else list(data),
        **read_roles(flags),
        lenses=list(flags["lenses"]) or None,
        pseudonyms=flags["pseudonyms"],
        names=flags["names"],
        floor=flags["floor"],
        longest_seconds=flags["longest_seconds"],
    )
    found.save("/dev/stdout" if out == "-" else out)
    held = plural(len(found.tables) + len(found.finished), "table")
    say(f"{plural(found.rows, 'row')} in {held}. Audit it with: evenhand audit {out}", err=True)
    for note in found.notes():
        say(note, err=True)
    return 0
