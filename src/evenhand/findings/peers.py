"""The same rates and gaps from other tools, to see that they agree."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Unpack

from evenhand.decisions.keywords import TableArguments, describe_roles
from evenhand.decisions.labels import crossed_name
from evenhand.decisions.table import Decisions, complete_rows
from evenhand.errors import DataError, UsageError
from evenhand.findings.run import audit, with_roles
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Rows

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How far one tool's numbers lie from ours, or why it was not asked.

    `furthest` says in words which number differs most, where one differs at all.
    """

    tool: str
    largest: float | None
    compared: int
    why_not: str | None = None
    furthest: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether every number is the same up to rounding."""
        return self.largest is not None and self.largest < TOLERANCE

    def __str__(self) -> str:
        if self.largest is None:
            return f"{self.tool}: {self.why_not}"
        told = f"{self.compared:,} rates and gaps, largest difference {self.largest:.1e}"
        if self.agrees:
            return f"{self.tool} agrees: {told}."
        return f"{self.tool} differs: {told} ({self.furthest})."


@describe_roles
def verify(decisions: Decisions | Any, **roles: Unpack[TableArguments]) -> list[Check]:
    """Rates and gaps recomputed with each tool that is installed, on the rows that are complete.

    Cells without cases are left out: ours are undefined there, and the other tools say 0.

    Args:
        decisions: The table and the roles of its columns, or a table with the roles named here.
        roles: What each column is for, by the keywords below, where a table is given.

    Returns:
        One check for each tool: how far its numbers lie from ours, or why it was not asked.
    """
    return list(_checks(with_roles(decisions, roles, caller="verify")))


def _checks(decisions: Decisions) -> Iterator[Check]:
    if decisions.roles.truth is None or decisions.roles.rule is None:
        raise UsageError("To compare with other tools, name a truth and a decision.")
    for tool, package, rates in (
        ("Fairlearn", "fairlearn", _fairlearn),
        ("AIF360", "aif360", _aif360),
    ):
        if find_spec(package) is None:
            why = f"not installed; run: pip install {package}"
            yield Check(tool=tool, largest=None, compared=0, why_not=why)
            continue
        yield _compare(f"{tool} {version(package)}", decisions, rates)


Peer = Callable[[list[int], list[int], list[str]], dict[str, dict[str, float]]]


def _compare(tool: str, decisions: Decisions, peer: Peer) -> Check:
    largest, compared, furthest = 0.0, 0, None
    for attribute in decisions.roles.attributes:
        plain = complete_rows(decisions, attribute)
        rows = audit(plain, lenses=["statistical"], keep_small=True).rows
        family = rows.where(attribute=attribute.name, stratum=None)
        truth, decision, *parts = plain.labels(attribute.columns)
        groups = [crossed_name(map(str, part)) for part in zip(*parts)]
        for name in dict.fromkeys(family.where(measure="selection_rate")["class"]):
            theirs = peer(
                [int(value == name) for value in truth],
                [int(value == name) for value in decision],
                groups,
            )
            for row, other in _pairs(family.where(class_=name), theirs):
                compared += 1
                if abs(row["value"] - other) > largest:
                    largest = abs(row["value"] - other)
                    furthest = (
                        f"{row['measure']} of '{name}', {row['group']}: ours {row['value']:.6g}, "
                        f"theirs {other:.6g}"
                    )
    if not compared:
        raise DataError("There is no rate that both tools define on this table.")
    return Check(tool=tool, largest=largest, compared=compared, furthest=furthest)


def _pairs(rows: Rows, theirs: dict[str, dict[str, float]]) -> Iterator[tuple[Any, float]]:
    """Our rates and gaps beside theirs; what the other tool does not know is left out."""
    for row in rows:
        if row["value"] is None:
            continue
        record = look_up(row["measure"])
        alone, compared = theirs.get(record.name, {}), theirs.get(record.base or "", {})
        if row["group"] in alone:
            yield row, alone[row["group"]]
        elif record.kind == "gap" and row["group"] in compared and row["reference"] in compared:
            yield row, compared[row["group"]] - compared[row["reference"]]


def _fairlearn(truth: list[int], decision: list[int], groups: list[str]) -> dict[str, Any]:
    from fairlearn import metrics
    from sklearn.metrics import accuracy_score, precision_score

    def precision(y_true: Any, y_pred: Any) -> float:
        return float(precision_score(y_true, y_pred, zero_division=0.0))

    rates = {
        "selection_rate": metrics.selection_rate,
        "true_positive_rate": metrics.true_positive_rate,
        "false_positive_rate": metrics.false_positive_rate,
        "false_negative_rate": metrics.false_negative_rate,
        "true_negative_rate": metrics.true_negative_rate,
        "precision": precision,
        "accuracy": accuracy_score,
    }
    frame = metrics.MetricFrame(
        metrics=rates, y_true=truth, y_pred=decision, sensitive_features=groups
    ).by_group
    return {rate: frame[rate].to_dict() for rate in rates}


def _aif360(truth: list[int], decision: list[int], groups: list[str]) -> dict[str, Any]:
    import logging

    import pandas as pd

    # Importing AIF360 warns of every extra of its own that is absent.
    logging.disable(logging.WARNING)
    try:
        from aif360.datasets import BinaryLabelDataset
        from aif360.metrics import ClassificationMetric
    finally:
        logging.disable(logging.NOTSET)

    names = {
        "selection_rate": "selection_rate",
        "true_positive_rate": "true_positive_rate",
        "false_positive_rate": "false_positive_rate",
        "false_negative_rate": "false_negative_rate",
        "true_negative_rate": "true_negative_rate",
        "precision": "positive_predictive_value",
        "accuracy": "accuracy",
    }
    found: dict[str, dict[str, float]] = {rate: {} for rate in names}
    for group in dict.fromkeys(groups):
        member = [float(name == group) for name in groups]

        def dataset(labels: list[int], member: list[float] = member) -> Any:
            return BinaryLabelDataset(
                df=pd.DataFrame({"member": member, "label": labels}),
                label_names=["label"],
                protected_attribute_names=["member"],
            )

        measured = ClassificationMetric(
            dataset(truth),
            dataset(decision),
            privileged_groups=[{"member": 1.0}],
            unprivileged_groups=[{"member": 0.0}],
        )
        for rate, method in names.items():
            found[rate][group] = float(getattr(measured, method)(privileged=True))
    return found
