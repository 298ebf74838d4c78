"""Texts of a ledger, made once for all remedies: masked, swapped, scrubbed, counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import EvenhandError, UsageError
from evenhand.mitigation.augment import counterfactual_texts
from evenhand.mitigation.cells import Codes
from evenhand.mitigation.ledger_rows import LedgerRows
from evenhand.models.bow import BagOfWords
from evenhand.models.corpus import Corpus
from evenhand.models.norm_fit import fit_norm_scorer
from evenhand.models.representation import Representation, pooled
from evenhand.models.vectors import WordVectors
from evenhand.stats.estimate import FloatArray
from evenhand.text.lexicon import Lexicon
from evenhand.text.mask import mask_texts
from evenhand.text.scrub import scrub_texts
from evenhand.text.titles import TITLE_FORMS

Setting = Literal["masked", "scrubbed"]
SETTINGS = ("masked", "scrubbed")
REPRESENTATIONS = ("bow", "vectors")
BY_CONSTRUCTION = "zero by construction: scrubbed texts have no word left to swap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """A representation whose features are centred and scaled, as learned from training texts."""

    words: Representation
    centre: FloatArray | None = None
    scale: FloatArray | None = None

    def features(self, corpus: Corpus) -> Any:
        """Features of any corpus, ready for the classifiers of the ledger."""
        table = self.words.features(corpus)
        if self.centre is None or self.scale is None:
            return table
        return ((table - self.centre) / self.scale).astype(np.float32)

    @classmethod
    def of(cls, words: Representation, train: Corpus) -> Self:
        """Vectors brought to one scale, which fits many times faster; counts as they are."""
        if words.embedding is None:
            return cls(words=words)
        table = words.features(train)
        spread = table.std(axis=0)
        return cls(words=words, centre=table.mean(axis=0), scale=np.where(spread > 0, spread, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """Norms of the test rows by group: of the first scorer, without task words, of a second."""

    first: Mapping[str, FloatArray]
    irrelevant: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray]
    undefined: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTexts:
    """What all remedies share. `own` and `do` are places among distinct texts, row by row.

    `features` has the distinct texts in each representation, `norm_features` every row's
    scrubbed text as vectors, `name_vectors` NaN where a name has none. `no_swap` says why there
    are no counterfactual texts, where there are none.
    """

    rows: LedgerRows
    setting: str
    own: Codes
    do: Mapping[str, Codes]
    no_swap: str | None
    representations: Mapping[str, Scaled]
    features: Mapping[str, Any]
    norm_representation: Scaled
    norm_features: NDArray[np.float32]
    norms: Norms
    name_vectors: FloatArray | None
    no_names: str | None


@dataclass(frozen=True, slots=True)
class _Learned:
    """A representation that is fitted already: fitting it again changes nothing."""

    done: Representation

    @property
    def words(self) -> tuple[str, ...]:
        return self.done.words

    @property
    def embedding(self) -> NDArray[np.float32] | None:
        return self.done.embedding

    def fit(self, corpus: Corpus) -> Self:
        return self

    def counts(self, corpus: Corpus) -> Any:
        return self.done.counts(corpus)

    def features(self, corpus: Corpus) -> Any:
        return self.done.features(corpus)


def prepare_texts(
    rows: LedgerRows,
    *,
    setting: Setting = "masked",
    representations: tuple[str, ...] = ("bow",),
    vectors: Any = None,
    titles: Mapping[str, Sequence[str]] | None = None,
    lexicon: Lexicon | str = "gender_pronouns",
    values: Mapping[str, str] | None = None,
    seed: int = 0,
) -> LedgerTexts:
    """Mask, scrub, swap, tokenise and count every text once; learn vectors and norm scorers."""
    people = rows.people
    # A text's own title is its answer: it is masked in both settings.
    forms = TITLE_FORMS if titles is None else titles
    masked = mask_texts(people.texts, titles=people.truth, forms=forms)
    texts = [str(each) for each in masked.texts]
    clean = [str(each) for each in scrub_texts(texts, names=people.names).texts]
    do, no_swap = _swapped(rows, texts, setting=setting, lexicon=lexicon, values=values)
    shown = texts if setting == "masked" else clean
    own, places, distinct = _distinct(shown, do)
    corpus = Corpus.from_texts(distinct)
    train = corpus.take(own[rows.train])
    learned = WordVectors(path=vectors, seed=seed).fit(train)
    made: dict[str, Scaled] = {}
    for name in representations:
        model: Representation = learned if name == "vectors" else BagOfWords().fit(train)
        made[name] = Scaled.of(model, train)
    scrubbed = Corpus.from_texts(clean)
    about = Scaled.of(learned, scrubbed.take(rows.train))
    names, no_names = _name_vectors(rows, learned)
    return LedgerTexts(
        rows=rows,
        setting=setting,
        own=own,
        do=places,
        no_swap=no_swap,
        representations=made,
        features={name: model.features(corpus) for name, model in made.items()},
        norm_representation=about,
        norm_features=about.features(scrubbed),
        norms=_norms(rows, clean, learned),
        name_vectors=names,
        no_names=no_names,
    )


def _swapped(
    rows: LedgerRows,
    texts: list[str],
    *,
    setting: str,
    lexicon: Lexicon | str,
    values: Mapping[str, str] | None,
) -> tuple[dict[str, list[str]], str | None]:
    """All texts under each group, or why there are none."""
    if setting == "scrubbed":
        return {}, BY_CONSTRUCTION
    try:
        found = counterfactual_texts(texts, group=rows.people.group, lexicon=lexicon, values=values)
    except UsageError as error:
        if values is not None:
            raise
        return {}, f"no counterfactual texts: {error}"
    return {str(name): each for name, each in found.items()}, None


def _distinct(
    shown: list[str], do: Mapping[str, list[str]]
) -> tuple[Codes, dict[str, Codes], list[str]]:
    """Places of every row's texts in one list without repeats: each is tokenised once."""
    place: dict[str, int] = {}

    def places(texts: list[str]) -> Codes:
        return np.array([place.setdefault(each, len(place)) for each in texts], dtype=np.intp)

    own = places(shown)
    return own, {name: places(each) for name, each in do.items()}, list(place)


def _norms(rows: LedgerRows, clean: list[str], learned: WordVectors) -> Norms:
    """Norms of the test rows by two scorers of the training rows: vectors, and word counts.

    Texts are scrubbed already, once for all that read them.
    """
    people = rows.people

    def part(values: Any, at: Codes) -> Any:
        return None if values is None else [values[k] for k in at.tolist()]

    train, test = rows.train, rows.test
    try:
        scorers = [
            fit_norm_scorer(
                part(clean, train),
                group=part(people.group, train),
                truth=part(people.truth, train),
                representation=representation,
                groups=rows.groups,
                scrub=False,
                irrelevant=first,
            )
            for first, representation in ((True, _Learned(learned)), (False, BagOfWords()))
        ]
    except EvenhandError as error:
        return Norms(first={}, irrelevant={}, second={}, undefined=str(error))
    found = [each.score(part(clean, test), truth=part(people.truth, test)) for each in scorers]
    return Norms(
        first=dict(found[0].norm),
        irrelevant=dict(found[0].irrelevant),
        second=dict(found[1].norm),
    )


def _name_vectors(rows: LedgerRows, learned: WordVectors) -> tuple[FloatArray | None, str | None]:
    """Mean vector of the words of each name, NaN where none of them has one."""
    names = rows.people.names
    if names is None:
        return None, "needs the people's names: name their column (--name)"
    counts = learned.counts(Corpus.from_texts(names))
    vectors = np.asarray(pooled(counts, learned.embedding), dtype=np.float64)
    known = np.asarray(counts.sum(axis=1)).ravel() > 0
    vectors[~known] = np.nan
    spread = np.nanstd(vectors[known], axis=0).mean() if known.any() else 0.0
    share = float(known[rows.fit].mean())
    if share < 0.5 or not spread > 0:
        return None, (
            f"only {share:.0%} of the training rows have a name with a word vector: "
            "give a file of vectors that has names (--vectors)"
        )
    return vectors / spread, None
