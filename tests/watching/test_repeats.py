"""Rows that repeat the same people are refused: no sequence can allow for them yet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.watching.store import FILE, Store

Weeks = Callable[..., pl.DataFrame]
ROLES: dict[str, Any] = {"time": "day", "every": "week", "decision": "d", "group": "g"}
WHY = "repeats of the same people cannot be allowed for yet in watch."
GIVEN = (
    f"cluster='person': {WHY} Leave the role out only if rows are independent, or audit each "
    "period with --cluster."
)
MADE = (
    f"was made with cluster='person': {WHY} Make it anew without the role only if rows are "
    "independent, or audit each period with --cluster."
)
CHARTER = 'schema = "evenhand.charter/1"\n\n[roles]\ncluster = "person"\n'


def people(weeks: Weeks, many: int = 2) -> pl.DataFrame:
    return weeks(many).with_columns(person=pl.int_range(pl.len()) % 90)


def on(engine: str, frame: pl.DataFrame) -> Any:
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.from_arrow(frame.to_arrow())
    return frame


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_cluster_is_refused_wherever_it_is_named(
    engine: str, tmp_path: Path, weeks: Weeks
) -> None:
    data = on(engine, people(weeks))
    (tmp_path / "charter.toml").write_text(CHARTER, encoding="utf-8")
    plain = {name: value for name, value in ROLES.items() if name != "every"}
    for given, more in (
        (data, {**ROLES, "cluster": "person"}),
        (eh.Decisions(data, **plain, cluster="person"), {"every": "week"}),
        (data, {**ROLES, "charter": tmp_path / "charter.toml"}),
        (None, {"cluster": "person"}),
    ):
        with pytest.raises(UsageError) as caught:
            eh.watch(tmp_path / "s", given, **more)
        assert str(caught.value) == GIVEN
    assert not (tmp_path / "s").exists()


def test_a_tally_set_with_a_cluster_is_refused(tmp_path: Path, weeks: Weeks) -> None:
    path = tmp_path / "removals-2026-W02.tallies"
    eh.tally(people(weeks, 1), decision="d", group="g", cluster="person").save(path)
    with pytest.raises(DataError) as caught:
        eh.watch(tmp_path / "s", path, every="week")
    assert str(caught.value) == f"'{path}' {MADE}"
    assert not (tmp_path / "s").exists()


def test_a_store_that_was_made_with_a_cluster_is_refused(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    roles = {"decision": "d", "group": ["g"], "cluster": "person", "rule": "given", "time": "day"}
    with Store.open(store, create=True) as opened, opened.writing():
        opened.set_about(every="week", tz=None, roles=roles)
    before = (store / FILE).read_bytes()
    for look in (
        lambda: eh.watch(store),
        lambda: eh.watch(store, people(weeks)),
        lambda: eh.alarms(store),
        lambda: eh.alarms(store, acknowledge=1, by="policy", why="meant so"),
    ):
        with pytest.raises(DataError) as caught:
            look()
        assert str(caught.value) == f"'{store}' {MADE}"
    assert (store / FILE).read_bytes() == before


def test_the_command_refuses_a_cluster(tmp_path: Path, weeks: Weeks, run: Any) -> None:
    people(weeks).write_csv(tmp_path / "weeks.csv")
    roles = ["--time", "day", "--every", "week", "--decision", "d", "--group", "g"]
    code, said, complaint = run("watch", "s", "weeks.csv", *roles, "--cluster", "person")
    assert (code, said) == (2, "")
    assert GIVEN in " ".join(complaint.split())
    assert not (tmp_path / "s").exists()
    people(weeks, 1).write_csv(tmp_path / "week.csv")
    code, _, _ = run("tally", "week.csv", "--decision", "d", "--group", "g", "--cluster", "person",
                     "--out", "removals-2026-W02.tallies")  # fmt: skip
    assert code == 0
    code, said, complaint = run("watch", "s", "removals-2026-W02.tallies", "--every", "week")
    assert (code, said) == (4, "")
    assert f"'removals-2026-W02.tallies' {MADE}" in " ".join(complaint.split())
    assert not (tmp_path / "s").exists()


def test_labels_by_labeler_are_watched_as_before(tmp_path: Path, weeks: Weeks) -> None:
    data = weeks(9).with_columns(
        y=pl.int_range(pl.len()) % 2, who=pl.format("l{}", pl.int_range(pl.len()) % 12)
    )
    result = eh.watch(
        tmp_path / "s", data, truth="y", labeler="who", measures=["selection_rate_gap"], **ROLES
    )
    assert [row["measure"] for row in result.document["results"]] == ["selection_rate_gap"]
