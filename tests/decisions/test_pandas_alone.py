"""pandas tables where PyArrow is not installed: the same values, the same audit."""

from datetime import datetime
from typing import Any

import pandas as pd
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.read import without_arrow

COLUMNS = {
    "words": pd.Series(["f", None, "m"]),
    "strings": pd.Series(["f", None, "m"], dtype="string"),
    "objects": pd.Series(["f", None, "m"], dtype=object),
    "categories": pd.Series(["f", None, "m"], dtype="category"),
    "numbers": pd.Series([1, None, 0], dtype="Int64"),
    "shares": pd.Series([0.5, None, 0.25], dtype="Float64"),
    "truths": pd.Series([True, None, False], dtype="boolean"),
    "days": pd.Series([datetime(2026, 1, 2), None, datetime(2026, 3, 4)]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_same_values_as_by_arrow(name: str) -> None:
    expected = pl.from_pandas(COLUMNS[name])
    if isinstance(expected.dtype, pl.Categorical | pl.Enum):
        expected = expected.cast(pl.String)
    found = without_arrow(COLUMNS[name])
    assert found.to_list() == expected.to_list()
    assert found.dtype.is_numeric() == expected.dtype.is_numeric()


def test_an_audit_needs_no_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"sex": ["f", "m", None] * 100, "hired": [1, 0, 1] * 100})
    table["kind"] = table["sex"].astype("category")
    roles = {"decision": "hired", "group": ["sex", "kind"]}
    expected = eh.audit(table, **roles).to_frame()

    def refused(*_: Any, **__: Any) -> None:
        raise ImportError("pyarrow is required")

    monkeypatch.setattr(pl, "from_pandas", refused)
    assert eh.audit(table, **roles).to_frame().equals(expected)
