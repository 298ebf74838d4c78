"""Tallies of pairs: what was decided on the same row under each value of an attribute."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import narwhals as nw

from evenhand.decisions.columns import where_known
from evenhand.decisions.labels import label, ordered
from evenhand.decisions.question import Question
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import stay_in_spark
from evenhand.decisions.tallies.sets import Tallies, table_name
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError

MARK = "decision@"
Pair = tuple[str, str]


def pair_counts(decisions: Decisions, attribute: Attribute | None) -> Tally:
    """Counts by (group, stratum, truth, decision, decision under each value) in one aggregation.

    The keys of the counterfactual decisions are `decision@<value>`, whatever their columns. Where
    Spark has more cells by cluster than its driver should hold, the key is `clustered`: whether
    there is one.

    Examples:
        >>> table = {"decision@f": [1, 1, 0], "decision@m": [1, 0, None]}
        >>> tally = pair_counts(Decisions(table), None)
        >>> tally.dense(["decision@f", "decision@m"], "n", keep_missing=["decision@m"]).tolist()
        [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    if decisions.tallies is not None:
        return _stored(decisions.tallies, attribute)
    question = pair_question(decisions, attribute)
    if stay_in_spark(decisions, question):
        question = pair_question(decisions, attribute, clustered=True)
    return decisions.answer([question])[0]


def _stored(tallies: Tallies, attribute: Attribute | None) -> Tally:
    name = table_name("pairs", *([attribute.name] if attribute else []))
    if name.replace("pairs", "clusters", 1) in tallies.lost:
        tallies.table(name.replace("pairs", "clusters", 1))
    return tallies.table(name)


def pair_question(
    decisions: Decisions, attribute: Attribute | None, *, clustered: bool = False
) -> Question:
    """What `pair_counts` asks of the engine; `clustered` keeps apart who has a cluster at all."""
    roles = decisions.roles
    keys: dict[str, nw.Expr] = {}
    if attribute is not None:
        keys |= {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    keys |= decisions.stratum_key()
    if roles.truth:
        keys["truth"] = nw.col(roles.truth)
    if roles.rule not in (None, "one-versus-rest"):
        keys["decision"] = decisions.decision_expression()
    if roles.cluster and not clustered:
        keys["cluster"] = nw.col(roles.cluster)
    keys |= {f"{MARK}{value}": nw.col(c) for value, c in roles.counterfactual.items()}
    if roles.cluster and clustered:
        keys["clustered"] = where_known(roles.cluster)
    return decisions.question(keys, decisions._weights(), attribute=attribute)


def matching_attribute(decisions: Decisions) -> Attribute | None:
    """The group column whose values the counterfactual decisions are named after.

    Where several columns hold such values, the one that holds them in most rows. A single
    group column is taken as it is: its tally shows whether the values occur in it.
    """
    alone = [a for a in decisions.roles.attributes if len(a.columns) == 1]
    if len(alone) < 2:
        return alone[0] if alone else None
    if decisions.tallies is not None:
        counts = [_named_rows(_stored(decisions.tallies, each), decisions.roles) for each in alone]
    else:
        counts = _matching_rows(decisions, alone)
    best = counts.index(max(counts))
    return alone[best] if counts[best] else None


def _named_rows(tally: Tally, roles: Roles) -> int:
    own = tally.relabel("group", list(roles.counterfactual))
    return int(own.sums["n"][own.codes["group"] >= 0].sum())


def _matching_rows(decisions: Decisions, alone: Sequence[Attribute]) -> list[int]:
    hits = []
    for i, attribute in enumerate(alone):
        named = [
            decisions.is_label(attribute.columns[0], v) for v in decisions.roles.counterfactual
        ]
        found = nw.any_horizontal(*named, ignore_nulls=True).cast(nw.Int64)
        hits.append(found.alias(f"hit{i}"))
    sums = decisions.collect(
        decisions.frame.select(*hits).select(*(nw.col(f"hit{i}").sum() for i in range(len(alone))))
    )
    return [int(sums[f"hit{i}"][0] or 0) for i in range(len(alone))]


def score_columns(decisions: Decisions) -> dict[str | None, dict[str, str]]:
    """Score columns under each value, by class; None stands for a single unnamed score.

    A class counts where at least two values have its column.
    """
    roles = decisions.roles
    found: dict[str | None, dict[str, str]] = {}
    wide: list[tuple[str | None, str]] = [*roles.scores.items(), (None, roles.score or "score")]
    for name, column in wide:
        there = {v: f"{column}@{v}" for v in roles.counterfactual}
        there = {v: c for v, c in there.items() if c in decisions.columns}
        if len(there) > 1:
            found[name] = there
    if decisions.tallies is None:
        _check_numbers(decisions, [c for columns in found.values() for c in columns.values()])
    return found


def text_column(decisions: Decisions) -> str | None:
    """The column of the texts: the one named, or the only one that swap left copies of.

    Examples:
        >>> table = {"bio": ["He ran."], "bio@f": ["She ran."], "bio@m": ["He ran."]}
        >>> text_column(Decisions({**table, "decision@f": [1], "decision@m": [0]}))
        'bio'
    """
    roles = decisions.roles
    if roles.text is not None:
        return roles.text
    schema = decisions.frame.collect_schema()
    found = [
        column
        for column, kind in schema.items()
        if kind in (nw.String, nw.Categorical)
        and column != "decision"
        and roles.counterfactual
        and all(f"{column}@{value}" in schema for value in roles.counterfactual)
    ]
    return found[0] if len(found) == 1 else None


def text_columns(decisions: Decisions) -> dict[str, str]:
    """The text under each value, where the table holds it."""
    text = text_column(decisions)
    named = {v: f"{text}@{v}" for v in decisions.roles.counterfactual if text}
    return {value: column for value, column in named.items() if column in decisions.columns}


def pair_sums(
    decisions: Decisions, pairs: Sequence[Pair], *, scores: Mapping[str | None, Mapping[str, str]]
) -> Tally | None:
    """By stratum: sums of score differences and their squares, and how many texts differ.

    A pair is (value, reference). `n:i:k`, `d:i:k`, `dd:i:k` belong to pair i and class k (with
    weights also `w`, `wd`, `ww`, `wwd`, `wwdd`); `texts:i` counts the rows that have both texts,
    `changed:i` those where they differ. Without texts a column `changed` stands for the one
    pair. None where the table has nothing of the kind.
    """
    name = table_name("pair_sums")
    if decisions.tallies is not None:
        if not decisions.tallies.holds(name):
            return None
        stored = decisions.tallies.table(name)
        return _turned(stored, pairs, all_pairs(decisions.roles))
    question = pair_sums_question(decisions, pairs, scores=scores)
    return None if question is None else _finite(decisions.answer([question])[0])


def all_pairs(roles: Roles) -> list[Pair]:
    """Every two values that decisions were made under, whichever is the reference."""
    return list(combinations(ordered(roles.counterfactual), 2))


def _turned(tally: Tally, pairs: Sequence[Pair], held: Sequence[Pair]) -> Tally:
    """The sums of these pairs out of those of all: a pair the other way round differs in sign."""
    sums = {"n": tally.sums["n"]}
    for i, (value, reference) in enumerate(pairs):
        turned = (value, reference) not in held
        place = held.index((reference, value) if turned else (value, reference))
        for name, column in _finite(tally).sums.items():
            kind, _, rest = name.partition(":")
            number, _, score = rest.partition(":")
            if number != str(place) or kind == "bad":
                continue
            sign = -1.0 if turned and kind in ("d", "wd", "wwd") else 1.0
            sums[":".join(filter(None, (kind, str(i), score)))] = sign * column
    return Tally(labels=tally.labels, codes=tally.codes, sums=sums)


def pair_sums_question(
    decisions: Decisions, pairs: Sequence[Pair], *, scores: Mapping[str | None, Mapping[str, str]]
) -> Question | None:
    """What `pair_sums` asks of the engine."""
    texts = text_columns(decisions)
    weight = decisions._weights().get("weight")
    sums: dict[str, nw.Expr] = {}
    for k, columns in enumerate(scores.values()):
        for i, (value, reference) in enumerate(pairs):
            if value in columns and reference in columns:
                d: Any = nw.col(columns[value]).cast(nw.Float64) - nw.col(columns[reference])
                sums |= _moments(d, weight, f"{i}:{k}")
        for column in columns.values():
            number = nw.col(column).cast(nw.Float64)
            sums[f"bad:{column}"] = (~number.is_null() & ~number.is_finite()).cast(nw.Int64)
    for i, (value, reference) in enumerate(pairs):
        if value in texts and reference in texts:
            first, second = nw.col(texts[value]), nw.col(texts[reference])
            sums[f"texts:{i}"] = (~first.is_null() & ~second.is_null()).cast(nw.Int64)
            sums[f"changed:{i}"] = (first != second).cast(nw.Int64)
    if len(pairs) == 1 and "texts:0" not in sums and "changed" in decisions.columns:
        _check_numbers(decisions, ["changed"])
        changed = nw.col("changed").cast(nw.Int64)
        known = (~changed.is_null()).cast(nw.Int64)
        sums |= {"texts:0": known, "changed:0": (changed > 0).cast(nw.Int64)}
    if not sums:
        return None
    return decisions.question(decisions.stratum_key() or {"all": nw.lit(1)}, sums)


def _finite(tally: Tally) -> Tally:
    """The sums, refused where a score was not finite."""
    for name in [name for name in tally.sums if name.startswith("bad:")]:
        if tally.total(name):
            raise DataError(
                f"'{name.removeprefix('bad:')}' holds {int(tally.total(name)):,} values that are "
                "not finite (NaN or infinite). Replace them or leave them empty."
            )
    return tally


def flipped_rows(decisions: Decisions, *, most: int) -> list[dict[str, str | None]]:
    """The first rows whose decision depends on the value: truth, decisions and texts as words."""
    roles = decisions.roles
    columns = list(roles.counterfactual.values())
    kinds = {decisions.frame.collect_schema()[c] for c in columns}
    # Columns of one type are compared as they are; others only by how they are written.
    told = [nw.col(c) if len(kinds) == 1 else nw.col(c).cast(nw.String) for c in columns]
    differs = [
        ~a.is_null() & ~b.is_null() & (a != b) for i, a in enumerate(told) for b in told[i + 1 :]
    ]
    shown: dict[str, str] = {}
    if roles.truth:
        shown["truth"] = roles.truth
    shown |= {"group" if len(roles.group) == 1 else name: name for name in roles.group}
    shown |= {f"{MARK}{value}": column for value, column in roles.counterfactual.items()}
    text = text_column(decisions)
    if text:
        shown["text"] = text
    shown |= {f"text@{value}": column for value, column in text_columns(decisions).items()}
    picked = decisions.frame.filter(nw.any_horizontal(*differs, ignore_nulls=True)).head(most)
    found = decisions.collect(picked.select(*(nw.col(c).alias(a) for a, c in shown.items())))
    rows = zip(*(found[name] for name in shown))
    return [dict(zip(shown, (label(value) for value in row))) for row in rows]


def _moments(d: nw.Expr, weight: nw.Expr | None, place: str) -> dict[str, nw.Expr]:
    known = (~d.is_null()).cast(nw.Int64)
    sums = {f"n:{place}": known, f"d:{place}": d, f"dd:{place}": d * d}
    if weight is not None:
        w2 = weight * weight
        sums |= {f"w:{place}": weight * known, f"wd:{place}": weight * d}
        sums |= {f"ww:{place}": w2 * known, f"wwd:{place}": w2 * d, f"wwdd:{place}": w2 * d * d}
    return sums


def _check_numbers(decisions: Decisions, columns: Sequence[str]) -> None:
    schema = decisions.frame.collect_schema()
    for column in columns:
        if not (schema[column].is_numeric() or schema[column] == nw.Boolean):
            raise DataError(
                f"'{column}' holds {schema[column]}, not numbers. "
                "Some value in it may be text; clean or convert the column."
            )
