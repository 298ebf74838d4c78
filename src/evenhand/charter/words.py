"""A charter in words that a policy owner reads."""

from collections.abc import Iterator

from evenhand.charter.charter import Charter, Choice, Layer, System
from evenhand.charter.layers import ASKED, LAYERS

_SAID = 3
_RIGHT = {"true_positive": "Rightly decided", "true_negative": "Rightly left alone"}


def charter_sentence(charter: Charter) -> str:
    """The choices in one sentence, with who decided and when it is looked at again.

    Examples:
        >>> charter = Charter(source="c.toml", choices=(Choice(cost_ratio=4, low=3.2, high=5),))
        >>> charter_sentence(charter)[:77]
        'Chosen: one missed case counts as 4 wrongful decisions (act from 20 % on), de'
    """
    if not charter.choices:
        one, other = charter.system.false_negative[0], charter.system.false_positive[0]
        return f"Nothing is chosen yet: how {_a(one)} weighs against {_a(other)} is left open."
    endings = {_ending(choice) for choice in charter.choices}
    parts = []
    for choice in charter.choices[:_SAID]:
        whom = f"for {choice.whom}, " if len(charter.choices) > 1 or choice.group else ""
        ending = f", {_ending(choice)}" if len(endings) > 1 else ""
        parts.append(f"{whom}{weighed(choice.cost_ratio, charter.system)}{ending}")
    more = len(charter.choices) - _SAID
    if more > 0:
        parts.append(f"and {more} more")
    shared = f", {endings.pop()}" if len(endings) == 1 else ""
    return f"Chosen: {'; '.join(parts)}{shared}."


def weighed(cost_ratio: float, system: System) -> str:
    """One mistake in units of the other, and from which probability on it pays to act.

    Examples:
        >>> weighed(4, System(false_positive=("wrongful removal", "wrongful removals")))
        'one missed case counts as 4 wrongful removals (act from 20 % on)'
        >>> weighed(0.1, System())
        'one wrongful decision counts as 10 missed cases (act from 90.9 % on)'
    """
    dear, cheap = system.false_negative, system.false_positive
    times = cost_ratio
    if cost_ratio < 1:
        dear, cheap, times = cheap, dear, 1 / cost_ratio
    told = f"{plain_number(times)} {cheap[1]}" if times != 1 else f"one {cheap[0]}"
    return f"one {dear[0]} counts as {told} (act from {percent(1 / (1 + cost_ratio))} on)"


def plain_number(value: float) -> str:
    """A number as people write it, three digits.

    Examples:
        >>> plain_number(4.0), plain_number(3.75), plain_number(12_345.6)
        ('4', '3.75', '12,346')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent; near 100 with the digits that tell it from certainty.

    Examples:
        >>> percent(0.2), percent(1 / 6), percent(0.9999)
        ('20 %', '16.7 %', '99.99 %')
    """
    return f"{100 * share:.{3 if share <= 0.99 else 6}g} %"


def charter_text(charter: Charter) -> str:
    """The whole charter in words, for the terminal."""
    return "\n".join(_lines(charter)) + "\n"


def _lines(charter: Charter) -> Iterator[str]:
    system = charter.system
    yield f"{system.name or 'A system without a name'}: {system.decision or 'no decision named'}"
    yield charter_sentence(charter)
    if charter.choices:
        yield "\nChoices"
    for choice in charter.choices:
        yield from _choice_lines(choice)
    if charter.catalogue:
        yield "\nWho bears what"
    for one in charter.catalogue:
        where = f" ({one.attribute}={one.group})" if one.group else ""
        names = getattr(system, one.outcome, None)
        outcome = _capital(_a(names[0])) if names else _RIGHT[one.outcome]
        yield f"  {outcome}: {one.kind} to {one.borne_by}{where}. {one.what}"
    if charter.stakeholders:
        yield "\nStakeholders"
    for person in charter.stakeholders:
        heard = "consulted" if person.consulted else "not consulted"
        yield f"  {person.name} ({heard}){f': {person.interest}' if person.interest else ''}"
    for name in LAYERS:
        if name in charter.layers:
            yield from _layer_lines(charter.layers[name])
    yield from _number_lines(charter)


def _choice_lines(choice: Choice) -> Iterator[str]:
    low, high = choice.threshold_band
    yield (
        f"  For {choice.whom}: cost ratio {plain_number(choice.cost_ratio)} "
        f"(tolerated {plain_number(choice.low)} to {plain_number(choice.high)}), so act from "
        f"{percent(choice.threshold)} on (tolerated {percent(low)} to {percent(high)})."
    )
    if choice.positive_is:
        yield f"    A positive decision is a {choice.positive_is} for the person decided about."
    on = f" on {choice.decided_on}" if choice.decided_on else ""
    yield f"    {_capital(_ending(choice, on=on))}."
    yield f"    Reason: {choice.reason or 'none given'}"


def _layer_lines(layer: Layer) -> Iterator[str]:
    day = f", {layer.date}" if layer.date else ""
    review = f", review by {layer.review_by}" if layer.review_by else ""
    heard = ", ".join(layer.consulted) or "nobody"
    owner = layer.owner or f"nobody named (ask {ASKED[layer.name]})"
    yield f"\n{_capital(layer.name)} layer: owned by {owner}{day}{review}; consulted: {heard}"
    for answer in layer.answers:
        yield f"  {answer.question}"
        by = f" ({answer.owner})" if answer.owner and answer.owner != layer.owner else ""
        yield f"    {answer.text or 'Not answered yet.'}{by}"


def _number_lines(charter: Charter) -> Iterator[str]:
    if charter.limits:
        yield "\nLimits"
    for name, (low, high) in charter.limits.items():
        yield f"  {name}: {low:g} to {high:g}"
    if charter.prevalence:
        yield "\nPrevalence"
    for (attribute, group), share in charter.prevalence.items():
        yield f"  {'everybody' if group is None else f'{attribute}={group}'}: {percent(share)}"
    if charter.truth_quality:
        yield "\nQuality of the truth"
    for (attribute, group), quality in charter.truth_quality.items():
        whom = "everybody" if group is None else f"{attribute}={group}"
        yield (
            f"  {whom}: sensitivity {percent(quality.sensitivity)}, "
            f"specificity {percent(quality.specificity)}"
        )
    if charter.roles:
        yield "\nColumns"
    for role, value in charter.roles.items():
        yield f"  {role}: {', '.join(value) if role == 'group' else value}"


def _ending(choice: Choice, on: str = "") -> str:
    who = choice.decided_by or "nobody named"
    when = f"review by {choice.review_by}" if choice.review_by else "no review date"
    return f"decided by {who}{on}, {when}"


def _a(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
