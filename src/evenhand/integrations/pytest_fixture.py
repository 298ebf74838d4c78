"""A fixture for pytest: an audit that fails its test where something lies outside its limit.

def test_fair(evenhand):
    evenhand.audit("predictions.parquet", truth="y", decision="y_hat", group="gender")

Limits come from the charter: the file that `evenhand_charter` names in pytest's settings, or one
given here. `limits` go before it.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenhand.errors import EvenhandError, UsageError

if TYPE_CHECKING:
    from evenhand.findings.run import Audit

SETTING = "evenhand_charter"
_LINES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The charter that holds the limits, for all tests."""
    parser.addini(SETTING, "The charter with Evenhand's limits, from pytest's root folder.")


class AuditGate:
    """Audits that fail the test which asks for them, as `evenhand audit` fails in a shell."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def audit(
        self,
        decisions: Any,
        *,
        charter: Any = None,
        fail_on: str = "outside",
        **arguments: Any,
    ) -> "Audit":
        """Audit decisions and fail the test where the command would exit other than 0.

        Takes what `evenhand.audit` takes. `charter` is a charter or its file, looked for beside the
        test and in pytest's root folder. `fail_on="cannot-tell"` also fails what the data cannot
        tell.
        """
        from evenhand.findings.gate import gate
        from evenhand.findings.run import audit

        try:
            result = audit(decisions, charter=self._charter(charter), **arguments)
            judged = gate(result, fail_on=fail_on)
        except EvenhandError as error:
            pytest.fail(f"evenhand: {error}", pytrace=False)
        node = self._request.node
        node.user_properties.append(("evenhand_verdict", result.verdict))
        line = f"{node.nodeid}: {judged.sentence}"
        self._request.config.stash.setdefault(_LINES, []).append(line)
        if judged.code:
            pytest.fail(str(judged), pytrace=False)
        return result

    def _charter(self, given: Any) -> Any:
        root = self._request.config.rootpath
        if given is None:
            named = self._request.config.getini(SETTING)
            return _existing(named, [root], root) if named else None
        if not isinstance(given, str | Path):
            return given
        return _existing(given, [self._request.path.parent, root, Path.cwd()], root)


def _existing(name: str | Path, folders: list[Path], root: Path) -> Path:
    """The file in the first of these folders that has it; else where one of its name is."""
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    looked = ", ".join(dict.fromkeys(f"'{folder}'" for folder in folders))
    elsewhere = list(islice(_same_name(root, Path(name).name), 3))
    hint = (
        f"There is one at {', '.join(f'{str(path)!r}' for path in elsewhere)}: write that."
        if elsewhere
        else "Start one with: evenhand charter new > charter.toml"
    )
    raise UsageError(f"There is no charter '{name}' in {looked}. {hint}")


def _same_name(root: Path, name: str) -> Iterator[Path]:
    for path in sorted(root.rglob(name)):
        if not any(part.startswith(".") for part in path.relative_to(root).parts):
            yield path.relative_to(root)


@pytest.fixture
def evenhand(request: pytest.FixtureRequest) -> AuditGate:
    """Evenhand's audits as tests: `evenhand.audit(data, truth=…, decision=…, group=…)`."""
    return AuditGate(request)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line for each audit, those that passed too."""
    lines = config.stash.get(_LINES, [])
    if lines:
        terminalreporter.section("evenhand")
        for line in lines:
            terminalreporter.line(line)
