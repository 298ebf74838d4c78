"""The remedies a ledger can compare: when each acts, what it needs, and how it is trained."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.errors import MissingExtra, UsageError, nearest
from evenhand.mitigation.adversarial_tuning import tune_adversary
from evenhand.mitigation.augment import TrainingRows
from evenhand.mitigation.cells import cells_of
from evenhand.mitigation.compose import compose
from evenhand.mitigation.covariance import CovarianceConstrainedClassifier
from evenhand.mitigation.crossfit import NormScorer, crossfit
from evenhand.mitigation.decoupled import DecoupledClassifier
from evenhand.mitigation.estimator import fit_weighted
from evenhand.mitigation.ledger_task import Fitted, Task
from evenhand.mitigation.pairing import LogitPairedClassifier
from evenhand.mitigation.penalty import NormPenalisedClassifier
from evenhand.mitigation.reductions import ReductionsClassifier
from evenhand.mitigation.resample import Sampling, resample
from evenhand.mitigation.residualise import NormResidualisedClassifier
from evenhand.mitigation.reweigh import Weighing, reweigh
from evenhand.mitigation.thresholds import GroupThresholds

BASELINE = "baseline"
# Up to this many numbers a table of word counts multiplies faster when it is filled.
MOST_DENSE = 100_000_000
Fit = Callable[[Task], Fitted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A remedy of the registry; `stage` says when it acts, `needs` what it cannot do without.

    `needs` are among "counterfactual", "names" and "norm"; `extra` is an optional dependency,
    `cost` roughly the number of baseline fits it takes.
    """

    name: str
    words: str
    stage: str
    fit: Fit
    needs: tuple[str, ...] = ()
    needs_group_at_decision: bool = False
    extra: str | None = None
    only: str | None = None
    cost: float = 1.0


def _baseline(task: Task) -> Fitted:
    return Fitted(model=task.baseline(), seconds=task.seconds("baseline"))


def _weighed(method: Weighing) -> Fit:
    def fit(task: Task) -> Fitted:
        found = reweigh(task.y, group=task.group, method=method)
        model = fit_weighted(task.classifier(), task.table, task.y, found.weights)
        return Fitted(model=model, notes=found.notes)

    return fit


def _sampled(method: Sampling) -> Fit:
    def fit(task: Task) -> Fitted:
        found = resample(task.y, group=task.group, method=method, seed=task.seed)
        model = task.classifier().fit(task.table[found.rows], task.y[found.rows])
        return Fitted(model=model, notes=found.notes)

    return fit


def _composed(**how: Any) -> Fit:
    def fit(task: Task) -> Fitted:
        made = compose(task.y, group=task.group, groups=list(task.do), seed=task.seed, **how)
        return task.fitted(made)

    return fit


def _weighed_copies(task: Task) -> tuple[TrainingRows, Fitted]:
    """Kamiran–Calders weights and counterfactual copies: a remedy, and the start of another."""

    def make() -> tuple[TrainingRows, Fitted]:
        made = compose(
            task.y,
            group=task.group,
            groups=list(task.do),
            weighing="kamiran_calders",
            seed=task.seed,
        )
        return made, task.fitted(made)

    found: tuple[TrainingRows, Fitted] = task.once("weighed_copies", make)
    return found


def _reweighed_augmented(task: Task) -> Fitted:
    found = _weighed_copies(task)[1]
    return replace(found, seconds=task.seconds("weighed_copies"))


def _thresholds(task: Task) -> Fitted:
    model = task.baseline()
    rows = task.texts.rows.validation
    cuts = GroupThresholds(model, shrinkage=10, seed=task.seed)
    cuts.fit(task.features(rows), task.truth_of(rows), group=task.groups_of(rows))
    return Fitted(model=model, cuts=cuts, notes=tuple(cuts.notes_))


def _decoupled(task: Task) -> Fitted:
    model = DecoupledClassifier(task.classifier()).fit(task.table, task.y, group=task.group)
    return Fitted(model=model, by_group=True)


def _cocl(task: Task) -> Fitted:
    assert task.texts.name_vectors is not None
    model = CovarianceConstrainedClassifier(tol=task.settings.penalty_tolerance)
    model.fit(task.table, task.y, names=task.texts.name_vectors[task.rows])
    return Fitted(model=model, chosen={"strength": model.strength, "skipped": model.skipped_})


def _adversarial(task: Task) -> Fitted:
    """Rate, weight and epochs by the budget on validation rows, from the baseline's weights."""
    rows = task.texts.rows.validation
    table = task.table
    if task.is_counts and table.shape[0] * table.shape[1] <= MOST_DENSE:
        table = table.toarray()
    with _one_torch_thread():
        found = tune_adversary(
            table,
            task.y,
            group=task.group,
            start=task.baseline(),
            held=task.features(rows),
            held_truth=task.truth_of(rows),
            held_group=task.groups_of(rows),
            budget=task.settings.budget,
            rates=task.settings.adversary_rates,
            weights=task.settings.adversary_weights,
            epochs=task.settings.adversarial_epochs,
            seed=task.seed,
        )
    chosen = {
        "learning_rate": found.chosen.learning_rate,
        "adversary_weight": found.chosen.adversary_weight,
        "epochs": found.chosen.epoch,
        "validation_accuracy": found.chosen.accuracy,
        "tried": len(found.trials),
    }
    return Fitted(model=found.model, chosen=chosen)


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Torch on one thread: its steps here are small, and threads that wait for each other slow."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "Adversarial training") from None
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _paired(task: Task) -> Fitted:
    others = list(task.do.values())
    model = LogitPairedClassifier(tol=task.settings.tolerance, threads=1)
    model.fit(task.table, task.y, counterfactual=others if len(others) > 1 else others[0])
    return Fitted(model=model, chosen={"strength": model.strength})


def _residualised(task: Task) -> Fitted:
    model = _residualiser(task)
    model.fit(
        task.table,
        task.y,
        group=task.group,
        norm_features=task.norm,
        origin=task.rows,
        fitted=task.baseline(),
    )
    return _with_norm(model)


def _all_three(task: Task) -> Fitted:
    """Counterfactual copies with Kamiran–Calders weights, then residualised."""
    made, fitted = _weighed_copies(task)
    # A copy stands for its person's class and weight; its norm is that of its original, whose
    # scrubbed text it shares, and so is its group. Each fold costs twice the rows, so there are 3.
    model = _residualiser(task, folds=3).fit(
        made.features(task.table, counterfactual=task.do),
        made.pick(task.y),
        group=made.pick(task.group),
        norm_features=task.norm[made.origin],
        sample_weight=made.weights,
        origin=task.rows[made.origin],
        fitted=fitted.model,
    )
    found = _with_norm(model)
    return Fitted(model=found.model, with_norm=True, chosen=found.chosen, notes=made.notes)


def _residualiser(task: Task, *, folds: int = 5) -> NormResidualisedClassifier:
    return NormResidualisedClassifier(
        task.classifier(),
        _norm_estimator(task),
        norm_group=task.texts.rows.groups[0],
        reach=None,
        budget=task.settings.budget,
        folds=folds,
        seed=task.seed,
    )


def _norm_estimator(task: Task) -> Any:
    from evenhand.models.linear import LogisticClassifier

    # The penalty of the norm scorer that judges: ten mean variances of its features.
    return LogisticClassifier(C=0.1, tol=task.settings.tolerance, threads=1)


def _with_norm(model: NormResidualisedClassifier) -> Fitted:
    found = model.residualisation_
    chosen = {"strength": found.strength, "stopped_by": found.stopped_by}
    chosen |= {"reach": found.slopes.reach}
    return Fitted(model=model, with_norm=True, chosen=chosen)


def _penalised(task: Task) -> Fitted:
    """The covariance penalty, its strength tried on two folds: each costs a fit of every class."""
    first = task.texts.rows.groups[0]
    norm = crossfit(
        task.table,
        task.y,
        cells=cells_of(task.y, group=task.group),
        norm=NormScorer(_norm_estimator(task), first),
        norm_features=task.norm,
        classify=False,
        seed=task.seed,
        origin=task.rows,
    ).norm
    model = NormPenalisedClassifier(
        norm_group=first,
        budget=task.settings.budget,
        folds=2,
        seed=task.seed,
        tol=task.settings.penalty_tolerance,
        threads=1,
    ).fit(task.table, task.y, group=task.group, norm=norm, origin=task.rows)
    return Fitted(
        model=model, chosen={"strength": model.strength_, "stopped_by": model.stopped_by_}
    )


def _reductions(task: Task) -> Fitted:
    model = ReductionsClassifier(
        task.classifier(), max_iter=task.settings.reductions_iterations
    ).fit(task.table, task.y, group=task.group)
    ties = float(np.mean(model.tie_share_))
    return Fitted(model=model, chosen={"tie_share": ties}, notes=tuple(model.notes_))


_COUNTERFACTUAL = ("counterfactual",)
_ENTRIES = (
    Entry(name=BASELINE, words="no remedy", stage="none", fit=_baseline),
    Entry(
        name="alpha_weights",
        words="weights: groups of a class count as its smallest",
        stage="before",
        fit=_weighed("within_class"),
    ),
    Entry(
        name="kamiran_calders",
        words="weights that make class and group independent",
        stage="before",
        fit=_weighed("kamiran_calders"),
    ),
    Entry(
        name="equal_opportunity",
        words="weights: every group of a class counts as the class",
        stage="before",
        fit=_weighed("equal_opportunity"),
    ),
    Entry(
        name="oversample",
        words="smaller groups of a class drawn again",
        stage="before",
        fit=_sampled("over"),
    ),
    Entry(
        name="undersample",
        words="larger groups of a class thinned out",
        stage="before",
        fit=_sampled("under"),
    ),
    Entry(
        name="augment",
        words="a counterfactual copy of every row",
        stage="before",
        needs=_COUNTERFACTUAL,
        fit=_composed(),
        cost=2.5,
    ),
    Entry(
        name="oversample_augment",
        words="oversampled, then copied",
        stage="before",
        needs=_COUNTERFACTUAL,
        fit=_composed(order="resample_then_augment", resampler="over"),
        cost=3.5,
    ),
    Entry(
        name="undersample_augment",
        words="undersampled, then copied",
        stage="before",
        needs=_COUNTERFACTUAL,
        fit=_composed(order="resample_then_augment", resampler="under"),
        cost=1.5,
    ),
    Entry(
        name="augment_oversample",
        words="copied, then both sides oversampled",
        stage="before",
        needs=_COUNTERFACTUAL,
        fit=_composed(order="augment_then_resample", resampler="over"),
        cost=3.5,
    ),
    Entry(
        name="reweigh_augment",
        words="copied; a copy weighs what its original does",
        stage="before",
        needs=_COUNTERFACTUAL,
        fit=_reweighed_augmented,
        cost=2.5,
    ),
    Entry(
        name="reweigh_augment_one",
        words="copied; copies weigh one",
        stage="before",
        needs=_COUNTERFACTUAL,
        fit=_composed(weighing="kamiran_calders", counterfactual_weight="one"),
        cost=2.5,
    ),
    Entry(
        name="reweigh_augment_other",
        words="copied; a copy weighs what its new group does",
        stage="before",
        needs=_COUNTERFACTUAL,
        fit=_composed(weighing="kamiran_calders", counterfactual_weight="counterfactual"),
        cost=2.5,
    ),
    Entry(
        name="thresholds",
        words="cuts by group with equal true positive rates",
        stage="after",
        needs_group_at_decision=True,
        fit=_thresholds,
        cost=0.1,
    ),
    Entry(
        name="decoupled",
        words="one model for each group",
        stage="in",
        needs_group_at_decision=True,
        fit=_decoupled,
    ),
    Entry(
        name="cocl",
        words="scores kept from following names (CoCL)",
        stage="in",
        needs=("names",),
        fit=_cocl,
        cost=3,
    ),
    Entry(
        name="adversarial",
        words="trained against an adversary that reads the group",
        stage="in",
        extra="torch",
        fit=_adversarial,
        cost=5,
    ),
    Entry(
        name="logit_pairing",
        words="a text and its counterfactual kept at one score",
        stage="in",
        needs=_COUNTERFACTUAL,
        fit=_paired,
        cost=2,
    ),
    Entry(
        name="residualise",
        words="scores less what the norm explains",
        stage="after",
        needs=("norm",),
        fit=_residualised,
        cost=5,
    ),
    Entry(
        name="covariance_penalty",
        words="scores kept from following the norm in training",
        stage="in",
        needs=("norm",),
        fit=_penalised,
        cost=5,
    ),
    Entry(
        name="reweigh_augment_residualise",
        words="weights, copies and residualisation together",
        stage="before and after",
        needs=("counterfactual", "norm"),
        fit=_all_three,
        cost=12,
    ),
    Entry(
        name="reductions",
        words="mixture of models with nearly equal rates",
        stage="in",
        extra="fairlearn",
        only="vectors",
        fit=_reductions,
        cost=80,
    ),
)
REMEDIES: dict[str, Entry] = {each.name: each for each in _ENTRIES}


def choose_remedies(names: Iterable[str] = ()) -> list[Entry]:
    """The remedies asked for, in the registry's order and with the baseline; all by default.

    Examples:
        >>> [each.name for each in choose_remedies(["augment"])]
        ['baseline', 'augment']
    """
    wanted = list(names)
    for name in wanted:
        if name not in REMEDIES:
            raise UsageError(
                f"remedy={name!r} is not a remedy.{nearest(name, list(REMEDIES))} "
                f"They are {', '.join(REMEDIES)}."
            )
    return [each for each in _ENTRIES if not wanted or each.name in (BASELINE, *wanted)]
