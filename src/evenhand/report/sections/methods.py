"""Data quality and methods: what was left out, what is too small, and how to do it again."""

from collections import Counter
from typing import Any

from evenhand.findings.limits import small_row
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import HIDDEN_UNDER, UNTOLD_UNDER
from evenhand.report.blocks import Block, folded, rows_csv, section, sentences, table
from evenhand.report.labels import cell, spoken
from evenhand.report.table import left_out, rows_left_out
from evenhand.report.view import View
from evenhand.speech import plural

# Every number of the audit goes into the page where it is small enough to carry.
MOST_ROWS_CSV = 120_000


def quality_section(view: View) -> dict[str, Any]:
    """What was left out and what rests on too few cases."""
    data = view.record["data"]
    few = view.rows.small(under=UNTOLD_UNDER)
    hidden = [row for row in few if small_row(row, under=HIDDEN_UNDER)]
    parts = [rows_left_out(view.record)]
    if hidden:
        rest = "rests" if len(hidden) == 1 else "rest"
        parts.append(
            f"{plural(len(hidden), 'number')} {rest} on fewer than {HIDDEN_UNDER} cases and "
            f"{'is' if len(hidden) == 1 else 'are'} hidden"
        )
    blocks: list[Block] = []
    told: list[Any] = [*left_out(view.record)]
    told += [spoken(note) for note in view.record.get("notes") or []]
    if len(few) > len(hidden):
        told.append(
            f"{plural(len(few) - len(hidden), 'further number')} "
            f"{'rests' if len(few) - len(hidden) == 1 else 'rest'} on fewer than "
            f"{UNTOLD_UNDER} cases: shown, but no limit can be held against them."
        )
    if told:
        blocks.append(sentences(told))
    blocks += _untold(few)
    lenses, ran = data.get("lenses") or {}, view.rows.lenses
    rows = [
        [
            name.capitalize(),
            "ran" if name in ran else f"not run: it needs {spoken(lack)}" if lack else "not run",
        ]
        for name, lack in lenses.items()
    ]
    if rows:
        blocks.append(table("Lenses", ("Lens", "State"), rows))
    return section(
        "quality",
        kicker="Data quality",
        heading="; ".join(parts),
        lead="What the data cannot support is said here rather than guessed.",
        blocks=blocks,
    )


def _untold(rows: list[Row]) -> list[Block]:
    counts = Counter(
        (row["lens"], row["attribute"], row["group"] or "", row["class"] or "") for row in rows
    )
    if not counts:
        return []
    body = [
        [lens.capitalize(), cell(attribute), cell(group), cell(name), f"{count:,}"]
        for (lens, attribute, group, name), count in counts.most_common()
    ]
    columns = ("Lens", "By", "Group", "Class", "Numbers")
    caption = f"Where there are fewer than {UNTOLD_UNDER} cases"
    held = table(caption, columns, body, numbers=("Numbers",), most=40)
    return [folded(f"Where there are fewer than {UNTOLD_UNDER} cases", [held])]


def methods_section(view: View) -> dict[str, Any]:
    """Version, engine, seed, fingerprint and command, and the method behind every number."""
    made, data = view.record["made"], view.record["data"]
    command = (made.get("arguments") or {}).get("command")
    facts = [
        ("Made at", str(made.get("at", "–")).replace("T", " ").replace("+00:00", " UTC")),
        ("Evenhand", made.get("version", "–")),
        ("Engine", made.get("engine", "–")),
        ("Seed", made.get("seed", "–")),
        ("Confidence level", view.level),
        ("Data", spoken(data.get("source"))),
        ("Rows", f"{data['rows']:,}" if data.get("rows") is not None else "–"),
        ("Fingerprint", data.get("fingerprint", "–")),
        ("Record", view.record["schema"]),
    ]
    blocks: list[Block] = [{"kind": "facts", "items": [[name, str(v)] for name, v in facts]}]
    if command:
        blocks.append({"kind": "command", "text": str(command)})
    roles = [[name, spoken(_flat(value))] for name, value in (data.get("roles") or {}).items()]
    if roles:
        blocks.append(table("Columns and their roles", ("Role", "Value"), roles))
    blocks.append(
        sentences(
            [
                f"Intervals hold at {view.level} for all classes and groups of a measure together; "
                "verdicts are reached by them.",
                "Whole interval inside the limit: within. Whole interval outside: outside. "
                "Otherwise: cannot tell. No limit given: not assessed.",
                f"Under {HIDDEN_UNDER} cases a number is hidden, under {UNTOLD_UNDER} it is shown "
                "and no limit is held against it.",
                "The fingerprint is taken from counts, so it is the same on every engine.",
            ],
            title="How to read it",
        )
    )
    blocks.append(_methods(view))
    # Each row says its measure: many rows are known to be too many without writing them.
    least = sum(map(len, view.rows.column("measure")))
    whole = rows_csv(view.rows) if least <= MOST_ROWS_CSV else None
    if whole is not None and len(whole) <= MOST_ROWS_CSV:
        blocks.append({"kind": "download", "csv": whole, "rows": len(view.rows)})
    return section(
        "methods",
        kicker="Methods and record",
        heading="How these numbers were made, and how to make them again",
        blocks=blocks,
    )


def _methods(view: View) -> Block:
    counts = Counter(zip(*map(view.rows.column, ("lens", "measure", "method"))))
    body = [
        [lens, measure.replace("_", " "), spoken(method or "–"), f"{count:,}"]
        for (lens, measure, method), count in counts.items()
    ]
    columns = ("Lens", "Measure", "Method", "Rows")
    held = table("The method behind every measure", columns, body, numbers=("Rows",), most=120)
    return folded("The method behind every measure", [held])


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
