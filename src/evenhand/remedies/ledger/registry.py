"""The remedies a ledger can compare: when each acts, what it needs, and how it is trained."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.errors import MissingExtra, UsageError, nearest
from evenhand.remedies.adversarial import tune_adversaries, tune_adversary
from evenhand.remedies.augment import TrainingRows, compose
from evenhand.remedies.cells import training_cells
from evenhand.remedies.decoupled import DecoupledClassifier
from evenhand.remedies.ledger.measures import BASELINE
from evenhand.remedies.ledger.task import Fitted, Task
from evenhand.remedies.norm_penalty import NormPenalisedClassifier
from evenhand.remedies.norm_slopes import NormEstimator, crossfit
from evenhand.remedies.penalties import CovarianceConstrainedClassifier, LogitPairedClassifier
from evenhand.remedies.reductions import ReductionsClassifier
from evenhand.remedies.residualise import NormResidualisedClassifier
from evenhand.remedies.thresholds import GroupThresholds

# Up to this many numbers a table of word counts multiplies faster when it is filled.
MOST_DENSE = 100_000_000
# Below this a group has no model of its own: a number from fewer cases cannot be told either.
FEWEST_FOR_A_MODEL = 50
Fit = Callable[[Task], Fitted]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRemedy:
    """A remedy of the registry; `stage` says when it acts, `needs` what it cannot do without.

    `needs` are among "counterfactual", "names" and "norm"; `extra` is an optional dependency,
    `cost` roughly the number of baseline fits it takes; `linear` ones need features of numbers.
    `recipe` is what `compose` is told where the remedy is a training set for any trainer.
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
    recipe: Mapping[str, Any] | None = None
    linear: bool = False


def _baseline(task: Task) -> Fitted:
    return Fitted(model=task.baseline(), seconds=task.seconds("baseline"))


def _composed(recipe: Mapping[str, Any]) -> Fit:
    def fit(task: Task) -> Fitted:
        return task.fitted(_training_rows(task, recipe))

    return fit


def _training_rows(task: Task, recipe: Mapping[str, Any]) -> TrainingRows:
    return compose(task.y, group=task.group, groups=list(task.texts.do), seed=task.seed, **recipe)


def _weighed_copies(task: Task) -> tuple[TrainingRows, Fitted]:
    """Kamiran–Calders weights and counterfactual copies: a remedy, and the start of another."""

    def make() -> tuple[TrainingRows, Fitted]:
        made = _training_rows(task, WEIGHED_COPIES)
        return made, task.fitted(made)

    found: tuple[TrainingRows, Fitted] = task.once("weighed_copies", make)
    return found


def _reweighed_augmented(task: Task) -> Fitted:
    found = _weighed_copies(task)[1]
    return replace(found, seconds=task.seconds("weighed_copies"))


def _thresholds(shrinkage: float) -> Fit:
    def fit(task: Task) -> Fitted:
        model = task.baseline()
        rows = task.texts.rows.validation
        known = task.texts.rows
        cuts = GroupThresholds(
            model,
            shrinkage=shrinkage,
            unseen="common",
            positive=None if known.positive is None else known.classes[known.positive],
            seed=task.seed,
        )
        cuts.fit(task.features(rows), task.truth_of(rows), group=task.groups_of(rows))
        return Fitted(model=model, cuts=cuts, notes=tuple(cuts.notes_))

    return fit


def _decoupled(task: Task) -> Fitted:
    model = DecoupledClassifier(task.classifier(), fewest=FEWEST_FOR_A_MODEL, unseen="pooled")
    model.fit(task.table, task.y, group=task.group)
    return Fitted(model=model, by_group=True, notes=tuple(model.notes_))


def _cocl(task: Task) -> Fitted:
    assert task.texts.name_vectors is not None
    model = CovarianceConstrainedClassifier(tol=task.settings.penalty_tolerance)
    model.fit(task.table, task.y, names=task.texts.name_vectors[task.rows])
    return Fitted(model=model, chosen={"strength": model.strength, "skipped": model.skipped_})


def _adversarial(task: Task) -> Fitted:
    """Rate, weight and epochs by the budget on validation rows, from the baseline's weights."""
    _one_torch_thread()
    found = tune_adversary(*_dense(task), **_against(task))
    chosen = {
        "learning_rate": found.chosen.learning_rate,
        "adversary_weight": found.chosen.adversary_weight,
        "epochs": found.chosen.epoch,
        "validation_accuracy": found.chosen.accuracy,
        "tried": len(found.trials),
    }
    return Fitted(model=found.model, chosen=chosen)


def _adversaries(task: Task) -> Fitted:
    """One adversary a class; of two classes that is the one adversary there is."""
    if len(task.texts.rows.classes) == 2:
        return _adversarial(task)
    _one_torch_thread()
    model, tuned = tune_adversaries(*_dense(task), **_against(task))
    moved = sum(each.chosen.epoch > 0 for each in tuned)
    chosen = {"classes_moved": moved, "tried": sum(len(each.trials) for each in tuned)}
    return Fitted(model=model, chosen=chosen)


def _dense(task: Task) -> tuple[Any, Any]:
    """Features and truth, the features filled where that multiplies faster."""
    table = task.table
    if task.is_counts and table.shape[0] * table.shape[1] <= MOST_DENSE:
        table = table.toarray()
    return table, task.y


def _against(task: Task) -> dict[str, Any]:
    """What adversaries are tuned with: the baseline, validation rows, the budget, what is tried."""
    rows = task.texts.rows.validation
    return {
        "group": task.group,
        "start": task.baseline(),
        "held": task.features(rows),
        "held_truth": task.truth_of(rows),
        "held_group": task.groups_of(rows),
        "budget": task.settings.budget,
        "rates": task.settings.adversary_rates,
        "weights": task.settings.adversary_weights,
        "epochs": task.settings.adversarial_epochs,
        "seed": task.seed,
    }


def _one_torch_thread() -> None:
    """Torch on one thread: its steps here are small, and threads that wait for each other slow.

    The number belongs to the process, and another fit may be running: `trained_together` sets it
    back when all are done.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "Adversarial training") from None
    torch.set_num_threads(1)


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
        norm_group=task.texts.norm_groups[0],
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
    first = task.texts.norm_groups[0]
    norm = crossfit(
        task.table,
        task.y,
        cells=training_cells(task.y, group=task.group),
        norm=NormEstimator(_norm_estimator(task), first),
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
WEIGHED_COPIES: dict[str, Any] = {"weighing": "kamiran_calders"}


def _before(
    name: str, words: str, recipe: dict[str, Any], *, fit: Fit | None = None, cost: float = 1.0
) -> LedgerRemedy:
    """A remedy that is a training set, made by `compose`."""
    return LedgerRemedy(
        name=name,
        words=words,
        stage="before",
        needs=() if recipe.get("order") == "plain" else _COUNTERFACTUAL,
        fit=fit or _composed(recipe),
        cost=cost,
        recipe=recipe,
    )


_ENTRIES = (
    LedgerRemedy(
        name=BASELINE, words="no remedy", stage="none", fit=_baseline, recipe={"order": "plain"}
    ),
    _before(
        "alpha_weights",
        "weights: groups of a class count as its smallest",
        {"order": "plain", "weighing": "within_class"},
    ),
    _before(
        "kamiran_calders",
        "weights that make class and group independent",
        {"order": "plain", "weighing": "kamiran_calders"},
    ),
    _before(
        "equal_opportunity",
        "weights: every group of a class counts as the class",
        {"order": "plain", "weighing": "equal_opportunity"},
    ),
    _before(
        "oversample",
        "smaller groups of a class drawn again",
        {"order": "plain", "resampler": "over"},
    ),
    _before(
        "undersample",
        "larger groups of a class thinned out",
        {"order": "plain", "resampler": "under"},
    ),
    _before("augment", "a counterfactual copy of every row", {}, cost=2.5),
    _before(
        "oversample_augment",
        "oversampled, then copied",
        {"order": "resample_then_augment", "resampler": "over"},
        cost=3.5,
    ),
    _before(
        "undersample_augment",
        "undersampled, then copied",
        {"order": "resample_then_augment", "resampler": "under"},
        cost=1.5,
    ),
    _before(
        "augment_oversample",
        "copied, then both sides oversampled",
        {"order": "augment_then_resample", "resampler": "over"},
        cost=3.5,
    ),
    _before(
        "augment_undersample",
        "copied, then both sides undersampled",
        {"order": "augment_then_resample", "resampler": "under"},
        cost=1.5,
    ),
    _before(
        "reweigh_augment",
        "copied; a copy weighs what its original does",
        WEIGHED_COPIES,
        fit=_reweighed_augmented,
        cost=2.5,
    ),
    _before(
        "reweigh_augment_one",
        "copied; copies weigh one",
        WEIGHED_COPIES | {"counterfactual_weight": "one"},
        cost=2.5,
    ),
    _before(
        "reweigh_augment_other",
        "copied; a copy weighs what its new group does",
        WEIGHED_COPIES | {"counterfactual_weight": "counterfactual"},
        cost=2.5,
    ),
    LedgerRemedy(
        name="thresholds",
        words="cuts by group with equal true positive rates",
        stage="after",
        needs_group_at_decision=True,
        fit=_thresholds(shrinkage=10),
        cost=0.1,
    ),
    LedgerRemedy(
        name="thresholds_exact",
        words="the same, exactly equal on the rows that set the cuts",
        stage="after",
        needs_group_at_decision=True,
        fit=_thresholds(shrinkage=0),
        cost=0.1,
    ),
    LedgerRemedy(
        name="decoupled",
        words="one model for each group",
        stage="in",
        needs_group_at_decision=True,
        fit=_decoupled,
    ),
    LedgerRemedy(
        name="cocl",
        words="scores kept from following names (CoCL)",
        stage="in",
        needs=("names",),
        linear=True,
        fit=_cocl,
        cost=3,
    ),
    LedgerRemedy(
        name="adversarial",
        words="trained against an adversary that reads the group",
        stage="in",
        extra="torch",
        linear=True,
        fit=_adversarial,
        cost=5,
    ),
    LedgerRemedy(
        name="adversarial_by_class",
        words="an adversary for each class against its rest",
        stage="in",
        extra="torch",
        only="vectors",
        linear=True,
        fit=_adversaries,
        cost=40,
    ),
    LedgerRemedy(
        name="logit_pairing",
        words="a text and its counterfactual kept at one score",
        stage="in",
        needs=_COUNTERFACTUAL,
        linear=True,
        fit=_paired,
        cost=2,
    ),
    LedgerRemedy(
        name="residualise",
        words="scores less what the norm explains",
        stage="after",
        needs=("norm",),
        linear=True,
        fit=_residualised,
        cost=5,
    ),
    LedgerRemedy(
        name="covariance_penalty",
        words="scores kept from following the norm in training",
        stage="in",
        needs=("norm",),
        linear=True,
        fit=_penalised,
        cost=5,
    ),
    LedgerRemedy(
        name="reweigh_augment_residualise",
        words="weights, copies and residualisation together",
        stage="before and after",
        needs=("counterfactual", "norm"),
        linear=True,
        fit=_all_three,
        cost=12,
    ),
    LedgerRemedy(
        name="reductions",
        words="mixture of models with nearly equal rates",
        stage="in",
        extra="fairlearn",
        only="vectors",
        linear=True,
        fit=_reductions,
        cost=80,
    ),
)
REMEDIES: dict[str, LedgerRemedy] = {each.name: each for each in _ENTRIES}


def choose_remedies(names: Iterable[str] = ()) -> list[LedgerRemedy]:
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
