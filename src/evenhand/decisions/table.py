"""Decisions: a lazy table and the roles of its columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, Unpack

import narwhals as nw

from evenhand.decisions.arrays import NAMED_APART, as_roles
from evenhand.decisions.classes import check_classes
from evenhand.decisions.columns import (
    are_amounts,
    canonical,
    check_reserved,
    check_size,
    check_types,
    has_truth_class,
    holds_amounts,
    is_named,
    label_columns,
    number_columns,
    too_many,
    where_known,
)
from evenhand.decisions.cuts import Cut, check_scale, cut_expression, reaches
from evenhand.decisions.keywords import RoleArguments, describe_roles
from evenhand.decisions.labels import RESERVED, SUMMARY, label
from evenhand.decisions.question import Question, group_keys, join_groups, read_tally
from evenhand.decisions.read import (
    Frame,
    batches_come,
    collect_batches,
    collect_together,
    engine_faults,
    open_table,
    unreadable,
)
from evenhand.decisions.roles import (
    OWN_SCORE,
    Attribute,
    Roles,
    find_roles,
    role_hint,
    spelled,
)
from evenhand.decisions.tally import Tally
from evenhand.decisions.wide import BATCH as WIDE_BATCH
from evenhand.decisions.wide import facts_asked, is_wide, look_through, wide_columns
from evenhand.errors import DataError, EvenhandError, UsageError

if TYPE_CHECKING:
    from evenhand.decisions.tallies.sets import Tallies

# Groups by name, as postcodes or schools are; of numbers fewer, since they are to be cut first.
MOST_GROUPS, MOST_NUMBERS, MOST_STRATA = 100_000, 1_000, 1_000
LOOK_AHEAD = 20_000
_SEEN = "evenhand:rows"


@describe_roles
class Decisions:
    """A table of decisions and what its columns are for; nothing is loaded until it is tallied.

    Args:
        data: A path, several paths or a glob; a pandas, Polars, PyArrow, DuckDB or Spark table;
            or a dict of arrays.
        engine: What opens files: `polars` (default), `duckdb` or `spark`.
        spark_master: Where Spark runs.
        roles: What each column is for, by the keywords below.

    Attributes:
        source: Where the table came from, in words.
        engine: What holds the table and counts it.
        columns: Names of all columns.
        roles: The roles, those found by columns' names among them.
        notes: What is worth saying of where the table comes from.
        left_out: Rows that whoever made the table left out, by reason.

    Examples:
        >>> table = {"bad": [1, 0, 1, 0], "removed": [1, 0, 0, 0], "gender": ["f", "f", "m", "m"]}
        >>> decisions = Decisions(table, truth="bad", decision="removed", group="gender")
        >>> tally = decisions.count(decisions.roles.attributes[0])
        >>> tally.dense(["group", "truth", "decision"], "n").astype(int).tolist()
        [[[1, 0], [0, 1]], [[1, 0], [1, 0]]]
    """

    # The tally set that answers in place of rows, where there is one.
    tallies: "Tallies | None" = None
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = MappingProxyType({})
    # The frame as it was when a look through it could keep it, and what was kept.
    _kept: tuple[Frame, Frame] | None = None

    def __init__(
        self,
        data: Any,
        *,
        engine: str | None = None,
        spark_master: str = "local[*]",
        **roles: Unpack[RoleArguments],
    ) -> None:
        table = open_table(data, engine=engine, spark_master=spark_master)
        self.source, self.engine = table.source, table.engine
        self.columns = list(table.frame.collect_schema().names())
        unknown = set(roles) - set(Roles.__slots__)
        if unknown:
            name = min(unknown)
            raise UsageError(f"{name!r} is not a role.{role_hint(name)}")
        self.roles = find_roles(self.columns, **roles)
        table = table.settle(
            labels=label_columns(self.roles),
            numbers=number_columns(self.roles),
            texts=[self.roles.text] if self.roles.text else [],
            words=self.roles.missing_words,
        )
        self._csv = table.csv
        self.frame = canonical(table.frame, self.roles, engine=self.engine)
        kinds = self.schema.items()
        numbers = {name for name, kind in kinds if kind.is_numeric() or kind == nw.Boolean}
        self.roles = spelled(self.roles, numbers=numbers)
        check_types(self.schema, self.roles, engine=self.engine)
        self._check_groups()
        if not isinstance(roles.get("scores"), Mapping):
            self._name_own_score()

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The type of each column."""
        return dict(self.frame.collect_schema())

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.roles.used().items())
        return f"Decisions({self.source!r}, {told})"

    @classmethod
    def from_arrays(cls, truth: Any = None, decision: Any = None, **rest: Any) -> Self:
        """Decisions from plain arrays, in scikit-learn's order: truth first, then decision.

        Each column role takes an array; `group` an array or a dict of arrays by name. Settings
        such as `threshold` or `positive` are passed as they are. Fairlearn's own arguments are
        understood: `y_true`, `y_pred`, `sensitive_features` (several are also crossed),
        `control_features` and `sample_weight`.

        Examples:
            >>> decisions = Decisions.from_arrays([1, 0, 1], [1, 1, 0], group=["a", "b", "a"])
            >>> decisions.roles.group
            ('group',)
            >>> sexes = {"sex": ["f", "m", "f"]}
            >>> Decisions.from_arrays([1, 0, 1], [1, 1, 0], sensitive_features=sexes).roles.group
            ('sex',)
        """
        settings = {
            "threshold", "rule", "positive", "positive_is", "crossed", "reference",
            "stratum_edges", "missing", "missing_words", "classes",
        }  # fmt: skip
        columns: dict[str, Any] = {}
        roles: dict[str, Any] = {}
        arrays = as_roles({"truth": truth, "decision": decision, **rest})
        for role, value in arrays.items():
            if value is None:
                continue
            if role in settings:
                roles[role] = value
            elif isinstance(value, Mapping):
                prefix = "" if role in NAMED_APART else f"{role}:"
                columns |= {f"{prefix}{name}": _sequence(array) for name, array in value.items()}
                named = {str(name): f"{prefix}{name}" for name in value}
                roles[role] = list(named) if role == "group" else named
                if role == "stratum":
                    roles[role] = next(iter(named))
            else:
                columns[role] = _sequence(value)
                roles[role] = role
        return cls(columns, **roles)

    @property
    def _on_engine(self) -> "Decisions":
        """The decisions whose rows an engine holds: these, or those that tallies were made of."""
        return self

    def with_roles(self, **changes: Any) -> Self:
        """The same table with some roles changed."""
        other = object.__new__(type(self))
        other.__dict__.update(
            {k: v for k, v in self.__dict__.items() if k not in ("survey", "_kept")}
        )
        other.roles = replace(self.roles, **changes)
        return other

    def check(self) -> None:
        """Refuse scores, weights and thresholds that cannot be used, before anything is counted.

        Looks at the numbers once: whoever measures through a lens calls this first.

        Examples:
            >>> table = {"score": [0.2, 0.9], "sex": ["f", "m"]}
            >>> Decisions(table, score="score", threshold=75, group="sex").check()
            Traceback (most recent call last):
            evenhand.errors.UsageError: threshold=75 is outside the scores, which lie between 0.2 \
and 0.9. For a 75% cut write threshold=0.75.
        """
        self.survey  # noqa: B018 — a cached property, which refuses what it finds unusable

    def count(self, attribute: Attribute, *, cluster: bool = False) -> Tally:
        """Counts by (group, stratum, truth, decision), with sums of weights where there are any."""
        return self.answer([self.count_question(attribute, cluster=cluster)])[0]

    def count_question(
        self, attribute: Attribute, *, cluster: bool = False, clustered: bool = False
    ) -> Question:
        """What `count` asks of the engine; `clustered` keeps apart who has a cluster at all."""
        keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
        keys |= self.stratum_key()
        if self.roles.truth:
            truth = nw.col(self.roles.truth)
            share = self.roles.review_share
            # A truth of unknown review probability cannot stand for the unreviewed.
            keys["truth"] = (
                truth if share is None else nw.when(~nw.col(share).is_null()).then(truth)
            )
        sums = self._weights()
        if self.roles.weight:
            keys["weighed"] = where_known(self.roles.weight)
        if self.roles.rule == "one-versus-rest":
            sums |= self._one_versus_rest(sums)
            columns = list(self.roles.scores.values())
            if isinstance(self.roles.threshold, str):
                columns.append(self.roles.threshold)
            keys["scored"] = where_known(*columns)
        elif self.roles.rule is not None:
            keys["decision"] = self.decision_expression(compact=self.engine == "polars")
        if cluster and self.roles.together:
            keys["cluster"] = nw.col(self.roles.together)
        if clustered and self.roles.together:
            keys["clustered"] = where_known(self.roles.together)
        return self.question(keys, sums, attribute=attribute, frame=self.at_hand)

    def labels(self, columns: Iterable[str]) -> list[list[str | None]]:
        """Truth, decision and these columns of every row as labels: loads the rows."""
        found = self.collect(
            self.frame.select(
                nw.col(str(self.roles.truth)).alias("truth"),
                self.decision_expression().alias("decision"),
                *(nw.col(c).alias(f"column{i}") for i, c in enumerate(columns)),
            )
        )
        return [[label(value) for value in values] for values in found.values()]

    def aggregate(
        self,
        keys: Mapping[str, nw.Expr],
        sums: Mapping[str, nw.Expr],
        *,
        frame: Frame | None = None,
    ) -> Tally:
        """One grouped aggregation on the engine: rows (`n`) and sums of expressions, by keys."""
        return self.answer([self.question(keys, sums, frame=frame)])[0]

    def question(
        self,
        keys: Mapping[str, nw.Expr],
        sums: Mapping[str, nw.Expr],
        *,
        frame: Frame | None = None,
        attribute: Attribute | None = None,
    ) -> Question:
        """A grouped aggregation that is not asked yet: rows (`n`) and sums, by keys."""
        table = self.frame if frame is None else frame
        named = [e.alias(f"key:{k}") for k, e in keys.items()]
        named += [e.alias(f"sum:{k}") for k, e in sums.items()]
        with self.engine_errors():
            selected = table.select(*named)
        grouped = selected.group_by(*(f"key:{k}" for k in keys)).agg(
            nw.len().alias("n"), *(nw.col(f"sum:{k}").sum() for k in sums)
        )
        return Question(
            frame=grouped, rows=selected, keys=tuple(keys), sums=tuple(sums), attribute=attribute
        )

    def answer(self, questions: Sequence[Question]) -> list[Tally]:
        """The tallies of several questions; Polars reads the table once for all of them."""
        with self.engine_errors():
            tables = collect_together([q.frame for q in questions], engine=self.engine)
        return [self._tally(q, table) for q, table in zip(questions, tables, strict=True)]

    def _tally(self, question: Question, table: Any) -> Tally:
        tally = read_tally(table, question.keys, question.sums)
        if not question.limited:
            self.check_classes(tally)
        return self.name_groups(tally, question.attribute) if question.attribute else tally

    def check_classes(self, tally: Tally, *, decision: str = "decision") -> None:
        """Refuse words for a missing value, and amounts, that are counted as classes."""
        by_labels = self._csv is not None
        check_classes(tally, self.roles, schema=self.schema, by_labels=by_labels, decision=decision)

    def collect(self, frame: Frame) -> dict[str, list[Any]]:
        """The columns of a small lazy frame as lists, whatever engine computes them."""
        with self.engine_errors():
            (table,) = collect_together([frame], engine=self.engine)
        return {name: table[name].to_list() for name in table.columns}

    def batches(self, frame: Frame, *, rows: int | None) -> Iterator[Any]:
        """A lazy frame as Polars tables of some rows each, or as they come, in their order."""
        with self.engine_errors():
            yield from collect_batches(frame, engine=self.engine, rows=rows)

    @contextmanager
    def engine_errors(self) -> Iterator[None]:
        """What an engine says of a table it cannot compute, in our words."""
        try:
            yield
        except EvenhandError:
            raise
        except engine_faults() as error:
            self._check_cells()
            raise unreadable(self.source, "csv" if self._csv else "a table", error) from error

    def decision_expression(self, *, compact: bool = False) -> nw.Expr:
        """The decision as a column: given, from a score and a threshold, or the highest score.

        The class of the highest score is a word; `compact` numbers them, to be counted by.
        """
        roles = self.roles
        if roles.rule == "given":
            return nw.col(str(roles.decision))
        if roles.rule == "score>=t":
            return reaches(roles, self.schema, str(roles.score))
        if roles.rule == "argmax":
            columns = [nw.col(column) for column in roles.scores.values()]
            best = nw.max_horizontal(*columns)
            kind = nw.Enum(list(roles.scores)) if compact else nw.String()
            chosen: nw.Expr = nw.lit(None, dtype=kind)
            complete = ~nw.any_horizontal(*(c.is_null() for c in columns), ignore_nulls=False)
            for name, column in reversed(list(roles.scores.items())):
                picked = nw.when(nw.col(column) == best)
                chosen = picked.then(nw.lit(name, dtype=kind)).otherwise(chosen)
            return nw.when(complete).then(chosen)
        raise UsageError(
            "There is no decision. Name a decision column, or a score and a threshold."
        )

    def threshold_expression(self, score: str | None = None) -> Cut:
        """The threshold as a number or a column: as it was given, or as this score column has it.

        Distances from the threshold need the latter: a score equal to it must lie at 0.
        """
        return cut_expression(self.roles, self.schema, score)

    def is_label(self, column: str, name: str) -> nw.Expr:
        """Whether a column has the value of this label; null where it has none."""
        return is_named(nw.col(column), self.schema[column], name)

    def is_decided(self, name: str) -> nw.Expr:
        """Whether the decision is the one of this label; null where there is none."""
        decision = self.decision_expression()
        if self.roles.rule == "given":
            return self.is_label(str(self.roles.decision), name)
        made = nw.Boolean() if self.roles.rule == "score>=t" else nw.String()
        return is_named(decision, made, name)

    def stratum_key(self) -> dict[str, nw.Expr]:
        """The stratum as a key: the column, or the interval between edges that holds a number."""
        if self.roles.stratum is None:
            return {}
        column = nw.col(self.roles.stratum)
        edges = self.roles.stratum_edges
        if not edges:
            return {"stratum": column}
        names = [label(float(edge)) for edge in edges]
        named: Any = nw.when(column >= edges[-1]).then(nw.lit(f">={names[-1]}"))
        chosen = named.otherwise(nw.lit(None))
        for (low, first), (high, last) in reversed(list(pairwise(zip(edges, names)))):
            inside = (column >= low) & (column < high)
            chosen = nw.when(inside).then(nw.lit(f"{first}-{last}")).otherwise(chosen)
        below = nw.when(column < edges[0]).then(nw.lit(f"<{names[0]}"))
        return {"stratum": below.otherwise(chosen)}

    def name_groups(self, tally: Tally, attribute: Attribute) -> Tally:
        """The tally with the group columns of an attribute joined into one key `group`."""
        parts = group_keys(attribute)
        named = join_groups(tally, attribute, missing=self.roles.missing)
        names = named.labels["group"]
        most, many = min(map(self._most_groups, attribute.columns)), len(names)
        if many > most:
            raise too_many(attribute.name, most, f"{many:,}")
        for column, part in zip(attribute.columns, parts):
            check_reserved("group", column, tally.labels[part], RESERVED)
        check_reserved("stratum", self.roles.stratum, tally.labels.get("stratum", ()), (SUMMARY,))
        return named

    @cached_property
    def survey(self) -> dict[str, float]:
        """Least and greatest value of each numeric role, checked to be usable."""
        roles = self.roles
        columns = [c for c in (roles.score, roles.weight, roles.review_share) if c]
        columns += list(roles.scores.values())
        if isinstance(roles.threshold, str):
            columns.append(roles.threshold)
        if not columns:
            return {}
        if is_wide(roles) and batches_come(self.engine):
            found = self._look_through(columns)
        else:
            asked = self.collect(self.frame.select(*facts_asked(columns)))
            found = {name: values[0] for name, values in asked.items()}
        self.__dict__["row_count"] = int(found["rows"])
        facts: dict[str, float] = {}
        for i, column in enumerate(columns):
            bad = int(found[f"bad{i}"] or 0)
            if bad:
                values = "1 value that is" if bad == 1 else f"{bad:,} values that are"
                raise DataError(
                    f"{self._role_of(column)}={column!r} holds {values} not finite (NaN or "
                    "infinite). Replace them or leave them empty."
                )
            if found[f"min{i}"] is not None:
                facts |= {f"{e}:{column}": float(found[f"{e}{i}"]) for e in ("min", "max")}
                check_size(self._role_of(column), column, facts)
        self._check_survey(facts)
        return facts

    def _look_through(self, columns: Sequence[str]) -> dict[str, Any]:
        """The facts of a survey from one look at a wide table, which is kept if it can be."""
        names = dict.fromkeys([*wide_columns(self.roles), *columns])
        batches = self.batches(self.frame.select(*names), rows=WIDE_BATCH)
        facts, table = look_through(batches, columns, scores=len(self.roles.scores))
        if table is not None:
            self._kept = self.frame, nw.from_native(table.lazy())
        return facts

    @property
    def at_hand(self) -> Frame:
        """The frame with the columns that decisions and scores are counted by.

        It lies in memory where the look at its numbers could keep it.
        """
        return self._kept[1] if self._kept and self._kept[0] is self.frame else self.frame

    @cached_property
    def row_count(self) -> int:
        """How many rows the table has; the look at its numbers counts them too."""
        if self.survey:
            return int(self.__dict__["row_count"])
        return int(self.collect(self.frame.select(nw.len().alias("rows")))["rows"][0])

    def is_probability(self, column: str) -> bool:
        """Whether a score column lies within [0, 1]."""
        low, high = self.survey.get(f"min:{column}"), self.survey.get(f"max:{column}")
        return low is not None and high is not None and low >= 0 and high <= 1

    def _check_survey(self, facts: dict[str, float]) -> None:
        roles = self.roles
        if roles.weight:
            if f"max:{roles.weight}" not in facts:
                raise DataError(
                    f"weight={roles.weight!r} has no value in any row. "
                    "Give at least one positive weight."
                )
            if facts[f"min:{roles.weight}"] < 0:
                low = facts[f"min:{roles.weight}"]
                raise DataError(
                    f"weight={roles.weight!r} holds negative weights (down to {low:g}). "
                    "Weights must be 0 or more."
                )
            if facts[f"max:{roles.weight}"] == 0:
                raise DataError(
                    f"weight={roles.weight!r} is 0 in every row. Give at least one positive weight."
                )
        if roles.review_share:
            low = facts.get(f"min:{roles.review_share}", 1)
            high = facts.get(f"max:{roles.review_share}", 1)
            if low <= 0 or high > 1:
                raise DataError(
                    f"review_share={roles.review_share!r} lies between {low:g} and {high:g}. It "
                    "is the probability that a row was reviewed: above 0 and at most 1."
                )
        check_scale(roles, facts)

    def _weights(self) -> dict[str, nw.Expr]:
        roles = self.roles
        if roles.weight is None and roles.review_share is None:
            return {}
        weight = nw.col(roles.weight).cast(nw.Float64) if roles.weight else nw.lit(1.0)
        sums = {"weight": weight, "weight2": weight * weight}
        if roles.review_share:
            reviewed = weight / nw.col(roles.review_share).cast(nw.Float64)
            sums |= {"reviewed": reviewed, "reviewed2": reviewed * reviewed}
        return sums

    def _one_versus_rest(self, weights: Mapping[str, nw.Expr]) -> dict[str, nw.Expr]:
        sums: dict[str, nw.Expr] = {}
        for name, column in self.roles.scores.items():
            hit = reaches(self.roles, self.schema, column).cast(nw.Int64)
            sums[f"hit:{name}"] = hit
            for kind, weight in weights.items():
                sums[f"hit:{name}:{kind}"] = hit * weight
        return sums

    def _check_groups(self) -> None:
        """Refuse an id column before it is tallied: a look at the first rows is enough."""
        stratum = None if self.roles.stratum_edges else self.roles.stratum
        columns = [*self.roles.group, *([stratum] if stratum else [])]
        if not columns:
            return
        look = self.frame.select(*columns).head(LOOK_AHEAD)
        if self.engine == "spark":
            # Rows stay where they are: what comes here are the values that they have.
            look = look.group_by(*columns).agg(nw.len().alias(_SEEN))
        head = self.collect(look)
        rows = sum(head.pop(_SEEN)) if _SEEN in head else len(head[columns[0]])
        if not rows:
            raise DataError(f"Nothing is left to measure: '{self.source}' has no rows.")
        for column in columns:
            distinct = len({label(value) for value in set(head[column])})
            seen = f"{distinct:,} among the first {rows:,} rows"
            # A value in every row names rows, and no groups of them.
            ids = distinct == rows
            most = MOST_NUMBERS if ids else self._most_groups(column)
            amounts = column != stratum and are_amounts(
                head[column], self.schema[column], distinct, rows=rows
            )
            if distinct > most and column != stratum and not amounts:
                raise too_many(column, most, seen)
            if amounts:
                raise holds_amounts(column, distinct, rows)
            if distinct > MOST_STRATA and column == stratum:
                raise DataError(
                    f"stratum={column!r} has more than {MOST_STRATA:,} values ({seen}). Cut "
                    "numbers into a few with stratum_edges (--stratum-edges 18,30,65), or name "
                    "another column."
                )

    def _most_groups(self, column: str) -> int:
        return MOST_NUMBERS if self.schema[column].is_numeric() else MOST_GROUPS

    def _role_of(self, column: str) -> str:
        return number_columns(self.roles).get(column, "scores")

    def _name_own_score(self) -> None:
        """Tell a class named `truth` from each row's own class: the column has the same name."""
        roles = self.roles
        others = [c for c in roles.scores.values() if c.startswith("score:")]
        if OWN_SCORE not in self.columns or not others or OWN_SCORE in others:
            return
        columns = [OWN_SCORE, *others, *([roles.truth] if roles.truth else [])]
        head = self.collect(self.frame.select(*columns).head(LOOK_AHEAD))
        if has_truth_class(head, roles):
            wide = {"truth": OWN_SCORE, **roles.scores}
            ordered = sorted(wide.items(), key=lambda item: self.columns.index(item[1]))
            self.roles = replace(roles, scores=dict(ordered))

    def _check_cells(self) -> None:
        """Refuse the cell of a CSV file that an engine failed on, in the same words for all."""
        if self._csv is not None:
            roles = number_columns(self.roles)
            for column in [*roles, *(c for c in self._csv.numbers if c not in roles)]:
                self._csv.check_cell(column, roles.get(column, "column"))


def _sequence(values: Any) -> Any:
    """Values as they are where they have a length and a type, else as a list."""
    return values if hasattr(values, "dtype") and hasattr(values, "__len__") else list(values)


def complete_rows(decisions: Decisions, attribute: Attribute) -> Decisions:
    """The rows with a truth, a decision and a value of the attribute, each counted once.

    Weights, clusters and strata are left out: other tools know none of them.

    Examples:
        >>> table = {"y": [1, None, 0], "d": [1, 1, 0], "g": ["f", "m", "m"]}
        >>> decisions = Decisions(table, truth="y", decision="d", group="g")
        >>> complete_rows(decisions, decisions.roles.attributes[0]).labels(["g"])
        [['1', '0'], ['1', '0'], ['f', 'm']]
    """
    plain = decisions.with_roles(
        weight=None,
        review_share=None,
        cluster=None,
        stratum=None,
        stratum_edges=(),
        labeler=None,
        missing="drop",
        group=attribute.columns,
        crossed=len(attribute.columns) > 1,
        reference={k: v for k, v in decisions.roles.reference.items() if k == attribute.name},
    )
    known = [~nw.col(name).is_null() for name in (str(plain.roles.truth), *attribute.columns)]
    known.append(~plain.decision_expression().is_null())
    plain.frame = plain.frame.filter(*known)
    return plain
