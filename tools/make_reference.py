"""The reference pages, made from docstrings, --help and the catalogue.

python tools/make_reference.py          write docs/reference
python tools/make_reference.py --check  exit 1 where a page is not current
"""

import inspect
import re
import sys
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import evenhand
from evenhand.cli.main import COMMANDS
from evenhand.cli.main import evenhand as command_line
from evenhand.decisions.keywords import meanings
from evenhand.lenses.kinds import KINDS
from evenhand.lenses.measures import CATALOGUE
from evenhand.lenses.rows import COLUMNS

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made by tools/make_reference.py; edit the source instead. -->\n"
# How the names stand on the page, in the order in which people meet them.
CHAPTERS = {
    "Auditing": ("Decisions", "read_labels", "audit", "Audit", "tally", "Tallies", "check",
              "verify", "plan", "cost_curve", "inferred_groups", "gap_scorer"),
    "Watching": ("watch", "Watch", "alarms"),
    "Papers": ("reproduce",),
    "Records and charters": ("render", "read_record", "read_charter"),
    "Texts": ("swap_table", "swap", "load_lexicon", "scrub", "mask_titles", "score_table",
              "fit_norms", "score_norms", "word_weights", "word_table", "filter_words",
              "trace_token_weights"),
    "Remedies": ("compare", "Ledger", "remedy_table"),
    "Numbers": ("Estimate", "rate", "gap", "ratio", "paired_gap"),
    "Errors": ("EvenhandError",),
}  # fmt: skip
# Rooms that have public names of their own.
ROOMS = ("remedies", "models")
WIDTH = 96
# What a reader need not see of where a type lives.
LONG = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Za-z_])")


def python_page() -> str:
    """Every public name: a section with its signature, its docstring, and a class's members."""
    parts = [MADE, "# Python", "", "Everything in `evenhand`, loaded when it is first used.", ""]
    for chapter, names in CHAPTERS.items():
        links = " · ".join(f"[`{name}`](#{_anchor(name)})" for name in names)
        parts.append(f"- {chapter}: {links}")
    listed = [name for names in CHAPTERS.values() for name in names]
    assert sorted(listed) == list(evenhand.__all__), "the chapters and the public names differ"
    for chapter, names in CHAPTERS.items():
        parts += ["", f"## {chapter}"]
        for name in names:
            thing = getattr(evenhand, name)
            parts += ["", f"### {_heading(name)}", "", *_described(name, thing)]
            if inspect.isclass(thing):
                parts += _members(name, thing)
    for room in ROOMS:
        parts += _room(import_module(f"evenhand.{room}"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def _room(room: ModuleType) -> list[str]:
    """The names that a room makes public by itself; nothing where it has none."""
    names = getattr(room, "__all__", ())
    if not names:
        return []
    parts = ["", f"## `{room.__name__}`", "", *_docstring(inspect.cleandoc(room.__doc__ or ""))]
    for name in names:
        thing = getattr(room, name)
        parts += ["", f"### `{room.__name__.partition('.')[2]}.{name}`", ""]
        parts += _described(name, thing)
        if inspect.isclass(thing):
            parts += _members(name, thing)
    return parts


def _heading(name: str) -> str:
    """A heading: of a function its name, of a class the word as well, so that no two are alike."""
    return f"class `{name}`" if inspect.isclass(getattr(evenhand, name)) else f"`{name}`"


def _anchor(name: str) -> str:
    """Where the links to a heading go."""
    return _heading(name).replace("`", "").replace(" ", "-").lower()


def _described(name: str, thing: Any) -> list[str]:
    try:
        shown = _signature(name, inspect.signature(thing))
    except (TypeError, ValueError):
        shown = name
    return [f"```py\n{shown}\n```", "", *_docstring(inspect.cleandoc(thing.__doc__ or ""))]


def _signature(name: str, signature: inspect.Signature) -> str:
    """A signature with short types, on one line or with an argument on each."""
    places = []
    kinds = [place.kind for place in signature.parameters.values()]
    for i, place in enumerate(signature.parameters.values()):
        if place.name in ("self", "cls"):
            continue
        alone = place.kind is inspect.Parameter.KEYWORD_ONLY
        if alone and place.kind not in kinds[:i] and inspect.Parameter.VAR_POSITIONAL not in kinds:
            places.append("*")
        places.append(_short(str(place)))
    end = signature.return_annotation
    known = end not in (inspect.Signature.empty, None, "None")
    returned = _short(f" -> {inspect.formatannotation(end)}") if known else ""
    line = f"{name}({', '.join(places)}){returned}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {place}," for place in places), f"){returned}"])


def _type(annotation: Any) -> str:
    return _short(inspect.formatannotation(annotation))


def _short(text: str) -> str:
    """Types without the modules they live in; a default that is made when needed as …"""
    # Types that are named before they exist stand in quotes.
    text = re.sub(r"(?<=[:>] )'([A-Z][^']*)'", r"\1", text)
    text = re.sub(r"<factory>|<object object at \w+>", "…", text)
    return LONG.sub("", text)


def _docstring(text: str) -> list[str]:
    """A docstring as Markdown: paragraphs, lists of what is listed, examples as code."""
    parts: list[str] = []
    heading = None
    for block in re.split(r"\n\n", text):
        lines = block.split("\n")
        if re.fullmatch(r"[A-Z][a-z ]+:", lines[0]) and len(lines) > 1:
            heading = lines.pop(0)[:-1]
            if heading != "Examples":
                parts += [f"**{heading}**", ""]
        indented = inspect.cleandoc("\n".join(["", *lines])).split("\n")
        if heading == "Examples":
            parts += ["```pycon", *indented, "```", ""]
        elif heading in (None, "Returns"):
            parts += [" ".join(_plain(line) for line in indented), ""]
        else:
            parts += [*_listed(indented), ""]
    return parts


def _listed(lines: list[str]) -> list[str]:
    """`name: what it is`, which may go on in lines further in, as a list."""
    items: list[str] = []
    for line in lines:
        if line.startswith(" ") and items:
            items[-1] += f" {_plain(line.strip())}"
        else:
            name, _, meaning = line.partition(": ")
            items.append(f"- `{name}`: {_plain(meaning)}")
    return items


def _plain(text: str) -> str:
    """Text whose angle brackets are shown and not taken for HTML."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else p.replace("<", "&lt;") for p in pieces)


def _members(name: str, thing: type) -> list[str]:
    """The attributes of a class and its methods, a line on each."""
    parts: list[str] = []
    held = {each.name: _type(each.type) for each in (fields(thing) if is_dataclass(thing) else ())}
    methods, lines = [], []
    for member, value in vars(thing).items():
        if member.startswith("_") or member in held:
            continue
        inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(inner, property | cached_property):
            lines.append(f"- `{member}`: {_plain(_first(inner.__doc__))}")
        elif inspect.isfunction(inner):
            methods += [
                f"#### `{name}.{member}`",
                "",
                f"```py\n{_signature(member, inspect.signature(inner))}\n```",
                "",
                *_docstring(inspect.cleandoc(inner.__doc__ or "")),
            ]
    if held and "Attributes:" not in (thing.__doc__ or ""):
        types = (f"- `{attribute}`: `{kind}`" for attribute, kind in held.items())
        parts += ["**Attributes**", "", *types, ""]
    if lines:
        parts += ["**Properties**", "", *lines, ""]
    return [*parts, *methods]


def _first(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n\n")[0].replace("\n", " ")


def _name(thing: object, name: str) -> list[str]:
    try:
        signature = str(inspect.signature(thing)).replace("evenhand.", "")
    except (TypeError, ValueError):
        signature = ""
    text = inspect.cleandoc(thing.__doc__ or "")
    head = [f"## `{name}`", "", f"```text\n{name}{signature}\n```", ""]
    return [*head, f"```text\n{text}\n```", ""]


def commands_page() -> str:
    """Every command's --help."""
    parts = [MADE, "# Commands", ""]
    with click.Context(command_line, info_name="evenhand") as top:
        parts += [_help("evenhand", command_line, top)]
        for name in COMMANDS:
            command = command_line.get_command(top, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=top) as context:
                parts.append(_help(f"evenhand {name}", command, context))
                for sub, inner in getattr(command, "commands", {}).items():
                    with click.Context(inner, info_name=sub, parent=context) as deeper:
                        parts.append(_help(f"evenhand {name} {sub}", inner, deeper))
    return "\n".join(parts)


def _help(title: str, command: click.Command, context: click.Context) -> str:
    context.terminal_width = context.max_content_width = 96
    text = command.get_help(context)
    return f"## `{title}`\n\n```text\n{text}\n```\n"


def measures_page() -> str:
    """The catalogue of measures and the columns of a result row."""
    parts = [MADE, "# Measures", "", "| kind | meaning |", "|---|---|"]
    parts += [f"| {name} | {kind.meaning} |" for name, kind in KINDS.items()]
    parts += ["", "| measure | said | kind | lens | n counts |", "|---|---|---|---|---|"]
    parts += [
        f"| `{m.name}` | {m.label} | {m.kind} | {', '.join(m.lenses)} | {m.counts} |"
        for m in CATALOGUE.values()
    ]
    parts += ["", "## The result row", "", "Every lens gives the same columns:", ""]
    parts += ["`" + " ".join(COLUMNS) + "`", ""]
    return "\n".join(parts)


def vocabulary_page() -> str:
    """The roles a column can have."""
    parts = [MADE, "# Vocabulary", ""]
    parts += ["One word per idea, in arguments, flags, columns and JSON:", ""]
    parts += ["| word | means |", "|---|---|"]
    parts += [f"| `{word}` | {meaning} |" for word, meaning in meanings().items()]
    parts += ["", "`level` is the confidence level (0.95), `seed` the seed (0).", ""]
    return "\n".join(parts)


PAGES = {
    "python.md": python_page,
    "commands.md": commands_page,
    "measures.md": measures_page,
    "vocabulary.md": vocabulary_page,
}


def main(check: bool) -> int:
    stale = []
    for name, make in PAGES.items():
        text = make().rstrip() + "\n"
        path = FOLDER / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"Not current: {', '.join(stale)}. Run: make docs")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
