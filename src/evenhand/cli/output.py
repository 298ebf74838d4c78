"""Where output goes: the console, files written whole or not at all, progress on stderr."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from evenhand.decisions.elsewhere import is_address, place_of
from evenhand.errors import DataError, UsageError
from evenhand.files import check_writable, write_text
from evenhand.files.documents import parse_toml
from evenhand.files.folders import check_folder
from evenhand.files.places import check_places, is_screen
from evenhand.files.reading import read_whole_text
from evenhand.speech import printable


def show(draw: Callable[[Any], None]) -> None:
    """Draw on standard output, as wide as the window; with colours where it is a terminal.

    What is piped is as wide as the window that the command was typed in, and 80 where there is
    none, such as in a scheduled job.
    """
    from rich.console import Console

    screen = Console(highlight=False)
    if screen.is_terminal:
        draw(screen)
        return
    page = io.StringIO()
    draw(Console(file=page, width=screen.width, force_terminal=False, color_system=None,
                 highlight=False))  # fmt: skip
    say("\n".join(line.rstrip() for line in page.getvalue().splitlines()))


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


def say(text: object, *, err: bool = False, end: str = "\n") -> None:
    """Print text for people; whatever data put into it cannot steer the terminal."""
    lines = "\n".join(printable(line) for line in str(text).split("\n")) + end
    # A remark that nobody can take is no fault of the command's.
    with suppress(OSError) if err else _readers_may_leave():
        stream = sys.stderr if err else sys.stdout
        stream.write(lines)
        stream.flush()


@contextmanager
def _readers_may_leave() -> Iterator[None]:
    """Whoever reads our output may stop when they have seen enough; a full disk is told."""
    try:
        yield
    except BrokenPipeError:
        leave_output()
    except OSError as error:
        leave_output()
        raise UsageError(f"Standard output cannot be written: {error.strerror}.") from error


def leave_output() -> None:
    """Nobody takes our output any more: what is still printed goes nowhere."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class Place(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file or folder; shells complete its name."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names of files, which the shell knows itself."""
        return [CompletionItem(incomplete, type="file")]


class Input(Place):
    """Something that is read: a file, a folder or a pattern; `what` is how messages call it."""

    def __init__(self, what: str = "") -> None:
        self.what = what

    def places(self, value: str) -> list[str]:
        """Where this is read from; an address is no place of this machine."""
        return [] if is_address(value) else [place_of(value)]


class ModelInput(Input):
    """A model: a file, a folder, an address, or module:function, which is read from its module."""

    def places(self, value: str) -> list[str]:
        if re.match(r"https?://", value):
            return []
        module, separator, _ = value.partition(":")
        return [value, f"{module.replace('.', '/')}.py"] if separator else [value]


class Output(Place):
    """Something that is written: a file, or a `folder` of some kind; `beside` are side files."""

    def __init__(self, *, folder: str | None = None, beside: Sequence[str] = ()) -> None:
        self.folder, self.beside = folder, tuple(beside)

    def convert(self, value: str, param: Any, ctx: Any) -> str:
        """The place as it is; an empty one, such as of an unset variable, is refused."""
        return _named(value, param)


class Home(Output):
    """A folder, new or full, that a folder of our own is made in; the library checks that one."""


def _named(value: str, param: Any) -> str:
    if not str(value).strip():
        flag = max(param.opts, key=len) if param else "The output"
        raise UsageError(f"{flag} names no place. Give a name such as out.parquet.")
    return value


class FormPlace(str):
    """Where a form is written; `form` is its name."""

    form: str


class FormOutput(Output):
    """A form and its place: ll144=table.html."""

    def convert(self, value: str, param: Any, ctx: Any) -> str:
        name, separator, place = str(value).partition("=")
        if not separator or not name:
            raise UsageError(f"--form {value!r} is not FORM=FILE, such as ll144=table.html.")
        made = FormPlace(super().convert(place, param, ctx))
        made.form = name
        return made


IN, OUT = Input(), Output()


class Guarded(click.Command):
    """A command whose outputs are checked against its inputs and each other before it starts.

    What is read and what is written is known by the types of its parameters.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless an output would cost an input or another output."""
        inputs: dict[str, list[str]] = {}
        outputs: dict[str, str] = {}
        beside: dict[str, str] = {}
        folders: dict[str, str] = {}
        homes: set[str] = set()
        for param in self.params:
            value = ctx.params.get(param.name or "")
            values = value if isinstance(value, tuple) else [value]
            flag, kind = max(param.opts, key=len), param.type
            for place in [str(one) for one in values if one is not None]:
                if isinstance(kind, Input):
                    what = kind.what or f"what {flag} names"
                    inputs.setdefault(what, []).extend(kind.places(place))
                elif isinstance(kind, Output):
                    outputs[flag if len(values) == 1 else f"{flag} {place}"] = place
                    for ending in kind.beside:
                        beside[f"the side file {ending} of {flag}"] = f"{place}{ending}"
                    if kind.folder is not None:
                        folders[flag] = kind.folder
                    if isinstance(kind, Home):
                        homes.add(flag)
        check_places(outputs | beside, inputs, folders=folders)
        for flag, path in outputs.items():
            if flag in folders:
                check_folder(path, kind=folders[flag])
            elif not is_screen(path) and flag not in homes:
                check_writable(path)
        return super().invoke(ctx)


def write_output(path: str, text: str) -> None:
    """A file whole or not at all; `-` is standard output, in UTF-8 as files are."""
    if not is_screen(path):
        write_text(path, text)
    elif sys.stdout.isatty():
        say(text, end="")
    else:
        with _readers_may_leave():
            binary = getattr(sys.stdout, "buffer", None)  # a stand-in of a notebook has none
            sys.stdout.flush()
            if binary is None:
                sys.stdout.write(text)
            else:
                binary.write(text.encode("utf-8", "surrogatepass"))
                binary.flush()


def warn_of_charts() -> None:
    """Say on standard error what is missing where a page will have no charts."""
    from evenhand.report.svg import HINT, can_draw

    if not can_draw():
        say(f"evenhand: the report has no charts. To add them: {HINT}", err=True)


def out_form(path: str | None) -> str:
    """What `--out` writes, by the name's ending: a page, or Markdown.

    Examples:
        >>> out_form("report.html"), out_form("notes/summary.md"), out_form("-")
        ('page', 'markdown', 'page')
    """
    return "markdown" if str(path).lower().endswith((".md", ".markdown")) else "page"


def write_outputs(result: Any, paths: Mapping[str, str | None]) -> bool:
    """The files asked for, whole or not at all; whether one of them went to standard output."""
    if not any(paths.values()):
        return False
    from evenhand.report.render import render

    if paths.get("out"):
        warn_of_charts()
    for flag, path in paths.items():
        form = out_form(path) if flag == "out" else flag
        if is_screen(path):
            write_output(str(path), render(result, form=form))
        elif path:
            render(result, path=path, form=form)
    return any(is_screen(path) for path in paths.values())


def write_forms(result: Any, places: Sequence[Any]) -> None:
    """The forms asked for, each in its place."""
    if not places:
        return
    from evenhand.report.render import render

    for place in places:
        render(result, path=str(place), form=place.form)


def write_figures(records: Sequence[Any], folder: str) -> None:
    """Every chart of the records in files of its own."""
    from evenhand.report.render import render

    # Only a page can be made of everything; this one is thrown away.
    render(*records, form="page", charts=False, figures=folder)


def listing() -> None:
    """Every measure that a limit may name, by lens."""
    from evenhand.lenses.measures import CATALOGUE

    for name, measure in CATALOGUE.items():
        if measure.takes_limit:
            say(f"{name:<44}{', '.join(measure.lenses)}")


@contextmanager
def bar(what: str) -> Iterator[Callable[[float, float], None] | None]:
    """A bar that is told how many rows are done, and of how many."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)


def read_title_forms(path: str) -> dict[str, tuple[str, ...]]:
    """Titles and their forms from a TOML file: nurse = ["registered nurse", "rn"]."""
    try:
        table = parse_toml(read_whole_text(path))
    except FileNotFoundError:
        raise UsageError(f"There is no file '{path}'.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"'{path}' cannot be read as TOML: {error}.") from error
    for title, forms in table.items():
        if not isinstance(forms, list) or not all(isinstance(form, str) for form in forms):
            raise DataError(
                f"'{path}' has {title} = {forms!r}. Write a list of forms, "
                'such as nurse = ["registered nurse", "rn"].'
            )
    return {title: tuple(forms) for title, forms in table.items()}
