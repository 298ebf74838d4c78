"""Decisions: a lazy table and the roles of its columns."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import narwhals as nw
import numpy as np

from evenhand.decisions.labels import MISSING, crossed_name, label, spellings
from evenhand.decisions.read import Frame, open_table, unreadable
from evenhand.decisions.roles import REFERENCES, Attribute, Roles, find_roles, spelled
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, EvenhandError, UsageError, nearest

MOST_GROUPS = 1_000
NAMING_ROLES = ("truth", "decision", "stratum", "labeler", "cluster")
LOOK_AHEAD = 20_000


class Decisions:
    """A table of decisions and what its columns are for; nothing is loaded until it is tallied.

    Args:
        data: A path, several paths or a glob; a pandas, Polars, PyArrow, DuckDB or Spark table;
            or a dict of arrays.
        engine: What opens files: `polars` (default), `duckdb` or `spark`.
        spark_master: Where Spark runs.
        roles: `truth`, `decision`, `score`, `scores`, `threshold`, `rule`, `positive`,
            `positive_is`, `group`, `crossed`, `reference`, `stratum`, `stratum_edges`,
            `labeler`, `item`, `cluster`, `weight`, `review_share`, `time`, `seconds`, `text`,
            `counterfactual`, `norm`, `missing`.

    Examples:
        >>> table = {"bad": [1, 0, 1, 0], "removed": [1, 0, 0, 0], "gender": ["f", "f", "m", "m"]}
        >>> decisions = Decisions(table, truth="bad", decision="removed", group="gender")
        >>> tally = decisions.count(decisions.roles.attributes[0])
        >>> tally.dense(["group", "truth", "decision"], "n").astype(int).tolist()
        [[[1, 0], [0, 1]], [[1, 0], [1, 0]]]
    """

    def __init__(
        self,
        data: Any,
        *,
        engine: str | None = None,
        spark_master: str = "local[*]",
        **roles: Any,
    ) -> None:
        self.frame, self.source, self.engine = open_table(
            data, engine=engine, spark_master=spark_master
        )
        self.columns = list(self.frame.collect_schema().names())
        unknown = set(roles) - set(Roles.__slots__)
        if unknown:
            name = min(unknown)
            raise UsageError(f"{name!r} is not a role.{nearest(name, list(Roles.__slots__))}")
        kinds = self.frame.collect_schema().items()
        numbers = {name for name, kind in kinds if kind.is_numeric() or kind == nw.Boolean}
        self.roles = spelled(find_roles(self.columns, **roles), numbers=numbers)
        self._check_types()
        self._check_groups()

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.roles.used().items())
        return f"Decisions({self.source!r}, {told})"

    @classmethod
    def from_arrays(cls, truth: Any = None, decision: Any = None, **rest: Any) -> Self:
        """Decisions from plain arrays, in scikit-learn's order: truth first, then decision.

        Each column role takes an array; `group` an array or a dict of arrays by name. Settings
        such as `threshold` or `positive` are passed as they are.

        Examples:
            >>> decisions = Decisions.from_arrays([1, 0, 1], [1, 1, 0], group=["a", "b", "a"])
            >>> decisions.roles.group
            ('group',)
        """
        settings = {
            "threshold", "rule", "positive", "positive_is", "crossed", "reference",
            "stratum_edges", "missing",
        }  # fmt: skip
        columns: dict[str, Any] = {}
        roles: dict[str, Any] = {}
        for role, value in {"truth": truth, "decision": decision, **rest}.items():
            if value is None:
                continue
            if role in settings:
                roles[role] = value
            elif isinstance(value, Mapping):
                prefix = "" if role == "group" else f"{role}:"
                columns |= {f"{prefix}{name}": list(array) for name, array in value.items()}
                named = {str(name): f"{prefix}{name}" for name in value}
                roles[role] = list(named) if role == "group" else named
            else:
                columns[role] = list(value)
                roles[role] = role
        return cls(columns, **roles)

    def with_roles(self, **changes: Any) -> Self:
        """The same table with some roles changed."""
        other = object.__new__(type(self))
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k != "survey"})
        other.roles = replace(self.roles, **changes)
        return other

    def count(self, attribute: Attribute, *, cluster: bool = False) -> Tally:
        """Counts by (group, stratum, truth, decision), with sums of weights where there are any."""
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
            keys["weighed"] = _where_known(self.roles.weight)
        if self.roles.rule == "one-versus-rest":
            sums |= self._one_versus_rest(sums)
            keys["scored"] = _where_known(*self.roles.scores.values())
        elif self.roles.rule is not None:
            keys["decision"] = self.decision_expression()
        if cluster and self.roles.together:
            keys["cluster"] = nw.col(self.roles.together)
        return self.name_groups(self.aggregate(keys, sums), attribute)

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
        table = self.frame if frame is None else frame
        selected = table.select(
            *(e.alias(f"key:{k}") for k, e in keys.items()),
            *(e.alias(f"sum:{k}") for k, e in sums.items()),
        )
        grouped = selected.group_by(*(f"key:{k}" for k in keys)).agg(
            nw.len().alias("n"), *(nw.col(f"sum:{k}").sum() for k in sums)
        )
        columns = self.collect(grouped)
        return Tally.of(
            {k: columns[f"key:{k}"] for k in keys},
            {"n": columns["n"], **{k: columns[f"sum:{k}"] for k in sums}},
        )

    def collect(self, frame: Frame) -> dict[str, list[Any]]:
        """The columns of a small lazy frame as lists, whatever engine computes them."""
        options: dict[str, Any] = {"engine": "streaming"} if self.engine == "polars" else {}
        try:
            table = frame.collect(**options)
        except EvenhandError:
            raise
        except Exception as error:
            raise unreadable(self.source, self._kind(), error) from error
        return {name: table[name].to_list() for name in table.columns}

    def decision_expression(self) -> nw.Expr:
        """The decision as a column: given, from a score and a threshold, or the highest score."""
        roles = self.roles
        if roles.rule == "given":
            return nw.col(str(roles.decision))
        if roles.rule == "score>=t":
            score, cut = nw.col(str(roles.score)), self.threshold_expression()
            known = ~score.is_null()
            if isinstance(cut, nw.Expr):
                known = known & ~cut.is_null()
            # Engines differ on comparing a missing value (False in pandas): no score, no decision.
            return nw.when(known).then(score >= cut)
        if roles.rule == "argmax":
            columns = [nw.col(column) for column in roles.scores.values()]
            best = nw.max_horizontal(*columns)
            chosen: nw.Expr = nw.lit(None)
            complete = ~nw.any_horizontal(*(c.is_null() for c in columns), ignore_nulls=False)
            for name, column in reversed(list(roles.scores.items())):
                picked = nw.when(complete & (nw.col(column) == best))
                chosen = picked.then(nw.lit(name)).otherwise(chosen)
            return chosen
        raise UsageError(
            "There is no decision. Name a decision column, or a score and a threshold."
        )

    def threshold_expression(self) -> Any:
        """The threshold as a number, a column, or one number for each group."""
        threshold = self.roles.threshold
        if isinstance(threshold, str):
            return nw.col(threshold)
        if isinstance(threshold, Mapping):
            column = nw.col(self.roles.group[0]).cast(nw.String)
            chosen: Any = nw.lit(None, dtype=nw.Float64)
            for name, value in threshold.items():
                named = column.is_in(spellings(name))
                chosen = nw.when(named).then(nw.lit(float(value))).otherwise(chosen)
            return chosen
        return threshold

    def stratum_key(self) -> dict[str, nw.Expr]:
        """The stratum as a key: the column, or the interval between edges that holds a number."""
        if self.roles.stratum is None:
            return {}
        column = nw.col(self.roles.stratum)
        edges = self.roles.stratum_edges
        if not edges:
            return {"stratum": column}
        named: Any = nw.when(column >= edges[-1]).then(nw.lit(f">={edges[-1]:g}"))
        chosen = named.otherwise(nw.lit(None))
        for low, high in reversed(list(pairwise(edges))):
            inside = (column >= low) & (column < high)
            chosen = nw.when(inside).then(nw.lit(f"{low:g}-{high:g}")).otherwise(chosen)
        below = nw.when(column < edges[0]).then(nw.lit(f"<{edges[0]:g}"))
        return {"stratum": below.otherwise(chosen)}

    def name_groups(self, tally: Tally, attribute: Attribute) -> Tally:
        """The tally with the group columns of an attribute joined into one key `group`."""
        parts = [f"group{i}" for i in range(len(attribute.columns))]
        # Rows are many and groups are few: names are joined once per group.
        sizes = [len(tally.labels[part]) + 1 for part in parts]
        flat = np.ravel_multi_index([tally.codes[part] + 1 for part in parts], sizes)
        cells, place = np.unique(flat, return_inverse=True)
        names: list[list[str | None]] = []
        for part, codes in zip(parts, np.unravel_index(cells, sizes)):
            labels = [*tally.labels[part], MISSING if self.roles.missing == "group" else None]
            names.append([labels[code - 1] for code in codes])
        joined = [None if None in c else crossed_name(map(str, c)) for c in zip(*names)]
        keys = Tally.of({"group": joined}, {"n": [0.0] * len(joined)})
        if len(keys.labels["group"]) > MOST_GROUPS:
            raise self._too_many(attribute.name, f"{len(keys.labels['group']):,}")
        for name in sorted(set(REFERENCES) & set(keys.labels["group"])):
            raise DataError(
                f"group={attribute.name!r} holds '{name}', which results use for a comparison. "
                "Give that group another name."
            )
        rest = [k for k in tally.labels if k not in parts]
        return Tally(
            labels={"group": keys.labels["group"], **{k: tally.labels[k] for k in rest}},
            codes={
                "group": keys.codes["group"][place.reshape(-1)],
                **{k: tally.codes[k] for k in rest},
            },
            sums=tally.sums,
        )

    @cached_property
    def survey(self) -> dict[str, float]:
        """Least and greatest value of each numeric role, checked to be usable."""
        roles = self.roles
        columns = [c for c in (roles.score, roles.weight, roles.review_share) if c]
        columns += list(roles.scores.values())
        if not columns:
            return {}
        wanted: list[nw.Expr] = []
        for i, column in enumerate(columns):
            value = nw.col(column).cast(nw.Float64)
            # In pandas NaN stands for a missing value; elsewhere the two differ.
            bad_value = ~value.is_finite() & ~value.is_null()
            wanted += [
                bad_value.cast(nw.Int64).sum().alias(f"bad{i}"),
                value.min().alias(f"min{i}"),
                value.max().alias(f"max{i}"),
            ]
        found = {k: v[0] for k, v in self.collect(self.frame.select(*wanted)).items()}
        facts: dict[str, float] = {}
        for i, column in enumerate(columns):
            bad = int(found[f"bad{i}"] or 0)
            if bad:
                role = self._role_of(column)
                values = "1 value that is" if bad == 1 else f"{bad:,} values that are"
                raise DataError(
                    f"{role}={column!r} holds {values} not finite (NaN or infinite). "
                    "Replace them or leave them empty."
                )
            if found[f"min{i}"] is not None:
                facts[f"min:{column}"] = float(found[f"min{i}"])
                facts[f"max:{column}"] = float(found[f"max{i}"])
        self._check_survey(facts)
        return facts

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
        thresholds: Iterable[Any] = ()
        if roles.rule == "score>=t" and isinstance(roles.threshold, Mapping):
            thresholds = roles.threshold.values()
        elif roles.rule == "score>=t" and not isinstance(roles.threshold, str):
            thresholds = [roles.threshold]
        low = facts.get(f"min:{roles.score}", float("-inf"))
        high = facts.get(f"max:{roles.score}", float("inf"))
        for threshold in thresholds:
            if not low <= float(threshold) <= high:
                hint = (
                    f" For a {threshold:g}% cut write threshold={threshold / 100:g}."
                    if 1 < threshold <= 100 and low >= 0 and high <= 1
                    else " Choose a threshold among the scores."
                )
                raise UsageError(
                    f"threshold={threshold:g} is outside the scores, which lie between "
                    f"{low:g} and {high:g}.{hint}"
                )

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
        cut = 0.5 if self.roles.threshold is None else float(self.roles.threshold)  # type: ignore[arg-type]
        sums: dict[str, nw.Expr] = {}
        for name, column in self.roles.scores.items():
            hit = (nw.col(column) >= cut).cast(nw.Int64)
            sums[f"hit:{name}"] = hit
            for kind, weight in weights.items():
                sums[f"hit:{name}:{kind}"] = hit * weight
        return sums

    def _check_types(self) -> None:
        schema = self.frame.collect_schema()
        roles = self.roles
        numeric = [("score", roles.score), ("weight", roles.weight)]
        numeric += [("review_share", roles.review_share), ("seconds", roles.seconds)]
        numeric += [("scores", column) for column in roles.scores.values()]
        numeric += [("norm", column) for column in roles.norm.values()]
        if roles.stratum_edges:
            numeric.append(("stratum", roles.stratum))
        for role, column in numeric:
            if column and not (schema[column].is_numeric() or schema[column] == nw.Boolean):
                raise DataError(
                    f"{role}={column!r} holds {schema[column]}, not numbers. "
                    "Some value in it may be text; clean or convert the column."
                )
        named = [("group", column) for column in roles.group]
        named += [(role, getattr(roles, role)) for role in NAMING_ROLES]
        for role, column in [*numeric, *named]:
            if self.engine == "spark" and column and "." in column:
                raise DataError(
                    f"{role}={column!r} has a dot, which Spark takes for a field of a column. "
                    "Rename the column."
                )
        for role, column in named:
            if column and schema[column].is_nested():
                raise DataError(
                    f"{role}={column!r} holds {schema[column]}, not single values. "
                    "Name a column of texts, numbers or booleans."
                )

    def _check_groups(self) -> None:
        """Refuse an id column before it is tallied: a look at the first rows is enough."""
        stratum = None if self.roles.stratum_edges else self.roles.stratum
        columns = [*self.roles.group, *([stratum] if stratum else [])]
        if not columns:
            return
        head = self.collect(self.frame.select(*columns).head(LOOK_AHEAD))
        if not head[columns[0]]:
            raise DataError(f"Nothing is left to measure: '{self.source}' has no rows.")
        for column in columns:
            distinct = len({label(value) for value in set(head[column])})
            seen = f"{distinct:,} among the first {len(head[column]):,} rows"
            if distinct > MOST_GROUPS and column != stratum:
                raise self._too_many(column, seen)
            if distinct > MOST_GROUPS:
                raise DataError(
                    f"stratum={column!r} has more than {MOST_GROUPS:,} values ({seen}). Cut "
                    "numbers into a few with stratum_edges (--stratum-edges 18,30,65), or name "
                    "another column."
                )

    def _too_many(self, column: str, seen: str) -> DataError:
        return DataError(
            f"group={column!r} has more than {MOST_GROUPS:,} values ({seen}). It looks like an id "
            "column: name the column that says which group a person belongs to."
        )

    def _role_of(self, column: str) -> str:
        roles = self.roles
        by_role = {roles.score: "score", roles.weight: "weight", roles.review_share: "review_share"}
        return by_role.get(column, "scores")

    def _kind(self) -> str:
        return "csv" if self.source.rstrip(".gz").endswith(".csv") else "a table"


def _where_known(*columns: str) -> nw.Expr:
    """1 where all of these columns have a value, null elsewhere: a key for what is left out."""
    known = ~nw.col(columns[0]).is_null()
    for column in columns[1:]:
        known = known & ~nw.col(column).is_null()
    return nw.when(known).then(nw.lit(1))
