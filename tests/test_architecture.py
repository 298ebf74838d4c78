"""What holds the rooms together: the direction of imports, and what importing costs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenhand

SOURCE = Path(evenhand.__file__).parent
ORDER = (
    "errors",
    "stats",
    "decisions",
    "lenses",
    "text",
    "models",
    "mitigation",
    "charter",
    "findings",
    "monitor",
    "report",
    "cli",
    "web",
)
BESIDE = {"simulate", "datasets"}
BESIDE_MAY_USE = {"errors", "stats", "text", "decisions"}
# An audit prints itself: the display hooks of findings/run.py reach forward, when called.
FORWARD = {("findings/run.py", "report")}
HEAVY = (
    "sklearn",
    "torch",
    "transformers",
    "pandas",
    "duckdb",
    "pyspark",
    "pyarrow",
    "joblib",
    "scipy.stats",
    "matplotlib",
    "rich",
    "click",
    "jinja2",
)
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def tree(module: str) -> ast.Module:
    return ast.parse((SOURCE / module).read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        if node.module == "evenhand":
            return [f"evenhand.{name.name}" for name in node.names]
        return [node.module]
    return []


def all_imports(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        yield from imported(node)


def imports_when_loaded(module: str) -> Iterator[str]:
    """Imports outside functions and outside `if TYPE_CHECKING`."""
    waiting: list[ast.AST] = [tree(module)]
    while waiting:
        node = waiting.pop()
        yield from imported(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)


def room(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def rooms_used(module: str) -> set[str]:
    names = {name.split(".")[1] for name in all_imports(module) if name.startswith("evenhand.")}
    return {name for name in names if name in {*ORDER, *BESIDE}}


@pytest.mark.parametrize("module", [m for m in MODULES if "/" in m or m == "errors.py"])
def test_imports_point_backwards(module: str) -> None:
    own = room(module)
    assert own in {*ORDER, *BESIDE}, f"{own} is no room of the design"
    used = rooms_used(module) - {own} - {b for a, b in FORWARD if a == module}
    if own in BESIDE:
        assert used <= BESIDE_MAY_USE
        return
    behind = set(ORDER[: ORDER.index(own)])
    if own in {"cli", "web"}:
        behind |= BESIDE
    assert used <= behind, f"{module} reaches forward to {sorted(used - behind)}"


def test_relative_imports_are_not_used() -> None:
    for module in MODULES:
        relative = [n for n in ast.walk(tree(module)) if isinstance(n, ast.ImportFrom) and n.level]
        assert not relative, module


def test_only_decisions_touches_frames() -> None:
    allowed = {"decisions", *BESIDE}
    users = {room(m) for m in MODULES if any(n.split(".")[0] == "narwhals" for n in all_imports(m))}
    assert users <= allowed


@pytest.mark.parametrize("module", MODULES)
def test_heavy_dependencies_wait_until_they_are_needed(module: str) -> None:
    loaded = set(imports_when_loaded(module))
    heavy = set(HEAVY) - ({"click"} if room(module) == "cli" else set())
    found = {n for n in loaded for h in heavy if n == h or n.startswith(f"{h}.")}
    assert not found


def test_importing_evenhand_loads_nothing_heavy() -> None:
    names = [*HEAVY, "polars", "narwhals", "numpy"]
    code = f"import sys, evenhand; print([n for n in {names!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_audit_of_polars_data_loads_no_extra() -> None:
    # What only some users installed must not be needed by, nor slow down, the others.
    code = (
        "import sys, evenhand as eh\n"
        "t = {'y': [0, 1] * 40, 'd': [0, 1, 1, 0] * 20, 'g': ['a', 'b'] * 40, 's': [0.2, 0.7] * 40}"
        "\n"
        "a = eh.audit(eh.Decisions(t, truth='y', decision='d', score='s', group='g'))\n"
        f"print([n for n in {HEAVY!r} if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names() -> None:
    assert len(evenhand.__all__) <= 25
    assert sorted(set(evenhand.__all__)) == list(evenhand.__all__)
    assert set(evenhand.__all__) <= set(dir(evenhand))
    for name in evenhand.__all__:
        assert getattr(evenhand, name).__doc__, name
    with pytest.raises(AttributeError, match="module 'evenhand' has no attribute 'fairness'"):
        _ = evenhand.fairness


def test_no_room_has_the_name_of_a_public_function() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert not rooms & set(evenhand.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_small_and_named_for_one_thing(module: str) -> None:
    assert len((SOURCE / module).read_text(encoding="utf-8").splitlines()) <= 450
    assert Path(module).stem not in {"utils", "helpers", "common", "base", "misc"}


def test_every_room_has_a_user() -> None:
    rooms = {room(m) for m in MODULES if "/" in m}
    used = {home.split(".")[0] for home in evenhand._HOMES.values()} | {"cli", "web"}
    for module in MODULES:
        used |= rooms_used(module) - {room(module)}
    assert rooms - used == set()


def test_no_module_without_a_user() -> None:
    """A module that nothing imports is either dead or missing from the command line."""
    named = {f"evenhand.{home}" for home in evenhand._HOMES.values()}
    entry = {"cli/main.py"}
    texts = {m: (SOURCE / m).read_text(encoding="utf-8") for m in MODULES}
    for module in MODULES:
        if module.endswith("__init__.py") or module in entry:
            continue
        dotted = "evenhand." + module.removesuffix(".py").replace("/", ".")
        parent, _, stem = dotted.rpartition(".")
        forms = (dotted, f"from {parent} import", f'"{parent.removeprefix("evenhand.")}.{stem}')
        users = [
            m
            for m, text in texts.items()
            if m != module and (forms[0] in text or (forms[1] in text and stem in text))
        ]
        assert users or dotted in named, f"nothing uses {module}"
