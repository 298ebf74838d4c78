"""The norm scorer G: how much a row looks like a typical member of each group.

A linear model of scrubbed texts (or of any numbers), trained with weights that make each group
count alike within every class, so that G cannot profit from knowing the class (Cheng et al. 2023).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.decisions.tally import encode
from evenhand.errors import DataError, UsageError
from evenhand.files.documents import (
    Damage,
    anything,
    check_document,
    check_schema,
    flag,
    list_of,
    map_of,
    maybe,
    read_arrays,
    read_json,
    table,
    text,
)
from evenhand.files.folders import mend, new_folder
from evenhand.files.writing import refusals
from evenhand.models.corpus import Corpus, known_counts, pooled, row_sums
from evenhand.models.vectors import cosine_weights
from evenhand.stats.estimate import FloatArray
from evenhand.text.mask import SCRUBBED_WORDS, scrub_texts

Texts = Sequence[str | None]
Names = Sequence[str | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Weights (groups × features) and intercepts whose softmax is the probability of a group."""

    weights: FloatArray
    intercepts: FloatArray

    def probabilities(self, features: Any) -> FloatArray:
        """Rows × groups."""
        logits = np.asarray(features @ self.weights.T, dtype=np.float64) + self.intercepts
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class NormScores:
    """Norm of every row by group, NaN where a row has nothing to go by; `irrelevant` likewise.

    `leaked` counts rows that the scorer was trained on, `empty` those without a known word,
    `unscored` those of a class without a task-irrelevant scorer.
    """

    norm: Mapping[str, FloatArray]
    irrelevant: Mapping[str, FloatArray]
    leaked: int
    empty: int
    unscored: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormScorer:
    """A fitted norm scorer, with one more for each class on the words irrelevant to it.

    `names` are words, or the columns of a scorer of numbers; `seen` are hashes of the training
    rows; `settings` and `facts` are what the folder and the quality card tell.
    """

    groups: tuple[str, ...]
    names: tuple[str, ...]
    linear: Linear
    embedding: NDArray[np.float32] | None = None
    centre: FloatArray | None = None
    scale: FloatArray | None = None
    classes: tuple[str, ...] = ()
    relevant: NDArray[np.bool_] | None = None
    by_class: Mapping[str, Linear] = field(default_factory=dict)
    seen: NDArray[np.uint64]
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_texts(self) -> bool:
        """Whether it reads texts rather than numbers."""
        return self.centre is None

    def score(
        self, rows: Any, *, names: Names = None, truth: Sequence[object] | None = None
    ) -> NormScores:
        """Norms of texts (or of an array of numbers), and with a truth the task-irrelevant ones.

        Texts are scrubbed as the training texts were, of `names` as well where they are given.
        """
        hashes = row_hashes(rows)
        place = np.minimum(np.searchsorted(self.seen, hashes), max(0, len(self.seen) - 1))
        leaked = int((self.seen[place] == hashes).sum()) if len(self.seen) else 0
        if not self.of_texts:
            table = numbers(rows, columns=len(self.names))
            bad = np.asarray(~np.isfinite(table).all(axis=1))
            probability = self.linear.probabilities(self.standard(table))
            return self._scores(probability, None, bad, leaked=leaked, unscored=0)
        counts = self.counts(rows, names=names)
        empty = row_sums(counts) == 0
        sums = None if self.embedding is None else counts @ self.embedding
        whole = self.linear.probabilities(pooled(counts, self.embedding, sums=sums))
        if truth is None or not self.by_class:
            return self._scores(whole, None, empty, leaked=leaked, unscored=0)
        own, unscored = self._irrelevant(counts, sums, truth)
        return self._scores(whole, own, empty, leaked=leaked, unscored=unscored)

    def standard(self, table: FloatArray) -> FloatArray:
        """Numbers in standard deviations from the training rows' mean."""
        if self.centre is None or self.scale is None:
            raise UsageError("This scorer was learned from texts; give texts.")
        return np.asarray((table - self.centre) / self.scale)

    def counts(self, texts: Texts, *, names: Names = None) -> sparse.csr_matrix:
        """Counts of the scorer's words in scrubbed texts."""
        if self.settings.get("scrub", True):
            texts = scrub_texts(
                texts,
                names=names,
                words=self.settings.get("scrubbed_words", SCRUBBED_WORDS),
                capitalised=self.settings.get("capitalised_names", ()),
            ).texts
        return known_counts(Corpus.from_texts(texts), self.names)

    def word_weights(self, group: str, *, name: str | None = None) -> FloatArray:
        """Weight of each word for looking like this group: its coefficient, or a cosine.

        With the `name` of a class, in its task-irrelevant scorer.
        """
        linear = self.linear if name is None else self.by_class[name]
        row = linear.weights[self.groups.index(group)]
        if self.embedding is None:
            return np.asarray(row)
        return np.asarray(cosine_weights(self.embedding, row[None])[0])

    def _irrelevant(
        self, counts: sparse.csr_matrix, sums: Any, truth: Sequence[object]
    ) -> tuple[FloatArray, int]:
        names, codes = encode(truth)
        own = np.full((counts.shape[0], len(self.groups)), np.nan)
        unscored = int((codes < 0).sum())
        for code, name in enumerate(names):
            rows = np.flatnonzero(codes == code)
            if name not in self.by_class or self.relevant is None:
                unscored += rows.size
                continue
            keep = ~self.relevant[self.classes.index(name)]
            mine = None if sums is None else sums[rows]
            part = counts[rows]
            features = pooled(part, self.embedding, keep=keep, sums=mine)
            found = self.by_class[name].probabilities(features)
            left = row_sums(part) if self.embedding is None else np.abs(features).sum(axis=1)
            found[left == 0] = np.nan
            own[rows] = found
        return own, unscored

    def _scores(
        self,
        whole: FloatArray,
        own: FloatArray | None,
        bad: NDArray[np.bool_],
        *,
        leaked: int,
        unscored: int,
    ) -> NormScores:
        whole = np.where(bad[:, None], np.nan, whole)
        irrelevant: dict[str, FloatArray] = {}
        if own is not None:
            own = np.where(bad[:, None], np.nan, own)
            irrelevant = {name: own[:, k] for k, name in enumerate(self.groups)}
        return NormScores(
            norm={name: whole[:, k] for k, name in enumerate(self.groups)},
            irrelevant=irrelevant,
            leaked=leaked,
            empty=int(bad.sum()),
            unscored=unscored,
        )


def numbers(table: Any, *, columns: int) -> FloatArray:
    """Rows × columns as floats, refused in any other shape."""
    array = np.asarray(table, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != columns:
        raise UsageError(
            f"The features have the shape {array.shape}; {columns} columns are expected."
        )
    return array


def row_hashes(rows: Any) -> NDArray[np.uint64]:
    """A number for each text or row of numbers, by which training rows are known again."""
    if isinstance(rows, np.ndarray):
        held = [row.tobytes() for row in np.ascontiguousarray(rows, dtype=np.float64)]
    else:
        held = [b"" if text is None else text.strip().encode() for text in rows]
    digests = b"".join(blake2b(each, digest_size=8).digest() for each in held)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


SCHEMA, KIND = "evenhand.norms/1", "norms"
DOCUMENT, ARRAYS = "norms.json", "arrays.npz"
_SHAPE = table(
    {
        "groups": list_of(text),
        "names": list_of(text),
        "classes": list_of(text),
        "by_class": list_of(text),
        "settings": table({}, {"scrub": flag, "scrubbed_words": list_of(text)}),
        "facts": map_of(anything),
    },
    {"card": maybe(map_of(anything))},
)


def save_norms(scorer: NormScorer, path: str | Path, *, card: dict[str, Any] | None = None) -> None:
    """Write the scorer and its quality card whole or not at all."""
    arrays: dict[str, Any] = {
        "weights": scorer.linear.weights,
        "intercepts": scorer.linear.intercepts,
        "seen": scorer.seen,
    }
    for name in ("embedding", "centre", "scale"):
        if getattr(scorer, name) is not None:
            arrays[name] = getattr(scorer, name)
    if scorer.relevant is not None:
        arrays["relevant"] = np.packbits(scorer.relevant, axis=1)
    if scorer.by_class:
        arrays["class_weights"] = np.stack([each.weights for each in scorer.by_class.values()])
        arrays["class_intercepts"] = np.stack([m.intercepts for m in scorer.by_class.values()])
    document = {
        "schema": SCHEMA,
        "groups": scorer.groups,
        "names": scorer.names,
        "classes": scorer.classes,
        "by_class": list(scorer.by_class),
        "settings": dict(scorer.settings),
        "facts": dict(scorer.facts),
        "card": card,
    }
    words = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
    with new_folder(path, kind=KIND) as folder, refusals(path):
        (folder / DOCUMENT).write_bytes(words.encode("utf-8", "surrogatepass"))
        np.savez(folder / ARRAYS, **arrays)


def load_norms(path: str | Path) -> tuple[NormScorer, dict[str, Any] | None]:
    """A scorer from its folder, with its quality card; one of another schema is refused."""
    folder = Path(path)
    mend(folder)
    again = f" Make it again with: evenhand norms fit … --out {path}"
    if not (folder / DOCUMENT).is_file():
        raise DataError(
            f"'{path}' is not a folder of norms. Make one with: evenhand norms fit … --out {path}"
        )
    document = read_json(folder / DOCUMENT, noun="norms")
    check_schema(document, [SCHEMA], source=path, again=again)
    check_document(document, _SHAPE, source=folder / DOCUMENT, noun="document", again=again)
    arrays = read_arrays(folder / ARRAYS, again=again)
    try:
        return _scorer(document, arrays), document.get("card")
    except Damage as damage:
        raise DataError(f"'{folder / ARRAYS}' is damaged: {damage}.{again}") from None


def _scorer(document: dict[str, Any], arrays: dict[str, Any]) -> NormScorer:
    names, groups, classes = (document[key] for key in ("names", "groups", "classes"))
    by_class = document["by_class"]
    for key in ("names", "groups", "classes", "by_class"):
        if len(set(document[key])) < len(document[key]):
            raise Damage(f"{key} of '{DOCUMENT}' has a name twice")
    if not set(by_class) <= set(classes):
        raise Damage(f"by_class of '{DOCUMENT}' has a name that is not among its classes")
    width = len(names)
    embedding = _array(arrays, "embedding", (width, None), optional=True)
    features = width if embedding is None else embedding.shape[1]
    centre = _array(arrays, "centre", (width,), optional=True)
    scale = _array(arrays, "scale", (width,), optional=centre is None)
    if scale is not None and not (scale > 0).all():
        raise Damage("scale has a number that is not above 0")
    seen = _array(arrays, "seen", (None,), kind="u")
    if (seen[1:] < seen[:-1]).any():
        raise Damage("seen is not in order")
    packed = _array(arrays, "relevant", (len(classes), -(-width // 8)), kind="u", optional=True)
    relevant = None
    if packed is not None:
        relevant = np.unpackbits(packed, axis=1, count=width).astype(bool)
    elif by_class:
        raise Damage("it has no 'relevant'")
    shapes = (len(by_class), len(groups), features), (len(by_class), len(groups))
    own = _array(arrays, "class_weights", shapes[0], optional=not by_class)
    own_intercepts = _array(arrays, "class_intercepts", shapes[1], optional=not by_class)
    return NormScorer(
        groups=tuple(groups),
        names=tuple(names),
        linear=Linear(
            weights=_array(arrays, "weights", (len(groups), features)),
            intercepts=_array(arrays, "intercepts", (len(groups),)),
        ),
        embedding=embedding,
        centre=centre,
        scale=scale,
        classes=tuple(classes),
        relevant=relevant,
        by_class={
            name: Linear(weights=own[k], intercepts=own_intercepts[k])
            for k, name in enumerate(by_class)
        },
        seen=seen,
        settings=document["settings"],
        facts=document["facts"],
    )


def _array(
    arrays: Mapping[str, Any],
    name: str,
    shape: tuple[int | None, ...],
    *,
    kind: str = "f",
    optional: bool = False,
) -> Any:
    """An array of a folder, refused unless it is finite and of this kind and shape."""
    if name not in arrays:
        if optional:
            return None
        raise Damage(f"it has no {name!r}")
    found = arrays[name]
    fits = len(found.shape) == len(shape)
    if not fits or any(want not in (None, size) for want, size in zip(shape, found.shape)):
        raise Damage(f"{name} has the shape {found.shape}, which does not fit '{DOCUMENT}'")
    if found.dtype.kind != kind or (kind == "f" and not np.isfinite(found).all()):
        raise Damage(f"{name} holds what is not a {'finite' if kind == 'f' else 'whole'} number")
    return found
