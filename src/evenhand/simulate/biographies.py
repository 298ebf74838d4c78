"""Biographies with planted paths from gender to occupation: by pronouns, and by norm words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.errors import UsageError, nearest
from evenhand.simulate import biography_words as words
from evenhand.stats.estimate import FloatArray

LEAKS = ("imbalance", "label_noise", "class_words")
_GENDERS = ("female", "male")
_CLASS_SHARE, _NORM_SHARE = 0.25, 0.30  # of the topic words; the rest is neutral
_NOISE = 0.3  # share of relabelled rows where the norm neither helps nor hurts


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupation:
    """One occupation: its female share, its size relative to others and its own words."""

    female_share: float
    size: float = 1.0
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Biographies:
    """Simulated biographies and what was planted.

    `frame` has id, name, gender, title and text; `hidden` has id, the latent norm (high: like a
    typical woman) and the title before any label noise; `planted` the parameters by occupation.
    """

    frame: pl.DataFrame
    hidden: pl.DataFrame
    planted: dict[str, Any] = field(default_factory=dict)


def occupations() -> dict[str, Occupation]:
    """The 28 occupations with the female shares of the public corpus.

    Sizes follow a rule, not the corpus: the k-th most common occupation has weight 1/k.

    Examples:
        >>> occupations()["nurse"].female_share
        0.9085
    """
    return {
        title: Occupation(
            female_share=share, size=1 / rank, words=tuple(words.CLASS_WORDS[title].split())
        )
        for rank, (title, share) in enumerate(words.FEMALE_SHARE.items(), start=1)
    }


def biographies(
    n: int,
    *,
    occupations: Mapping[str, Occupation] | None = None,
    pronouns: float = 1.0,
    spurious: float = 1.0,
    leak: str = "imbalance",
    strength: float = 2.0,
    first_names: bool = False,
    seed: int = 0,
) -> Biographies:
    """Biographies of about 68 words without their title, with two switches and a norm leak.

    `pronouns` is the share of texts with pronouns (0: none, so that no swap changes anything);
    `spurious` how far the norms of women and men lie apart, in standard deviations (0: norm words
    tell nothing of gender). The norm leaks into the title by "imbalance" alone, by "label_noise"
    (who does not look the part is mislabelled) or because "class_words" are rarer for them;
    `strength` k gives the slope k(p_c − ½) of an occupation with female share p_c.

    Examples:
        >>> made = biographies(100, seed=1)
        >>> made.frame.columns
        ['id', 'name', 'gender', 'title', 'text']
    """
    chosen = _checked(n, occupations, pronouns=pronouns, leak=leak)
    titles = list(chosen)
    rng = np.random.default_rng(seed)
    share = np.array([each.female_share for each in chosen.values()])
    size = np.array([each.size for each in chosen.values()])
    title = rng.choice(len(titles), size=n, p=size / size.sum())
    female = rng.random(n) < share[title]
    norm = rng.standard_normal(n) + spurious * np.where(female, 0.5, -0.5)
    slope = strength * (share - 0.5)
    label = title
    if leak == "label_noise":
        noisy = rng.random(n) < expit(logit(_NOISE) - slope[title] * norm)
        label = np.where(noisy, rng.choice(len(titles), size=n, p=size / size.sum()), title)
    pull = slope[title] * norm if leak == "class_words" else np.zeros(n)
    topics = _topics(chosen, title, norm, pull, rng)
    frame = _frame(
        titles, label, female, topics, pronouns=pronouns, first_names=first_names, rng=rng
    )
    return Biographies(
        frame=frame,
        hidden=pl.DataFrame(
            {"id": np.arange(n), "norm": norm, "title": np.array(titles)[title].tolist()}
        ),
        planted={
            "pronouns": float(pronouns),
            "spurious": float(spurious),
            "leak": leak,
            "female_share": dict(zip(titles, share.tolist())),
            "size": dict(zip(titles, (size / size.sum()).tolist())),
            "slope": dict(zip(titles, slope.tolist())),
            "relabelled": float((label != title).mean()),
        },
    )


def annotate_gender(
    gender: Sequence[str], *, annotators: int = 10, clarity: float = 6.0, seed: int = 0
) -> pl.DataFrame:
    """Shares of annotators who see women (`female`) and men (`male`) in each text.

    Every text has its own chance of being read rightly, Beta(clarity, 1); of those who do not,
    half see the other gender and half neither.

    Examples:
        >>> annotate_gender(["female", "male"], annotators=4, seed=3).columns
        ['female', 'male']
    """
    if annotators < 1 or clarity <= 0:
        raise UsageError(f"annotators={annotators} and clarity={clarity}: give 1 or more, above 0.")
    rng = np.random.default_rng(seed)
    women = np.array([each == "female" for each in gender], dtype=bool)
    right = rng.beta(clarity, 1.0, women.size)
    votes = rng.multinomial(annotators, np.stack([right, (1 - right) / 2, (1 - right) / 2], axis=1))
    own, other = votes[:, 0] / annotators, votes[:, 1] / annotators
    return pl.DataFrame(
        {"female": np.where(women, own, other), "male": np.where(women, other, own)}
    )


def _checked(
    n: int, given: Mapping[str, Occupation] | None, *, pronouns: float, leak: str
) -> dict[str, Occupation]:
    chosen = dict(occupations() if given is None else given)
    if n < 1 or len(chosen) < 2:
        raise UsageError(f"n={n} and {len(chosen)} occupations: give one or more and two or more.")
    for title, each in chosen.items():
        if not (0 <= each.female_share <= 1 and each.size > 0):
            raise UsageError(
                f"{title!r} has female_share={each.female_share} and size={each.size}. "
                "A share lies between 0 and 1, a size above 0."
            )
    if leak not in LEAKS:
        raise UsageError(
            f"leak={leak!r} is not one of {', '.join(LEAKS)}.{nearest(str(leak), list(LEAKS))}"
        )
    if not 0 <= pronouns <= 1:
        raise UsageError(f"pronouns={pronouns} is not a share between 0 (no pronouns) and 1.")
    return chosen


def _topics(
    chosen: Mapping[str, Occupation],
    title: NDArray[np.int64],
    norm: FloatArray,
    pull: FloatArray,
    rng: np.random.Generator,
) -> NDArray[np.object_]:
    """Topic words of every row and slot: of the class, of a norm, or neutral."""
    own = [each.words or tuple(f"{name}{k}" for k in range(8)) for name, each in chosen.items()]
    lists = [*own, *(words.NORM_WORDS[g].split() for g in _GENDERS), words.NEUTRAL_WORDS.split()]
    vocabulary = np.array([word for each in lists for word in each], dtype=object)
    length = np.array([len(each) for each in lists])
    first = np.cumsum(length) - length
    shape = (len(title), words.SLOTS)
    of_class = expit(logit(_CLASS_SHARE) + pull)[:, None]
    draw = rng.random(shape)
    feminine = rng.random(shape) < expit(norm)[:, None]
    which = np.full(shape, len(lists) - 1)
    about_norm = (draw >= of_class) & (draw < of_class + (1 - of_class) * _NORM_SHARE)
    which = np.where(about_norm, len(own) + np.where(feminine, 0, 1), which)
    which = np.where(draw < of_class, title[:, None], which)
    at = first[which] + (rng.random(shape) * length[which]).astype(np.int64)
    found: NDArray[np.object_] = vocabulary[at]
    return found


def _frame(
    titles: list[str],
    label: NDArray[np.int64],
    female: NDArray[np.bool_],
    topics: NDArray[np.object_],
    *,
    pronouns: float,
    first_names: bool,
    rng: np.random.Generator,
) -> pl.DataFrame:
    n = len(label)
    gender = np.where(female, 0, 1)
    given = [words.FIRST_NAMES[each].split() for each in _GENDERS]
    pick = rng.random(n)
    firsts = [given[g][int(p * len(given[g]))] for g, p in zip(gender.tolist(), pick.tolist())]
    surnames = np.array(words.SURNAMES, dtype=object)[rng.integers(0, len(words.SURNAMES), n)]
    mode = np.where(rng.random(n) < pronouns, gender, 2)
    plans = _templates(first_names=first_names)
    variant = rng.integers(0, len(plans) // 3, n)
    chosen = (variant * 3 + mode).tolist()
    names = [f"{a} {b}" for a, b in zip(firsts, surnames.tolist())]
    called = names if first_names else surnames.tolist()
    texts = [
        plans[plan].replace("{name}", name) % tuple(row)
        for plan, row, name in zip(chosen, topics.tolist(), called)
    ]
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "name": names,
            "gender": np.array(_GENDERS)[gender].tolist(),
            "title": np.array(titles)[label].tolist(),
            "text": texts,
        }
    )


def _templates(*, first_names: bool) -> list[str]:
    """Every combination of sentences, three times: for she, for he and without pronouns."""
    forms = (
        {"She": "She", "she": "she", "her": "her", "HER": "her", "herself": "herself", "Ms": "Ms."},
        {"She": "He", "she": "he", "her": "his", "HER": "him", "herself": "himself", "Ms": "Mr."},
    )
    out = []
    for sentences in product(*words.SENTENCES):
        whole = " ".join(sentences)
        for each in forms:
            filled = dict(each)
            filled["Ms"] = "{name}" if first_names else f"{each['Ms']} {{name}}"
            out.append(whole.format(**filled))
        nobody = dict.fromkeys(("She", "she", "HER", "Ms"), "{name}")
        out.append(whole.format(**nobody, her="{name}'s", herself="{name}"))
    return out
