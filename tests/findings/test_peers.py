"""Other tools are asked about the same rows, and what they say is put plainly."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import UsageError
from evenhand.findings import peers

RNG = np.random.default_rng(2)
N = 600
TABLE = pl.DataFrame(
    {
        "y": RNG.integers(0, 2, N),
        "d": RNG.integers(0, 2, N),
        "g": RNG.choice(["a*b", "a"], N),
        "h": RNG.choice(["b*c", "c"], N),
        "w": RNG.random(N) + 0.1,
    }
).with_columns(
    pl.when(pl.int_range(N) % 7 == 0).then(None).otherwise(pl.col("y")).alias("y"),
    pl.when(pl.int_range(N) % 11 == 0).then(None).otherwise(pl.col("h")).alias("h"),
)
ROLES: dict[str, Any] = {"truth": "y", "decision": "d", "group": ["g", "h"], "crossed": True}


def fairlearn(decisions: eh.Decisions) -> peers.Check:
    return next(iter(peers.verify(decisions)))


@pytest.mark.parametrize("extra", [{}, {"weight": "w"}, {"missing": "group"}, {"stratum": "w"}])
def test_weights_and_missing_values_do_not_look_like_a_difference(extra: dict[str, str]) -> None:
    if "stratum" in extra:
        extra = {"stratum": "w", "stratum_edges": [0.5]}  # type: ignore[dict-item]
    check = fairlearn(eh.Decisions(TABLE, **ROLES, **extra))
    assert check.agrees
    # 2 classes, 7 rates: 2 groups, a gap and 2 gaps to the rest for g and h; 4 groups and more
    # for both crossed, of which the rest is nobody's group.
    assert check.compared == 14 * (3 + 3 + 7)
    assert str(check).startswith("Fairlearn ")
    assert str(check).endswith(" agrees: 182 rates and gaps, largest difference 0.0e+00.")


def test_a_difference_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    own = peers._fairlearn

    def shifted(*rows: Any) -> dict[str, Any]:
        found = own(*rows)
        found["precision"] = {k: v + (k == "a") * 0.25 for k, v in found["precision"].items()}
        return found

    monkeypatch.setattr(peers, "_fairlearn", shifted)
    check = fairlearn(eh.Decisions(TABLE, truth="y", decision="d", group="g"))
    assert not check.agrees
    assert check.largest == pytest.approx(0.25)
    assert "differs: 42 rates and gaps, largest difference 2.5e-01 (precision" in str(check)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["verify", *arguments])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_the_command_says_what_it_left_out(tmp_path, capsys) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    flags = ["--truth", "y", "--decision", "d", "--group", "g"]
    code, out, err = run(capsys, str(tmp_path / "t.parquet"), *flags, "--weight", "w")
    assert (code, err) == (0, "")
    assert out.startswith("Left out, since other tools know nothing of it: weight w.\nFairlearn ")


def test_mistakes(tmp_path, capsys, monkeypatch) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    assert run(capsys) == (
        2,
        "",
        "evenhand: Name the file to verify, such as: evenhand verify decisions.parquet --truth "
        "violates --decision removed --group gender. All flags: evenhand verify --help\n",
    )
    told = "evenhand: To compare with other tools, name a truth and a decision.\n"
    assert run(capsys, path, "--decision", "d", "--group", "g") == (2, "", told)
    with pytest.raises(UsageError, match="name a truth and a decision"):
        list(peers.verify(eh.Decisions(TABLE, truth="y", group="g")))
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    flags = ["--truth", "y", "--decision", "d", "--group", "g"]
    assert run(capsys, path, *flags) == (
        2,
        "Fairlearn: not installed; run: pip install fairlearn\n"
        "AIF360: not installed; run: pip install aif360\n",
        "evenhand: Nothing was compared: no other tool is installed.\n",
    )
