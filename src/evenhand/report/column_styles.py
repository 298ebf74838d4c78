"""Styles of the columns of every table, said once a column instead of once a cell."""

from collections.abc import Iterable, Iterator
from typing import Any

Block = dict[str, Any]
# As many columns as a phone can show beside one another; wider tables are stacked there.
MOST_BESIDE = 2


def style_columns(sections: Iterable[Block]) -> str:
    """Give every table a name of its own, and return the styles of their columns.

    Numbers stand to the right; on a phone, where a wide table is stacked, each cell has the name of
    its column before it.

    Examples:
        >>> columns = [{"name": n, "number": n == "n"} for n in ("Group", "Class", "n", "<b>")]
        >>> held = {"kind": "table", "columns": columns}
        >>> print(style_columns([{"blocks": [held]}]))
        :where(#t1) :is(td,th):nth-child(3){text-align:right;white-space:nowrap}
        @media (max-width:700px){:where(#t1) td:nth-child(2)::before{content:"Class: "}\
:where(#t1) td:nth-child(3)::before{content:"n: "}\
:where(#t1) td:nth-child(4)::before{content:"\\3c b\\3e : "}}
        >>> held["id"]
        't1'
    """
    right, named = [], []
    for i, table in enumerate(_tables(sections), start=1):
        table["id"] = f"t{i}"
        columns = list(enumerate(table["columns"], start=1))
        places = [f":is(td,th):nth-child({k})" for k, column in columns if column["number"]]
        right += [f":where(#t{i}) {place}" for place in places]
        if len(columns) > MOST_BESIDE:
            named += [
                f":where(#t{i}) td:nth-child({k})::before{{content:{css_string(column['name'])}}}"
                for k, column in columns[1:]
            ]
    told = f"{','.join(right)}{{text-align:right;white-space:nowrap}}\n" if right else ""
    return f"{told}@media (max-width:700px){{{''.join(named)}}}"


def css_string(name: str) -> str:
    """A column's name as a string of CSS: whatever the data put into it stays text."""
    safe = "".join(
        c if c.isascii() and (c.isalnum() or c in " -.,:()%") else f"\\{ord(c):x} "
        for c in name.strip()
    )
    return f'"{safe}: "'


def _tables(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.get("kind") == "table":
            yield block
        if block.get("kind") == "figure":
            yield from _tables([block["numbers"]])
        yield from _tables(block.get("blocks", []))
