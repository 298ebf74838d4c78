"""What texts show, in words: decisions that change with the group's words, and norms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand.findings.sentences.agreed import (
    ending,
    ends,
    gap_range,
    open_,
    span_words,
    two,
    unproven,
)
from evenhand.findings.sentences.rates import place
from evenhand.findings.sentences.words import Said, Words, possessive
from evenhand.lenses.measures import look_up
from evenhand.lenses.norms import NO_GROUP, NOT_IN_SET, TOO_FEW
from evenhand.lenses.rows import Row
from evenhand.speech import decimals, listed, opening, percent, points

_GENDERED = ("gender", "sex")
# Said once: that the words of a group change answers.
SWAPPED = "swapped words"
_ONE = {"women": "woman", "men": "man"}


def swapped_words(attribute: str | None) -> str:
    """What is swapped, in words.

    Examples:
        >>> swapped_words("gender"), swapped_words("race"), swapped_words("counterfactual")
        ('the gendered words', 'the words for race', "the group's words")
    """
    if attribute in (None, "counterfactual"):
        return "the group's words"
    return "the gendered words" if attribute in _GENDERED else f"the words for {attribute}"


def say_swap(row: Row, words: Words, given: Sequence[Row] = ()) -> Said | None:
    """What exchanging only the words of a group does, or None for any other measure.

    Only an interval that leaves out 0 is said to show that the words change decisions.
    """
    record = look_up(row["measure"])
    if "counterfactual" not in record.lenses or row["value"] is None:
        return None
    swapped = swapped_words(row["attribute"])
    changes = f"changing nothing but {swapped} changes the answer"
    if record.name == "flip_rate":
        return _say_flips(row, words, changes)
    if record.parts is not None and record.kind == "distance":
        return _say_swap_size(row, words, given, changes, swapped)
    if record.kind != "gap" or record.base is None:
        return None
    value, pair = float(row["value"]), ends(row)
    places = decimals(*(pair or (None, None)), value)
    not_ = record.base == "false_positive_rate"
    clause = "" if record.base == "selection_rate" else words.true_of(row["class"], not_=not_)
    things = " ".join(filter(None, (words.item[1] if words.item else "texts", clause)))
    own, other = (words.people(row["attribute"], row[side]) for side in ("group", "reference"))
    happens = words.happens(row["class"])
    often = "more often" if value > 0 else "less often"
    span = f" ({gap_range(*pair, places)})" if pair else ""
    told = (
        f"rewritten as {own}, {things} {happens} {points(value, places=places)} {often} than "
        f"rewritten as {other}{span}{ending(row)}"
    )
    headline = changes
    if unproven(row):
        headline = f"the data cannot tell whether {swapped} alone change the answer"
    if open_(row) and pair is not None:
        told = (
            f"anything from {gap_range(*pair, places)} fits when {things} are rewritten as {own} "
            f"instead of {other}{ending({**row, 'verdict': ''})}"
        )
    said = _said(row, words, headline, told)
    if headline == changes and SWAPPED in words.heard:
        # That words alone change answers was said: what they change is enough.
        return replace(said, line=opening(f"{place(row, words)}{told}"))
    return said


def _say_flips(row: Row, words: Words, changes: str) -> Said:
    items = words.item[1] if words.item else "texts"
    other = f"another {words.class_[0]}" if words.class_ else "another decision"
    to = f" from or to '{row['class']}'" if row["class"] else ""
    share, span = _flips(row)
    told = f"{share} of {items} get {other}{to}{span}{ending(row)}"
    return _said(row, words, changes, told)


def _flips(row: Row) -> tuple[str, str]:
    """The share of texts that are decided otherwise, and its interval in percent."""
    pair = ends(row)
    places = decimals(*(pair or (None, None)), row["value"])
    span = f" ({gap_range(*pair, places)})" if pair and pair[0] > 0 else ""
    if pair and not span:
        span = f" (up to {percent(pair[1], places=places)})"
    return percent(row["value"], places=places), span


def _say_swap_size(
    row: Row, words: Words, given: Sequence[Row], changes: str, swapped: str
) -> Said:
    pair = ends(row)
    places = decimals(*(pair or (None, None)), row["value"])
    size = points(row["value"], places=places)
    proven = pair is not None and pair[0] > 0
    span = f" ({gap_range(*pair, places)})" if pair and proven else ""
    if pair and not proven:
        span = f" (up to {points(pair[1], places=places)})"
    flips = next((one for one in given if one["measure"] == "flip_rate"), None)
    first = ""
    if flips is not None and flips["value"] is not None:
        items = words.item[1] if words.item else "texts"
        other = f"another {words.class_[0]}" if words.class_ else "another decision"
        share, span_ = _flips(flips)
        first = f"{share} of {items} get {other}{span_}, and "
    told = (
        f"{first}the typical gap over {words.classes[1]} that this alone makes is {size}{span}"
        f"{ending(row)}"
    )
    headline = changes if proven else (
        f"the data cannot tell whether {swapped} alone change the answer"
    )  # fmt: skip
    return _said(row, words, headline, told)


def typical(who: str) -> str:
    """What a typical text of a group reads like.

    Examples:
        >>> typical("men"), typical("nonbinary people"), typical("group f")
        ("a typical man's", "nonbinary people's typically do", "group f's typically do")
    """
    return f"a typical {_ONE[who]}'s" if who in _ONE else f"{possessive(who)} typically do"


def many(words: Words, attribute: str, group: str) -> str:
    """The people of a group, several of them.

    Examples:
        >>> many(Words(), "sex", "male"), many(Words(), "sex", "f")
        ('men', 'people of group f')
    """
    who = words.people(attribute, group)
    return f"people of {who}" if words.unnamed(attribute, group) else who


def say_norm(row: Row, words: Words) -> Said | None:
    """A correlation with a norm in words, or None for other rows."""
    measure = str(row["measure"])
    record = look_up(measure)
    if "norms" not in record.lenses or row.get("norm") is None or row["value"] is None:
        return None
    base = record.variant_of or measure
    value, pair = float(row["value"]), ends(row)
    group = many(words, row["attribute"], row["group"])
    like = typical(words.people(row["attribute"], row["norm"]))
    texts = words.item[1] if words.item else "texts"
    one, several = words.classes
    without = f" in words that say nothing of the {one}" if measure != base else ""
    way = "higher" if value > 0 else "lower"
    article = "an" if one[:1] in "aeiou" else "a"
    fits = f", {two(pair[0])} to {two(pair[1])}" if pair else ""
    over = f" over {row['n']:,.0f} {several}" if row["n"] is not None else ""
    if base == "norm_correlation":
        truth = words.true_of(row["class"])
        claim = (
            f"among {group} {truth}, the more their {texts} read like {like}{without}, the {way} "
            "the score"
        )
        over = ""
    elif base in ("norm_bias", "norm_bias_corrected"):
        claim = (
            f"the more {group} {article} {one} has, the {way} the classifier scores {group} whose "
            f"{texts} read like {like}{without}"
        )
        over += ", sampling error removed" if base == "norm_bias_corrected" else ""
    elif base == "norm_slope":
        rises = "rises" if value > 0 else "falls"
        claim = (
            f"from {several} without {group} to {several} of {group} alone, the link between score "
            f"and {words.gloss('norm score')}{without} {rises}"
        )
        told = f"by {two(abs(value))}{span_words(pair)}{over}{ending(row)}"
        line = opening(f"{place(row, words)}{claim} {told}")
        return _unsure(row, words, claim) or replace(_said(row, words, claim, told), line=line)
    elif base in ("norm_correlation_mean", "norm_correlation_mean_corrected"):
        claim = f"scores of {group} follow how much their {texts} read like {like}{without}"
        noise = ", sampling error removed" if base != "norm_correlation_mean" else ""
        told = f"a typical rank correlation of {two(abs(value))}{over}{noise}{fits}{ending(row)}"
        return _unsure(row, words, claim) or _said(row, words, claim, told)
    else:
        return None
    unsure = _unsure(row, words, claim)
    if unsure is not None:
        return unsure
    numbers = f"rank correlation {two(value)}{over}{fits}"
    if open_(row) and pair is not None:
        told = f"rank correlations from {two(pair[0])} to {two(pair[1])}{over} fit"
        return _said(row, words, f"the data cannot tell whether {claim}",
                     f"{told}{ending({**row, 'verdict': ''})}")  # fmt: skip
    line = opening(f"{place(row, words)}{claim} ({numbers}){ending(row)}")
    return Said(
        headline=opening(f"{place(row, words)}{claim}"),
        detail=opening(f"{numbers}{ending(row)}"),
        line=line,
    )


def _unsure(row: Row, words: Words, claim: str) -> Said | None:
    """A claim that nobody can make: of a norm that is not known no number says anything."""
    if row.get("unjudged") is None:
        return None
    unsure = opening(f"{place(row, words)}the data cannot tell whether {claim}")
    return Said(headline=unsure, line=f"{unsure}.")


def unknown_of(details: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The norms of a record that are not known, in order."""
    return list(((details or {}).get("norms") or {}).get("unknown") or ())


def say_unknown_norms(unknown: Iterable[Mapping[str, Any]], words: Words) -> Said:
    """That norms are not known, and why, from what `details.norms.unknown` has of them.

    Examples:
        >>> norm = {"attribute": "gender", "norm": "female", "irrelevant": False, "why": "guessed"}
        >>> norm |= {"value": 0.512, "low": 0.48, "high": 0.543}
        >>> words = Words(class_=("occupation", "occupations"))
        >>> print(say_unknown_norms([norm], words).line)
        Cannot tell: the norm of women is not known. Its score tells women from others no better \
than chance (right in 51% of pairs within an occupation, 48% to 54%).
        >>> print(say_unknown_norms([norm | {"why": "too few"}], words).line)
        Cannot tell: the norm of women is not known. No occupation has two women and two others, \
so that nothing says whether its score tells them apart.
    """
    told = [(_norm_name(one, words), _why_unknown(one, words)) for one in unknown]
    names = [name for name, _ in told]
    verb = "is" if len(names) == 1 else "are"
    return Said(
        headline=f"{opening(listed(names))} {verb} not known",
        detail=" ".join(dict.fromkeys(why for _, why in told)),
        line=" ".join(f"Cannot tell: {name} is not known. {why}" for name, why in told),
        short=listed(names),
    )


def _norm_name(one: Mapping[str, Any], words: Words) -> str:
    name = f"the norm of {many(words, one['attribute'], one['norm'])}"
    return (
        f"{name} in words that say nothing of the {words.classes[0]}" if one["irrelevant"] else name
    )


def _why_unknown(one: Mapping[str, Any], words: Words) -> str:
    """Why a norm is not known, as a sentence."""
    who, class_ = many(words, one["attribute"], one["norm"]), words.classes[0]
    if one["why"] == NOT_IN_SET:
        return "This tally set does not say how well it tells them from others: tally again."
    if one["why"] == NO_GROUP:
        return (
            f"No group is called '{one['norm']}', so that nothing says whether its score tells "
            "them from others."
        )
    if one["why"] == TOO_FEW or one.get("value") is None:
        return (
            f"No {class_} has two {who} and two others, so that nothing says whether its score "
            "tells them apart."
        )
    article = "an" if class_[:1] in "aeiou" else "a"
    value, low, high = (percent(one[end], places=0) for end in ("value", "low", "high"))
    return (
        f"Its score tells {who} from others no better than chance (right in {value} of pairs "
        f"within {article} {class_}, {low} to {high})."
    )


def _said(row: Row, words: Words, headline: str, told: str) -> Said:
    where = place(row, words)
    return Said(
        headline=opening(f"{where}{headline}"),
        detail=opening(told),
        line=opening(f"{where}{headline}: {told}"),
    )
