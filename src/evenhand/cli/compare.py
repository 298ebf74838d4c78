"""`evenhand compare`: remedies trained side by side, each measured on every lens."""

from collections.abc import Mapping
from typing import Any

import click

from evenhand.cli.bar import bar
from evenhand.cli.title_forms import read_title_forms
from evenhand.errors import UsageError

WIDTH = 100
HEADERS = ("remedy", "acc.", "TP gap", "FP gap", "swap gap", "flips", "slope", "mean |r|", "group")


@click.command("compare")
@click.argument("data", nargs=-1)
@click.option("--text", required=True, metavar="COLUMN", help="The texts.")
@click.option("--truth", required=True, metavar="COLUMN", help="The class of each row.")
@click.option("--group", required=True, metavar="COLUMN", help="Who belongs to which group.")
@click.option("--out", required=True, metavar="FOLDER", help="Ledger, models and finished parts.")
@click.option("--name", metavar="COLUMN", help="The person's name: scrubbed, and for CoCL.")
@click.option("--representation", "representations", multiple=True,
              type=click.Choice(["bow", "vectors"]),
              help="Word counts or word vectors; repeat. Default: both.")  # fmt: skip
@click.option("--remedy", "remedies", multiple=True, metavar="NAME",
              help="Remedies to compare; repeat. Default: all. See --list.")  # fmt: skip
@click.option("--list", "listed", is_flag=True, is_eager=True, expose_value=False,
              callback=lambda context, _, on: _list(context) if on else None,
              help="List the remedies and stop.")  # fmt: skip
@click.option("--seeds", default=3, show_default=True, metavar="N",
              help="Training sets drawn; five or more give intervals.")  # fmt: skip
@click.option("--setting", type=click.Choice(["masked", "scrubbed"]), default="masked",
              show_default=True, help="Titles masked, or pronouns removed as well.")  # fmt: skip
@click.option("--split", metavar="COLUMN", help="Marks the rows of one file as train or test.")
@click.option("--test-share", default=0.25, show_default=True, metavar="SHARE",
              help="Test rows of one file without --split.")  # fmt: skip
@click.option("--vectors", metavar="FILE", help="Word vectors; else learned from the texts.")
@click.option("--titles", metavar="FILE", help="TOML file with the forms of each title to mask.")
@click.option("--lexicon", default="gender_pronouns", show_default=True, metavar="NAME|FILE",
              help="The words that are swapped.")  # fmt: skip
@click.option("--value", "values", multiple=True, metavar="VALUE=NAME",
              help="How the group column writes a value of the lexicon: female=F.")  # fmt: skip
@click.option("--budget", default=0.01, show_default=True, metavar="SHARE",
              help="Accuracy that norm remedies and the adversary may cost.")  # fmt: skip
@click.option("--reductions-iterations", default=10, show_default=True, metavar="N",
              help="Steps of the reductions; each refits every class.")  # fmt: skip
@click.option("--level", default=0.95, show_default=True, help="Confidence level.")
@click.option("--seed", default=0, show_default=True)
def compare_command(data: tuple[str, ...], **flags: Any) -> int:
    """Train remedies on TRAIN, and judge each on TEST by every lens.

    With one file instead of two, --split or --test-share divides it. Writes ledger.json,
    ledger.csv, pareto.json and the models to the folder; a run that broke off goes on there.
    """
    from evenhand.mitigation.compare import compare_remedies
    from evenhand.mitigation.ledger_task import LedgerSettings

    if not 1 <= len(data) <= 2:
        raise UsageError(
            f"{len(data)} files were given. Name the training and the test file, such as: "
            "evenhand compare train.parquet test.parquet …"
        )
    forms = read_title_forms(flags["titles"]) if flags["titles"] else None
    with bar("Training remedies") as tell:
        ledger = compare_remedies(
            data[0],
            data[1] if len(data) == 2 else None,
            text=flags["text"],
            truth=flags["truth"],
            group=flags["group"],
            name=flags["name"],
            remedies=flags["remedies"],
            representations=flags["representations"] or ("bow", "vectors"),
            seeds=flags["seeds"],
            setting=flags["setting"],
            split=flags["split"],
            test_share=flags["test_share"],
            vectors=flags["vectors"],
            titles=forms,
            lexicon=flags["lexicon"],
            values=_values(flags["values"]),
            settings=LedgerSettings(
                budget=flags["budget"], reductions_iterations=flags["reductions_iterations"]
            ),
            out=flags["out"],
            level=flags["level"],
            seed=flags["seed"],
            progress=tell,
        )
    _show(ledger.document, flags["out"])
    return 0


def _list(context: click.Context) -> None:
    from evenhand.mitigation.registry import REMEDIES

    for each in REMEDIES.values():
        needs = [*each.needs, *([f"extra '{each.extra}'"] if each.extra else [])]
        if each.needs_group_at_decision:
            needs.append("the group at decision time")
        told = f" (needs {', '.join(needs)})" if needs else ""
        click.echo(f"{each.name:<28}{each.words}{told}")
    context.exit(0)


def _values(given: tuple[str, ...]) -> dict[str, str] | None:
    """Group names and the lexicon's values they stand for."""
    found: dict[str, str] = {}
    for text in given:
        value, separator, name = text.partition("=")
        if not separator or not value or not name:
            raise UsageError(f"--value {text!r} is not VALUE=NAME, such as --value female=F.")
        found[name] = value
    return found or None


def _show(document: Mapping[str, Any], folder: str) -> None:
    from rich.console import Console

    from evenhand.report.table import printable

    # Never wider than a page: tables that wrap cannot be read.
    console = Console(width=min(WIDTH, Console().width), highlight=False)
    for representation in dict.fromkeys(row["representation"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["representation"] == representation]
        console.print(_table(rows, representation, document["data"]["groups"]))
    console.print(
        "Gaps are root mean squares over classes; slope is the largest norm slope of a group, "
        "mean |r| the mean over groups. * no other remedy is as good on every column. "
        "'group' says whether the group must be known to decide.\n",
        markup=False,
        style="dim",
    )
    for row in document["rows"]:
        name = f"{row['remedy']} ({row['representation']})"
        console.print(printable(f"{name}: {row['sentence']}"), markup=False)
    for note in document["notes"]:
        console.print(printable(note), markup=False, style="dim")
    console.print(f"\nWritten to {folder}: ledger.json, ledger.csv, pareto.json, models.",
                  markup=False)  # fmt: skip


def _table(rows: list[Mapping[str, Any]], representation: str, groups: list[str]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    words = "word counts" if representation == "bow" else "word vectors"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"Remedies on {words}",
                  title_justify="left", title_style="bold")  # fmt: skip
    for header in HEADERS:
        plain = header in {"remedy", "group"}
        table.add_column(header, justify="left" if plain else "right", no_wrap=header == "remedy")
    for row in rows:
        if row["status"] != "measured":
            blank = [""] * (len(HEADERS) - 2)
            table.add_row(Text(row["remedy"], style="dim"), Text(row["status"]), *blank)
            continue
        table.add_row(*(Text(cell) for cell in _cells(row, groups)))
    return table


def _cells(row: Mapping[str, Any], groups: list[str]) -> tuple[str, ...]:
    def one(name: str, digits: int = 3) -> str:
        cell = row["measures"][name]["all"]
        return "–" if cell["value"] is None else f"{cell['value']:.{digits}f}"

    def of_groups(name: str) -> list[float]:
        cells = (row["measures"][name][group]["value"] for group in groups)
        return [value for value in cells if value is not None]

    slopes, sizes = of_groups("norm_slope"), of_groups("norm_correlation_mean")
    return (
        row["remedy"] + (" *" if row["pareto"] else ""),
        one("accuracy"),
        one("true_positive_rate_gap_rms"),
        one("false_positive_rate_gap_rms"),
        one("counterfactual_true_positive_rate_gap_rms"),
        one("flip_rate"),
        f"{max(slopes, key=abs):+.2f}" if slopes else "–",
        f"{sum(sizes) / len(sizes):.3f}" if sizes else "–",
        "needed" if row["needs_group_at_decision"] else "",
    )
