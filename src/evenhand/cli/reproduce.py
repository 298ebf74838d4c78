"""`evenhand reproduce`: a paper's tables and figures, beside the values it prints."""

from typing import Any

import click

from evenhand.cli.output import IN, Guarded, Home, bar, say


@click.command("reproduce", cls=Guarded)
@click.argument("paper", metavar="p1|p2|p3")
@click.option("--data", multiple=True, type=IN, metavar="FILE",
              help="BiasBios (file or folder), for p2 also the folder of Civil Comments; repeat. "
              "Default: simulated texts.")  # fmt: skip
@click.option("--representation", type=IN, metavar="FOLDER",
              help="A local transformers folder, for the rows of BERT.")  # fmt: skip
@click.option("--fine-tune", is_flag=True, help="Train that folder; else its vectors are used.")
@click.option("--ratings", type=IN, metavar="FILE",
              help="For p1: people's ratings of words (word,mean).")  # fmt: skip
@click.option("--ratings-toward", metavar="VALUE", default="female", show_default=True,
              help="The group that a high rating means.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer rows and seeds: minutes on two cores.")
@click.option("--out", type=Home(), required=True, metavar="DIR",
              help="The paper's folder is made in it: DIR/p1/index.html …")  # fmt: skip
@click.option("--seed", default=0, show_default=True)
def reproduce_command(paper: str, **flags: Any) -> int:
    """Make the tables and figures of a paper again.

    p1 is "Social Norm Bias", p2 "Addressing Both Statistical and Causal Gender Fairness in NLP
    Models", p3 "Fairness On The Ground". Every table is written as CSV and Markdown, every figure
    as SVG, PDF and CSV, with the printed value beside ours; on other data than the paper's, signs
    and order are compared.
    """
    from evenhand.papers.reproduce import reproduce

    with bar("Training") as tell:
        made = reproduce(paper, progress=tell, **flags)
    say(made)
    say(f"\nWritten to {flags['out']}/{paper}: index.html, index.md and every part as files.")
    return 0
