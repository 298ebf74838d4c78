"""The roles as keyword arguments: the type and the meaning of each, written once.

`Decisions`, `audit` and `verify` take the same roles. Their signatures unpack `RoleArguments`, so
that type checkers know every keyword; `describe_roles` shows them to `help()` and to editors.
`describe_keywords` does the same for other arguments that are written once and taken in places.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_type_hints

from evenhand.decisions.roles import Threshold

Thing = TypeVar("Thing", bound=Callable[..., Any])


class RoleArguments(TypedDict, total=False):
    """What each column of a table is for; roles that are left out are None."""

    truth: Annotated[str | None, "what is the case; a class name or 0/1"]
    decision: Annotated[str | None, "what was decided, by the model or by the labeler"]
    score: Annotated[str | None, "score of the positive class"]
    scores: Annotated[
        str | Mapping[str, str] | None, "one score column per class, named `score:<class>`"
    ]
    threshold: Annotated[Threshold | None, "the cut: a number, one per group, or a column"]
    rule: Annotated[
        str | None, "how a decision came about: given, score>=t, argmax, one-versus-rest"
    ]
    positive: Annotated[Any, "the value that counts as positive"]
    positive_is: Annotated[str | None, "benefit or burden for the person decided about"]
    group: Annotated[
        str | Sequence[str] | None, "one or more columns that say which group a person belongs to"
    ]
    crossed: Annotated[bool | None, "also all group columns together"]
    reference: Annotated[
        str | Mapping[str, Any] | None, "what a group is compared with; by default the largest"
    ]
    stratum: Annotated[str | None, "a column to condition on"]
    stratum_edges: Annotated[Sequence[float] | None, "cut points of a numeric stratum"]
    labeler: Annotated[str | None, "who decided"]
    item: Annotated[str | None, "what was decided about"]
    cluster: Annotated[str | None, "rows that belong together"]
    weight: Annotated[str | None, "how many cases a row stands for"]
    review_share: Annotated[str | None, "the probability with which a row's truth was reviewed"]
    time: Annotated[str | None, "when it was decided"]
    seconds: Annotated[str | None, "how long the decision took"]
    text: Annotated[str | None, "the text decided about"]
    counterfactual: Annotated[
        Mapping[str, str] | None, "the decision under each value of the group"
    ]
    norm: Annotated[
        Mapping[str, str] | None, "how much a row looks like a typical member of a group"
    ]
    norm_irrelevant: Annotated[
        Mapping[str, str] | None, "the same by words that have nothing to do with the class"
    ]
    missing: Annotated[str | None, "drop, group or error"]
    missing_words: Annotated[
        str | Sequence[str] | None, "words that mean that nothing is known, such as NA"
    ]
    classes: Annotated[
        bool | None, "numbers of truth and decision are codes of classes, however many"
    ]


class TableArguments(RoleArguments, total=False):
    """The roles, and what opens the file that holds them."""

    engine: Annotated[str | None, "what opens files: polars (default), duckdb or spark"]
    spark_master: Annotated[str | None, "where Spark runs"]


def meanings(arguments: type = RoleArguments) -> dict[str, str]:
    """One line on each keyword, in the words of the vocabulary.

    Examples:
        >>> meanings()["labeler"]
        'who decided'
    """
    hints = get_type_hints(arguments, include_extras=True)
    return {name: str(get_args(hint)[1]) for name, hint in hints.items()}


def describe_keywords(heading: str) -> Callable[[Thing], Thing]:
    """Let a class or function that unpacks keywords show each as an argument of its own.

    Its signature lists them with their types, and its documentation says a line on each under
    this heading.

    Examples:
        >>> from evenhand.decisions.table import Decisions
        >>> inspect.signature(Decisions).parameters["labeler"].default is None
        True
    """

    def describe(thing: Thing) -> Thing:
        shown = inspect.signature(thing)
        places = list(shown.parameters.values())
        (arguments,) = get_args(places.pop().annotation)
        places += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in get_type_hints(arguments).items()
        ]
        thing.__signature__ = shown.replace(parameters=places)  # type: ignore[attr-defined]
        if thing.__doc__ is not None:
            head, mark, rest = inspect.cleandoc(thing.__doc__).partition("\nExamples:")
            lines = [f"    {name}: {text}." for name, text in meanings(arguments).items()]
            thing.__doc__ = "\n".join([head.rstrip(), "", f"{heading}:", *lines, mark + rest])
        return thing

    return describe


describe_roles = describe_keywords("Roles")
