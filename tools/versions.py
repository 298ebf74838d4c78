"""Which versions the tests ran with, and the lowest ones that are promised.

python tools/versions.py lock     write requirements/tested.txt from what is installed
python tools/versions.py check    exit 1 where pyproject.toml and that file disagree
python tools/versions.py lowest   print the lower bounds of pyproject.toml as constraints
"""

import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "tested.txt"
OURSELVES = "evenhand"
# What users install. Tools of the tests promise nothing to anybody, so their newest will do.
PROMISED = ("duckdb", "pandas", "text", "fairlearn", "report")


def declared(extra: str | None = None) -> list[Requirement]:
    """What pyproject.toml names for the core, or for an extra and the extras it includes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    needs = []
    for requirement in map(Requirement, lines):
        if requirement.name == OURSELVES:
            needs += [need for inner in sorted(requirement.extras) for need in declared(inner)]
        else:
            needs.append(requirement)
    return needs


def installed(needs: list[Requirement]) -> dict[str, str]:
    """Versions of what is needed and of all that needs in turn, in this environment."""
    found: dict[str, str] = {}
    waiting = [(need, extra) for need in needs for extra in ("", *need.extras)]
    seen = set()
    while waiting:
        need, extra = waiting.pop()
        key = (canonicalize_name(need.name), extra)
        if key in seen:
            continue
        seen.add(key)
        found[key[0]] = version(need.name)
        for line in distribution(need.name).requires or ():
            inner = Requirement(line)
            if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                waiting += [(inner, each) for each in ("", *inner.extras)]
    return found


def locked() -> dict[str, str]:
    """Versions by name, as the lock has them."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(name): number for name, number in pairs}


def disagreements() -> Iterator[str]:
    """Sentences on what pyproject.toml names and the lock does not have, or has too old."""
    held = locked()
    for need in [*declared(), *declared("dev")]:
        number = held.get(canonicalize_name(need.name))
        if number is None:
            yield f"pyproject.toml names {need.name}, which {LOCK.name} does not have."
        elif not need.specifier.contains(number, prereleases=True):
            yield f"pyproject.toml asks for {need}, and {LOCK.name} has {number}."


def lock() -> str:
    """The text of the lock: exact versions of everything the tests and checks run with."""
    python = ".".join(map(str, sys.version_info[:2]))
    head = [
        f"# What the tests ran with: Python {python}, {sys.platform}. Made by `make lock`.",
        "# Constraints, not requirements: make install CONSTRAINTS=requirements/tested.txt",
    ]
    pins = installed([*declared(), *declared("dev")])
    return "\n".join([*head, *(f"{name}=={pins[name]}" for name in sorted(pins))]) + "\n"


def lowest() -> dict[str, str]:
    """The lowest version that each promised dependency may have."""
    bounds: dict[str, Version] = {}
    for need in [*declared(), *(n for extra in PROMISED for n in declared(extra))]:
        lower = [Version(s.version) for s in need.specifier if s.operator == ">="]
        if len(lower) != 1:
            raise SystemExit(f"{need} has no lower bound. Write one that was tried: name>=1.2.")
        name = canonicalize_name(need.name)
        bounds[name] = max(lower[0], bounds.get(name, lower[0]))
    return {name: str(bound) for name, bound in bounds.items()}


def main(task: str) -> int:
    if task == "lock":
        LOCK.parent.mkdir(exist_ok=True)
        LOCK.write_text(lock(), encoding="utf-8")
    elif task == "check":
        found = list(disagreements())
        for sentence in found:
            print(sentence)
        if found:
            print("Run: make lock")
        return 1 if found else 0
    elif task == "lowest":
        for name, bound in lowest().items():
            print(f"{name}=={bound}")
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
