"""How the tests of faults call commands: in this process (`run`), or in one that can be killed.

Every case has a kind, `@pytest.mark.kind("cuts")`, and the summary of the run counts them:

- lost: folders replaced, devices (and links and pipes that are written to), outputs (onto an input
  or another output), kills;
- silently wrong: cuts, NaN, scale, names, limits, labels, columns, hints, flags, settings, resume;
  of files ragged, header, quotes, lines, encoding, packed, separators, numbers, folders, hive;
- hangs: time-outs, pipes (that are read);
- crashes: exit 5 (what the system refuses), damage (documents, stores and exports changed at
  random);
- leaks: copies of the data, escapes, formulas, secrets, model card.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import evenhand

SOURCE = str(Path(evenhand.__file__).parents[1])


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended: its exit code (below 0: by a signal), time, steps and words."""

    code: int
    seconds: float
    steps: int | None
    said: str


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a command whose temporary files go to a folder of their own."""
    (folder / "temporary").mkdir(exist_ok=True)
    return {
        **os.environ,
        "PYTHONPATH": SOURCE,
        "TMPDIR": str(folder / "temporary"),
        "OPENBLAS_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": "2",
        **more,
    }


@pytest.fixture(scope="module")
def killable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Ended]]:
    """Commands in processes that may be killed; temporary files go to `killable.temporary`."""
    if not hasattr(os, "fork"):
        pytest.skip("needs a system that can fork")
    home = tmp_path_factory.mktemp("killable")
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "killable.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(home),
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def call(folder: Path, *arguments: object, **how: Any) -> Ended:
        said = home / "said"
        job = {"folder": str(folder), "arguments": [str(one) for one in arguments]}
        server.stdin.write(json.dumps({**job, "said": str(said), **how}) + "\n")
        server.stdin.flush()
        return Ended(**json.loads(server.stdout.readline()), said=said.read_text(errors="replace"))

    call.temporary = home / "temporary"  # type: ignore[attr-defined]
    yield call
    server.stdin.close()
    server.wait(30)
    server.stdout.close()


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A line for the shell, in which $EVENHAND is the command, in a folder of its own."""

    def call(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        code = "import sys; from evenhand.cli.main import main; sys.exit(main())"
        program = f"{sys.executable} -c '{code}'"
        return subprocess.run(
            ["bash", "-c", line.replace("$EVENHAND", program)],
            cwd=tmp_path,
            env=environment(tmp_path, **more),
            capture_output=True,
            text=True,
            timeout=120,
        )

    return call
