"""The audit as somebody types it in a notebook: tables, arrays, mistakes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import DataError, LimitExceeded, UsageError

RNG = np.random.default_rng(0)
N = 2000
FRAME = pd.DataFrame(
    {
        "y": RNG.integers(0, 2, N),
        "d": RNG.integers(0, 2, N),
        "gender": RNG.choice(["f", "m"], N),
        "s": RNG.random(N),
    }
)
ROLES: dict[str, Any] = {"truth": "y", "decision": "d", "group": "gender"}
DECISIONS = eh.Decisions(FRAME, **ROLES)


def test_a_table_and_its_roles_are_enough() -> None:
    short, long = eh.audit(FRAME, **ROLES), eh.audit(DECISIONS)
    assert short.to_frame().equals(long.to_frame())
    assert repr(short) == "<Audit of pandas table: not assessed, 90 rows, 1 finding>"
    assert repr(short.rows) == "<90 result rows; .to_frame() shows them as a table>"
    assert short.to_frame().columns[:3] == ["lens", "measure", "class"]
    assert "<script" not in short._repr_html_()


def test_arrays_in_the_order_of_scikit_learn() -> None:
    arrays = eh.Decisions.from_arrays(FRAME.y, FRAME.d.to_numpy(), group={"gender": FRAME.gender})
    assert eh.audit(arrays).data["fingerprint"] == eh.audit(DECISIONS).data["fingerprint"]


def test_a_charter_may_name_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "charter.toml"
    path.write_text(
        'schema = "evenhand.charter/1"\n[system]\nname = "x"\ndecision = "y"\n'
        '[roles]\ntruth = "y"\ndecision = "d"\ngroup = "gender"\n'
    )
    chartered = eh.audit(FRAME, charter=path)
    assert chartered.data["fingerprint"] == eh.audit(DECISIONS).data["fingerprint"]
    assert eh.audit(FRAME, charter=path, truth="d", decision="y").data["roles"]["truth"] == "d"


def test_columns_may_be_numbers() -> None:
    numbered = FRAME.set_axis([0, 1, 2, 3], axis=1)
    audit = eh.audit(numbered, truth=0, decision=1, group=2)
    assert audit.data["fingerprint"] == eh.audit(DECISIONS).data["fingerprint"]


@pytest.mark.parametrize("limit", [0.01, "0.01", "-0.01:0.01", (-0.01, 0.01), [-0.01, 0.01]])
def test_a_limit_may_be_a_number_a_text_or_a_pair(limit: object) -> None:
    audit = eh.audit(DECISIONS, limits={"accuracy_gap": limit}, lenses="statistical")
    judged = [row for row in audit.rows if row["verdict"] != "not assessed"]
    assert [(row["limit_low"], row["limit_high"]) for row in judged] == [(-0.01, 0.01)]


def test_check_raises_where_something_is_outside() -> None:
    split = FRAME.assign(d=(FRAME.gender == "f").astype(int))
    audit = eh.audit(split, **ROLES, limits={"selection_rate_gap": 0.05})
    with pytest.raises(
        LimitExceeded, match=r"points less often than group f .*; at most 5 was agreed\."
    ):
        eh.check(audit)
    eh.check(eh.audit(DECISIONS))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: eh.audit(FRAME),
            "No group is named. Say which column holds it, such as group='gender' (--group). "
            "The columns are y, d, gender, s.",
        ),
        (
            lambda: eh.audit(DECISIONS, truth="y"),
            "'truth' is not an argument of audit. The roles of the columns are known already: "
            "name it where the Decisions are made.",
        ),
        (lambda: eh.audit(FRAME, treuth="y"), "'treuth' is not a role. Did you mean 'truth'?"),
        (
            lambda: eh.audit(DECISIONS, level="95"),
            "level='95' is not a confidence level. Choose one such as 0.95.",
        ),
        (
            lambda: eh.audit(DECISIONS, seed=1.5),
            "seed=1.5 is not a seed. Give 0 or a larger whole number.",
        ),
        (
            lambda: eh.audit(DECISIONS, limits="accuracy_gap=0.1"),
            "limits='accuracy_gap=0.1' is not a dict of limits, such as "
            "{'true_positive_rate_gap': 0.05}.",
        ),
        (lambda: eh.check(FRAME), "check takes the result of an audit, not DataFrame."),
        (
            lambda: eh.audit(FRAME, group=5),
            "group='5' is not a column of the table. The columns are y, d, gender, s.",
        ),
        (
            lambda: eh.audit(FRAME.to_numpy(), **ROLES),
            "data of type ndarray is not a table. Give a path, a pandas, Polars, PyArrow, DuckDB, "
            "Spark, Dask or Ibis table, or a dict of arrays.",
        ),
    ],
)
def test_mistakes_are_answered_with_a_sentence(call: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value) == words


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(DataError, match=r"^The arrays differ in length: truth has 2,000, decision"):
        eh.Decisions.from_arrays(FRAME.y, FRAME.d[:10], group=FRAME.gender)


def test_type_hints_are_shipped() -> None:
    from importlib.resources import files

    assert files("evenhand").joinpath("py.typed").is_file()
