"""`evenhand compare`: remedies trained side by side, each measured on every lens."""

from typing import Any

import click

from evenhand.cli.options import read_values
from evenhand.cli.output import IN, Guarded, Input, Output, bar, read_title_forms, say, show
from evenhand.errors import UsageError

# How texts are prepared: `TextSettings`.
TEXT_FLAGS = ("representations", "setting", "vectors", "titles", "mask_scope", "lexicon")
ENCODER_FLAGS = ("fine_tune", "norm_scorer")


@click.command("compare", cls=Guarded)
@click.argument("data", nargs=-1, type=Input("the data"))
@click.option("--text", metavar="COLUMN", help="The texts to decide about.")
@click.option("--features", metavar="A,B,…",
              help="Columns of numbers or words to decide by instead.")  # fmt: skip
@click.option("--truth", required=True, metavar="COLUMN", help="The class of each row.")
@click.option("--group", required=True, metavar="COLUMN", help="Who belongs to which group.")
@click.option("--out", type=Output(folder="ledgers", beside=[".partial"]), required=True,
              metavar="FOLDER", help="Ledger, models and finished parts.")  # fmt: skip
@click.option("--name", metavar="COLUMN", help="The person's name: scrubbed, and for CoCL.")
@click.option("--representation", "representations", multiple=True, metavar="NAME|FOLDER",
              help="bow (word counts), vectors, or the local folder of a transformers model; "
              "repeat. Default: bow and vectors.")  # fmt: skip
@click.option("--fine-tune", is_flag=True, help="Train the folders; else their vectors are used.")
@click.option("--norm-scorer", type=IN, metavar="FOLDER",
              help="A transformers folder in the place of the second norm scorer.")  # fmt: skip
@click.option("--remedy", "remedies", multiple=True, metavar="NAME",
              help="Remedies to compare; repeat. Default: all. See --list.")  # fmt: skip
@click.option("--list", "listed", is_flag=True, is_eager=True, expose_value=False,
              callback=lambda context, _, on: _list(context) if on else None,
              help="List the remedies and stop.")  # fmt: skip
@click.option("--reference", metavar="GROUP",
              help="Whom groups are compared with. Default: the largest.")  # fmt: skip
@click.option("--positive", metavar="CLASS",
              help="Of two classes the one whose gaps have a sign.")  # fmt: skip
@click.option("--seeds", default=3, show_default=True, metavar="N",
              help="Training sets drawn; five or more give intervals.")  # fmt: skip
@click.option("--setting", type=click.Choice(["masked", "scrubbed"]),
              help="Titles masked (default), or pronouns removed as well.")  # fmt: skip
@click.option("--split", metavar="COLUMN", help="Marks the rows of one file as train or test.")
@click.option("--test-share", default=0.25, show_default=True, metavar="SHARE",
              help="Test rows of one file without --split.")  # fmt: skip
@click.option(
    "--vectors", type=IN, metavar="FILE", help="Word vectors; else learned from the texts."
)
@click.option(
    "--titles", type=IN, metavar="FILE", help="TOML file with the forms of each title to mask."
)
@click.option("--mask-scope", type=click.Choice(["all", "own"]),
              help="Mask all titles (default), or the row's own, which leaks it.")  # fmt: skip
@click.option("--lexicon", type=IN, metavar="NAME|FILE",
              help="The words that are swapped; gender_pronouns by default.")  # fmt: skip
@click.option("--value", "values", multiple=True, metavar="GROUP=VALUE",
              help="What a value of the group column is in the lexicon: F=female.")  # fmt: skip
@click.option("--budget", default=0.01, show_default=True, metavar="SHARE",
              help="Accuracy that norm remedies and the adversary may cost.")  # fmt: skip
@click.option("--reductions-iterations", default=10, show_default=True, metavar="N",
              help="Steps of the reductions; each refits every class.")  # fmt: skip
@click.option("--level", default=0.95, show_default=True, help="Confidence level.")
@click.option("--seed", default=0, show_default=True)
def compare_command(data: tuple[str, ...], **flags: Any) -> int:
    """Train remedies on TRAIN, and judge each on TEST by every lens.

    With one file instead of two, --split or --test-share divides it. Writes ledger.json,
    ledger.csv, the data of charts and the models to the folder; a run that broke off goes on
    there.
    """
    from evenhand.remedies.ledger.compare import compare

    if not 1 <= len(data) <= 2:
        raise UsageError(
            f"{len(data)} files were given. Name the training and the test file, such as: "
            "evenhand compare train.parquet test.parquet …"
        )
    values = read_values(flags.pop("values"))
    features = [part.strip() for part in (flags.pop("features") or "").split(",") if part.strip()]
    texts = {name: flags.pop(name) for name in (*TEXT_FLAGS, *ENCODER_FLAGS)} | {"values": values}
    if texts["titles"]:
        texts["titles"] = read_title_forms(texts["titles"])
    if flags["reference"]:
        flags["reference"] = flags["reference"].removeprefix(f"{flags['group']}=")
    settings = {name: flags.pop(name) for name in ("budget", "reductions_iterations")}
    with bar("Training remedies") as tell:
        ledger = compare(
            *data,
            features=features,
            texts={name: value for name, value in texts.items() if value} or None,
            settings=settings,
            progress=tell,
            **flags,
        )
    from evenhand.report.ledger import show_ledger

    show(lambda console: show_ledger(ledger.document, console, folder=flags["out"]))
    return 0


def _list(context: click.Context) -> None:
    from evenhand.remedies.ledger.registry import REMEDIES

    for each in REMEDIES.values():
        needs = [*each.needs, *([f"extra '{each.extra}'"] if each.extra else [])]
        if each.needs_group_at_decision:
            needs.append("the group at decision time")
        told = f" (needs {', '.join(needs)})" if needs else ""
        say(f"{each.name:<28}{each.words}{told}")
    context.exit(0)
