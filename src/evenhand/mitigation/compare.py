"""The ledger: remedies trained on the same rows and measured on every lens, side by side."""

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenhand.errors import EvenhandError, MissingExtra, UsageError, nearest
from evenhand.mitigation.ledger import Ledger, build_ledger
from evenhand.mitigation.ledger_files import (
    Part,
    PartStore,
    check_folder,
    fingerprint,
    write_ledger,
)
from evenhand.mitigation.ledger_measures import measure_outcome, outcome
from evenhand.mitigation.ledger_models import save_model, text_remedy
from evenhand.mitigation.ledger_rows import LedgerRows, join_rows, read_people, two_parts
from evenhand.mitigation.ledger_task import LedgerSettings, Task
from evenhand.mitigation.ledger_texts import (
    BY_CONSTRUCTION,
    REPRESENTATIONS,
    SETTINGS,
    LedgerTexts,
    prepare_texts,
)
from evenhand.mitigation.registry import BASELINE, Entry, choose_remedies

Progress = Callable[[int, int], None]
Cell = tuple[str, str, int]  # remedy, representation, seed
WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How one part ended: a finished part, or the reason why there is none."""

    part: Part | None = None
    status: str = "measured"
    reason: str | None = None


@dataclass(slots=True, kw_only=True)
class _Run:
    texts: LedgerTexts
    settings: LedgerSettings
    store: PartStore
    key: str
    redraw: bool
    first_seed: int
    folder: Path | None
    asked: frozenset[str]
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def compare_remedies(
    train: Any,
    test: Any = None,
    *,
    text: str,
    truth: str,
    group: str,
    name: str | None = None,
    remedies: Iterable[str] = (),
    representations: Sequence[str] = REPRESENTATIONS,
    seeds: int = 3,
    setting: str = "masked",
    split: str | None = None,
    test_share: float = 0.25,
    vectors: str | Path | None = None,
    titles: Mapping[str, Sequence[str]] | None = None,
    lexicon: Any = "gender_pronouns",
    values: Mapping[str, str] | None = None,
    settings: LedgerSettings | None = None,
    out: str | Path | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> Ledger:
    """Remedies side by side: each trained on the same rows and measured on every lens.

    `train` and `test` are tables; without `test`, `train` is divided by the column `split` or
    by `test_share`. `remedies` are names of the registry, by default all; `titles` has the forms
    of each class that are masked, by default those of the 28 occupations; `values` says which
    value of the lexicon a group is, such as {"F": "female"}. With more than one of `seeds` the
    training rows are drawn again within class × group for each. With `out` the ledger, its
    models and all finished parts are written there, and a run that broke off goes on.
    """
    began = time.perf_counter()
    entries = choose_remedies(remedies)
    asked = frozenset(remedies)
    chosen = settings or LedgerSettings()
    _check(representations, seeds=seeds, setting=setting, budget=chosen.budget, level=level)
    folder = None if out is None else check_folder(out)
    columns = {"text": text, "truth": truth, "group": group, "name": name}
    rows = _rows(train, test, split=split, test_share=test_share, seed=seed, **columns)
    options: dict[str, Any] = {
        "setting": setting,
        "representations": tuple(dict.fromkeys(representations)),
        "vectors": vectors,
        "titles": titles,
        "lexicon": lexicon,
        "values": values,
        "seed": seed,
    }
    texts = prepare_texts(rows, **options)
    run = _Run(
        texts=texts,
        settings=chosen,
        store=PartStore(folder),
        key=_inputs(rows, options),
        redraw=seeds > 1,
        first_seed=seed,
        folder=folder,
        asked=asked,
    )
    trials = _run_all(run, entries, seeds=seeds, progress=progress)
    arguments = {
        **columns,
        **{k: v if isinstance(v, int | float | tuple | dict) or v is None else str(v)
           for k, v in options.items()},
        "seeds": seeds,
        "split": split,
        "test_share": None if test is not None or split else test_share,
        "budget": chosen.budget,
        "reductions_iterations": chosen.reductions_iterations,
        "level": level,
    }  # fmt: skip
    ledger = build_ledger(
        texts, entries, trials, arguments=arguments, seconds=time.perf_counter() - began
    )
    if folder is not None:
        write_ledger(ledger.document, folder)
    return ledger


def _rows(
    train: Any,
    test: Any,
    *,
    split: str | None,
    test_share: float,
    seed: int,
    **columns: Any,
) -> LedgerRows:
    if test is not None:
        if split is not None:
            raise UsageError(
                f"split={split!r} divides one table, and two were given. Leave one of them out."
            )
        return join_rows(read_people(train, **columns), read_people(test, **columns), seed=seed)
    people = read_people(train, split=split, **columns)
    return join_rows(*two_parts(people, split=split, test_share=test_share, seed=seed), seed=seed)


def _check(
    representations: Sequence[str], *, seeds: int, setting: str, budget: float, level: float
) -> None:
    for each in representations:
        if each not in REPRESENTATIONS:
            raise UsageError(
                f"representation={each!r} is not one of {', '.join(REPRESENTATIONS)}."
                + nearest(each, list(REPRESENTATIONS))
            )
    if not representations:
        raise UsageError(f"Name a representation: {' or '.join(REPRESENTATIONS)}.")
    if setting not in SETTINGS:
        raise UsageError(
            f"setting={setting!r} is neither 'masked' nor 'scrubbed'."
            + nearest(setting, list(SETTINGS))
        )
    if seeds < 1:
        raise UsageError(f"seeds={seeds} is not a number of training sets. Give 1 or more.")
    if not 0 <= budget <= 1:
        raise UsageError(f"budget={budget:g} is not a share of accuracy between 0 and 1.")
    if not 0 < level < 1:
        raise UsageError(f"level={level:g} is not between 0 and 1, such as 0.95.")


def _inputs(rows: LedgerRows, options: Mapping[str, Any]) -> str:
    """A name for what the parts depend on; representations have their own parts."""
    people = rows.people
    told = {k: v for k, v in options.items() if k != "representations"}
    if options["vectors"] is not None:
        told["vectors_size"] = Path(options["vectors"]).stat().st_size
    return fingerprint(
        told, people.texts, people.truth, people.group, people.names or [], rows.fit.tolist()
    )


def _run_all(
    run: _Run, entries: Sequence[Entry], *, seeds: int, progress: Progress | None
) -> dict[Cell, Trial]:
    """Every part, two at a time; training sets one after the other, so that one is in memory."""
    trials: dict[Cell, Trial] = {}
    total = len(entries) * len(run.texts.representations) * seeds
    with _one_thread_each(), warnings.catch_warnings():
        # A fit that has spent its steps is near enough; threads share the filters of warnings.
        warnings.filterwarnings("ignore", message=".*settled.*")
        for representation in run.texts.representations:
            for number in range(run.first_seed, run.first_seed + seeds):
                task = Task(
                    texts=run.texts,
                    representation=representation,
                    rows=run.texts.rows.drawn(number, redraw=run.redraw),
                    seed=number,
                    settings=run.settings,
                )
                found = _run_task(run, task, entries, progress, total)
                trials |= {(name, representation, number): t for name, t in found.items()}
    return trials


def _one_thread_each() -> AbstractContextManager[Any]:
    """Linear algebra on one thread in each worker: two pools on two cores hinder each other."""
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:
        return nullcontext()
    return threadpool_limits(1)  # type: ignore[no-any-return]


def _run_task(
    run: _Run, task: Task, entries: Sequence[Entry], progress: Progress | None, total: int
) -> dict[str, Trial]:
    with ThreadPoolExecutor(WORKERS) as pool:
        # The longest first: a long one that begins last leaves the other worker idle.
        order = sorted(entries, key=lambda each: (each.name != BASELINE, -each.cost))
        futures: dict[Future[Trial], str] = {
            pool.submit(_trial, run, task, each): each.name for each in order
        }
        found: dict[str, Trial] = {}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                run.done += 1
                if progress is not None:
                    progress(run.done, total)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return found


def _trial(run: _Run, task: Task, entry: Entry) -> Trial:
    """One part: found, trained, or the reason why not. Nothing here stops the ledger."""
    why = lacking(entry, task.texts, representation=task.representation, asked=run.asked)
    if why is not None:
        return Trial(status="skipped", reason=why)
    place = [entry.name, task.representation, task.seed, run.redraw]
    key = fingerprint(run.key, place, repr(task.settings))
    held = run.store.load(key)
    if held is not None:
        return Trial(part=held)
    try:
        began = time.perf_counter()
        fitted = entry.fit(task)
        seconds = time.perf_counter() - began if fitted.seconds is None else fitted.seconds
        found = outcome(task, fitted)
        part = Part(
            measured=measure_outcome(task.texts, found),
            outcome=found,
            seconds=seconds,
            chosen=dict(fitted.chosen),
            notes=fitted.notes,
        )
        if run.folder is not None and task.seed == run.first_seed:
            model = text_remedy(task, fitted, needs_group=entry.needs_group_at_decision)
            save_model(model, run.folder, name=f"{entry.name}-{task.representation}")
        run.store.save(key, part)
    except MissingExtra as error:
        return Trial(status="skipped", reason=str(error))
    except EvenhandError as error:
        return Trial(status="failed", reason=str(error))
    except Exception as error:
        return Trial(status="failed", reason=f"{type(error).__name__}: {error}")
    return Trial(part=part)


def lacking(
    entry: Entry, texts: LedgerTexts, *, representation: str, asked: frozenset[str]
) -> str | None:
    """What a remedy would need and does not have here, or None."""
    if entry.extra is not None and find_spec(entry.extra) is None:
        return str(MissingExtra(entry.extra, f"The remedy {entry.name!r}"))
    if entry.only not in (None, representation) and entry.name not in asked:
        return f"trained on {entry.only} unless asked for by name (--remedy {entry.name})"
    if "counterfactual" in entry.needs and texts.no_swap is not None:
        if texts.no_swap == BY_CONSTRUCTION:
            return "it rewrites the group's words, and scrubbed texts have none"
        return texts.no_swap
    if "names" in entry.needs and texts.no_names is not None:
        return texts.no_names
    if "norm" in entry.needs and texts.norms.undefined is not None:
        return f"it needs a norm scorer, and there is none: {texts.norms.undefined}"
    return None
