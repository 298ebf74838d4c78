"""What to do next with a finding, and whose it is: by its layer, with a number where one is."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.charter.charter import ASKED, LABEL_OPERATIONS
from evenhand.findings.limits import OUTSIDE
from evenhand.findings.sentences.agreed import ends, plain_value
from evenhand.findings.sentences.beyond import amount, coming_back, edge_of
from evenhand.findings.sentences.rates import pointed_at
from evenhand.findings.sentences.recut import cut_step
from evenhand.findings.sentences.redecide import asks_for_none, decisions_step
from evenhand.findings.sentences.rescore import calibration_step, ranking_step
from evenhand.findings.sentences.rows import closest_class
from evenhand.findings.sentences.varying import asks_for_no_spread, spread_step
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up, surely_apart
from evenhand.lenses.rows import Row
from evenhand.speech import chance, opening, plural

Plain = Mapping[str, Any]
_REMEDIES = "compare remedies side by side, with what each costs (evenhand compare)."
# Where to look first, said once by the first finding that asks for it.
DEPENDS_ON, IS_THE_CASE = "what decisions depend on", "what is the case"
_LAW = "Whether groups may have cuts of their own is a question of law."


def next_step(
    finding: Plain,
    lead: Row | None,
    words: Words,
    details: Mapping[str, Any] | None = None,
    given: Sequence[Row] = (),
) -> str:
    """What whoever owns a finding should do, where something lies outside its limit.

    `given` are the other rows that its sentence states.

    Examples:
        >>> finding = {"verdict": "outside", "layer": "policy", "lens": "statistical"}
        >>> next_step(finding, None, Words())
        'Decide which of the two gives way: the limit, or the weight of the two mistakes.'
    """
    if finding["verdict"] != OUTSIDE:
        return ""
    if finding["layer"] == "policy":
        much = amount(lead) if lead is not None else ""
        broken = f", which is broken by {much}," if much else ","
        which = f"the limit{broken} or the weight of the two mistakes"
        return f"Decide which of the two gives way: {which}."
    return _by_lens(str(finding["lens"]), lead, words, details or {}, given)


def _by_lens(
    lens: str, lead: Row | None, words: Words, details: Mapping[str, Any], given: Sequence[Row]
) -> str:
    """What to do about a finding of a lens."""
    if lens == "thresholds" and lead is not None:
        return _cut(lead, words, details)
    if lens == "labelers" and lead is not None:
        from evenhand.findings.sentences.relabel import labelers_step

        return labelers_step(lead, words, details)
    if lens == "counterfactual":
        first = _texts_that_change([*([lead] if lead is not None else []), *given], words)
        train = f"train on texts with the words exchanged, or mask them, and {_REMEDIES}"
        if not first:
            return _after(_amount_left(lead), opening(train))
        return opening(f"{first}{train}")
    if lens == "norms":
        first = _class_that_follows(lead, words, given) or _amount_left(lead)
        return _after(
            first, f"Look at the words that carry it{_heaviest(details)}, and {_REMEDIES}"
        )
    if lens != "statistical":
        return _after(_amount_left(lead), f"Find out where it comes from, and {_REMEDIES}")
    return _about_rates(lead, words, given)


def _after(first: str, then: str) -> str:
    return " ".join(filter(None, (first, then)))


def _amount_left(lead: Row | None) -> str:
    """By how much a number would have to change, where nothing nearer to people is known."""
    return coming_back(lead) if lead is not None else ""


def _about_rates(lead: Row | None, words: Words, given: Sequence[Row]) -> str:
    """What to do about rates and scores: how many decisions or pairs, and where to look first."""
    read = calibration_step(lead, words)
    if read:
        return read
    start = decisions_step(lead, words, given) or spread_step(lead, words, given)
    source = source_of(lead)
    if asks_for_none(lead, words, given) or asks_for_no_spread(lead, words, given):
        # No number is advice here: what is left is to see where it comes from.
        return _after(start, _where_from(source, words))
    number = (
        start
        or _class_to_start_with(lead, words, given)
        or ranking_step(lead, words)
        or _amount_left(lead)
    )
    if number and source in words.heard:
        return number
    return _after(number, _where_from(source, words))


def source_of(lead: Row | None) -> str:
    """What a gap of rates sends a reader to: what decisions depend on, or what is the case."""
    record = look_up(lead["measure"] if lead is not None else "")
    chosen = (record.base or record.name) == "selection_rate"
    return DEPENDS_ON if chosen else IS_THE_CASE


def _where_from(source: str, words: Words) -> str:
    if source == DEPENDS_ON:
        beside = f" beside {words.stratum}" if words.stratum else ""
        within = "within it too" if words.stratum else "within it (--stratum)"
        return (
            f"Look first whether the groups differ in what decisions should depend on{beside}, and "
            f"compare {within}. Then {_REMEDIES}"
        )
    return (
        "Look first where it comes from: how common and how well told apart true cases are in "
        f"each group, and how good their labels are. Then {_REMEDIES}"
    )


def _class_to_start_with(lead: Row | None, words: Words, given: Sequence[Row]) -> str:
    """Of a typical gap over classes: the class that its sentence names, with its number."""
    record = look_up(lead["measure"] if lead is not None else "")
    if record.parts is None or record.counts != "classes":
        return ""
    largest = pointed_at([one for one in given if one["measure"] == record.parts])
    if largest is None or ends(largest) is None:
        return ""
    whose = words.subject(largest["attribute"], largest["group"])
    one, how_much = words.classes[0], f"{plain_value(largest)} for {whose}"
    if not surely_apart(largest):
        seen = f"the largest seen is '{largest['class']}', {how_much}"
        return f"No {one} is beyond doubt alone; {seen}."
    return f"Start with the {one} '{largest['class']}': {how_much}."


def _texts_that_change(rows: Sequence[Row], words: Words) -> str:
    """How many texts get another decision when only words are exchanged, to be read first."""
    flips = next((one for one in rows if one["measure"] == "flip_rate"), None)
    pair = ends(flips) if flips is not None else None
    if flips is None or pair is None or flips["value"] is None or not flips["n"]:
        return ""
    many, near, far = (round(end * flips["n"]) for end in (flips["value"], *pair))
    if many < 1:
        return ""
    one, several = words.item or ("text", "texts")
    other = f"another {words.class_[0]}" if words.class_ else "another decision"
    return (
        f"read some of the {plural(many, one, several)} of {flips['n']:,.0f} that get {other} "
        f"({near:,.0f} to {far:,.0f} in tables like this), "
    )


def _class_that_follows(lead: Row | None, words: Words, given: Sequence[Row]) -> str:
    """Of a norm over classes: the class whose scores depend most on it, with its number."""
    closest = closest_class(given)
    if lead is None or closest is None or closest["measure"] == lead["measure"]:
        return ""
    what = f"{words.classes[0]} '{closest['class']}'"
    of = f"{closest['n']:,.0f} {words.items[1] if words.item else 'texts'}"
    return (
        f"Start with the {what}, where scores depend most on the norm: a rank correlation of "
        f"{plain_value(closest)} over {of}."
    )


def _heaviest(details: Mapping[str, Any]) -> str:
    """The word that weighs most in the classifier and in the norm, where weights are known."""
    known = [
        one
        for one in (details.get("norms") or {}).get("words") or []
        if isinstance(one, Mapping)
        and all(isinstance(one.get(key), int | float) for key in ("classifier", "norm"))
    ]
    if not known:
        return ""
    first = max(known, key=lambda one: abs(one["classifier"] * one["norm"]))
    return f" (most of all '{first['word']}' for '{first['class']}')"


def _cut(lead: Row, words: Words, details: Mapping[str, Any]) -> str:
    """The cut that an audit showed to be within what was agreed, if any, and the present ones."""
    shown = details.get("thresholds") or {}
    curves = (shown.get("cost_curves") or {}).get("groups") or []
    own = next(
        (
            one
            for one in curves
            if (one.get("attribute"), one["group"]) == (lead["attribute"], lead["group"])
        ),
        None,
    )
    has_cut = own is not None and own["cheapest"]["threshold"] is not None
    step = ""
    if has_cut and look_up(lead["measure"]).kind != "ratio":
        step = cut_step(lead, words, shown)
    whose = words.subject(lead["attribute"], lead["group"])
    return f"{step or _move_cut(lead, words, whose)} {_LAW}"


def _move_cut(lead: Row, words: Words, whose: str) -> str:
    """To which chance of being right a cut would have to move, where no score says where that is.

    A weight of c acts from a chance of 1 ÷ (1 + c) on.
    """
    record, edge, pair = look_up(lead["measure"]), edge_of(lead), ends(lead)
    move = f"Move the cut for {whose} to where"
    if record.kind not in ("number", "rate") or edge is None or pair is None:
        return _after(coming_back(lead), f"{move} what was agreed is kept.")
    numbers = [edge, float(lead["value"]), *pair]
    if record.kind == "number":
        numbers = [1 / (1 + one) for one in numbers]
    agreed, now, *span = numbers
    low, high = (chance(one) for one in sorted(span))
    what = words.chance(lead["class"])
    return f"{move} the {what} is {chance(agreed)}; today it is {chance(now)} ({low} to {high})."


def whose_words(layer: str, owner: str | None) -> str:
    """Whose a finding is: the layer, and its owner or else who is to be asked.

    Examples:
        >>> whose_words("implementation", "the model team"), whose_words("policy", None)
        ('Implementation: the model team.', 'Policy: whoever owns the rules.')
    """
    return f"{opening(layer)}: {owner or ASKED[layer]}."


def whose_labelers(instructs: str | None, owner: str | None) -> str:
    """Whose a finding on labelers is: of whoever instructs them, else one is to be asked.

    Who owns the layer may be engineers, who write no guidelines.

    Examples:
        >>> whose_labelers("guidelines and training", "the model team"), whose_labelers(None, None)
        ('Implementation: guidelines and training.', 'Implementation: label operations.')
        >>> whose_labelers(None, "the model team")
        'Implementation: label operations (ask the model team).'
    """
    ask = f" (ask {owner})" if owner and instructs is None else ""
    return f"Implementation: {instructs or LABEL_OPERATIONS}{ask}."
