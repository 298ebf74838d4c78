"""The papers' interventions trained and measured: the ledger's remedies, one table of rows each.

What a paper prints is read from these rows; nothing here knows a layout.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.errors import EvenhandError
from evenhand.lenses.counterfactual import lens as counterfactual
from evenhand.lenses.norms import lens as norms
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.statistical import lens as statistical
from evenhand.papers.sheets import Cell
from evenhand.remedies.ledger.compare import lacking, trained_together
from evenhand.remedies.ledger.intervals import interval_over_runs
from evenhand.remedies.ledger.measures import Outcome, decided_rows, outcome
from evenhand.remedies.ledger.registry import REMEDIES
from evenhand.remedies.ledger.task import Fitted, LedgerSettings, Task
from evenhand.remedies.ledger.texts import LedgerTexts
from evenhand.remedies.thresholds import GroupThresholds
from evenhand.stats.auc import delong, mean_auc, sorted_placements
from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import rate
from evenhand.stats.spread import gap_variance, root_mean_square

Progress = Callable[[float, float], None]
FOCAL, REFERENCE = "female", "male"
Z = 1.959963984540054
WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One remedy on one representation and seed, measured on the test rows.

    `rows` are those of all lenses; `rest_accuracy` the mean over classes of deciding each against
    its rest, `rest_gap` the root mean square of true positive gaps so decided, with its interval;
    `fitted_gap` the same where cuts by group are fitted on the test rows themselves. `balanced`
    is the mean over classes of true positive rates, `auc` that of areas under the curve.
    """

    rows: Rows
    accuracy: Cell
    rest_accuracy: Cell
    balanced: Cell
    rest_gap: Cell
    fitted_gap: Cell
    auc: Cell
    outcome: Outcome
    fitted: Fitted

    def cell(self, measure: str, **keys: Any) -> Cell:
        """A row of a lens, with the stars of its p; by default of women against men."""
        where = {"group": FOCAL, "stratum": None, "measure": measure} | keys
        held = self.rows.where(**where)
        if not len(held):
            return Cell(reason="not measured")
        value, low, high, n, p = (float(held[k][0]) for k in ("value", "low", "high", "n", "p"))
        if not np.isfinite(value):
            return Cell(reason=str(held["undefined"][0]))
        size = int(n) if np.isfinite(n) else None
        return Cell(value=value, n=size, stars=stars(p), **_ends(low, high))

    def by_class(self, measure: str, **keys: Any) -> dict[str, Cell]:
        """The rows of a measure by class."""
        where = {"group": FOCAL, "stratum": None, "measure": measure} | keys
        held = self.rows.where(**where)
        return {
            str(name): Cell(value=float(v), n=int(n), **_ends(low, high))
            for name, v, low, high, n in zip(
                *(held[k] for k in ("class", "value", "low", "high", "n")), strict=True
            )
            if name is not None and np.isfinite(v)
        }


@dataclass(slots=True, kw_only=True)
class Runs:
    """Everything that was trained: measurements by representation, remedy and seed, or why not."""

    texts: LedgerTexts
    seeds: tuple[int, ...]
    found: dict[tuple[str, str, int], Measurement] = field(default_factory=dict)
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)

    def of(self, representation: str, remedy: str) -> list[Measurement]:
        """The measurements of all seeds."""
        keys = ((representation, remedy, seed) for seed in self.seeds)
        return [self.found[key] for key in keys if key in self.found]

    def cell(
        self, representation: str, remedy: str, read: Callable[[Measurement], Cell], **printed: Any
    ) -> Cell:
        """One cell over all seeds, beside what the paper prints there."""
        held = [read(each) for each in self.of(representation, remedy)]
        if not held:
            return Cell(reason="not run", **printed)
        return mean_cell(held, **printed)

    def by_class(
        self, representation: str, remedy: str, measure: str, **keys: Any
    ) -> dict[str, Cell]:
        """A measure by class, each its mean over the seeds that have it."""
        held: dict[str, list[Cell]] = {}
        for found in self.of(representation, remedy):
            for title, cell in found.by_class(measure, **keys).items():
                held.setdefault(title, []).append(cell)
        return {title: mean_cell(cells) for title, cells in held.items()}

    def notes(self) -> list[str]:
        """Why something was not run, each reason once."""
        why: dict[str, list[str]] = {}
        for (representation, remedy), reason in self.reasons.items():
            why.setdefault(reason, []).append(f"{remedy} on {representation}")
        return [f"Not run: {', '.join(names)}. {reason}" for reason, names in why.items()]


def _ends(low: float, high: float) -> dict[str, Any]:
    """Both ends of an interval, or none."""
    known = bool(np.isfinite([low, high]).all())
    return {"low": float(low), "high": float(high)} if known else {}


def stars(p: float) -> str:
    """Marks of a small p, as the first paper sets them.

    Examples:
        >>> stars(0.03), stars(0.001), stars(float("nan"))
        ('*', '**', '')
    """
    return "**" if p < 0.01 else "*" if p < 0.05 else ""


def mean_cell(cells: Sequence[Cell], **printed: Any) -> Cell:
    """The mean over seeds, with their spread; each side of the rows' interval holds it as well.

    Examples:
        >>> mean_cell([Cell(value=0.4, low=0.3, high=0.5), Cell(value=0.6, low=0.5, high=0.7)])
        ... # doctest: +ELLIPSIS
        Cell(value=0.5, low=0.2..., high=0.7..., spread=0.14..., ...)
    """
    known = [cell for cell in cells if cell.value is not None and np.isfinite(cell.value)]
    if not known:
        return Cell(reason=cells[0].reason or "undefined", **printed)
    values = np.array([cell.value for cell in known], dtype=np.float64)
    value = float(values.mean())
    spread = float(values.std(ddof=1)) if len(known) > 1 else None
    ends: dict[str, Any] = {}
    pairs = [(c.low, c.high) for c in known if c.low is not None and c.high is not None]
    if len(pairs) == len(known):
        ends["low"], ends["high"] = interval_over_runs(values, np.array(pairs))
    marks = sorted(cell.stars for cell in known)
    return Cell(
        value=value,
        spread=spread,
        stars=marks[(len(marks) - 1) // 2],
        n=known[0].n,
        **ends,
        **printed,
    )


def run_remedies(
    texts: LedgerTexts,
    remedies: Mapping[str, Iterable[str]],
    *,
    seeds: int,
    seed: int = 0,
    settings: LedgerSettings | None = None,
    progress: Progress | None = None,
) -> Runs:
    """Train the remedies of each representation and measure them; what fails says why."""
    numbers = tuple(range(seed, seed + seeds))
    runs = Runs(texts=texts, seeds=numbers)
    wanted = [
        (representation, name, number)
        for representation, names in remedies.items()
        for number in numbers
        for name in names
    ]
    tasks: dict[tuple[str, int], Task] = {}
    done = 0
    extras = {
        REMEDIES[name].extra
        for representation, names in remedies.items()
        for name in names
        if _without(texts, representation, name) is None
    }
    with trained_together(extras), ThreadPoolExecutor(WORKERS) as pool:
        futures = []
        for representation, name, number in wanted:
            task = tasks.setdefault(
                (representation, number),
                Task(
                    texts=texts,
                    representation=representation,
                    rows=texts.rows.drawn(number, redraw=seeds > 1),
                    seed=number,
                    settings=settings or LedgerSettings(),
                ),
            )
            futures.append(pool.submit(_measured, task, name))
        for (representation, name, number), future in zip(wanted, futures, strict=True):
            found = future.result()
            if isinstance(found, str):
                runs.reasons[representation, name] = found
            else:
                runs.found[representation, name, number] = found
            done += 1
            if progress is not None:
                progress(done, len(wanted))
    return runs


def _measured(task: Task, name: str) -> Measurement | str:
    why = _without(task.texts, task.representation, name)
    if why is not None:
        return why
    try:
        return measure_fitted(task, REMEDIES[name].fit(task))
    except EvenhandError as error:
        return str(error)


def _without(texts: LedgerTexts, representation: str, name: str) -> str | None:
    """Why a remedy is not trained here, or None."""
    if name not in REMEDIES:
        return f"there is no remedy {name!r}"
    return lacking(REMEDIES[name], texts, representation=representation, asked=frozenset({name}))


def measure_fitted(task: Task, fitted: Fitted) -> Measurement:
    """A trained remedy on the test rows, through every lens."""
    texts = task.texts
    rows = texts.rows
    found = outcome(task, fitted)
    decisions = decided_rows(texts, found)
    decisions.check()
    options = Options(settings={"not_class": False, "bootstrap": False})
    parts = [statistical.measure(decisions, options).rows]
    if texts.no_swap is None:
        parts.append(counterfactual.measure(decisions, options).rows)
    if texts.norms.undefined is None and len(rows.classes) > 2:
        parts.append(norms.measure(decisions, options).rows)
    truth, group = rows.truth[rows.test], task.groups_of(rows.test)
    scores = fitted.scores(
        task.features(rows.test), group=group, norm=texts.norm_features[rows.test]
    )
    accepted = fitted.accepts(scores, group=group)
    right = np.where(np.arange(scores.shape[1]) == truth[:, None], accepted, 1 - accepted)
    hits = int((found.decided == truth).sum())
    whole = rate(hits, truth.size)
    cuts = GroupThresholds(None).fit(scores, task.truth_of(rows.test), group=group)
    return Measurement(
        rows=Rows.concatenate(parts),
        accuracy=Cell(value=whole.value, low=whole.low, high=whole.high, n=truth.size),
        rest_accuracy=_mean_of_rows(right.mean(axis=1)),
        balanced=_balanced(found.decided, truth),
        rest_gap=_rest_gap(accepted, truth, group),
        fitted_gap=_rest_gap(cuts.accepted_scores(scores, group=group), truth, group),
        auc=_area(scores, truth),
        outcome=found,
        fitted=fitted,
    )


def _mean_of_rows(shares: FloatArray) -> Cell:
    """The mean of one number a row, with its normal interval."""
    value, n = float(shares.mean()), shares.size
    half = Z * float(shares.std(ddof=1)) / np.sqrt(n) if n > 1 else float("nan")
    if not np.isfinite(half):
        return Cell(value=value, n=n)
    return Cell(value=value, low=max(0.0, value - half), high=min(1.0, value + half), n=n)


def _balanced(decided: Any, truth: Any) -> Cell:
    """Mean of the true positive rates of all classes, each of which varies by its own rows."""
    rates, errors = [], []
    for c in np.unique(truth[truth >= 0]):
        right = decided[truth == c] == c
        rates.append(float(right.mean()))
        errors.append(rates[-1] * (1 - rates[-1]) / max(right.size - 1, 1))
    value, half = float(np.mean(rates)), Z * float(np.sqrt(np.sum(errors))) / len(rates)
    return Cell(value=value, low=max(0.0, value - half), high=min(1.0, value + half), n=len(rates))


def _area(scores: FloatArray, truth: Any) -> Cell:
    """Area under the curve of two classes, of more the mean over them, with its interval."""
    known = truth >= 0
    if scores.shape[1] != 2:
        mean, *ends = mean_auc(scores[known], truth[known], z=Z)
        whole = Cell(value=mean, n=scores.shape[1])
        return replace(whole, low=ends[0], high=ends[1]) if np.isfinite(ends[0]) else whole
    cell = truth[known].astype(np.int64)
    placed, squares = sorted_placements(scores[known, 1], cell, lines=1)
    area = delong(
        int((cell == 1).sum()),
        int((cell == 0).sum()),
        placement=placed[1],
        placement_squares=squares[1],
        negative_placement_squares=squares[0],
    )
    low, high = area.interval(z=Z)
    return Cell(value=float(area.value), low=float(low), high=float(high), n=int(cell.size))


def _rest_gap(accepted: FloatArray, truth: Any, group: Any) -> Cell:
    """Root mean square over classes of true positive gaps, each class against its rest."""
    gaps, variances = [], []
    for c in range(accepted.shape[1]):
        sides = [accepted[(truth == c) & (group == g), c] for g in (FOCAL, REFERENCE)]
        if min(len(side) for side in sides) < 2:
            continue
        gaps.append(float(sides[0].mean() - sides[1].mean()))
        pairs = [(float(side.sum()), len(side)) for side in sides]
        variances.append(float(gap_variance(*pairs[0], *pairs[1])))
    if not gaps:
        return Cell(reason="no class has two rows of each group")
    size = root_mean_square(gaps, variances=variances, z=Z)
    return Cell(value=float(size.value), low=float(size.low), high=float(size.high), n=len(gaps))
