"""The wheel: everything that the package reads is inside, and the demo runs from it alone."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
    done = subprocess.run(
        [*command, "-q", "-w", str(folder), str(ROOT)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"pip cannot build here: {done.stderr.strip().splitlines()[-1]}")
    return next(folder.glob("evenhand-*.whl"))


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as held:
        inside = {name for name in held.namelist() if name.startswith("evenhand/")}
    files = (path for path in (SOURCE / "evenhand").rglob("*") if path.is_file())
    expected = {
        path.relative_to(SOURCE).as_posix() for path in files if "__pycache__" not in path.parts
    }
    assert inside == expected
    assert {"evenhand/text/his_or_him.tsv.gz", "evenhand/py.typed"} <= inside


def test_the_builder_of_the_weights_stays_out_of_the_wheel(wheel):
    builders = {"train.py", "constructions.py", "examples.py"}
    assert builders <= {path.name for path in (ROOT / "tools" / "her").glob("*.py")}
    with zipfile.ZipFile(wheel) as held:
        inside = [Path(name) for name in held.namelist()]
    assert builders.isdisjoint(path.name for path in inside)
    assert not any({"her", "tools"} & set(path.parts) for path in inside)


def test_the_demo_runs_from_the_wheel_alone(wheel, tmp_path):
    """Unpacked elsewhere and put first, the wheel serves the demo without the checkout."""
    with zipfile.ZipFile(wheel) as held:
        held.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); import evenhand; "
        f"assert evenhand.__file__.startswith({str(tmp_path)!r}), evenhand.__file__; "
        "from evenhand.cli.main import main; main(['demo', '--folder', 'demo'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("report", "labelers", "occupations"):
        page = (tmp_path / "demo" / f"{name}.html").read_text(encoding="utf-8")
        assert "<svg class=" in page
    assert "Planted:" in done.stdout
