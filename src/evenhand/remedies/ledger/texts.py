"""Texts of a ledger, made once for all remedies: masked, swapped, scrubbed, counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import EvenhandError, UsageError
from evenhand.models.corpus import BagOfWords, Corpus, Representation, pooled
from evenhand.models.norms.fit import (
    LEAST_CLASSES,
    LEAST_IN_CLASS,
    LEAST_ROWS,
    fit_norm_scorer,
    training_groups,
)
from evenhand.models.vectors import WordVectors
from evenhand.remedies.augment import counterfactual_texts
from evenhand.remedies.cells import Codes
from evenhand.remedies.ledger.columns import COLUMNS, NO_NAMES, NO_NORMS, NO_SWAP, ColumnEncoding
from evenhand.remedies.ledger.encoders import Encoder, find_encoder
from evenhand.remedies.ledger.rows import LedgerRows
from evenhand.speech import listed, plural
from evenhand.stats.estimate import FloatArray
from evenhand.text.lexicon import Lexicon
from evenhand.text.mask import mask_texts, scrub_texts, title_forms
from evenhand.text.tokens import TITLE_FORMS

Setting = Literal["masked", "scrubbed"]
SETTINGS = ("masked", "scrubbed")
REPRESENTATIONS = ("bow", "vectors")
MASK_SCOPES = ("all", "own")
# Beside the finished parts: vectors of texts, and fits that are not done.
EMBEDDINGS, CHECKPOINTS = "embeddings", "checkpoints"
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

    def read(self, texts: Sequence[str]) -> Any:
        """Features of any texts."""
        return self.features(Corpus.from_texts(texts))

    @classmethod
    def of(cls, words: Representation, train: Corpus) -> Self:
        """Vectors brought to one scale, which fits many times faster; counts as they are."""
        if words.embedding is None:
            return cls(words=words)
        table = words.features(train)
        spread = table.std(axis=0)
        return cls(words=words, centre=table.mean(axis=0), scale=np.where(spread > 0, spread, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSettings:
    """How texts are prepared, before any remedy reads them.

    `representations` are word counts ("bow") and word vectors ("vectors"), by default both, and
    local folders of transformers models: frozen, or with `fine_tune` trained as `training` says
    (`Training`). `norm_scorer` is a folder that takes the place of the second norm scorer.
    `setting` "masked" hides titles, "scrubbed" removes pronouns and names as well. `vectors` is a
    file of word vectors, `titles` has the forms of each class that are masked, by default those
    of 28 occupations; `mask_scope` "own" masks each row's own title alone, as the second paper
    does: the titles that are left then say what the row is not. `lexicon` holds the words that
    are swapped, and `values` says which of its values a group is.
    """

    representations: Sequence[str] = REPRESENTATIONS
    fine_tune: bool = False
    training: Any = None
    norm_scorer: str | None = None
    setting: str = "masked"
    vectors: Any = None
    titles: Mapping[str, Sequence[str]] | None = None
    mask_scope: str = "all"
    lexicon: Lexicon | str = "gender_pronouns"
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """Norms of the test rows by group: of the first scorer, without task words, of a second."""

    first: Mapping[str, FloatArray]
    irrelevant: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray]
    undefined: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTexts:
    """What all remedies share. `own` and `do` are places among distinct texts, row by row.

    `features` has the distinct texts in each representation, `norm_features` every row's
    scrubbed text as vectors, `name_vectors` NaN where a name has none. `no_swap` says why there
    are no counterfactual texts, where there are none; `masks` are the titles masked in every text.
    """

    rows: LedgerRows
    setting: str
    masks: tuple[str, ...]
    own: Codes
    do: Mapping[str, Codes]
    no_swap: str | None
    representations: Mapping[str, Any]
    features: Mapping[str, Any]
    norm_representation: Scaled | None
    norm_features: NDArray[np.float32]
    norms: Norms
    name_vectors: FloatArray | None
    no_names: str | None

    @property
    def norm_groups(self) -> tuple[str, ...]:
        """The groups that norms are learned of: those large enough."""
        return tuple(self.norms.first) or self.rows.groups


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
    fine_tune: bool = False,
    training: Any = None,
    norm_scorer: str | None = None,
    kept: Path | None = None,
    vectors: Any = None,
    titles: Mapping[str, Sequence[str]] | None = None,
    mask_scope: str = "all",
    lexicon: Lexicon | str = "gender_pronouns",
    values: Mapping[str, str] | None = None,
    seed: int = 0,
) -> LedgerTexts:
    """Mask, scrub, swap, tokenise and count every text once; learn vectors and norm scorers."""
    people = rows.people
    # A text's own title is its answer: it is masked in both settings. Masked alone, it can be read
    # from what is left: "actor" then stands in every text but an actor's.
    forms = TITLE_FORMS if titles is None else titles
    masked = mask_texts(people.texts, titles=people.truth, forms=forms, scope=mask_scope)
    texts = [str(each) for each in masked.texts]
    clean = [str(each) for each in scrub_texts(texts, names=people.names).texts]
    do, no_swap = _swapped(rows, texts, setting=setting, lexicon=lexicon, values=values)
    shown = texts if setting == "masked" else clean
    own, places, distinct = _distinct(shown, do)
    corpus = Corpus.from_texts(distinct)
    train = corpus.take(own[rows.train])
    learned = WordVectors(path=vectors, seed=seed).fit(train)
    encoders = {
        name: find_encoder(
            name,
            known=REPRESENTATIONS,
            fine_tune=fine_tune,
            training=training,
            cache=None if kept is None else kept / EMBEDDINGS,
            checkpoints=None if kept is None else kept / CHECKPOINTS,
        )
        for name in {*representations, norm_scorer or "bow"} - {*REPRESENTATIONS}
    }
    made: dict[str, Scaled | Encoder] = {}
    features: dict[str, Any] = {}
    for name in representations:
        if name in encoders:
            encoder = encoders[name].fit([distinct[k] for k in own[rows.train]])
            made[encoder.name], features[encoder.name] = encoder, encoder.read(distinct)
            continue
        model: Representation = learned if name == "vectors" else BagOfWords().fit(train)
        scaled = Scaled.of(model, train)
        made[name], features[name] = scaled, scaled.features(corpus)
    scrubbed = Corpus.from_texts(clean)
    about = Scaled.of(learned, scrubbed.take(rows.train))
    names, no_names = name_vectors(rows, learned)
    return LedgerTexts(
        rows=rows,
        setting=setting,
        masks=title_forms(people.truth, forms) if mask_scope == "all" else (),
        own=own,
        do=places,
        no_swap=no_swap,
        representations=made,
        features=features,
        norm_representation=about,
        norm_features=about.features(scrubbed),
        norms=_norms(rows, clean, learned, encoders.get(norm_scorer or ""), seed=seed),
        name_vectors=names,
        no_names=no_names,
    )


def prepare_columns(rows: LedgerRows) -> LedgerTexts:
    """Columns as features, learned from the training rows; what rests on texts is undefined."""
    table = rows.people.columns
    at = rows.train.tolist()
    encoding = ColumnEncoding.of({name: [held[k] for k in at] for name, held in table.items()})
    everybody = np.arange(len(rows.people), dtype=np.intp)
    return LedgerTexts(
        rows=rows,
        setting=COLUMNS,
        masks=(),
        own=everybody,
        do={},
        no_swap=NO_SWAP,
        representations={COLUMNS: encoding},
        features={COLUMNS: encoding.features(table)},
        norm_representation=None,
        norm_features=np.zeros((everybody.size, 0), dtype=np.float32),
        norms=Norms(first={}, irrelevant={}, second={}, undefined=NO_NORMS),
        name_vectors=None,
        no_names=NO_NAMES,
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


def _norms(
    rows: LedgerRows,
    clean: list[str],
    learned: WordVectors,
    encoder: Encoder | None = None,
    *,
    seed: int = 0,
) -> Norms:
    """Norms of the test rows by two scorers of the training rows: vectors, and word counts.

    A folder takes the place of the second. Texts are scrubbed already, once for all readers.
    """
    people = rows.people

    def part(values: Any, at: Codes) -> Any:
        return None if values is None else [values[k] for k in at.tolist()]

    train, test = rows.train, rows.test
    groups, notes = _norm_groups(rows)
    try:
        scorers = [
            fit_norm_scorer(
                part(clean, train),
                group=part(people.group, train),
                truth=part(people.truth, train),
                representation=representation,
                groups=groups,
                scrub=False,
                irrelevant=first,
            )
            for first, representation in ((True, _Learned(learned)), (False, BagOfWords()))
            if first or encoder is None
        ]
    except EvenhandError as error:
        return Norms(first={}, irrelevant={}, second={}, undefined=str(error))
    found = [each.score(part(clean, test), truth=part(people.truth, test)) for each in scorers]
    return Norms(
        first=dict(found[0].norm),
        irrelevant=dict(found[0].irrelevant),
        second=dict(found[1].norm)
        if encoder is None
        else encoder.norms(
            part(clean, train),
            group=part(people.group, train),
            truth=part(people.truth, train),
            groups=groups,
            test=part(clean, test),
            seed=seed,
        ),
        notes=notes,
    )


def _norm_groups(rows: LedgerRows) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The groups large enough for a norm scorer, at least the two largest, and what is said.

    A scorer that learns a group from a few people would set every class's weights by them.
    """
    truth, group = (
        [column[k] for k in rows.train] for column in (rows.people.truth, rows.people.group)
    )
    sizes = np.bincount(rows.group[rows.train], minlength=len(rows.groups))
    if sizes.size == 2:
        return rows.groups, ()
    try:
        chosen = training_groups(truth, group)
    except EvenhandError:
        largest = sorted(np.argsort(-sizes, kind="stable")[:2].tolist())
        chosen = tuple(rows.groups[k] for k in largest)
    names = listed([f"'{each}'" for each in chosen])
    notes = tuple(
        f"No norm of '{name}': {plural(int(sizes[k]), 'training row')}, and a scorer needs "
        f"{LEAST_ROWS}, with {LEAST_IN_CLASS} in {LEAST_CLASSES} classes or more. Its people's "
        f"scores are held against the norms of {names}."
        for k, name in enumerate(rows.groups)
        if name not in chosen
    )
    return chosen, notes


def name_vectors(rows: LedgerRows, learned: WordVectors) -> tuple[FloatArray | None, str | None]:
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
