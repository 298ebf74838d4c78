"""What holds the rooms together: the direction of imports, and what importing costs."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import evenhand

SOURCE = Path(evenhand.__file__).parent
ORDER = (
    "errors",
    "files",
    "speech",
    "stats",
    "decisions",
    "lenses",
    "text",
    "models",
    "remedies",
    "charter",
    "findings",
    "watching",
    "report",
    "papers",
    "integrations",
    "cli",
    "web",
)
BESIDE = {"simulate", "datasets"}
BESIDE_MAY_USE = {"errors", "files", "speech", "stats", "text", "decisions"}
# Audits and ledgers show themselves: their display hooks reach forward, when called.
FORWARD = {
    ("findings/run.py", "report"),
    ("remedies/ledger/document.py", "report"),
    ("watching/run.py", "report"),
}
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


@cache
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


@cache
def all_imports(module: str) -> tuple[str, ...]:
    return tuple(name for node in ast.walk(tree(module)) for name in imported(node))


def imports_when_loaded(module: str) -> Iterator[str]:
    """Imports outside functions and outside `if TYPE_CHECKING`."""
    waiting: list[ast.AST] = [tree(module)]
    while waiting:
        node = waiting.pop()
        yield from imported(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        # A class that extends another library's cannot wait; it says which extra is missing.
        if isinstance(node, ast.Try) and "MissingExtra" in ast.unparse(node.handlers[0]):
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


@pytest.mark.parametrize(
    "module", [m for m in MODULES if "/" in m or m in {"errors.py", "speech.py"}]
)
def test_imports_point_backwards(module: str) -> None:
    own = room(module)
    assert own in {*ORDER, *BESIDE}, f"{own} is no room of the design"
    used = rooms_used(module) - {own} - {b for a, b in FORWARD if a == module}
    if own in BESIDE:
        assert used <= BESIDE_MAY_USE
        return
    behind = set(ORDER[: ORDER.index(own)])
    if own in {"papers", "cli", "web"}:
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


def test_a_small_audit_imports_only_what_it_uses() -> None:
    # Together they took longer than all else: SciPy alone a third of the whole process.
    code = (
        "import sys, gc, evenhand as eh\n"
        "t = {'y': [0, 1] * 40, 'd': [0, 1, 1, 0] * 20, 'g': ['a', 'b'] * 40}\n"
        "limits = {'selection_rate_gap': 0.1}\n"
        "text = str(eh.audit(t, truth='y', decision='d', group='g', limits=limits))\n"
        "names = ['scipy', 'numpy.ma', 'tomllib', 'evenhand.stats.labelers',\n"
        "         'evenhand.stats.auc', 'evenhand.stats.calibration',\n"
        "         'evenhand.stats.cluster_products',\n"
        "         'evenhand.charter.read', 'evenhand.decisions.csv_files']\n"
        "print([n for n in names if n in sys.modules], gc.isenabled(), gc.get_freeze_count())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True 0"


def test_fine_tuning_needs_no_engine() -> None:
    # tools/gpu_reproduction.py trains on a machine that has torch and scikit-learn alone.
    code = "import sys; sys.modules['polars'] = None; import evenhand.models.fine_tuning"
    subprocess.run([sys.executable, "-c", code], check=True)


# The design's names that exist already.
PUBLIC = (
    *("Decisions", "Tallies", "Audit", "Watch", "Ledger", "Estimate", "EvenhandError"),
    *("audit", "watch", "alarms", "tally", "check", "plan", "verify", "compare", "remedy_table"),
    *("reproduce", "render", "read_record", "read_charter", "read_labels", "load_lexicon"),
    *("swap", "swap_table", "scrub", "mask_titles", "score_table", "fit_norms", "score_norms"),
    *("word_weights", "word_table", "filter_words", "trace_token_weights"),
    *("cost_curve", "inferred_groups", "gap_scorer"),
    *("rate", "gap", "ratio", "paired_gap"),
)


def test_public_names() -> None:
    assert len(evenhand.__all__) <= 40
    assert set(evenhand.__all__) == set(PUBLIC)
    assert sorted(set(evenhand.__all__)) == list(evenhand.__all__)
    assert set(evenhand.__all__) <= set(dir(evenhand))
    for name in evenhand.__all__:
        assert getattr(evenhand, name).__doc__, name
    with pytest.raises(AttributeError, match="module 'evenhand' has no attribute 'fairness'"):
        _ = evenhand.fairness


@pytest.mark.parametrize("name", ["models", "remedies"])
def test_public_names_of_a_room_cost_nothing_until_they_are_used(name: str) -> None:
    room = import_module(f"evenhand.{name}")
    assert room.__all__ == sorted(set(room.__all__))
    assert set(room.__all__) <= set(dir(room))
    for each in room.__all__:
        assert getattr(room, each).__doc__, each
    # A module of the same name would stand in its place once it is imported.
    assert not {path.stem for path in (SOURCE / name).iterdir()} & set(room.__all__)
    with pytest.raises(AttributeError, match=f"module 'evenhand.{name}' has no attribute 'cure'"):
        _ = room.cure
    heavy = [*HEAVY, "polars", "narwhals", "numpy"]
    code = f"import sys, evenhand.{name}; print([n for n in {heavy!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_former_name_says_what_it_is_now() -> None:
    with pytest.raises(AttributeError, match=r"^evenhand.compare_remedies is now compare\.$"):
        _ = evenhand.compare_remedies
    with pytest.raises(AttributeError, match=r"^evenhand.compare_norm_bias is now in evenhand"):
        _ = evenhand.compare_norm_bias
    from evenhand.lenses.norms.lens import compare_norm_bias

    assert compare_norm_bias.__doc__
    assert evenhand.remedies.__name__ == "evenhand.remedies"


def test_no_room_has_the_name_of_a_public_function() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert not rooms & set(evenhand.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_small_and_named_for_one_thing(module: str) -> None:
    assert len((SOURCE / module).read_text(encoding="utf-8").splitlines()) <= 600
    assert Path(module).stem not in {"utils", "helpers", "common", "base", "misc"}


# Rooms on the way from a table to a report: a module there that nothing uses is dead.
FLOW = {"decisions", "lenses", "charter", "findings", "report", "cli"}


def users(words: str, *, but: str) -> list[str]:
    """Files that use a module or room, outside itself: source, documents, benchmarks."""
    named = re.compile(rf"{re.escape(words)}\b")
    return [
        name for name, text in texts().items() if not name.startswith(but) and named.search(text)
    ]


@cache
def texts() -> dict[str, str]:
    top = SOURCE.parents[1]
    places = [f"src/evenhand/{m}" for m in MODULES]
    for pattern in ("*.md", "Makefile", "docs/**/*.md", "benchmarks/**/*.py", "examples/**/*"):
        places += [p.relative_to(top).as_posix() for p in top.glob(pattern) if p.is_file()]
    return {name: (top / name).read_text(encoding="utf-8", errors="replace") for name in places}


def test_every_room_has_a_user() -> None:
    rooms = {room(m) for m in MODULES if "/" in m} - {"cli", "web"}
    public = {home.split(".")[0] for home in evenhand._HOMES.values()}
    unused = [
        name
        for name in rooms - public
        if not users(f"evenhand.{name}", but=f"src/evenhand/{name}/")
        and not users(f"evenhand.{name}".replace(".", "/"), but=f"src/evenhand/{name}/")
    ]
    assert unused == []


def test_every_module_of_the_flow_has_a_user() -> None:
    public = {f"evenhand.{home}" for home in evenhand._HOMES.values()}
    unused = []
    for module in MODULES:
        dotted = "evenhand." + module.removesuffix(".py").replace("/", ".")
        entry = module.endswith("__init__.py") or module == "cli/main.py"
        if entry or dotted in public or room(module) not in FLOW:
            continue
        parent, _, stem = dotted.rpartition(".")
        own = f"src/evenhand/{module}"
        together = [
            name
            for name, text in texts().items()
            if name != own and re.search(rf"from {re.escape(parent)} import [^\n]*\b{stem}\b", text)
        ]
        # Commands are named in the registry of the command line without their package.
        registered = users(f"{parent.removeprefix('evenhand.')}.{stem}", but=own)
        if not (users(dotted, but=own) or together or registered):
            unused.append(module)
    assert unused == []


# Short, and complete: nothing else belongs beside what they hold.
SHORT = {"report/palette.py"}
DOORS = 185
PER_THOUSAND_LINES = 4.2


def line_count(module: str) -> int:
    return len((SOURCE / module).read_text(encoding="utf-8").splitlines())


def test_modules_grow_with_the_lines_and_no_faster() -> None:
    # Corridors of small doors: skrub, datasette and narwhals have 2.0 to 2.9 in a thousand lines.
    doors = [module for module in MODULES if not module.endswith("__init__.py")]
    thousands = sum(line_count(module) for module in MODULES) / 1000
    assert len(doors) <= max(DOORS, PER_THOUSAND_LINES * thousands)


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_worth_a_door(module: str) -> None:
    if room(module) == "cli" or module.endswith("__init__.py") or module in SHORT:
        return
    assert line_count(module) >= 60, "say it in the module that uses it"


def test_no_package_hides_in_a_prefix() -> None:
    siblings: dict[str, list[str]] = {}
    for module in MODULES:
        folder, _, name = module.rpartition("/")
        prefix = name.removesuffix(".py").partition("_")[0]
        if prefix:
            siblings.setdefault(f"{folder}/{prefix}*.py", []).append(module)
    assert {prefix: names for prefix, names in siblings.items() if len(names) > 2} == {}
