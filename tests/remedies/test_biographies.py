"""What the remedies do to simulated biographies with planted paths from gender to occupation."""

import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.models.corpus import BagOfWords, Corpus
from evenhand.models.linear import LogisticClassifier
from evenhand.remedies.augment import compose, counterfactual_texts
from evenhand.remedies.cells import training_cells
from evenhand.remedies.norm_penalty import NormPenalisedClassifier
from evenhand.remedies.norm_slopes import norm_trend
from evenhand.remedies.residualise import NormResidualisedClassifier
from evenhand.remedies.reweigh import ReweighedClassifier
from evenhand.remedies.thresholds import GroupThresholds
from evenhand.simulate.biographies import biographies, occupations
from evenhand.text.mask import scrub_texts

TITLES = ("surgeon", "attorney", "professor", "journalist", "psychologist", "nurse")


class Texts:
    """Features of original, counterfactual and scrubbed texts, split into two halves."""

    def __init__(self, leak, rows=5000, seed=3):
        known = occupations()
        chosen = {title: known[title] for title in TITLES}
        made = biographies(rows, occupations=chosen, leak=leak, seed=seed)
        texts = made.frame["text"].to_list()
        self.truth = made.frame["title"].to_numpy().astype(str)
        self.group = made.frame["gender"].to_numpy().astype(str)
        self.norm = made.hidden["norm"].to_numpy()
        swapped = counterfactual_texts(texts, group=self.group)
        bag = BagOfWords().fit(Corpus.from_texts(texts + swapped["female"] + swapped["male"]))

        def features(given):
            return bag.features(Corpus.from_texts(given)).astype(np.float64)

        self.X = features(texts)
        self.under = {name: features(each) for name, each in swapped.items()}
        names = made.frame["name"].to_list()
        self.scrubbed = features(scrub_texts(texts, names=names).texts)
        self.train, self.test = np.arange(rows // 2), np.arange(rows // 2, rows)

    def statistical(self, predicted):
        """Root mean square over classes of the gap of true positive rates."""
        truth, group = self.truth[self.test], self.group[self.test]
        gaps = []
        for title in TITLES:
            right = [
                (predicted[(truth == title) & (group == g)] == title).mean()
                for g in ("female", "male")
            ]
            gaps.append(right[0] - right[1])
        return np.sqrt(np.mean(np.square(gaps)))

    def counterfactual(self, model, **more):
        """Root mean square of counterfactual gaps, and the share of flips."""
        she, he = (model.predict(self.under[g][self.test], **more) for g in ("female", "male"))
        truth = self.truth[self.test]
        gaps = [((she == t) * 1.0 - (he == t))[truth == t].mean() for t in TITLES]
        return np.sqrt(np.mean(np.square(gaps))), (she != he).mean()

    def slope(self, logits):
        """Slope of r_c on the female share, with the latent norm that no scorer has seen."""
        cells = training_cells(self.truth[self.test], group=self.group[self.test])
        return norm_trend(logits, norm=self.norm[self.test], cells=cells, focal=0).slope


@pytest.fixture(scope="module")
def plain():
    return Texts("imbalance")


@pytest.fixture(scope="module")
def worded():
    return Texts("class_words")


@pytest.fixture(scope="module")
def noisy():
    """Who does not look the part is mislabelled: gaps that no pronoun causes."""
    return Texts("label_noise", rows=8000, seed=4)


def fitted(texts, rows):
    """The plain model on a training set of originals and copies."""
    counterfactual = {name: each[texts.train] for name, each in texts.under.items()}
    X = rows.features(texts.X[texts.train], counterfactual=counterfactual)
    return LogisticClassifier().fit(X, rows.pick(texts.truth[texts.train]), rows.weights)


def test_a_linear_model_with_augmentation_has_no_counterfactual_gap(plain):
    truth, group = plain.truth[plain.train], plain.group[plain.train]
    base = LogisticClassifier().fit(plain.X[plain.train], truth)
    before = plain.counterfactual(base)
    assert before[0] > 0.02
    for composed in (
        compose(truth, group=group),
        compose(truth, group=group, weighing="kamiran_calders"),
        compose(truth, group=group, order="resample_then_augment", resampler="over"),
    ):
        gap, flips = plain.counterfactual(fitted(plain, composed))
        assert gap < 0.003
        assert flips < 0.003


def test_reweighing_and_both_lower_statistical_gaps(plain):
    truth, group = plain.truth[plain.train], plain.group[plain.train]
    base = LogisticClassifier().fit(plain.X[plain.train], truth)
    weighed = ReweighedClassifier().fit(plain.X[plain.train], truth, group=group)
    both = fitted(plain, compose(truth, group=group, weighing="kamiran_calders"))
    gaps = [plain.statistical(m.predict(plain.X[plain.test])) for m in (base, weighed, both)]
    assert gaps[1] < 0.9 * gaps[0]
    assert gaps[2] < 0.9 * gaps[0]


def gap_change(texts, one, other, draws=300):
    """Change of the statistical gaps from one model to another: 95 % by drawing test rows again."""
    truth, group = texts.truth[texts.test], texts.group[texts.test]
    cell = np.searchsorted(sorted(TITLES), truth) * 2 + (group == "male")
    right = [model.predict(texts.X[texts.test]) == truth for model in (one, other)]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        weight = rng.poisson(1.0, truth.size)
        rows = np.bincount(cell, weight, minlength=12)
        rates = [np.bincount(cell, weight * each, minlength=12) / rows for each in right]
        before, after = (np.sqrt(np.mean((r[0::2] - r[1::2]) ** 2)) for r in rates)
        found.append(after - before)
    return np.quantile(found, [0.025, 0.975])


def test_the_papers_table_of_gaps_holds_where_labels_follow_the_norm(noisy):
    """Reweighting takes statistical gaps, augmentation counterfactual ones, only both take both.

    Of the second paper's table: statistical 7.85 → 4.27 (weights), 7.27 (copies), 4.30 (both);
    counterfactual 2.57 → 0.39, 0.21, 0.14. Here weights leave counterfactual gaps where they were.
    """
    truth, group = noisy.truth[noisy.train], noisy.group[noisy.train]
    base = LogisticClassifier().fit(noisy.X[noisy.train], truth)
    weighed = ReweighedClassifier().fit(noisy.X[noisy.train], truth, group=group)
    copied = fitted(noisy, compose(truth, group=group))
    both = fitted(noisy, compose(truth, group=group, weighing="kamiran_calders"))
    statistical = noisy.statistical(base.predict(noisy.X[noisy.test]))
    assert statistical > 0.2
    # Beyond the noise of the test rows, and by a share one can see.
    for model in (weighed, both):
        assert gap_change(noisy, base, model)[1] < 0
        assert noisy.statistical(model.predict(noisy.X[noisy.test])) < 0.85 * statistical
    assert noisy.statistical(copied.predict(noisy.X[noisy.test])) > 0.9 * statistical
    assert gap_change(noisy, copied, weighed)[1] < 0
    assert noisy.counterfactual(base)[0] > 0.03
    assert noisy.counterfactual(weighed)[0] > 0.02
    for model in (copied, both):
        assert noisy.counterfactual(model)[0] < 0.003


def test_thresholds_leave_norm_bias_exactly_as_it_was(worded):
    train, test = worded.train, worded.test
    base = LogisticClassifier().fit(worded.X[train], worded.truth[train])
    cuts = GroupThresholds(base).fit(worded.X[test], worded.truth[test], group=worded.group[test])
    np.testing.assert_allclose(cuts.rates_.gap, 0, atol=1e-12)
    before = worded.slope(base.class_probabilities(worded.X[test]))
    assert worded.slope(cuts.class_probabilities(worded.X[test])) == before


def test_residualising_lowers_norm_bias_where_reweighing_does_not(worded):
    train, test = worded.train, worded.test
    truth, group = worded.truth[train], worded.group[train]
    base = LogisticClassifier().fit(worded.X[train], truth)
    weighed = ReweighedClassifier().fit(worded.X[train], truth, group=group)
    model = NormResidualisedClassifier(norm_group="female", strength=1.0)
    model.fit(worded.X[train], truth, group=group, norm_features=worded.scrubbed[train])
    before = worded.slope(base.decision_function(worded.X[test]))
    after = worded.slope(
        model.decision_function(worded.X[test], norm_features=worded.scrubbed[test])
    )
    assert before > 0.8
    assert worded.slope(weighed.decision_function(worded.X[test])) > 0.8 * before
    assert after < 0.85 * before


def test_reaching_likely_people_costs_less_for_the_same_slope(worded):
    """A class's slope is that of its own people: taken from everybody it costs accuracy."""
    train, test = worded.train, worded.test
    truth, group = worded.truth[train], worded.group[train]
    cells = training_cells(worded.truth[test], group=worded.group[test])
    more = {"norm_features": worded.scrubbed[test]}
    slope, accuracy = {}, {}
    for reach, strength in (("everybody", 0.0), ("everybody", 1.0), ("likely", 1.0)):
        model = NormResidualisedClassifier(norm_group="female", reach=reach, strength=strength)
        model.fit(worded.X[train], truth, group=group, norm_features=worded.scrubbed[train])
        logits = model.decision_function(worded.X[test], **more)
        norm = model.norm_(worded.scrubbed[test])
        key = reach if strength else "none"
        slope[key] = norm_trend(logits, norm=norm, cells=cells, focal=0).slope
        accuracy[key] = model.score(worded.X[test], worded.truth[test], **more)
    assert slope["none"] > 0.5
    assert max(slope["everybody"], slope["likely"]) < 0.6 * slope["none"]
    assert accuracy["none"] - accuracy["likely"] < 0.5 * (accuracy["none"] - accuracy["everybody"])


def test_all_three_together(worded):
    train, test = worded.train, worded.test
    truth, group = worded.truth[train], worded.group[train]
    rows = compose(truth, group=group, weighing="kamiran_calders")
    counterfactual = {name: each[train] for name, each in worded.under.items()}
    X = rows.features(worded.X[train], counterfactual=counterfactual)
    about = worded.scrubbed[train][rows.origin]
    base = LogisticClassifier().fit(worded.X[train], truth)
    model = NormResidualisedClassifier(norm_group="female", budget=0.02).fit(
        X,
        rows.pick(truth),
        group=rows.group.astype(str),
        norm_features=about,
        sample_weight=rows.weights,
        origin=rows.origin,
        is_counterfactual=rows.is_counterfactual,
    )
    more = {"norm_features": worded.scrubbed[test]}
    assert model.residualisation_.strength > 0
    # The norm sees scrubbed text, the same for a text and its copy: no gap comes back.
    assert worded.counterfactual(model, **more)[1] < 0.003
    assert worded.slope(model.decision_function(worded.X[test], **more)) < 0.9 * worded.slope(
        base.decision_function(worded.X[test])
    )
    X_test = worded.X[test]
    loss = base.score(X_test, worded.truth[test]) - model.score(X_test, worded.truth[test], **more)
    assert loss < 0.04


def test_copies_train_neither_norm_nor_slopes(worded):
    train = worded.train[:1200]
    truth, group = worded.truth[train], worded.group[train]
    rows = compose(truth, group=group)
    counterfactual = {name: each[train] for name, each in worded.under.items()}
    X = rows.features(worded.X[train], counterfactual=counterfactual)
    about = worded.scrubbed[train]
    settings = {"norm_group": "female", "strength": 1.0, "folds": 2}
    model = NormResidualisedClassifier(**settings).fit(
        X,
        rows.pick(truth),
        group=rows.group.astype(str),
        norm_features=about[rows.origin],
        origin=rows.origin,
        is_counterfactual=rows.is_counterfactual,
    )
    alone = NormResidualisedClassifier(**settings)
    alone.fit(worded.X[train], truth, group=group, norm_features=about)
    np.testing.assert_allclose(model.norm_(about), alone.norm_(about))
    assert np.abs(model.residualisation_.slopes.raw).max() > 0.2
    with pytest.raises(DataError, match="All training rows are counterfactual copies"):
        NormResidualisedClassifier().fit(
            about, truth, group=group, is_counterfactual=np.ones(1200, dtype=bool)
        )
    with pytest.raises(UsageError, match=r"is_counterfactual has the shape \(3,\) for 1200 rows"):
        NormPenalisedClassifier().fit(about, truth, group=group, is_counterfactual=[True] * 3)
