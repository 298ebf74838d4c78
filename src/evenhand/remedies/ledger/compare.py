"""The ledger: remedies trained on the same rows and measured on every lens, side by side."""

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from evenhand.errors import DataError, EvenhandError, MissingExtra, UsageError, nearest
from evenhand.models.transformer import folder_fingerprint, model_folder
from evenhand.remedies.cells import check_choice
from evenhand.remedies.ledger.columns import COLUMNS
from evenhand.remedies.ledger.document import Ledger, build_ledger
from evenhand.remedies.ledger.encoders import Encoder, find_encoder
from evenhand.remedies.ledger.files import (
    LedgerPart,
    PartStore,
    check_folder,
    fingerprint,
    save_model,
    text_remedy,
    write_ledger,
)
from evenhand.remedies.ledger.measures import BASELINE, measure_outcome, outcome
from evenhand.remedies.ledger.registry import LedgerRemedy, choose_remedies
from evenhand.remedies.ledger.rows import LedgerRows, join_rows, read_people, two_parts
from evenhand.remedies.ledger.task import LedgerSettings, Task
from evenhand.remedies.ledger.texts import (
    BY_CONSTRUCTION,
    MASK_SCOPES,
    REPRESENTATIONS,
    SETTINGS,
    LedgerTexts,
    TextSettings,
    prepare_columns,
    prepare_texts,
)
from evenhand.remedies.reductions import ignore_changes_of_others

Progress = Callable[[float, int], None]
Cell = tuple[str, str, int]  # remedy, representation, seed
WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How one part ended: a finished part, or the reason why there is none."""

    part: LedgerPart | None = None
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
    level: float
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def compare(
    train: Any,
    test: Any = None,
    *,
    truth: str,
    group: str,
    text: str | None = None,
    features: Sequence[str] = (),
    name: str | None = None,
    split: str | None = None,
    test_share: float = 0.25,
    remedies: Iterable[str] = (),
    reference: str | None = None,
    positive: str | None = None,
    texts: TextSettings | Mapping[str, Any] | None = None,
    settings: LedgerSettings | Mapping[str, Any] | None = None,
    seeds: int = 3,
    out: str | Path | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> Ledger:
    """Remedies side by side: each trained on the same rows and measured on every lens.

    Args:
        train: A table, by any of the ways that `Decisions` takes one.
        test: Another one to judge on; without it, `train` is divided.
        truth: The column with the class of each row.
        group: The column with the group of each row's person.
        text: The column of texts to decide about, or
        features: columns of numbers or words instead, which leave counterfactuals and norms open.
        name: The column with the person's name: scrubbed from texts, and for CoCL.
        split: The column that marks the rows of one table as train or test.
        test_share: Test rows of one table without such a column.
        remedies: Names of those to compare; by default all that the rows allow.
        reference: The group that others are compared with, by default the one with most rows.
        positive: Of two classes the one whose gaps have a sign, by default the second by name.
        texts: How texts are prepared, such as `{"lexicon": "gender_words"}`: `TextSettings`.
        settings: What remedies are told, such as `{"budget": 0.02}`: `LedgerSettings`.
        seeds: Training sets drawn within class and group; five or more give intervals.
        out: The folder for ledger, models and finished parts; a run that broke off goes on there.
        level: Confidence level of the intervals.
        seed: Seed of everything drawn.
        progress: Told how many parts are done, and of how many.
    """
    began = time.perf_counter()
    entries = choose_remedies(remedies)
    chosen = _settings(LedgerSettings, settings, "settings")
    prepared = _settings(TextSettings, texts, "texts")
    _check_source(text, features, texts)
    _check(prepared, seeds=seeds, budget=chosen.budget, level=level)
    folder = None if out is None else check_folder(out)
    columns = {"text": text, "features": tuple(features), "truth": truth, "group": group}
    columns["name"] = name
    sides = {"reference": reference, "positive": positive, "seed": seed}
    rows = _rows(train, test, split=split, test_share=test_share, sides=sides, **columns)
    options: dict[str, Any] = {}
    if text is not None:
        options = {each: getattr(prepared, each) for each in TextSettings.__slots__}
        options["representations"] = tuple(dict.fromkeys(prepared.representations))
    options["seed"] = seed
    store = PartStore(folder)
    with _one_thread_each():
        if text is not None:
            shared = prepare_texts(rows, kept=store.keep_vectors(), **options)
        else:
            shared = prepare_columns(rows)
    run = _Run(
        texts=shared,
        settings=chosen,
        store=store,
        key=_inputs(rows, options),
        redraw=seeds > 1,
        first_seed=seed,
        folder=folder,
        asked=frozenset(remedies),
        level=level,
    )
    trials = _run_all(run, entries, seeds=seeds, progress=progress)
    arguments = {
        **columns,
        **{k: v if isinstance(v, int | float | tuple | dict) or v is None else str(v)
           for k, v in options.items()},
        "seeds": seeds,
        "reference": reference,
        "positive": positive,
        "split": split,
        "test_share": None if test is not None or split else test_share,
        "budget": chosen.budget,
        "reductions_iterations": chosen.reductions_iterations,
        "level": level,
    }  # fmt: skip
    ledger = build_ledger(
        shared, entries, trials, arguments=arguments, seconds=time.perf_counter() - began
    )
    if folder is not None:
        write_ledger(ledger.document, folder)
    return ledger


Settings = TypeVar("Settings", LedgerSettings, TextSettings)


def _settings(kind: type[Settings], given: Any, argument: str) -> Settings:
    """Settings as they were given, or made of a mapping; an unknown one is refused."""
    if isinstance(given, kind):
        return given
    held, known = dict(given or {}), list(kind.__slots__)
    for name in held:
        if name not in known:
            raise UsageError(
                f"{argument} has {name!r}, which is not a setting.{nearest(name, known)} "
                f"They are {', '.join(known)}."
            )
    return kind(**held)


def _check_source(text: str | None, features: Sequence[str], texts: Any) -> None:
    if isinstance(features, str):
        raise UsageError(f"features={features!r} is one name. Give a list, such as ['age'].")
    if (text is None) == (not features):
        raise UsageError(
            "Name either the column of texts (text=, --text) or the columns to decide by "
            "(features=, --features)."
        )
    if text is None and texts is not None:
        raise UsageError(
            "texts= says how texts are prepared, and features= are columns. Leave one of them out."
        )


def _rows(
    train: Any,
    test: Any,
    *,
    split: str | None,
    test_share: float,
    sides: Mapping[str, Any],
    **columns: Any,
) -> LedgerRows:
    if test is not None:
        if split is not None:
            raise UsageError(
                f"split={split!r} divides one table, and two were given. Leave one of them out."
            )
        return join_rows(read_people(train, **columns), read_people(test, **columns), **sides)
    people = read_people(train, split=split, **columns)
    parts = two_parts(people, split=split, test_share=test_share, seed=sides["seed"])
    return join_rows(*parts, **sides)


def _check(texts: TextSettings, *, seeds: int, budget: float, level: float) -> None:
    representations, setting = texts.representations, texts.setting
    for each in {*representations, texts.norm_scorer or "bow"} - {*REPRESENTATIONS}:
        find_encoder(each, known=REPRESENTATIONS, fine_tune=texts.fine_tune)
    if texts.fine_tune and {*representations} <= {*REPRESENTATIONS}:
        raise UsageError(
            "fine_tune trains a transformers model. Name its folder as a representation "
            "(--representation FOLDER)."
        )
    if texts.training is not None and not texts.fine_tune:
        raise UsageError("training says how a folder is fine-tuned. Say fine_tune=True as well.")
    if not representations:
        raise UsageError(f"Name a representation: {' or '.join(REPRESENTATIONS)}.")
    check_choice("setting", setting, SETTINGS)
    check_choice("mask_scope", texts.mask_scope, MASK_SCOPES)
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
    if options.get("vectors") is not None:
        told["vectors_size"] = Path(options["vectors"]).stat().st_size
    if options.get("norm_scorer") is not None:
        told["norm_scorer"] = folder_fingerprint(model_folder(Path(options["norm_scorer"])))
    return fingerprint(
        told, people.texts, people.columns, people.truth, people.group, people.names or [],
        rows.fit.tolist(), rows.reference, rows.positive,
    )  # fmt: skip


def _run_all(
    run: _Run, entries: Sequence[LedgerRemedy], *, seeds: int, progress: Progress | None
) -> dict[Cell, Trial]:
    """Every part, two at a time; training sets one after the other, so that one is in memory."""
    wanted = {
        entry.extra
        for entry in entries
        for each in run.texts.representations
        if lacking(entry, run.texts, representation=each, asked=run.asked) is None
    }
    trials: dict[Cell, Trial] = {}
    total = len(entries) * len(run.texts.representations) * seeds
    with trained_together(wanted):
        for representation in run.texts.representations:
            for number in range(run.first_seed, run.first_seed + seeds):
                task = Task(
                    texts=run.texts,
                    representation=representation,
                    rows=run.texts.rows.drawn(number, redraw=run.redraw),
                    seed=number,
                    settings=run.settings,
                    progress=_within(run, progress, total),
                )
                found = _run_task(run, task, entries, progress, total)
                if found[BASELINE].part is None:
                    raise DataError(
                        f"The baseline could not be trained on {representation}, and no remedy "
                        f"can be compared without it: {found[BASELINE].reason}"
                    )
                trials |= {(name, representation, number): t for name, t in found.items()}
    return trials


def _within(run: _Run, progress: Progress | None, total: int) -> Callable[[float], None] | None:
    """Told the share of one fit, tell how many parts are done, and that part of one."""
    if progress is None:
        return None
    tell = progress
    return lambda share: tell(run.done + share, total)


@contextmanager
def trained_together(extras: Iterable[str | None]) -> Iterator[None]:
    """What threads that train side by side share, settled before the first of them begins.

    Libraries are imported: two threads that import one can break it. Linear algebra runs on one
    thread: more round differently, and two pools hinder each other. Filters of warnings belong to
    the process: a thread that leaves its own takes away another's. So does torch's number of
    threads, which is set back here and by none of them.
    """
    libraries = {str(extra): import_module(str(extra)) for extra in {*extras} - {None}}
    with _kept_threads(libraries.get("torch")), _one_thread_each(), warnings.catch_warnings():
        # A fit that has spent its steps is near enough.
        warnings.filterwarnings("ignore", message=".*settled.*")
        ignore_changes_of_others()
        yield


@contextmanager
def _kept_threads(torch: Any) -> Iterator[None]:
    """Torch's number of threads as it was, whatever is set meanwhile."""
    before = torch.get_num_threads() if torch is not None else 0
    try:
        yield
    finally:
        if torch is not None:
            torch.set_num_threads(before)


def _one_thread_each() -> AbstractContextManager[Any]:
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:
        return nullcontext()
    return threadpool_limits(1)  # type: ignore[no-any-return]


def _run_task(
    run: _Run, task: Task, entries: Sequence[LedgerRemedy], progress: Progress | None, total: int
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


def _trial(run: _Run, task: Task, entry: LedgerRemedy) -> Trial:
    """One part: found, trained, or the reason why not. Nothing here stops the ledger."""
    why = lacking(entry, task.texts, representation=task.representation, asked=run.asked)
    if why is not None:
        return Trial(status="skipped", reason=why)
    place = [entry.name, task.representation, task.seed, run.redraw]
    encoder = task.texts.representations[task.representation]
    place += [encoder.fingerprint] if isinstance(encoder, Encoder) else []
    key = fingerprint(run.key, place, repr(task.settings))
    held = run.store.load(key)
    if held is not None and held.measured.level != run.level:
        again = measure_outcome(task.texts, held.outcome, level=run.level)
        held = replace(held, measured=again)
    if held is not None:
        return Trial(part=held)
    try:
        began = time.perf_counter()
        fitted = entry.fit(task)
        seconds = time.perf_counter() - began if fitted.seconds is None else fitted.seconds
        found = outcome(task, fitted)
        part = LedgerPart(
            measured=measure_outcome(task.texts, found, level=run.level),
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
    entry: LedgerRemedy, texts: LedgerTexts, *, representation: str, asked: frozenset[str]
) -> str | None:
    """What a remedy would need and does not have here, or None."""
    if entry.extra is not None and find_spec(entry.extra) is None:
        return str(MissingExtra(entry.extra, f"The remedy {entry.name!r}"))
    # What is slow on word counts is not so on the few features of a table.
    fast = representation in (entry.only, COLUMNS)
    if entry.only is not None and not fast and entry.name not in asked:
        return f"trained on {entry.only} unless asked for by name (--remedy {entry.name})"
    if getattr(texts.representations[representation], "fine_tune", False) and entry.linear:
        return "it works on the weights of a linear model, and this one is fine-tuned"
    if "counterfactual" in entry.needs and texts.no_swap is not None:
        if texts.no_swap == BY_CONSTRUCTION:
            return "it rewrites the group's words, and scrubbed texts have none"
        return texts.no_swap
    if "names" in entry.needs and texts.no_names is not None:
        return texts.no_names
    if "norm" in entry.needs and texts.norms.undefined is not None:
        return f"it needs a norm scorer, and there is none: {texts.norms.undefined}"
    return None
