"""How the tests of commands call them: in a folder of their own, as the shell would."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A call of evenhand: its exit code, what it printed and what it complained of."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(part) for part in arguments])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return command
