"""The record: one versioned document that says everything, including what was left out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.files.documents import (
    check_document,
    check_schema,
    check_seal,
    read_json_as_written,
    sealed,
)
from evenhand.findings.limits import OUTSIDE
from evenhand.findings.registry import FORMER_NAMES
from evenhand.findings.sentences.finding import whole
from evenhand.findings.sentences.steps import next_step
from evenhand.findings.sentences.words import Words
from evenhand.findings.shape import RECORD
from evenhand.lenses.rows import COLUMNS, Rows

FIRST, SCHEMA = "evenhand.audit/1", "evenhand.audit/2"
# What findings of the first schema did not have; nothing is made up for them.
_NEW_FIELDS = ("claim", "numbers", "certainty", "settle", "short", "headline", "detail", "line",
               "summary", "next", "whose")  # fmt: skip


def read_record(path: str | Path) -> dict[str, Any]:
    """A record from its file, brought to the present schema.

    Raises:
        DataError: Where it is damaged, or not as it was written: its checksum does not fit.
    """
    document, content = read_json_as_written(path, noun="a record")
    again = " Make the record again with: evenhand audit … --json"
    check_schema(document, [FIRST, SCHEMA], source=path, again=again)
    # Records of the first schema were written without a checksum.
    unsealed = document["schema"] == FIRST and "checksum" not in document
    if document["schema"] == FIRST:
        document = upgrade(document)
    check_document(document, RECORD, source=path, noun="record")
    if not unsealed:
        check_seal(document, content, source=path, noun="record", again="audit again")
    document = {name: value for name, value in document.items() if name != "checksum"}
    return _without_unaudited_cuts(document)


def record_text(record: Mapping[str, Any], *, rows: Rows | None = None) -> str:
    """A record as the text of its file, which ends with its checksum.

    `rows` are its results where the record itself does not hold them yet.
    """
    held = record.get("results")
    columns = _columns(held) if rows is None else {name: rows.plain(name) for name in COLUMNS}
    results = _results_text(columns)
    if results is None:
        return sealed(_indented(record if rows is None else {**record, "results": rows.results()}))
    # At this depth there is one such line: within words a line's end is written otherwise.
    mark = '\n "results": []'
    before, _, after = _indented({**record, "results": []}).partition(mark)
    return sealed(f'{before}\n "results": ', *results, after)


# As many rows are written at once: a text of all of them would be laid into fresh memory thrice.
_AT_ONCE = 4096
_WRITTEN: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}


def _indented(document: Any) -> str:
    return json.dumps(document, indent=1, **_WRITTEN)


def _columns(results: Any) -> dict[str, list[Any]]:
    """Rows by column; none where they are not rows of the same columns."""
    if not isinstance(results, list) or not results or not isinstance(results[0], dict):
        return {}
    names = list(results[0])
    if any(not isinstance(row, dict) or list(row) != names for row in results):
        return {}
    return {name: [row[name] for row in results] for name in names}


def _results_text(columns: Mapping[str, list[Any]]) -> list[str] | None:
    """Result rows just as `_indented` writes them, in pieces; None where they are no plain ones.

    Python's writer looks at every value by itself where it has to indent, and rows are all but
    everything that a record holds: here they are written by column, each word once, and Polars
    lays the columns together.
    """
    import polars as pl

    # What all rows share is written into the text between the columns.
    between = ["  {"]
    series: list[Any] = []
    for i, (name, values) in enumerate(columns.items()):
        held = _column_text(values)
        if held is None:
            return None
        between[-1] += f"{',' if i else ''}\n   {json.dumps(name, **_WRITTEN)}: "
        if isinstance(held, str):
            between[-1] += held
        else:
            series.append(held)
            between.append("")
    between[-1] += "\n  }"
    rows = len(next(iter(columns.values()), ()))
    if not rows:
        return None
    if not series:
        return ["[\n", ",\n".join(between * rows), "\n ]"]
    parts = [part for i, text in enumerate(between) for part in (pl.lit(text), pl.col(str(i)))]
    frame = pl.DataFrame({str(i): column for i, column in enumerate(series)})
    lines = pl.concat_str(*parts[:-1]).str.join(",\n")
    pieces = ["[\n"]
    for held in frame.iter_slices(_AT_ONCE):
        pieces += [held.select(lines).item(), ",\n"]
    return [*pieces[:-1], "\n ]"]


def _column_text(values: list[Any]) -> Any:
    """One column of plain rows as JSON: a Polars series, or the text that all its rows share.

    None where it holds something else than words or numbers.

    Examples:
        >>> _column_text(["f", None]).to_list(), _column_text([0.5, 2]).to_list()
        (['"f"', 'null'], ['0.5', '2'])
        >>> _column_text(["f", "f"]), _column_text([["f"]])
        ('"f"', None)
    """
    import polars as pl

    kinds = set(map(type, values))
    if kinds <= {str, type(None)}:
        texts = {value: json.dumps(value, **_WRITTEN) for value in set(values)}
        if len(texts) == 1:
            return next(iter(texts.values()))
        return pl.Series([texts[value] for value in values], dtype=pl.String)
    return _number_texts(values) if kinds <= {int, float, type(None)} else None


def _number_texts(values: list[int | float | None]) -> Any:
    """Numbers as Python writes them, most of them written by Polars in a fifth of the time.

    None where one is not finite: it has no place in JSON, and whoever writes it plainly says so.
    """
    import polars as pl

    series = pl.Series(values, dtype=pl.Float64, strict=False)
    numbers = series.to_numpy()
    missing = series.is_null().to_numpy()
    if not (np.isfinite(numbers) | missing).all():
        return None
    size = np.abs(numbers)
    # Beyond these, Python writes powers of ten; whole numbers have no point.
    plain = (size >= 1e-4) & (size < 1e15) & (numbers != np.rint(numbers))
    others = np.flatnonzero(~plain)
    texts = ["null" if values[i] is None else repr(values[i]) for i in others.tolist()]
    return series.cast(pl.String).scatter(others, pl.Series(texts, dtype=pl.String))


def upgrade(document: Mapping[str, Any]) -> dict[str, Any]:
    """A record of the first schema in the shape of the present one.

    Lenses get their present names, rows and findings the fields they lacked, empty. What is not
    as it should be is left as it is, for whoever shows the record to refuse.

    Examples:
        >>> row = {"lens": "causal", "measure": "flip_rate", "value": 0.1}
        >>> record = upgrade({"results": [row], "findings": [], "details": {"causal": {}}})
        >>> record["schema"], record["results"][0]["lens"], list(record["details"])
        ('evenhand.audit/2', 'counterfactual', ['counterfactual'])
    """
    raised = {
        "data": _renamed_lenses(document.get("data")),
        "details": _renamed(document.get("details")),
        "results": _each(document.get("results"), COLUMNS),
        "findings": _each(document.get("findings"), _NEW_FIELDS),
    }
    known = {name: value for name, value in raised.items() if name in document}
    asides = {"unjudged": _unjudged(document.get("results"))}
    return {**document, **known, "schema": SCHEMA, "asides": asides, "headline": None}


def _without_unaudited_cuts(document: dict[str, Any]) -> dict[str, Any]:
    """A record with what to do about cuts said anew, where none was audited.

    Earlier versions named the cheapest one, which audited may lie outside all the same.
    """
    details = document.get("details") or {}
    thresholds = details.get("thresholds") or {}
    if "audited_cuts" in thresholds or not thresholds.get("cost_curves"):
        return document
    of_cuts = [one for one in document["findings"] if _is_step_of_cuts(one, document)]
    if not of_cuts:
        return document
    results = document["results"]
    words = Words.of(
        charter=document.get("charter"),
        roles=document["data"].get("roles") or {},
        details=details,
        groups=((row.get("attribute"), row.get("group")) for row in results),
    )
    anew = {}
    for one in of_cuts:
        lead = {**dict.fromkeys(COLUMNS), **results[one["numbers"][0]]}
        step = next_step(one, lead, words, details)
        anew[id(one)] = {**one, "next": step, "sentence": whole(one["line"], step)}
    return {**document, "findings": [anew.get(id(one), one) for one in document["findings"]]}


def _is_step_of_cuts(finding: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether a finding says what to do about a cut, and the row is there that it speaks of."""
    numbers = finding.get("numbers") or [-1]
    outside = finding.get("lens") == "thresholds" and finding["verdict"] == OUTSIDE
    stated = 0 <= numbers[0] < len(document["results"])
    return outside and stated and bool(finding.get("line") and finding.get("next"))


def _unjudged(results: Any) -> dict[str, list[int]]:
    """Rows against which no limit is held, by why: the first schema has it within their method."""
    places: dict[str, list[int]] = {}
    for place, row in enumerate(results if isinstance(results, list) else ()):
        method = row.get("method") if isinstance(row, Mapping) else None
        _, mark, reason = str(method or "").partition("cannot be told: ")
        if mark:
            places.setdefault(reason.partition(";")[0], []).append(place)
    return places


def _renamed_lenses(data: Any) -> Any:
    """What a record says of its data, with the present names of the lenses."""
    if not isinstance(data, Mapping):
        return data
    return {k: _renamed(v) if k == "lenses" else v for k, v in data.items()}


def _each(items: Any, fields: tuple[str, ...]) -> Any:
    """Rows or findings with all fields and the present name of their lens."""
    if not isinstance(items, list):
        return items
    return [
        {**dict.fromkeys(fields), **item, "lens": _lens(item.get("lens"))}
        if isinstance(item, Mapping)
        else item
        for item in items
    ]


def _renamed(table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    return {_lens(name): value for name, value in table.items()}


def _lens(name: Any) -> Any:
    return FORMER_NAMES.get(name, name) if isinstance(name, str) else name
