"""A record on the terminal: as wide as the window, with nothing cut.

What would not fit is wrapped, or goes below; notes and tables of gaps are for those who ask.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evenhand.report.evidence import evidence_lines
from evenhand.report.outline import FEW, MARKS, Outline, outline
from evenhand.report.rates import Grid, RateCell
from evenhand.report.table import HEADERS, cells, chosen_rows, impact_ratios
from evenhand.speech import listed, plural, printable

# `print` knows no window; prose is hard to read in lines longer than the second.
WIDTH, PROSE = 100, 110
BETWEEN = 3
MOST_RATIOS, MOST_GROUPS, ENDS = 20, 14, 6
NARROWEST, HEADING = 12, 20  # a name is wrapped at the first, a heading at the second
LONGEST_WORD = 24  # longer words of a name may be torn apart
_NUMBERS = {"value", "interval", "n"}
# An interval and a number of cases are not torn apart at the end of a line.
_TOGETHER = re.compile(r"\[[^\[\]]{1,24}\]|\([−\d.,%]+ to [−\d.,%]+\)|n = [\d,]+|[\d,.]+ points")
_HARD = "\N{NO-BREAK SPACE}"
_STYLES = {"outside": "bold red", "cannot tell": "yellow", "within": "green", "not assessed": "dim"}


def laid_out(
    rows: Sequence[Sequence[str]], *, width: int, right: Collection[int] = ()
) -> list[list[list[str]]] | None:
    """The cells padded to their columns, by row and line; None where numbers do not fit.

    A row whose names are too long for the width takes several lines: nothing is ever cut.

    Examples:
        >>> rows = [["female", "−0.115"], ["a rather long name", "0.1"]]
        >>> for row in laid_out(rows, width=22, right=[1]) or ():
        ...     print(["|".join(line) for line in row])
        ['female       |−0.115']
        ['a rather long|   0.1', 'name         |      ']
    """
    from rich.cells import cell_len

    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows)]
    room = width - BETWEEN * (len(widths) - 1)
    least = [
        _widest_number(column) if i in right else _widest_word(column)
        for i, column in enumerate(zip(*rows))
    ]
    while sum(widths) > room:
        spare = [size - few for size, few in zip(widths, least)]
        if max(spare) <= 0:
            return None
        widths[spare.index(max(spare))] -= 1
    blocks = []
    for row in rows:
        parts = [_wrapped(cell, size) for cell, size in zip(row, widths)]
        tall = max(map(len, parts))
        lines = ([part[k] if k < len(part) else "" for part in parts] for k in range(tall))
        blocks.append([_padded(line, widths, right) for line in lines])
    return blocks


def _widest_number(column: Sequence[str]) -> int:
    """What a column of numbers needs: numbers stay whole, words among them may be wrapped."""
    from rich.cells import cell_len

    whole = (cell if not any(map(str.isalpha, cell)) else "" for cell in column)
    words = (word for cell in column for word in cell.split())
    return max(map(cell_len, (*whole, *words)), default=0)


def _widest_word(column: Sequence[str]) -> int:
    """What a column of names needs so that no word of usual length is torn apart."""
    from rich.cells import cell_len

    words = (cell_len(word) for cell in column for word in cell.split())
    return max((NARROWEST, *(size for size in words if size <= LONGEST_WORD)))


def _padded(line: Sequence[str], widths: Sequence[int], right: Collection[int]) -> list[str]:
    from rich.cells import cell_len

    spaces = [" " * (size - cell_len(cell)) for cell, size in zip(line, widths)]
    pairs = enumerate(zip(line, spaces))
    return [space + cell if i in right else cell + space for i, (cell, space) in pairs]


def _wrapped(cell: str, size: int) -> list[str]:
    """A cell in pieces of at most this size, cut between words where there are any."""
    from rich.cells import cell_len, chop_cells

    if cell_len(cell) <= size:
        return [cell]
    pieces: list[str] = []
    for word in filter(None, cell.split(" ")):
        for part in chop_cells(word, size) if cell_len(word) > size else [word]:
            joined = f"{pieces[-1]} {part}" if pieces else part
            if pieces and cell_len(joined) <= size:
                pieces[-1] = joined
            else:
                pieces.append(part)
    return pieces or [""]


def show(
    record: Mapping[str, Any], console: Any, *, verbose: bool = False, printed: bool = False
) -> None:
    """Print a record on a rich console; all of its notes and comparisons where `verbose`.

    `printed` says that Python prints it, where no flag of a command helps a reader on.
    """
    _fill(Page(console), record, verbose=verbose, printed=printed)


def as_text(record: Mapping[str, Any], *, verbose: bool = False) -> str:
    """The same as plain text, for `print`."""
    page = PlainPage()
    _fill(page, record, verbose=verbose, printed=True)
    return "\n".join(line.rstrip() for line in "\n".join(page.lines).splitlines())


def _fill(page: "Page", record: Mapping[str, Any], *, verbose: bool, printed: bool) -> None:
    parts = outline(record)
    _open(page, parts)
    for grid in parts.grids:
        _grid(page, grid, verbose=verbose, where=".by_group()" if printed else "--verbose")
    _findings(page, parts, verbose=verbose)
    page.section("What to do", parts.steps)
    page.section("What the data cannot tell", parts.unknown)
    if verbose or not parts.grids:
        _table(record, page)
    if verbose:
        _impact(record, page)
        page.section("Not looked at", _lacking(record))
    if verbose or not record["findings"]:
        # Where nothing is found, the notes say why.
        page.section("Notes", parts.notes)
    evidence = list(evidence_lines(record))
    for line in evidence:
        page.say(line)
    if evidence:
        page.blank()
    page.say(parts.level, style="dim")
    if printed:
        rows = f"{plural(len(record['results']), 'row')}: .to_frame()"
        notes = f"{plural(len(parts.notes), 'note')}: .notes" if parts.notes else ""
        more = "; ".join(filter(None, (rows, notes, "all of it: .save('report.html')")))
        page.say(f"{more}.", style="dim")
    elif not verbose and (folded := _folded(record, parts)):
        page.say(f"--verbose adds {folded}; --out report.html draws them.", style="dim")


class Page:
    """What is printed goes through here: wrapped, clean of what data may hold, in one place."""

    def __init__(self, console: Any) -> None:
        self.console = console
        self.width: int = console.width

    @property
    def prose(self) -> int:
        """How long a line of sentences may be."""
        return min(self.width, PROSE)

    def put(self, *parts: tuple[str, str]) -> None:
        """One line of parts, each in its style."""
        from rich.text import Text

        text = Text()
        for part, style in parts:
            text.append(part, style=style or None)
        self.console.print(text, soft_wrap=True)

    def say(self, words: str, style: str = "", *, mark: str = "", mark_style: str = "") -> None:
        """A sentence in lines of prose; what follows a mark stands to the right of it."""
        clean = _TOGETHER.sub(lambda found: found[0].replace(" ", _HARD), printable(words))
        for i, line in enumerate(_wrapped(clean, self.prose - len(mark))):
            margin = mark if i == 0 else " " * len(mark)
            self.put((margin, mark_style), (line.replace(_HARD, " "), style))

    def line(self, words: str, style: str = "", *, parts: Sequence[tuple[str, str]] = ()) -> None:
        """A line as it is, with further parts in their own styles."""
        self.put((printable(words), style), *((printable(part), own) for part, own in parts))

    def blank(self) -> None:
        """An empty line."""
        self.put()

    def columns(
        self,
        lines: Sequence[Sequence[str]],
        *,
        right: Collection[int],
        headings: Sequence[str] = (),
        styles: Sequence[str] = (),
    ) -> None:
        """Aligned cells under their headers; a heading stands above the first line that has it."""
        margin, between = " " * (3 if headings else 1), " " * BETWEEN
        clean = [[printable(cell) for cell in line] for line in lines]
        blocks = laid_out(clean, width=self.width - len(margin), right=right)
        if blocks is None:
            self._pairs(clean, headings)
            return
        for line in blocks[0]:
            self.line((margin + between.join(line)).rstrip(), style="dim")
        for i, block in enumerate(blocks[1:]):
            if headings and (i == 0 or headings[i] != headings[i - 1]):
                self.say(headings[i], style="bold", mark=" ")
            for line in block:
                last = (line[-1], styles[i] if styles else "")
                self.line(margin + between.join(line[:-1]) + between, parts=[last])

    def _pairs(self, lines: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
        """Every row as pairs of header and cell, where columns are wider than the window."""
        for i, line in enumerate(lines[1:]):
            if headings and (i == 0 or headings[i] != headings[i - 1]):
                self.say(headings[i], style="bold", mark=" ")
            pairs = [f"{name} {cell}" for name, cell in zip(lines[0], line) if cell]
            self.say(" · ".join(pairs), mark="   ")

    def section(self, title: str, sentences: Sequence[str], *, mark: str = "- ") -> None:
        """Sentences under a title; nothing where there are none."""
        if not sentences:
            return
        self.line(title, style="bold")
        for sentence in sentences:
            self.say(sentence, mark=mark)
        self.blank()


class PlainPage(Page):
    """The same lines without any style, kept as text."""

    def __init__(self) -> None:
        self.width = WIDTH
        self.lines: list[str] = []

    def put(self, *parts: tuple[str, str]) -> None:
        """One line of parts."""
        self.lines.append("".join(part for part, _ in parts))


def _open(page: Page, parts: Outline) -> None:
    style = _STYLES[parts.verdict].replace("dim", "bold")
    page.line(parts.tag, style=style)
    page.say(parts.headline, style="bold")
    for sentence in filter(None, (parts.rest, parts.agreed)):
        page.say(sentence)
    page.say(parts.about, style="dim")
    for sentence in parts.heeded:
        page.say(sentence, style="yellow", mark="! ", mark_style="yellow")
    page.blank()


def _grid(page: Page, grid: Grid, *, verbose: bool, where: str) -> None:
    """Rates side by side, as many columns as fit; the others below where all is asked for."""
    page.say(grid.title, style="bold")
    start = 0
    while start < len(grid.columns):
        # One more column never takes less room: from few columns on, nearly nothing is laid out.
        stop = start
        while stop < len(grid.columns) and _fits(page, grid, start, stop + 1):
            stop += 1
        if stop == start:
            _stacked(page, grid)
            break
        if start:
            page.blank()
        _columns(page, grid.of_columns(start, stop), verbose=verbose)
        start = stop
        if not verbose:
            break
    if 0 < start < len(grid.columns):
        others = "; ".join(grid.columns[start:])
        page.say(f"More rates ({where}): {others}.", style="dim", mark=" ")
    if grid.more:
        more = plural(grid.more, "more class", "more classes")
        page.say(f"{more}: --json, or .by_group() in Python.", style="dim", mark=" ")
    page.blank()


def _fits(page: Page, grid: Grid, start: int, stop: int) -> bool:
    return _blocks(page, grid.of_columns(start, stop)) is not None


def _blocks(page: Page, grid: Grid) -> list[list[list[str]]] | None:
    """The lines of a grid, its headings first; None where it is wider than the window."""
    columns = list(zip(*(held for _, held in grid.lines)))
    headings, bodies = [[grid.corner]], []
    for title, cells_ in zip(grid.columns, columns):
        texts = _aligned(cells_)
        size = max(map(len, texts), default=0)
        headings += [_wrapped(printable(title), max(size, HEADING)), ["n"]]
        bodies += [texts, [cell.n if cell else "–" for cell in cells_]]
    tall = max(map(len, headings))
    tops = [["" for _ in range(tall - len(one))] + one for one in headings]
    names = [printable(name) for name, _ in grid.lines]
    rows = [*zip(*tops), *zip(names, *bodies)]
    return laid_out(rows, width=page.width - 1, right=range(1, len(rows[0])))


def _aligned(cells_: Sequence[RateCell | None]) -> list[str]:
    """Shares and intervals below each other."""
    rate = max((len(cell.rate) for cell in cells_ if cell and cell.interval), default=0)
    return [
        "–" if cell is None else f"{cell.rate:>{rate}} {cell.interval}".strip() for cell in cells_
    ]


def _columns(page: Page, grid: Grid, *, verbose: bool) -> None:
    """Lines below their headings; of many groups the highest and the lowest."""
    blocks = _blocks(page, grid) or []
    heads = len(blocks) - len(grid.lines)
    between = " " * BETWEEN
    for block in blocks[:heads]:
        for line in block:
            page.line(f" {between.join(line)}".rstrip(), style="dim")
    skipped = range(0)
    if not verbose and len(grid.lines) > MOST_GROUPS:
        skipped = range(ENDS, len(grid.lines) - ENDS)
    for i, (block, (_, held)) in enumerate(zip(blocks[heads:], grid.lines)):
        if i in skipped:
            if i == skipped[0]:
                page.line(f" … {plural(len(skipped), 'group')} between them", style="dim")
            continue
        for line in block:
            first, *others = line
            styles = [_STYLES.get(c.verdict, "") if c else "" for c in held for _ in range(2)]
            page.line(f" {first}", parts=[
                (f"{between}{text}", "" if style == "dim" else style)
                for text, style in zip(others, styles)
            ])  # fmt: skip


def _stacked(page: Page, grid: Grid) -> None:
    """One number a line, where not even one column fits beside the names."""
    for name, held in grid.lines:
        page.say(name, mark=" ")
        for title, cell in zip(grid.columns, held):
            if cell is not None:
                page.say(f"{title}: {cell.text}, n = {cell.n}", mark="   ")


def _findings(page: Page, parts: Outline, *, verbose: bool) -> None:
    shown = parts.findings if verbose else parts.findings[:FEW]
    for one in shown:
        mark, style = f"{MARKS[one.verdict]} ", _STYLES[one.verdict]
        page.say(one.text, mark=mark, mark_style=style)
    if shown:
        page.blank()


def _lacking(record: Mapping[str, Any]) -> list[str]:
    """The lenses that did not look, and what they would need."""
    lenses = record["data"].get("lenses") or {}
    return [f"{name}: needs {lack}." for name, lack in lenses.items() if lack]


def _folded(record: Mapping[str, Any], parts: Outline) -> str:
    """What is there and was not shown, counted."""
    rows, more = chosen_rows(record)
    counts = (
        (len(parts.findings) - FEW, "more finding"),
        (len(rows) + more if parts.grids else 0, "comparison"),
        (len(parts.notes) if record["findings"] else 0, "note"),
    )
    return listed([plural(count, what) for count, what in counts if count > 0])


def _table(record: Mapping[str, Any], page: Page) -> None:
    """The leading rows, those of a measure under its name."""
    rows, more = chosen_rows(record)
    if not rows:
        return
    texts = [cells(row) for row in rows]
    keep = [i for i, name in enumerate(HEADERS) if _worth_showing(name, {c[i] for c in texts})]
    page.columns(
        [[HEADERS[i] for i in keep], *([line[i] for i in keep] for line in texts)],
        right=[place for place, i in enumerate(keep) if HEADERS[i] in _NUMBERS],
        headings=[line[0] for line in texts],
        styles=[_STYLES[row["verdict"]] if HEADERS[keep[-1]] == "verdict" else "" for row in rows],
    )
    if more:
        page.line(f"{more:,} more rows are in the record (--json).", style="dim")
    page.blank()


def _worth_showing(header: str, values: set[str]) -> bool:
    """Whether a column tells rows apart: one class, or no limit at all, needs none."""
    if header == "verdict":
        return values != {"not assessed"}
    if header == "against":
        return values != {""}
    return header != "measure" and (header != "class" or len(values) > 1)


def _impact(record: Mapping[str, Any], page: Page) -> None:
    rows = impact_ratios(record)
    if not rows or len({row["class"] for row in rows}) > 1:
        return
    texts = [cells(row)[2:7] for row in rows[:MOST_RATIOS]]
    page.say(
        "Impact ratios: selection rate by the highest group's (no pass mark is implied)",
        style="bold",
    )
    page.columns([("group", "highest", "ratio", "interval", "n"), *texts], right=range(2, 5))
    if len(rows) > MOST_RATIOS:
        more = len(rows) - MOST_RATIOS
        page.line(f"{more:,} more ratios are in the record (--json).", style="dim")
    page.blank()
