"""Cells laid out in aligned columns that fit a width, whatever alphabet they are in."""

from collections.abc import Collection, Sequence

BETWEEN = 3
SHORTEST = {"name": 8, "number": 16}  # an interval is 16 wide: numbers are not cut for names


def laid_out(
    rows: Sequence[Sequence[str]], *, width: int, right: Collection[int] = ()
) -> list[list[str]]:
    """The cells padded to their columns; the longest names are cut first where space is short.

    Examples:
        >>> rows = [["female", "−0.115"], ["a very long name", "0.1"]]
        >>> ["|".join(row) for row in laid_out(rows, width=18, right=[1])]
        ['female   |−0.115', 'a very l…|   0.1']
    """
    from rich.cells import cell_len

    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows)]
    room = width - BETWEEN * (len(widths) - 1)
    least = [SHORTEST["number" if i in right else "name"] for i in range(len(widths))]
    while sum(widths) > room:
        spare = [size - few for size, few in zip(widths, least)]
        if max(spare) <= 0:
            break
        widths[spare.index(max(spare))] -= 1
    return [
        [_fit(cell, size, right=i in right) for i, (cell, size) in enumerate(zip(row, widths))]
        for row in rows
    ]


def _fit(cell: str, size: int, *, right: bool) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(cell) > size:
        return set_cell_size(cell, size - 1).rstrip() + "…"
    padding = " " * (size - cell_len(cell))
    return padding + cell if right else cell + padding
