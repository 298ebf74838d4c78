"""A tagger of parts of speech by its name: his or him as spaCy reads the sentence."""

from typing import Any

from evenhand.errors import UsageError
from evenhand.text.compiled import Tagger

_PREFIX = "spacy:"
# What tags are not made from; without them a text takes a fraction of the time.
_UNUSED = ("parser", "ner", "lemmatizer")


def load_tagger(name: str) -> Tagger:
    """The tagger that `spacy:MODEL` names; MODEL is an installed spaCy model or its folder.

    Examples:
        >>> load_tagger("en_core_web_sm")
        Traceback (most recent call last):
        evenhand.errors.UsageError: tagger='en_core_web_sm' is no tagger. Write spacy:MODEL, such \
as spacy:en_core_web_sm.
    """
    model = name.removeprefix(_PREFIX)
    if not name.startswith(_PREFIX) or not model:
        raise UsageError(
            f"tagger={name!r} is no tagger. Write spacy:MODEL, such as spacy:en_core_web_sm."
        )
    try:
        import spacy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError(
            f"tagger={name!r} needs spaCy, which is not installed. Run: pip install spacy"
        ) from None
    try:
        pipeline: Any = spacy.load(model, exclude=list(_UNUSED))
    except OSError:
        raise UsageError(
            f"tagger={name!r}: spaCy has no model {model!r}. Run: python -m spacy download {model}"
        ) from None
    if "tagger" not in pipeline.pipe_names:
        raise UsageError(
            f"tagger={name!r}: the model {model!r} tags no parts of speech. "
            "Name one that does, such as spacy:en_core_web_sm."
        )
    return pipeline  # type: ignore[no-any-return]
