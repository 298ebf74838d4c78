"""Tally sets collected from a table: lenses say what they need, the engine counts it at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.decisions.question import Question
from evenhand.decisions.roles import COLUMN_ROLES, OWN_SCORE, Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import stay_in_spark
from evenhand.decisions.tallies.grid import VALUE, are_too_many, gridded
from evenhand.decisions.tallies.labelers import item_question, label_question
from evenhand.decisions.tallies.pairs import (
    all_pairs,
    pair_question,
    pair_sums_question,
    score_columns,
)
from evenhand.decisions.tallies.sets import Tallies, table_name
from evenhand.decisions.tally import Tally

_EMPTY = Tally(labels={}, codes={}, sums={})
# Cells by cluster, and by item, that a set holds; beyond that only rows serve.
MOST_CELLS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A table that a lens measures from: its kind, and the attribute and column it is of.

    `finish` makes tables that no single aggregation gives, by their names; their sums are ranks,
    which do not merge, unless the name begins with one of `MERGES`.
    """

    kind: str
    attribute: Attribute | None = None
    column: str = ""
    finish: Callable[[Decisions], Mapping[str, Tally]] | None = None

    @property
    def name(self) -> str:
        """The name of the table in a set."""
        parts = [self.attribute.name] if self.attribute else []
        return table_name(self.kind, *parts, *([self.column] if self.column else []))


def collect_tallies(
    decisions: Decisions,
    needs: Iterable[Need],
    *,
    longest_seconds: float | None = None,
    in_arrays: bool = True,
    clustered: bool = False,
) -> Tallies:
    """The tally set of a table: one pass for everything that sums by keys give.

    Counting scores into arrays is quicker, and knows no keys but a table's own. With `clustered`
    counts and scores are not by cluster, but by whether there is one.
    """
    wanted = {need.name: need for need in needs}
    scores = [need for need in wanted.values() if need.kind == "scores" and in_arrays]
    counted = _counted(decisions, scores)
    counted |= _decided(decisions.roles, wanted.values(), counted)
    asked: dict[str, Question] = {}
    for name, need in wanted.items():
        if need.finish is None and name not in counted:
            question = _question(decisions, need, longest_seconds, clustered)
            if question is not None:
                asked[name] = question
    answers = dict(zip(asked, decisions.answer(list(asked.values())), strict=True))
    lost: dict[str, str] = {}
    tables: dict[str, Tally] = dict(counted)
    for name, tally in answers.items():
        tables |= _within_limits(decisions, wanted[name], asked[name], tally, lost)
    for tally in tables.values():
        decisions.check_classes(tally)
    finished: dict[str, Tally] = {}
    for need in wanted.values():
        if need.finish is not None:
            finished |= need.finish(decisions)
    merging = {k: v for k, v in finished.items() if k.split("/")[0] in MERGES}
    return Tallies(
        source=decisions.source,
        roles=decisions.roles,
        columns=_columns(decisions),
        rows=decisions.row_count,
        survey=decisions.survey,
        tables=tables | merging,
        finished={k: v for k, v in finished.items() if k not in merging},
        lost=lost,
        settings={} if longest_seconds is None else {"longest_seconds": longest_seconds},
    )


def scores_stay_in_spark(decisions: Decisions, needs: Iterable[Need]) -> bool:
    """Whether scores by cluster have more cells than Spark's driver takes, of any attribute."""
    from evenhand.decisions.tallies.scores import score_question

    return any(
        stay_in_spark(decisions, score_question(decisions, need.attribute, need.column))
        for need in needs
        if need.kind == "scores" and need.attribute is not None
    )


# Kinds of table made by several steps whose sums can be added all the same.
MERGES = ("norm_counts", "sampled_counts")


def _counted(decisions: Decisions, needs: Sequence[Need]) -> dict[str, Tally]:
    """Tables of scores that are counted into arrays, several times faster than by hashing."""
    if not needs:
        return {}
    from evenhand.decisions.tallies.counting import count_scores, may_count
    from evenhand.decisions.tallies.scores import row_weight, score_class

    columns = list(dict.fromkeys(need.column for need in needs))
    if not may_count(decisions, columns):
        return {}
    attributes = list(dict.fromkeys(need.attribute for need in needs if need.attribute))
    found = count_scores(
        decisions,
        attributes,
        columns,
        classes={column: score_class(decisions.roles, column) for column in columns},
        omega=row_weight(decisions),
    )
    return {table_name("scores", *key): tally for key, tally in found.items()}


def _decided(roles: Roles, needs: Iterable[Need], counted: Mapping[str, Tally]) -> dict[str, Tally]:
    """Counts that scores on the grid tell already: a threshold decides, and nothing weighs."""
    if roles.rule != "score>=t" or roles.weight or roles.review_share or roles.together:
        return {}
    from evenhand.decisions.tallies.scores import decided_counts

    found = {}
    for need in needs:
        name = table_name(
            "scores", *([need.attribute.name] if need.attribute else []), str(roles.score)
        )
        if need.kind == "counts" and "truth" in counted.get(name, _EMPTY).labels:
            found[need.name] = decided_counts(counted[name])
    return found


def _question(
    decisions: Decisions, need: Need, longest: float | None, clustered: bool = False
) -> Question | None:
    """What a need asks of the engine; None where the table has nothing of the kind."""
    attribute = need.attribute
    if need.kind == "pair_sums":
        pairs = all_pairs(decisions.roles)
        return pair_sums_question(decisions, pairs, scores=score_columns(decisions))
    if need.kind == "pairs":
        return _limited(pair_question(decisions, attribute), "cluster")
    assert attribute is not None
    if need.kind == "counts":
        ruled = decisions.roles.rule is not None
        by = {"clustered": ruled} if clustered else {"cluster": ruled}
        return _limited(decisions.count_question(attribute, **by), "cluster")
    if need.kind == "scores":
        from evenhand.decisions.tallies.scores import score_question

        question = score_question(decisions, attribute, need.column, clustered=clustered)
        return _limited(question, "cluster")
    if need.kind == "labels":
        return label_question(decisions, attribute, longest_seconds=longest)
    if need.kind == "items":
        return _limited(item_question(decisions, attribute), "item")
    raise AssertionError(need.kind)


def _limited(question: Question, key: str) -> Question:
    """Of a table by cluster or item only as many cells as a set may hold leave the engine."""
    if key not in question.keys:
        return question
    return replace(question, frame=question.frame.head(MOST_CELLS + 1), limited=True)


def _within_limits(
    decisions: Decisions, need: Need, question: Question, tally: Tally, lost: dict[str, str]
) -> dict[str, Tally]:
    """The table of an answer, without clusters or items where they are too many."""
    # Engines give cells in any order, and sums of floating numbers depend on it.
    tally = tally.compact()
    if VALUE in tally.labels and are_too_many(tally.labels[VALUE]):
        tally = gridded(tally)
    if len(tally) <= MOST_CELLS or not {"cluster", "item"} & set(tally.labels):
        return {need.name: tally}
    if "item" in tally.labels:
        lost[need.name] = _too_many(str(decisions.roles.item), "item")
        return {}
    lost[need.name.replace(need.kind, "clusters", 1)] = _too_many(
        str(decisions.roles.together), "cluster"
    )
    plain = decisions.with_roles(cluster=None, labeler=None)
    again = _question(plain, need, None)
    assert again is not None
    return {need.name: decisions.answer([again])[0].compact()}


def _too_many(column: str, what: str) -> str:
    return (
        f"{what}={column!r} makes more than {MOST_CELLS:,} cells, which a tally set does not "
        "hold. Audit the table itself."
    )


def _columns(decisions: Decisions) -> tuple[str, ...]:
    """The columns that lenses look for: those with a role, and those found by their names."""
    roles = decisions.roles
    named: list[Any] = [getattr(roles, role) for role in COLUMN_ROLES]
    named += [*roles.group, *roles.scores.values(), *roles.counterfactual.values()]
    named += [*roles.norm.values(), *roles.norm_irrelevant.values(), OWN_SCORE]
    if roles.counterfactual:
        named += [c for columns in score_columns(decisions).values() for c in columns.values()]
        named.append("changed")
    there = set(decisions.columns)
    return tuple(dict.fromkeys(str(c) for c in named if c in there))


def group_needs(kind: str, roles: Roles, columns: Sequence[str] = ("",)) -> list[Need]:
    """One need for each attribute and column."""
    return [
        Need(kind=kind, attribute=attribute, column=column)
        for attribute in roles.attributes
        for column in columns
    ]
