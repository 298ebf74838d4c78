"""Every definition has a user, every name of a class one meaning, every rule one home."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import evenhand
from evenhand.cli.main import COMMANDS

SOURCE = Path(evenhand.__file__).parent
ROOT = SOURCE.parents[1]
Definition = tuple[str, str]  # module, name
# Called by names that no import shows: a protocol of scikit-learn, of click, of pytest.
CALLED_BY_OTHERS = {"integrations.pytest_fixture"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def trees() -> dict[str, ast.Module]:
    paths = SOURCE.rglob("*.py")
    return {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def definitions() -> dict[Definition, ast.stmt]:
    """Functions, classes and constants at the top of a module."""
    found: dict[Definition, ast.stmt] = {}
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[module, node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (n for target in targets for n in ast.walk(target)):
                    if isinstance(name, ast.Name):
                        found[module, name.id] = node
    return found


@cache
def definitions_of() -> dict[str, list[Definition]]:
    """The definitions of every module."""
    found: dict[str, list[Definition]] = {module: [] for module in trees()}
    for one in definitions():
        found[one[0]].append(one)
    return found


@cache
def imported(module: str) -> dict[str, str]:
    """What a module calls things of ours, and their dotted names without the package."""
    found = {}
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "evenhand":
            room = str(node.module).removeprefix("evenhand").lstrip(".")
            for name in node.names:
                found[name.asname or name.name] = f"{room}.{name.name}".lstrip(".")
    return found


def named(dotted: str) -> Iterator[Definition]:
    """The definitions that a dotted name means: one, or all of a module that is passed on."""
    if dotted in trees():
        yield from definitions_of()[dotted]
    module, _, name = dotted.rpartition(".")
    yield module, name


def used_by(module: str, node: ast.AST) -> Iterator[Definition]:
    """The definitions that a piece of a module uses."""
    names, parts = imported(module), list(ast.walk(node))
    of_modules = {
        id(part.value): part
        for part in parts
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
    }
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            # Commands and what is loaded late are named as "module:name".
            place, colon, name = part.value.partition(":")
            if colon and place in trees():
                yield place, name
        if not isinstance(part, ast.Name):
            continue
        yield module, part.id
        dotted = names.get(part.id)
        if dotted in trees() and id(part) in of_modules:
            yield dotted, of_modules[id(part)].attr
        elif dotted is not None:
            yield from named(dotted)


def roots() -> Iterator[Definition]:
    """What users reach by itself: public names, commands, and what runs when a module is loaded."""
    for room in ("", "models", "remedies"):
        prefix = f"{room}." if room else ""
        for name, home in import_module(f"evenhand.{room}".rstrip("."))._HOMES.items():
            yield f"{prefix}{home}", name
    for place in COMMANDS.values():
        module, _, name = place.partition(":")
        yield module.removeprefix("evenhand."), name
    yield "cli.main", "main"
    for module, tree in trees().items():
        if module in CALLED_BY_OTHERS:
            yield from definitions_of()[module]
        for node in tree.body:
            decorators = getattr(node, "decorator_list", [])
            if isinstance(node, ast.Expr | ast.If | ast.Try | ast.For | ast.With):
                yield from used_by(module, node)
            for decorator in decorators:
                yield from used_by(module, decorator)
            # A command or a hook is called by those who know it by its name.
            known = any(".command" in ast.unparse(one) for one in decorators)
            if known or getattr(node, "name", "").startswith("__"):
                yield module, node.name


def published() -> set[str]:
    """Names that pages show as code, and what tools and benchmarks import."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    shown = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    code = re.findall(r"```.*?```|`[^`\n]+`", shown, re.DOTALL)
    names = set(re.findall(r"\w+", "\n".join(code)))
    for folder in ("tools", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evenhand"):
                    names |= {name.name for name in node.names}
    return names


def test_nothing_lives_for_tests_alone() -> None:
    names = published()
    waiting = [*roots(), *(one for one in definitions() if one[1] in names)]
    reached: set[Definition] = set()
    while waiting:
        one = waiting.pop()
        if one in reached or one not in definitions():
            continue
        reached.add(one)
        waiting += used_by(one[0], definitions()[one])
    alone = sorted(set(definitions()) - reached)
    assert [".".join(one) for one in alone if not one[1].startswith("__")] == []


def test_a_name_of_a_class_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for (module, name), node in definitions().items():
        if isinstance(node, ast.ClassDef) and not name.startswith("_"):
            homes.setdefault(name, []).append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_the_reserved_words_have_one_home() -> None:
    """`<rest>`, `not:` and the floors on cases stand once; whoever needs them imports them."""
    reserved = ("<rest>", "<overall>", "<summary>", "<missing>", "not:")
    found = {
        (module, node.value)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in reserved
    }
    assert {module for module, _ in found} == {"decisions.labels"}
    floors = {name: m for m, name in definitions() if name in ("HIDDEN_UNDER", "UNTOLD_UNDER")}
    assert floors == {"HIDDEN_UNDER": "lenses.scope", "UNTOLD_UNDER": "lenses.scope"}
    assert [m for m, name in definitions() if name == "choose_reference"] == ["lenses.scope"]
