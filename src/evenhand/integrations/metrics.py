"""An audit as plain numbers by name, and as a metric in the manner of Hugging Face's `evaluate`."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from evenhand.decisions.table import Decisions
from evenhand.errors import UsageError, nearest
from evenhand.findings.limits import hide_row
from evenhand.findings.run import audit
from evenhand.lenses.measures import look_up

if TYPE_CHECKING:
    from evenhand.findings.run import Audit

# What is said of the arrays, and not of the audit.
ROLES = ("positive", "positive_is", "reference", "crossed", "missing", "missing_words", "classes")
# What trackers allow in the name of a number.
_ODD = re.compile(r"[^\w./ :-]")


def numbers(result: "Audit", *, measures: Iterable[str] | None = None) -> dict[str, float]:
    """The comparisons of an audit by name, each with its interval and the cases of both groups.

    Names are `measure/group-reference`, with `attribute/` before them where several columns were
    audited and `/class` after them where there are several classes; beside each are its `.low`,
    `.high`, `.n` and `.n_reference`. Without a value, or with under 10 cases, there is no number.

    Examples:
        >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100}
        >>> table["sex"] = ["f", "f", "m", "m"] * 100
        >>> result = audit(table, truth="bad", decision="removed", group="sex")
        >>> found = numbers(result, measures=["selection_rate_gap"])
        >>> found["selection_rate_gap/m-f"], found["selection_rate_gap/m-f.n"]
        (-0.5, 200.0)
    """
    wanted = None if measures is None else set(measures)
    known = set(result.rows["measure"])
    for name in wanted or ():
        if name not in known:
            raise UsageError(
                f"{name!r} is not among the numbers of this audit.{nearest(name, sorted(known))}"
            )
    details = result.details.get("statistical", {})
    several = len(set(result.rows["attribute"])) > 1
    found: dict[str, float] = {}
    for row in map(hide_row, result.rows):
        chosen = _tells_apart(row["measure"]) if wanted is None else row["measure"] in wanted
        positive = details.get("positive")
        if (
            not chosen
            or row["value"] is None
            or row["stratum"] is not None
            or row["labeler"] is not None
            or (positive is not None and row["class"] not in (None, positive))
        ):
            continue
        name = _name(row, several=several, with_class=positive is None)
        found.setdefault(name, float(row["value"]))
        for part in ("low", "high", "n", "n_reference"):
            if row[part] is not None:
                found.setdefault(f"{name}.{part}", float(row[part]))
    return found


def _tells_apart(measure: str) -> bool:
    """Whether a measure compares groups, or texts of one group with those of another."""
    return look_up(measure).kind in ("gap", "ratio", "distance") or measure == "flip_rate"


def _name(row: Mapping[str, Any], *, several: bool, with_class: bool) -> str:
    parts = [row["attribute"]] if several and row["attribute"] else []
    parts.append(row["measure"])
    if row["group"] is not None:
        pair = f"{row['group']}-{row['reference']}" if row["reference"] else str(row["group"])
        parts.append(pair)
    if with_class and row["class"] is not None:
        parts.append(row["class"])
    return "/".join(_ODD.sub("_", str(part)) for part in parts)


class GroupMetric:
    """A metric in the manner of `evaluate.load(…)`: batches in, a dict of numbers out.

    Groups are passed beside predictions and references, by the names they have: `gender=[…]`.
    Whatever else `evenhand.audit` takes (limits, charter, positive) is given once, here.

    Examples:
        >>> metric = GroupMetric("gender", limits={"selection_rate_gap": 0.1})
        >>> metric.add_batch(predictions=[1, 1] * 60, references=[1, 0] * 60, gender=["f"] * 120)
        >>> metric.add_batch(predictions=[1, 0] * 60, references=[1, 0] * 60, gender=["m"] * 120)
        >>> found = metric.compute()
        >>> found["selection_rate_gap/m-f"], found["verdict"]
        (-0.5, 'outside')
    """

    def __init__(
        self, *groups: str, measures: Iterable[str] | None = None, **arguments: Any
    ) -> None:
        if not groups:
            raise UsageError("No group is named. Say what it is passed as: GroupMetric('gender').")
        self.groups = groups
        self.measures = None if measures is None else tuple(measures)
        self.roles = {name: arguments.pop(name) for name in ROLES if name in arguments}
        self.arguments = arguments
        self.result: Audit | None = None
        self._held: dict[str, list[Any]] = self._empty()

    def _empty(self) -> dict[str, list[Any]]:
        return {name: [] for name in ("predictions", "references", *self.groups)}

    def add(self, *, prediction: Any, reference: Any, **groups: Any) -> None:
        """Take one decision."""
        self.add_batch(
            predictions=[prediction],
            references=[reference],
            **{name: [value] for name, value in groups.items()},
        )

    def add_batch(self, *, predictions: Any, references: Any, **groups: Any) -> None:
        """Take several decisions; every group must be there, and be as long."""
        given = {"predictions": predictions, "references": references, **groups}
        for name in given:
            if name not in self._held:
                raise UsageError(
                    f"{name!r} is not expected.{nearest(name, list(self._held))} "
                    f"Pass {', '.join(self._held)}."
                )
        for name in self._held:
            if name not in given:
                raise UsageError(f"{name!r} is missing. Pass {', '.join(self._held)}.")
            if len(given[name]) != len(predictions):
                raise UsageError(
                    f"{name!r} has {len(given[name]):,} values and predictions has "
                    f"{len(predictions):,}. Give one for each."
                )
        for name, held in self._held.items():
            held.extend(given[name])

    def compute(
        self, *, predictions: Any = None, references: Any = None, **groups: Any
    ) -> dict[str, Any]:
        """Numbers by name, with `verdict` and `sentence`; the audit itself is then in `result`."""
        if predictions is not None:
            self.add_batch(predictions=predictions, references=references, **groups)
        held, self._held = self._held, self._empty()
        if not held["predictions"]:
            raise UsageError("There is nothing to compute. Pass predictions and references.")
        decisions = Decisions.from_arrays(
            held["references"],
            held["predictions"],
            group={name: held[name] for name in self.groups},
            **self.roles,
        )
        self.result = audit(decisions, **self.arguments)
        found: dict[str, Any] = dict(numbers(self.result, measures=self.measures))
        return found | {"verdict": self.result.verdict, "sentence": self.result.sentence}
