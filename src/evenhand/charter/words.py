"""A charter in words that a policy owner reads."""

from collections.abc import Iterator

from evenhand.charter.charter import ASKED, LAYERS, BarChoice, Charter, Choice, Layer, System
from evenhand.speech import opening

_SAID = 3
_RIGHT = {"true_positive": "Rightly decided", "true_negative": "Rightly left alone"}


def charter_sentence(charter: Charter) -> str:
    """The choices in one sentence, with who decided and when it is looked at again.

    Examples:
        >>> charter = Charter(source="c.toml", choices=(Choice(cost_ratio=4, low=3.2, high=5),))
        >>> charter_sentence(charter)[:76]
        'Chosen: one missed case counts as 4 wrongful decisions (act from 20% on), de'
    """
    chosen = chosen_words(charter)
    if chosen is None:
        one, other = charter.system.false_negative[0], charter.system.false_positive[0]
        return f"Nothing is chosen yet: how {_a(one)} weighs against {_a(other)} is left open."
    return f"Chosen: {chosen}"


def chosen_words(charter: Charter) -> str | None:
    """The choices in words, with who decided and when they are looked at again; None for none."""
    if not charter.choices:
        return _bar_words(charter.bar) if charter.bar else None
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
    bar = f" And {_bar_words(charter.bar)}" if charter.bar else ""
    return f"{'; '.join(parts)}{shared}.{bar}"


def _bar_words(bar: BarChoice) -> str:
    return (
        "one bar for every group (as much evidence asked for), at most "
        f"{plain_number(bar.tolerance)} standard deviations apart, {_ending(bar)}."
    )


def weighed(cost_ratio: float, system: System) -> str:
    """One mistake in units of the other, and from which probability on it pays to act.

    Examples:
        >>> weighed(4, System(false_positive=("wrongful removal", "wrongful removals")))
        'one missed case counts as 4 wrongful removals (act from 20% on)'
        >>> weighed(0.1, System())
        'one wrongful decision counts as 10 missed cases (act from 90.9% on)'
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
        >>> plain_number(4.0), plain_number(3.75), plain_number(12_345.6), plain_number(999.9)
        ('4', '3.75', '12,346', '1,000')
    """
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent; near 100 with the digits that tell it from certainty.

    Examples:
        >>> percent(0.2), percent(1 / 6), percent(0.9999)
        ('20%', '16.7%', '99.99%')
    """
    return f"{100 * share:.{3 if share <= 0.99 else 6}g}%"


def charter_text(charter: Charter) -> str:
    """The whole charter in words, for the terminal."""
    return "\n".join(_lines(charter)) + "\n"


def _lines(charter: Charter) -> Iterator[str]:
    system = charter.system
    yield f"{system.name or 'A system without a name'}: {system.decision or 'no decision named'}"
    yield charter_sentence(charter)
    yield from _system_lines(system)
    if charter.choices:
        yield "\nChoices"
    for choice in charter.choices:
        yield from _choice_lines(choice)
    if charter.bar:
        yield f"\nThe bar\n  {opening(_bar_words(charter.bar))}"
        yield f"    Reason: {charter.bar.reason or 'none given'}"
    if charter.catalogue:
        yield "\nWho bears what"
    for one in charter.catalogue:
        where = f" ({one.attribute}={one.group})" if one.group else ""
        names = getattr(system, one.outcome, None)
        outcome = opening(_a(names[0])) if names else _RIGHT[one.outcome]
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


def _system_lines(system: System) -> Iterator[str]:
    """The words that findings are told in, as far as they are given."""
    items = system.item[1] if system.item else None
    that = "that" if system.of else "who"
    said = [
        (items and system.of and f"{items} {system.of} people") or items,
        f"that are {system.decided}" if system.decided else None,
        f"{that} {system.truth[0]}, or {that} {system.truth[1]}" if system.truth else None,
        f"by {system.class_[0]}" if system.class_ else None,
    ]
    names = [
        f"{attribute}={value}: {name}"
        for attribute, values in system.groups.items()
        for value, name in values.items()
    ]
    if any(said) or names:
        yield "\nWords"
    if any(said):
        yield f"  {opening('; '.join(filter(None, said)))}."
    yield from (f"  {line}" for line in names)


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
    yield f"    {opening(_ending(choice, on=on))}."
    yield f"    Reason: {choice.reason or 'none given'}"


def _layer_lines(layer: Layer) -> Iterator[str]:
    day = f", {layer.date}" if layer.date else ""
    review = f", review by {layer.review_by}" if layer.review_by else ""
    heard = ", ".join(layer.consulted) or "nobody"
    owner = layer.owner or f"nobody named (ask {ASKED[layer.name]})"
    yield f"\n{opening(layer.name)} layer: owned by {owner}{day}{review}; consulted: {heard}"
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


def _ending(choice: Choice | BarChoice, on: str = "") -> str:
    who = choice.decided_by or "nobody named"
    when = f"review by {choice.review_by}" if choice.review_by else "no review date"
    return f"decided by {who}{on}, {when}"


def _a(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


STARTER = """\
# A charter: which trade-offs were chosen, by whom, until when and why.
# Fill in what is empty, take the mark off the lines that begin with # and no space, and review
# the file as you would review code. Check it with: evenhand charter check charter.toml
schema = "evenhand.charter/1"

[system]
name = ""                       # such as "Comment moderation"
decision = ""                   # what a positive decision does, such as "remove the comment"
# The words that findings are told in, each as good as left out: what is decided about, what
# links it to people (comments *by*, biographies *of*, loans *to*; none where people themselves
# are decided about), what a positive decision did to it, and how one says that it is so or not.
#item = ["comment", "comments"]
#of = "by"
#decided = "removed"
#truth = ["break the rules", "do not break the rules"]
#class = ["occupation", "occupations"]         # what the answers are, where there are many
# What your people call the two mistakes. Irregular plurals: ["loss", "losses"].
#false_positive = ["wrongful removal", "wrongful removals"]
#false_negative = ["missed violation", "missed violations"]

# What the people of a group are called, by the values of its column.
#[system.groups.gender]
#nonbinary = "nonbinary people"

# --- Product: asked of whoever leads the product --------------------------------------------
[product]
owner = ""
date = ""                       # when this was settled, such as 2026-01-31
consulted = []                  # who was heard; people who are affected belong here
# Does what it sets out to do serve everyone it affects?
serves_everyone = ""
# Whose interests give way to whose, and how far?
whose_interests = ""
# Should a machine act here without a person?
without_a_person = ""

# --- Policy: asked of whoever owns the rules ------------------------------------------------
[policy]
owner = ""
date = ""
consulted = []
# Does the rule, as written, fit the lives of every group it will be applied to?
fits_every_group = ""
# What exactly counts as a violation, and does it matter whom it is aimed at; who is protected?
what_counts = ""
# Which mistake hurts whom, and how badly: the person who made the thing, those who see it,
# those it is about?
which_mistake_hurts = ""

# --- Implementation: asked of engineers and label operations --------------------------------
[implementation]
owner = ""
date = ""
# Do the people who label follow the rule? Whoever instructs them may be named, with the answer:
# labelers_follow = {answer = "", owner = "guidelines and training"}
labelers_follow = ""
# Do the models strike the chosen balance for every group?
models_balance = ""

# --- Stakeholders, and what each outcome costs or brings them -------------------------------
#[[stakeholders]]
#name = "people who comment"
#interest = "being heard"
#consulted = false

#[[stakeholders]]
#name = "people who read"
#interest = "not being insulted"
#consulted = false

# outcome: false_positive, false_negative, true_positive or true_negative.
# kind: cost or benefit. Where a group bears more than others, name it in a line of its own.
#[[catalogue]]
#outcome = "false_positive"
#kind = "cost"
#borne_by = "people who comment"
#what = "A harmless comment disappears and its writer is silenced."

#[[catalogue]]
#outcome = "false_negative"
#kind = "cost"
#borne_by = "people who read"
#what = "An insult stays up."

#[[catalogue]]
#outcome = "true_positive"
#kind = "benefit"
#borne_by = "people who read"
#what = "An insult is gone before many have seen it."
#attribute = "gender"
#group = "female"

# --- Choices: how many false positives does one false negative count as? --------------------
# cost_ratio = 4 means: act from a probability of 1/(1+4) = 20% on.
# tolerance = 1.25 means 4/1.25 to 4*1.25; or give both ends, such as [3, 5].
# positive_is: is a positive decision a benefit or a burden for the person decided about?
#[[choices]]
#cost_ratio = 4
#tolerance = 1.25
#positive_is = "burden"
#decided_by = ""
#decided_on = ""
#review_by = ""
#reason = ""

# A choice for one group overrides the one for all.
#[[choices]]
#attribute = "gender"
#group = "female"
#cost_ratio = 5
#tolerance = [4, 6.5]
#decided_by = ""
#decided_on = ""
#review_by = ""
#reason = ""

# Or choose one bar instead: that labelers ask for as much evidence whoever it is about. Where true
# cases are more common in one group, one bar weighs the two mistakes differently.
#[[choices]]
#compare = "bar"
#tolerance = 0.2                # how far bars may differ, in standard deviations

# For a pair, cross two group columns in the order producer*consumer:
#   attribute = "writer_group*reader_group"
#   group = "a*b"

# --- Limits for other measures (evenhand audit --list-measures) -----------------------------
#[limits]
#true_positive_rate_gap = 0.05          # -0.05 to 0.05
#selection_rate_ratio = 0.8             # 0.8 to 1.25
#precision = [0.7, 1]

# --- What is known from elsewhere -----------------------------------------------------------
# Share of true cases among all that labelers see, where the audited sample is enriched.
#[prevalence]
#all = 0.02

#[prevalence.gender]
#female = 0.03

# How good the truth itself is: how often it says so of what is so, and of what is not.
#[truth_quality]
#all = {sensitivity = 0.95, specificity = 0.99}

# --- Columns, so that `evenhand audit DATA --charter charter.toml` needs no flags -----------
#[roles]
#truth = "violates"
#score = "score"
#threshold = 0.8
#group = "gender"
"""
