"""Real data, where it lies beside the repository: stops week by week, arrests year by year."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.heavy


def needed(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} does not lie beside the repository")
    return DATA / name


def stops() -> pl.DataFrame:
    """Stops of 2017; a race that is unknown is a race that is missing."""
    frame = pl.read_csv(needed("stops_minneapolis.csv.gz"))
    known = frame.with_columns(race=pl.when(pl.col("race") != "Unknown").then("race"))
    return known.filter(pl.col("race").is_in(["Black", "White"]) | pl.col("race").is_null())


@pytest.mark.parametrize(
    ("search", "gap", "low", "high", "hidden"),
    [("vehicleSearch", 0.082, 0.07, 0.095, 6.2), ("personSearch", 0.121, 0.10, 0.14, 8.3)],
)
def test_searches_week_by_week(
    search: str, gap: float, low: float, high: float, hidden: float, tmp_path: Path
) -> None:
    roles: dict[str, Any] = {
        "time": "date", "every": "week", "tz": "America/Chicago", "decision": search,
        "positive": "YES", "group": "race", "reference": "White",
    }  # fmt: skip
    result = eh.watch(tmp_path / "s", stops(), measures=["selection_rate_gap"], horizon=52, **roles)
    (row,) = result.document["results"]
    assert row["value"] == pytest.approx(gap, abs=0.001)
    assert low < row["low"] < row["value"] < row["high"] < high
    # 1 January was a Sunday: its week began in 2016 and is not whole.
    periods = result.document["periods"]
    assert [p["period"] for p in periods if not p["judged"]] == ["2016-W52"]
    assert len(periods) == 53
    assert result.alarms == []
    notes = " ".join(result.document["notes"])
    assert f"they could hide up to {hidden} points either way" in notes
    assert "of the rows have no decision; they count for nothing" in notes


def test_the_week_of_a_stop_is_chicagos(tmp_path: Path) -> None:
    frame = pl.read_csv(needed("stops_minneapolis.csv.gz"))
    local = frame["date"].str.to_datetime(time_zone="UTC").dt.convert_time_zone("America/Chicago")
    wanted = local.dt.date().dt.truncate("1w").value_counts().sort("date")
    result = eh.watch(
        tmp_path / "s", frame, time="date", every="week", tz="America/Chicago",
        decision="personSearch", positive="YES", group="race",
    )  # fmt: skip
    assert [p["rows"] for p in result.document["periods"]] == wanted["count"].to_list()


def test_releases_by_year_and_why_the_gap_fell(tmp_path: Path) -> None:
    result = eh.watch(
        tmp_path / "s", needed("arrests_toronto.csv"), time="year", every="year",
        decision="released", positive="Yes", group="colour", reference="White",
        stratum="checks", limits={"selection_rate_gap": 0.05}, since="2001",
    )  # fmt: skip
    gaps = dict(zip(result.document["series"][0]["periods"], result.document["series"][0]["gap"]))
    assert gaps["1998"] == pytest.approx(-0.20, abs=0.001)
    assert gaps["2002"] == pytest.approx(-0.019, abs=0.001)
    parts = {c["part"]: c for c in result.document["causes"] if c["stratum"] is None}
    assert parts["total"]["value"] == pytest.approx(0.123, abs=0.001)
    assert parts["rate"]["value"] == pytest.approx(0.114, abs=0.001)
    assert parts["mix"]["low"] < 0 < parts["mix"]["high"]
    moved = parts["mix"]["value"] + parts["rate"]["value"]
    assert moved == pytest.approx(parts["total"]["value"], abs=1e-12)
    # Six years are fewer than detectors need: nothing is claimed of a date.
    assert result.alarms == []
    assert "6 years of 8 are there" in " ".join(result.document["notes"])
