"""Where output goes: the console, files written whole or not at all, progress on stderr."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click


def console() -> Any:
    """A rich console of at most 100 columns on standard output."""
    from rich.console import Console

    from evenhand.report.terminal import WIDTH

    found = Console(highlight=False)
    return Console(highlight=False, width=min(found.width, WIDTH) if found.is_terminal else WIDTH)


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """A spinner on stderr that names the lens at work; silent when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    screen = Console(stderr=True)
    with screen.status("Reading …") as status:
        yield lambda name: status.update(f"Measuring: {name} lens …")


def write_outputs(result: Any, record: Mapping[str, Any], paths: Mapping[str, str | None]) -> None:
    """The files asked for; an unwritable path is refused and the old file survives."""
    from evenhand.findings.record import write_text

    if paths.get("out"):
        from evenhand.report.html import as_page

        write_text(str(paths["out"]), as_page(record))
    if paths.get("json"):
        write_text(str(paths["json"]), result.to_json())
    if paths.get("csv"):
        write_text(str(paths["csv"]), result.to_frame().write_csv())
    if paths.get("markdown"):
        from evenhand.report.markdown import as_markdown

        write_text(str(paths["markdown"]), as_markdown(record))
    if paths.get("junit"):
        from evenhand.report.junit import as_junit

        write_text(str(paths["junit"]), as_junit(record))


def listing() -> None:
    """Every measure that a limit may name, by lens."""
    from evenhand.lenses.catalogue import CATALOGUE

    for name, measure in CATALOGUE.items():
        if measure.kind not in {"floor", "test"}:
            click.echo(f"{name:<44}{', '.join(measure.lenses)}")
