"""`evenhand reproduce`: the tables and figures of one of the three papers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError, nearest
from evenhand.models.norms.ratings import Ratings, read_ratings
from evenhand.papers import fairness_on_the_ground as ground
from evenhand.papers import social_norm_bias as social
from evenhand.papers import statistical_and_causal as causal
from evenhand.papers.norm_words import learn_norms
from evenhand.papers.runs import run_remedies
from evenhand.papers.sheets import Reproduction, check_place
from evenhand.papers.sources import (
    Encoding,
    Source,
    holds_comments,
    read_source,
    simulated_biographies,
    simulated_comments,
)
from evenhand.remedies.ledger.task import LedgerSettings

PAPERS = ("p1", "p2", "p3")
SEEDS = {True: 2, False: 5}
# A step of the reductions fits all classes again; adversaries are trained once a class and rate.
QUICK_SETTINGS = LedgerSettings(reductions_iterations=3, adversary_rates=(0.003,))
Progress = Callable[[float, float], None]


def reproduce(
    paper: str,
    *,
    data: str | Path | Sequence[str | Path] | None = None,
    representation: str | Path | None = None,
    fine_tune: bool = False,
    ratings: str | Path | None = None,
    ratings_toward: str = "female",
    quick: bool = False,
    out: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Reproduction:
    """A paper's tables and figures, beside the values it prints.

    Args:
        paper: "p1" (Social Norm Bias), "p2" (Addressing Both Statistical and Causal Gender
            Fairness in NLP Models) or "p3" (Fairness On The Ground).
        data: Files of BiasBios, for p2 also the folder of Civil Comments, or a CSV with text,
            gender and occupation; by default simulated.
        representation: The local folder of a transformers model, for the rows of BERT.
        fine_tune: Train that folder; else its vectors are used as they are.
        ratings: For p1, a CSV of people's ratings of words (word, mean), a high one of which
        ratings_toward: means this group.
        quick: Fewer rows and seeds: minutes on two cores.
        out: The folder to write to; the paper's own folder is made in it.
        seed: Seed of everything drawn.
        progress: Told how many fits are done, and of how many.

    Examples:
        >>> found = reproduce("p3", quick=True)
        >>> print(found.table("scalars").cell("value", "men's cancers not treated").text(2))
        0.43 [0.16, 0.75]
    """
    if paper not in PAPERS:
        raise UsageError(
            f"paper={paper!r} is not one of the papers: {', '.join(PAPERS)}."
            f"{nearest(str(paper), list(PAPERS))}"
        )
    began = time.perf_counter()
    files = [] if data is None else [data] if isinstance(data, str | Path) else list(data)
    if out is not None:
        read = [place for place in (*files, representation, ratings) if place is not None]
        check_place(paper, out, read)
    if ratings is not None and paper != "p1":
        raise UsageError("Ratings of words (--ratings) are for paper 1. Leave them out.")
    if paper == "p3":
        made = _ground(files, representation, quick=quick, seed=seed)
    else:
        folder = None if representation is None else Path(representation)
        encoding = Encoding(folder=folder, fine_tune=fine_tune)
        told: dict[str, Any] = {"quick": quick, "seed": seed, "progress": progress}
        if paper == "p1":
            rated = None if ratings is None else read_ratings(ratings, toward=ratings_toward)
            made = _norms(files, encoding, ratings=rated, **told)
        else:
            made = _statistical(files, encoding, **told)
    made = replace(made, seconds=time.perf_counter() - began)
    if out is not None:
        made.write(out)
    return made


def _ground(files: Sequence[Any], representation: Any, *, quick: bool, seed: int) -> Reproduction:
    if files or representation is not None:
        raise UsageError(
            "Paper 3 has no data and no text model: its numbers are arithmetic. Leave --data and "
            "--representation out; evenhand audit measures its lenses on your own table."
        )
    return Reproduction(
        paper="p3",
        title=ground.TITLE,
        data="The paper's own example, and simulated scores and labels whose answer is known.",
        parts=ground.reproduce_ground(quick=quick, seed=seed),
        same_data=True,
    )


def _statistical(
    files: Sequence[Any], encoding: Encoding, *, quick: bool, seed: int, progress: Progress | None
) -> Reproduction:
    people = _source(files, "biographies", keep_first=True, quick=quick, seed=seed)
    about = _source(files, "comments", keep_first=True, quick=quick, seed=seed)
    prepared = [encoding.prepare(each, setting="masked", seed=seed) for each in (people, about)]
    main, other = encoding.name(prepared[0]) or "bow", "vectors"
    lists = causal.wanted(main, other)
    total = SEEDS[quick] * sum(len(names) for held in lists for names in held.values())
    tell = _in_all(progress, total)
    runs = [
        run_remedies(texts, names, seeds=SEEDS[quick], seed=seed, progress=tell)
        for texts, names in zip(prepared, lists, strict=True)
    ]
    own = people.own and about.own
    return Reproduction(
        paper="p2",
        title=causal.TITLE,
        data=f"{people.words}; {about.words}. {SEEDS[quick]} training sets each."
        f"{_notes(people)}{_notes(about)}",
        parts=causal.reproduce_statistical(
            runs[0],
            runs[1],
            main=main,
            other=other,
            same_data=own,
            agreement=about.agreement,
        ),
        same_data=own,
    )


def _norms(
    files: Sequence[Any],
    encoding: Encoding,
    *,
    ratings: Ratings | None,
    quick: bool,
    seed: int,
    progress: Progress | None,
) -> Reproduction:
    people = _source(files, "biographies", keep_first=False, quick=quick, seed=seed)
    prepared = encoding.prepare(people, setting="scrubbed", seed=seed)
    texts = social.with_names(prepared, seed=seed)
    encoder = encoding.name(texts)
    runs = run_remedies(
        texts,
        social.wanted(encoder),
        seeds=SEEDS[quick],
        seed=seed,
        settings=QUICK_SETTINGS if quick else LedgerSettings(),
        progress=progress,
    )
    return Reproduction(
        paper="p1",
        title=social.TITLE,
        data=f"{people.words}; pronouns, titles and names removed. {SEEDS[quick]} training sets."
        f"{_notes(people)}",
        parts=social.reproduce_norms(
            runs,
            learn_norms(texts, seed=seed),
            encoder=encoder,
            planted=people.planted,
            same_data=people.own,
            ratings=ratings,
            seed=seed,
        ),
        same_data=people.own,
    )


def _source(files: Sequence[Any], kind: str, *, keep_first: bool, quick: bool, seed: int) -> Source:
    """The corpus among the files, or a simulated one where they hold none."""
    there = [path for path in files if holds_comments(path) == (kind == "comments")]
    if there:
        return read_source(there, kind=kind, keep_first=keep_first, seed=seed)
    make = simulated_comments if kind == "comments" else simulated_biographies
    return make(quick=quick, seed=seed)


def _notes(source: Source) -> str:
    """What was left out of the rows, after what they are."""
    return "".join(f" {note}" for note in source.rows.notes)


def _in_all(progress: Progress | None, total: int) -> Progress | None:
    """Progress over several runs as one."""
    if progress is None:
        return None
    tell, before, last = progress, 0.0, 0.0

    def add(done: float, _: float) -> None:
        nonlocal before, last
        if done < last:
            before += last
        last = done
        tell(before + done, total)

    return add
