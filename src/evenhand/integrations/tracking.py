"""Audits in MLflow: as a metric and artefacts of `mlflow.models.evaluate`, or logged to a run."""

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import MissingExtra, UsageError
from evenhand.integrations.metrics import GroupMetric, numbers

if TYPE_CHECKING:
    from evenhand.findings.run import Audit

FILES = ("report.html", "audit.json", "audit.md")


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise MissingExtra("mlflow", "Logging an audit") from None
    return mlflow


class MlflowAudit:
    """An audit within `mlflow.models.evaluate`: `extra_metrics` and `custom_artifacts`.

    audit = MlflowAudit("gender", limits={"true_positive_rate_gap": 0.05})
    mlflow.models.evaluate(data=table, targets="y", predictions="y_hat",
                           extra_metrics=[audit.metric], custom_artifacts=[audit.artifacts])

    Groups are columns of the evaluated data. What else `evenhand.audit` takes is given here. The
    audit itself is in `result` afterwards.
    """

    def __init__(
        self, *groups: str, measures: Iterable[str] | None = None, **arguments: Any
    ) -> None:
        for name in groups:
            if not name.isidentifier():
                raise UsageError(
                    f"group={name!r} cannot be passed by MLflow, which takes names of letters, "
                    "digits and underscores. Rename the column."
                )
        self._metric = GroupMetric(*groups, measures=measures, **arguments)

    @property
    def result(self) -> "Audit | None":
        """The audit, once it was evaluated."""
        return self._metric.result

    @property
    def metric(self) -> Any:
        """What `extra_metrics` takes: every number with its interval, under `evenhand/`."""
        _mlflow()
        from mlflow.metrics import MetricValue
        from mlflow.models import make_metric

        def evenhand(predictions: Any, targets: Any, *columns: Any) -> Any:
            if len(predictions) == 1:
                # MLflow tries a metric on one row before it computes it.
                return MetricValue(aggregate_results={})
            found = self._metric.compute(
                predictions=list(predictions),
                references=list(targets),
                **{name: list(values) for name, values in zip(self._metric.groups, columns)},
            )
            numbers_alone = {k: v for k, v in found.items() if not isinstance(v, str)}
            return MetricValue(aggregate_results=numbers_alone)

        # MLflow passes the columns that the function names.
        names = ("predictions", "targets", *self._metric.groups)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        evenhand.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, kind) for name in names]
        )
        return make_metric(eval_fn=evenhand, greater_is_better=False, name="evenhand")

    def artifacts(self, eval_df: Any, builtin_metrics: Any, artifacts_dir: str) -> dict[str, str]:
        """What `custom_artifacts` takes: the record and all rows; the report is logged beside.

        Of the files that MLflow takes from such a function none is a page, so that the report and
        the summary go to the run's folder `evenhand` directly.
        """
        if self.result is None:
            raise UsageError(
                "The audit has not run. Pass its metric too: extra_metrics=[audit.metric]."
            )
        _log_files(self.result)
        places = {
            f"evenhand_{name}": Path(artifacts_dir) / name for name in ("audit.json", "rows.csv")
        }
        for path in places.values():
            self.result.save(path)
        return {Path(name).stem: str(path) for name, path in places.items()}


def _log_files(result: "Audit") -> None:
    """The report, the record and the summary as artefacts of the active run."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        for name in FILES:
            result.save(Path(folder) / name)
        _mlflow().log_artifacts(folder, artifact_path="evenhand")


def log_audit(result: "Audit", *, measures: Iterable[str] | None = None) -> dict[str, float]:
    """Log an audit to the active run of MLflow, or to a new one: numbers, tags and files.

    Numbers are logged under `evenhand/`, the verdict and its sentence as tags, the report, the
    record and the summary as artefacts in the folder `evenhand`. Gives what was logged.
    """
    mlflow = _mlflow()
    found = {f"evenhand/{k}": v for k, v in numbers(result, measures=measures).items()}
    mlflow.log_metrics(found)
    mlflow.set_tags({"evenhand.verdict": result.verdict, "evenhand.sentence": result.sentence})
    _log_files(result)
    return found
