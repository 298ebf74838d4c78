"""`evenhand demo`: two simulated systems with planted biases, audited from end to end."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

STEPS = 9


@click.command("demo")
@click.option("--folder", default="demo", show_default=True, help="Where the files go.")
@click.option("--seed", default=0, show_default=True)
@click.option("--no-text", is_flag=True, help="Leave out the occupation classifier.")
def demo_command(folder: str, seed: int, no_text: bool) -> int:
    """Simulate two systems with planted biases, audit them, say what was planted and found."""
    from evenhand.cli.demo_stories import moderation_story, occupation_story

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with _bar() as bar:
        step = _stepper(bar)
        told = moderation_story(place, seed=seed, step=step)
        if not no_text:
            told += occupation_story(place, seed=seed, step=step)
    for line in told:
        click.echo(line)
    return 0


def _bar() -> AbstractContextManager[Any]:
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _stepper(bar: Any) -> Callable[[str], None]:
    if bar is None:
        return lambda words: None
    task = bar.add_task("Starting", total=STEPS)

    def step(words: str) -> None:
        bar.update(task, description=words, advance=1)

    return step
