"""The reference pages, made from docstrings, --help and the catalogue.

python tools/make_reference.py          write docs/reference
python tools/make_reference.py --check  exit 1 where a page is not current
"""

import inspect
import sys
from pathlib import Path

import click

import evenhand
from evenhand.cli.main import COMMANDS
from evenhand.cli.main import evenhand as command_line
from evenhand.decisions.roles import Roles
from evenhand.lenses.catalogue import CATALOGUE
from evenhand.lenses.rows import COLUMNS

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made by tools/make_reference.py; edit the source instead. -->\n"


def python_page() -> str:
    """Every public name with its signature and docstring."""
    parts = [MADE, "# Python", "", "Everything in `evenhand`, loaded when it is first used.", ""]
    for name in evenhand.__all__:
        thing = getattr(evenhand, name)
        try:
            signature = str(inspect.signature(thing)).replace("evenhand.", "")
        except (TypeError, ValueError):
            signature = ""
        text = inspect.cleandoc(thing.__doc__ or "")
        parts += [f"## `{name}`", "", f"```text\n{name}{signature}\n```", ""]
        parts += [f"```text\n{text}\n```", ""]
    return "\n".join(parts)


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
    kinds = {
        "rate": "a share between 0 and 1; a limit of x means [0, x]",
        "gap": "group − reference; a limit of x means ±x",
        "ratio": "group ÷ reference; a limit of x means [x, 1/x]",
        "distance": "0 or more; a limit of x means [0, x]",
        "correlation": "between −1 and 1; a limit of x means ±x",
        "number": "any number; write a band low:high",
        "floor": "what noise alone would give; takes no limit",
        "test": "a test statistic with its p; takes no limit",
    }
    parts = [MADE, "# Measures", "", "| kind | meaning |", "|---|---|"]
    parts += [f"| {kind} | {meaning} |" for kind, meaning in kinds.items()]
    parts += ["", "| measure | kind | lens |", "|---|---|---|"]
    parts += [f"| `{m.name}` | {m.kind} | {', '.join(m.lenses)} |" for m in CATALOGUE.values()]
    parts += ["", "## The result row", "", "Every lens gives the same columns:", ""]
    parts += ["`" + " ".join(COLUMNS) + "`", ""]
    return "\n".join(parts)


def vocabulary_page() -> str:
    """The roles a column can have."""
    parts = [MADE, "# Vocabulary", ""]
    parts += ["One word per idea, in arguments, flags, columns and JSON:", ""]
    words = {
        "truth": "what is the case; a class name or 0/1",
        "decision": "what was decided, by the model or by the labeler",
        "score": "score of the positive class",
        "scores": "one score column per class, named `score:<class>`",
        "threshold": "the cut: a number, one per group, or a column",
        "rule": "how a decision came about: given, score>=t, argmax, one-versus-rest",
        "positive": "the value that counts as positive",
        "positive_is": "benefit or burden for the person decided about",
        "group": "one or more columns that say which group a person belongs to",
        "crossed": "also all group columns together",
        "reference": "what a group is compared with; by default the largest",
        "stratum": "a column to condition on",
        "stratum_edges": "cut points of a numeric stratum",
        "labeler": "who decided",
        "item": "what was decided about",
        "cluster": "rows that belong together",
        "weight": "how many cases a row stands for",
        "review_share": "the probability with which a row's truth was reviewed",
        "time": "when it was decided",
        "seconds": "how long the decision took",
        "text": "the text decided about",
        "counterfactual": "the decision under each value of the group",
        "norm": "how much a row looks like a typical member of a group",
        "norm_irrelevant": "the same by words that have nothing to do with the class",
        "missing": "drop, group or error",
    }
    unknown = set(Roles.__slots__) ^ set(words)
    assert not unknown, f"the vocabulary and the roles differ: {sorted(unknown)}"
    parts += ["| word | means |", "|---|---|"]
    parts += [f"| `{word}` | {meaning} |" for word, meaning in words.items()]
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
