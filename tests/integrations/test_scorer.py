"""scikit-learn and Fairlearn: scorers by routing, and arguments as Fairlearn has them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError, UsageError

sklearn = pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_validate  # noqa: E402


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 800, p=[0.4, 0.6])
    skill = rng.normal(size=800)
    y = (skill + 0.4 * (sex == "m") + rng.normal(size=800) > 0).astype(int)
    return pd.DataFrame({"skill": skill, "club": (sex == "m") + rng.normal(size=800)}), y, sex


def test_the_score_is_minus_the_widest_gap():
    # f: 2 of 4 selected, m: 3 of 4, x: 4 of 4; the reference is the first of the largest: f.
    group = ["f"] * 4 + ["m"] * 4 + ["x"] * 4
    decision = [1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]
    truth = [1] * 12
    score = eh.gap_scorer("selection_rate_gap", group="g").score
    assert score(truth, decision, group) == pytest.approx(-0.5)
    mid = eh.gap_scorer("selection_rate_gap", group="g", reference="m")
    assert mid.score(truth, decision, group) == pytest.approx(-0.25)
    assert eh.gap_scorer("selection_rate_gap_worst", group="g").score(
        truth, decision, group
    ) == pytest.approx(-0.5)
    # 2/4 by 4/4 is furthest from 1.
    ratio = eh.gap_scorer("selection_rate_ratio", group="g")
    assert ratio.score(truth, decision, group) == pytest.approx(0.5)
    weight = [1, 1, 1, 1, 1, 1, 1, 5, 1, 1, 1, 1]
    # m: 3 of 8 by weight; widest from f (0.5) is x (1.0).
    assert score(truth, decision, group, weight=weight) == pytest.approx(-0.5)


def test_the_scorer_agrees_with_the_audit_and_with_fairlearn(people):
    table, y, sex = people
    fitted = LogisticRegression().fit(table, y)
    decided = fitted.predict(table)
    score = eh.gap_scorer("true_positive_rate_gap", group="sex").score(y, decided, sex)
    result = eh.audit(eh.Decisions.from_arrays(y, decided, group={"sex": sex}))
    gap = result.rows.where(measure="true_positive_rate_gap", class_="1", reference="m")["value"][0]
    assert score == pytest.approx(-abs(gap))
    fairlearn = pytest.importorskip("fairlearn.metrics")
    theirs = fairlearn.equal_opportunity_difference(y, decided, sensitive_features=sex)
    assert score == pytest.approx(-theirs)
    ratio = eh.gap_scorer("selection_rate_ratio", group="sex").score(y, decided, sex)
    assert ratio == pytest.approx(
        fairlearn.demographic_parity_ratio(y, decided, sensitive_features=sex)
    )


def test_a_group_without_cases_is_undefined_and_never_nought():
    scorer = eh.gap_scorer("true_positive_rate_gap", group="g")
    assert np.isnan(scorer.score([1, 1, 0, 0], [1, 0, 1, 0], ["a", "a", "b", "b"]))


def test_a_search_passes_the_groups_on(people):
    table, y, sex = people
    scorer = eh.gap_scorer("selection_rate_gap", group="sex")
    grid = {"C": [1e-3, 1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(LogisticRegression(), grid, scoring=scorer, cv=3)
        search.fit(table, y, sex=sex)
        several = cross_validate(
            LogisticRegression(), table, y, cv=3, params={"sex": sex},
            scoring={"accuracy": "accuracy", "gap": scorer},
        )  # fmt: skip
    scores = search.cv_results_["mean_test_score"]
    assert (scores <= 0).all()
    assert scores[0] != scores[1]
    assert search.best_index_ == scores.argmax()
    folds = [search.cv_results_[f"split{i}_test_score"][1] for i in range(3)]
    assert several["test_gap"] == pytest.approx(folds)
    # The same from a column of X, without routing.
    beside = table.assign(sex=sex)

    class OnSkill(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X[["skill", "club"]], y)

        def predict(self, X):
            return super().predict(X[["skill", "club"]])

    plain = GridSearchCV(OnSkill(), grid, scoring=scorer, cv=3).fit(beside, y)
    assert plain.cv_results_["mean_test_score"] == pytest.approx(scores)


def test_what_a_scorer_refuses(people):
    table, y, _ = people
    scorer = eh.gap_scorer("selection_rate_gap", group="sex")
    fitted = LogisticRegression().fit(table, y)
    with pytest.raises(UsageError) as told:
        scorer(fitted, table, y)
    assert str(told.value) == (
        "group='sex' is neither a column of X nor was it passed. Pass it along: "
        "sklearn.set_config(enable_metadata_routing=True) and search.fit(X, y, sex=…)."
    )
    with pytest.raises(UsageError, match=r"^'age' was passed to a scorer that takes 'sex' and"):
        scorer(fitted, table, y, sex=y, age=y)
    with pytest.raises(
        UsageError, match=r"cannot be scored. Did you mean 'true_positive_rate_gap'"
    ):
        eh.gap_scorer("true_positive_rate_gpa", group="sex")
    with pytest.raises(UsageError, match=r"^group=\['f', 'm'\] is not a name."):
        eh.gap_scorer("selection_rate_gap", group=["f", "m"])


def test_arguments_as_fairlearn_has_them(people):
    _, y, sex = people
    decided, region = 1 - y, np.where(np.arange(800) % 2, "north", "south")
    ours = eh.Decisions.from_arrays(y, decided, group={"sex": sex})
    forms = [
        {"sensitive_features": {"sex": sex}},
        {"sensitive_features": pd.Series(sex, name="sex")},
        {"sensitive_features": pd.DataFrame({"sex": sex})},
    ]
    want = list(eh.audit(ours).rows)
    for form in forms:
        assert (
            list(eh.audit(eh.Decisions.from_arrays(y_true=y, y_pred=decided, **form)).rows) == want
        )
    numbered = eh.gap_scorer("selection_rate_gap", group="g", reference=1.0)
    assert numbered.score([1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1]) == pytest.approx(-0.5)
    unnamed = eh.Decisions.from_arrays(y, decided, sensitive_features=pl.Series(list(sex)))
    assert unnamed.roles.group == ("sensitive_feature",)
    bare = eh.Decisions.from_arrays(y, decided, sensitive_features=sex)
    assert bare.roles.group == ("sensitive_feature",)
    both = eh.Decisions.from_arrays(
        y, decided, sensitive_features=np.column_stack([sex, region]), sample_weight=np.ones(800),
        control_features=pd.Series(region, name="region"),
    )  # fmt: skip
    assert both.roles.group == ("sensitive_feature_0", "sensitive_feature_1")
    assert both.roles.crossed
    assert (both.roles.weight, both.roles.stratum) == ("weight", "region")
    with pytest.raises(UsageError, match=r"^sensitive_features is Fairlearn's name for group"):
        eh.Decisions.from_arrays(y, decided, group=sex, sensitive_features=sex)
    with pytest.raises(UsageError, match=r"^control_features has a and b\. Evenhand conditions on"):
        eh.Decisions.from_arrays(
            y, decided, group=sex, control_features={"a": region, "b": region}
        )  # fmt: skip


def test_groups_are_those_of_a_metric_frame(people):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    _, y, sex = people
    decided = np.roll(y, 7)
    frame = fairlearn.MetricFrame(
        metrics=fairlearn.selection_rate, y_true=y, y_pred=decided, sensitive_features=sex
    )
    ours = eh.audit(eh.Decisions.from_arrays(y, decided, sensitive_features=sex)).rows
    for group, rate in frame.by_group.items():
        row = ours.where(measure="selection_rate", group=group, class_="1")
        assert row["value"][0] == pytest.approx(rate)


def test_words_for_no_value_and_amounts_are_refused_unless_said_otherwise() -> None:
    sex = ["f", "m"] * 30
    words = ["1", "0", "NA"] * 20
    with pytest.raises(DataError, match=r"^'truth' holds 20 times 'NA' beside '0' and '1'\. If it"):
        eh.gap_scorer("selection_rate_gap", group="sex").score(words, ["1", "0"] * 30, sex)
    lenient = eh.gap_scorer("selection_rate_gap", group="sex", missing_words="NA")
    assert lenient.score(words, ["1", "0"] * 30, sex) == -1
    codes = list(range(15)) * 4
    with pytest.raises(
        UsageError, match=r"^'truth' holds 15 different numbers, and amounts cannot"
    ):
        eh.gap_scorer("accuracy_gap", group="sex").score(codes, codes, sex)
    assert eh.gap_scorer("accuracy_gap", group="sex", classes=True).score(codes, codes, sex) == 0
