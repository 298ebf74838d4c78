"""Numbers by name: Hugging Face's manner of computing, MLflow's runs, and a model's card."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import MissingExtra, UsageError
from evenhand.integrations.metrics import GroupMetric, numbers
from evenhand.integrations.tracking import FILES, MlflowAudit, log_audit


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m"], 1500)
    y = rng.random(1500) < 0.4
    hat = rng.random(1500) < np.where(y, np.where(sex == "m", 0.9, 0.7), 0.2)
    return pd.DataFrame({"sex": sex, "y": y.astype(int), "y_hat": hat.astype(int)})


@pytest.fixture(scope="module")
def result(table):
    limits = {"true_positive_rate_gap": 0.05}
    return eh.audit(table, truth="y", decision="y_hat", group="sex", limits=limits)


def test_every_number_has_its_interval_and_cases(result):
    found = numbers(result)
    gap = result.rows.where(measure="true_positive_rate_gap", class_="1")
    pair = f"{gap['group'][0]}-{gap['reference'][0]}"
    for part in ("low", "high", "n", "n_reference"):
        assert found[f"true_positive_rate_gap/{pair}.{part}"] == gap[part][0]
    assert found[f"true_positive_rate_gap/{pair}"] == gap["value"][0]
    with pytest.raises(UsageError, match=r"'selection_rate_gpa' is not among the numbers of this"):
        numbers(result, measures=["selection_rate_gpa"])


def test_small_cells_and_strange_names_stay_out():
    group = ["a=1"] * 100 + ["b"] * 100 + ["tiny"] * 5
    made = eh.audit({"d": [1, 0] * 102 + [1], "g": group}, decision="d", group="g", keep_small=True)
    found = numbers(made, measures=["selection_rate_gap"])
    assert "selection_rate_gap/b-a_1" in found
    assert not any("tiny" in name for name in found)


def test_batches_give_the_audit_of_all(table, result):
    metric = GroupMetric("sex", limits={"true_positive_rate_gap": 0.05})
    for part in (table[:700], table[700:1499]):
        metric.add_batch(predictions=part.y_hat, references=part.y, sex=part.sex)
    last = table.iloc[1499]
    metric.add(prediction=last.y_hat, reference=last.y, sex=last.sex)
    found = metric.compute()
    assert found == {**numbers(result), "verdict": "outside", "sentence": result.sentence}
    whole = metric.compute(predictions=table.y_hat, references=table.y, sex=table.sex)
    assert whole == found


def test_what_a_metric_refuses(table):
    metric = GroupMetric("sex")
    with pytest.raises(
        UsageError, match=r"^'sex' is missing\. Pass predictions, references, sex\."
    ):
        metric.compute(predictions=table.y_hat, references=table.y)
    with pytest.raises(UsageError, match=r"^'sexx' is not expected. Did you mean 'sex'\?"):
        metric.compute(predictions=[1], references=[1], sexx=["f"])
    with pytest.raises(UsageError, match=r"^'sex' has 1 values and predictions has 1,500\."):
        metric.compute(predictions=table.y_hat, references=table.y, sex=["f"])
    with pytest.raises(UsageError, match=r"^There is nothing to compute\."):
        GroupMetric("sex").compute()
    with pytest.raises(UsageError, match=r"^No group is named\."):
        GroupMetric()


def test_a_section_goes_into_a_card_between_its_marks(result, tmp_path):
    card, record = tmp_path / "README.md", tmp_path / "audit.json"
    card.write_text(
        "---\nlicense: mit\n---\n# My model\n\nIt reads posts.\n\n## Training\n\nMuch.\n"
    )
    result.save(record)
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            main(["report", str(record), "--card", str(card)])
        assert end.value.code == 0
    text = card.read_text(encoding="utf-8")
    assert text.startswith("---\nlicense: mit\n---\n# My model")
    assert text.count("## Bias, Risks, and Limitations") == 1
    assert text.count("<!-- evenhand: begin -->") == 1


def test_mlflow_is_an_extra(monkeypatch, result):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(MissingExtra, match=r"Run: pip install 'evenhand\[mlflow\]'"):
        log_audit(result)
    with pytest.raises(UsageError, match=r"^group='data.sex' cannot be passed by MLflow"):
        MlflowAudit("data.sex")


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    module.set_tracking_uri((tmp_path / "runs").as_uri())
    yield module
    module.set_tracking_uri(None)


@pytest.mark.filterwarnings("ignore")
def test_a_run_holds_numbers_tags_and_files(mlflow, result):
    with mlflow.start_run() as run:
        logged = log_audit(result, measures=["true_positive_rate_gap"])
    held = mlflow.tracking.MlflowClient().get_run(run.info.run_id)
    assert held.data.metrics == pytest.approx(logged)
    assert held.data.tags["evenhand.verdict"] == "outside"
    assert held.data.tags["evenhand.sentence"] == result.sentence
    files = mlflow.tracking.MlflowClient().list_artifacts(run.info.run_id, "evenhand")
    assert {Path(one.path).name for one in files} == set(FILES)


@pytest.mark.filterwarnings("ignore")
def test_evaluate_gives_the_numbers_of_the_audit(mlflow, table, result, tmp_path):
    pytest.importorskip("matplotlib")
    audit = MlflowAudit("sex", limits={"true_positive_rate_gap": 0.05})
    with mlflow.start_run() as run:
        evaluated = mlflow.models.evaluate(
            data=table, targets="y", predictions="y_hat", evaluators="default",
            extra_metrics=[audit.metric], custom_artifacts=[audit.artifacts],
        )  # fmt: skip
    ours = {name.removeprefix("evenhand/"): value for name, value in evaluated.metrics.items()
            if name.startswith("evenhand/")}  # fmt: skip
    assert ours == pytest.approx(numbers(result))
    assert audit.result.sentence == result.sentence
    place = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, dst_path=str(tmp_path))
    names = {path.name for path in Path(place).rglob("*") if path.is_file()}
    assert set(FILES) <= names
    records = list(Path(place).rglob("evenhand_audit*.json"))
    assert json.loads(records[0].read_text())["verdict"] == "outside"
    with pytest.raises(UsageError, match=r"^The audit has not run\."):
        MlflowAudit("sex").artifacts(None, None, str(tmp_path))


@pytest.mark.filterwarnings("ignore")
def test_the_page_shows_what_works(mlflow, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs/how-to/log-to-mlflow-and-hugging-face.md"
    names: dict[str, object] = {}
    blocks = re.findall(r"```python([^\n]*)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert sum("no-run" in mark for mark, _ in blocks) == 2
    for _, code in [blocks[0], *(block for block in blocks if "no-run" in block[0])]:
        exec(compile(code, str(page), "exec"), names)
    assert names["audit"].result.sentence == names["result"].sentence


def test_codes_of_many_classes_are_said_to_be_classes() -> None:
    codes, sex = list(range(15)) * 4, ["f", "m"] * 30
    with pytest.raises(
        UsageError, match=r"^'truth' holds 15 different numbers, and amounts cannot"
    ):
        GroupMetric("sex").compute(predictions=codes, references=codes, sex=sex)
    found = GroupMetric("sex", classes=True)
    assert found.compute(predictions=codes, references=codes, sex=sex)["verdict"] == "not assessed"
