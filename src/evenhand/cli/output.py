"""Where output goes: the console, files written whole or not at all, progress on stderr."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from evenhand.errors import UsageError

SCREEN = "-"


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


def check_outputs(paths: Mapping[str, str | None], inputs: tuple[str, ...]) -> None:
    """Refuse, before anything is computed, outputs that could not or must not be written."""
    from evenhand.decisions.batches import check_writable
    from evenhand.decisions.read import overwrites

    given = {f"--{flag}": path for flag, path in paths.items() if path}
    seen: dict[Path, str] = {}
    for flag, path in given.items():
        place = Path(path).resolve()
        if path != SCREEN and overwrites(path, inputs):
            raise UsageError(f"{flag} {path!r} would overwrite the data. Choose another place.")
        if place in seen:
            raise UsageError(
                f"{seen[place]} and {flag} both name {path!r}. Give each a place of its own."
            )
        seen[place] = flag
        if path != SCREEN:
            check_writable(path)


def write_outputs(result: Any, record: Mapping[str, Any], paths: Mapping[str, str | None]) -> bool:
    """The files asked for, whole or not at all; whether one of them went to standard output."""
    for flag, path in paths.items():
        if path == SCREEN:
            click.echo(_rendered(flag, result, record), nl=False)
        elif path:
            from evenhand.findings.record import write_text

            write_text(path, _rendered(flag, result, record))
    return SCREEN in paths.values()


def _rendered(flag: str, result: Any, record: Mapping[str, Any]) -> str:
    if flag == "out":
        from evenhand.report.html import as_page

        return as_page(record)
    if flag == "json":
        return str(result.to_json()) + "\n"
    if flag == "csv":
        return str(result.to_frame().write_csv())
    if flag == "markdown":
        from evenhand.report.markdown import as_markdown

        return as_markdown(record)
    from evenhand.report.junit import as_junit

    return as_junit(record)


def listing() -> None:
    """Every measure that a limit may name, by lens."""
    from evenhand.lenses.catalogue import CATALOGUE

    for name, measure in CATALOGUE.items():
        if measure.kind not in {"floor", "test"}:
            click.echo(f"{name:<44}{', '.join(measure.lenses)}")
