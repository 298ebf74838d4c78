"""A charter from its TOML file: checked once, here, and typed from then on."""

import re
from pathlib import Path
from typing import Any

from evenhand.charter.charter import (
    LAYERS,
    OUTCOMES,
    QUESTIONS,
    SCHEMA,
    Answer,
    Charter,
    Consequence,
    Layer,
    Stakeholder,
    System,
)
from evenhand.charter.entry import Entry
from evenhand.charter.numbers import (
    limit_table,
    read_bar,
    read_charter_roles,
    read_choices,
    read_prevalence,
    read_truth_quality,
    whom,
)
from evenhand.errors import DataError, nearest
from evenhand.files.documents import parse_toml
from evenhand.files.reading import read_whole_text

KEYS = (
    "schema",
    "system",
    *LAYERS,
    "stakeholders",
    "catalogue",
    "choices",
    "limits",
    "prevalence",
    "truth_quality",
    "roles",
)
_KINDS = ("cost", "benefit")


def read_charter(path: str | Path) -> Charter:
    """The charter in this file; whatever is wrong with it is said with line, value and remedy."""
    try:
        text = read_whole_text(path, encoding="utf-8-sig")
    except FileNotFoundError:
        folder = Path(path).parent
        siblings = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        raise DataError(
            f"There is no file '{path}'.{nearest(Path(path).name, siblings)} "
            "Start one with: evenhand charter new > charter.toml"
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"'{path}' is not UTF-8 text. Save it as UTF-8 and try again.") from None
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror}.") from error
    return parse_charter(text, source=str(path))


def parse_charter(text: str, *, source: str = "charter") -> Charter:
    """The charter in this text.

    Examples:
        >>> text = 'schema = "evenhand.charter/1"\\n[[choices]]\\ncost_ratio = 4\\ntolerance = 1.25'
        >>> charter = parse_charter(text)
        >>> charter.choices[0].low, charter.choices[0].high, charter.choices[0].threshold
        (3.2, 5.0, 0.2)
    """
    # tomllib counts \r\n as TOML does; the lines are found in the same, plain text.
    text = text.replace("\r\n", "\n")
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise _invalid(source, text, str(error)) from None
    top = Entry(source, data, text=text)
    _check_schema(top)
    top.only(KEYS)
    roles = read_charter_roles(top.table("roles"))
    stakeholders = _stakeholders(top)
    choices, bar = read_choices(top, roles), read_bar(top)
    # A choice for a pair is a wish to see the pairs.
    crossed = {"crossed": True} if any("*" in (c.attribute or "") for c in choices) else {}
    charter = Charter(
        source=source,
        system=_system(top.table("system")),
        layers={name: _layer(top.table(name)) for name in LAYERS},
        stakeholders=stakeholders,
        catalogue=_catalogue(top, [one.name for one in stakeholders], roles.get("group", [])),
        choices=choices,
        bar=bar,
        limits=limit_table(top.table("limits"), chosen=bool(choices), bar=bar is not None),
        prevalence=read_prevalence(top.table("prevalence")),
        truth_quality=read_truth_quality(top.table("truth_quality")),
        roles=roles | crossed,
    )
    if top.problems:
        raise top.problems.error()
    return charter


def _check_schema(top: Entry) -> None:
    if "schema" not in top:
        top.problems.add(
            f'{top.source} has no schema. Write schema = "{SCHEMA}" as its first line.'
        )
    elif top.data["schema"] != SCHEMA:
        top.refuse("schema", f'is not a schema that this version reads. It reads "{SCHEMA}".')
        raise top.problems.error()  # another schema may mean other things by the same keys


def _invalid(source: str, text: str, reason: str) -> DataError:
    """The error of a text that is not TOML, with the line itself."""
    found = re.search(r"\(at line (\d+), column \d+\)", reason)
    lines = text.rstrip("\n").split("\n")
    line = int(found.group(1)) if found else len(lines)
    written = lines[min(line, len(lines)) - 1].strip()
    why = reason.split(" (at ")[0]
    why = why[:1].lower() + why[1:]
    remedy = "Put words in quotes, write dates as 2026-01-31 and numbers without units or colons."
    return DataError(f"{source}, line {line}: '{written}' is not valid TOML ({why}). {remedy}")


_PAIRS = ("item", "class", "false_positive", "false_negative")
_TEXTS = ("name", "decision", "of", "decided")


def _system(entry: Entry) -> System:
    entry.only((*_TEXTS, *_PAIRS, "truth", "groups"))
    words: dict[str, Any] = {key: entry.text(key) for key in _TEXTS}
    for key in _PAIRS:
        names = entry.texts(key)
        if len(names) > 2:
            entry.refuse(key, "is more than one name and its plural. Write one, or two in a list.")
        if names:
            known = "class_" if key == "class" else key
            words[known] = (names[0], names[1] if len(names) == 2 else _plural(names[0]))
    truth = entry.texts("truth")
    if truth and len(truth) != 2:
        entry.refuse(
            "truth",
            "does not say both what is the case and what is not. "
            'Write two, such as ["break the rules", "do not break the rules"].',
        )
    return System(
        **words,
        truth=(truth[0], truth[1]) if len(truth) == 2 else None,
        groups=_group_names(entry.table("groups")),
    )


def _group_names(entry: Entry) -> dict[str, dict[str, str]]:
    """What the people of each group are called, by attribute and value."""
    tables = {str(attribute): entry.table(attribute) for attribute in entry}
    return {
        attribute: {value: name for value in table if (name := table.text(value)) is not None}
        for attribute, table in tables.items()
    }


def _plural(noun: str) -> str:
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def _layer(entry: Entry) -> Layer:
    name = str(entry.path[-1])
    own = ("owner", "date", "review_by", "consulted")
    entry.only((*own, *QUESTIONS[name]))
    owner, date, consulted = entry.text("owner"), entry.day("date"), entry.texts("consulted")
    answers = []
    for key, question in QUESTIONS[name].items():
        if isinstance(entry.data.get(key), dict):
            # An answer may have been given by somebody else, at another time, than its layer.
            given = entry.table(key)
            given.only(("answer", "owner", "date", "consulted"))
            answers.append(
                Answer(
                    question=question,
                    text=given.text("answer"),
                    owner=given.text("owner") or owner,
                    apart=given.text("owner") is not None,
                    date=given.day("date") or date,
                    consulted=given.texts("consulted") or consulted,
                )
            )
        else:
            answers.append(
                Answer(
                    question=question,
                    text=entry.text(key),
                    owner=owner,
                    date=date,
                    consulted=consulted,
                )
            )
    return Layer(
        name=name,
        owner=owner,
        date=date,
        review_by=entry.day("review_by"),
        consulted=consulted,
        answers=tuple(answers),
    )


def _stakeholders(top: Entry) -> tuple[Stakeholder, ...]:
    found: dict[str, Stakeholder] = {}
    for entry in top.tables("stakeholders"):
        entry.only(("name", "interest", "consulted"))
        name = entry.text("name")
        interest, consulted = entry.text("interest"), entry.flag("consulted")
        if entry.lacks("name"):
            entry.refuse(None, 'has no name. Add one, such as name = "people who comment".')
        elif name in found:
            entry.refuse("name", "is listed twice. Keep one of the two.")
        elif name is not None:
            found[name] = Stakeholder(name=name, interest=interest, consulted=consulted)
    return tuple(found.values())


def _catalogue(top: Entry, known: list[str], groups: list[str]) -> tuple[Consequence, ...]:
    found = []
    for entry in top.tables("catalogue"):
        entry.only(("outcome", "kind", "borne_by", "what", "attribute", "group"))
        outcome, bearer = entry.choice("outcome", OUTCOMES), entry.text("borne_by")
        what, kind = entry.text("what"), entry.choice("kind", _KINDS)
        if entry.lacks("outcome"):
            listed = ", ".join(OUTCOMES)
            entry.refuse(None, f"does not say which outcome it is about. Add one of {listed}.")
        if entry.lacks("borne_by"):
            entry.refuse(None, "does not say who bears it. Add borne_by and a stakeholder.")
        elif bearer is not None and known and bearer not in known:
            hint = nearest(bearer, known)
            entry.refuse(
                "borne_by", f"is not a stakeholder.{hint} Add them under [[stakeholders]]."
            )
        if entry.lacks("what"):
            entry.refuse(None, "does not say what happens to them. Add what, in words.")
        about = whom(entry, groups)
        if outcome is None or bearer is None or what is None or about is None:
            continue
        found.append(
            Consequence(
                outcome=outcome,
                kind=kind or ("cost" if outcome.startswith("false") else "benefit"),
                borne_by=bearer,
                what=what,
                attribute=about[0],
                group=about[1],
            )
        )
    return tuple(found)
