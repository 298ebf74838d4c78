"""Moments of average ranks within cells, for columns that lie in memory.

Ranking takes most of the time of a rank correlation. Here rows are laid out by cell first, a part
at a time that stays in the processor's cache; then each cell is sorted once per column as whole
numbers that hold both the value and the row. What the numbers cannot tell apart is put right, so
the order is exact.
"""

import timeit
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtr, stdtrit

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray, critical

# Sums of ranks carry rounding of this relative size; a variance below it is a constant column.
# The smallest variance of ranks that are not all tied is 1/n of the sum of squares.
CONSTANT = 1e-13
# 8! = 40,320 arrangements; beyond that, draws are cheaper than counting them all.
EXACT_UP_TO = 8
CELLS_AT_ONCE = 4_000_000
# Two points always lie on a line: a rank correlation needs one more.
FEWEST_ROWS = 3


def average_ranks(values: ArrayLike) -> FloatArray:
    """Ranks from 1 along the last axis, ties sharing their average rank.

    Examples:
        >>> average_ranks([0.9, 0.8, 0.8, 0.3])
        array([4. , 2.5, 2.5, 1. ])
    """
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    order = np.argsort(array, axis=-1)
    ordered = np.take_along_axis(array, order, axis=-1)
    place = np.broadcast_to(np.arange(1.0, array.shape[-1] + 1), array.shape)
    starts = np.ones(array.shape, dtype=bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ends = np.ones(array.shape, dtype=bool)
    ends[..., :-1] = starts[..., 1:]
    first = np.maximum.accumulate(np.where(starts, place, 0.0), axis=-1)
    last = np.flip(
        np.minimum.accumulate(np.flip(np.where(ends, place, np.inf), axis=-1), axis=-1), axis=-1
    )
    ranks = np.empty(array.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=-1)
    return ranks


def spearman_from_moments(
    n: ArrayLike, *, x: ArrayLike, y: ArrayLike, xx: ArrayLike, yy: ArrayLike, xy: ArrayLike
) -> FloatArray:
    """Spearman correlation from sums of average ranks, their squares and products; broadcasts.

    NaN with fewer than three rows and where either column is constant.

    Examples:
        >>> float(spearman_from_moments(4, x=10, y=10, xx=30, yy=30, xy=29).round(3))
        0.8
    """
    count = np.asarray(n, dtype=np.float64)
    sx, sy, sxx, syy, sxy = (np.asarray(a, dtype=np.float64) for a in (x, y, xx, yy, xy))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread_x = sxx - sx * sx / count
        spread_y = syy - sy * sy / count
        defined = (count >= 3) & (spread_x > CONSTANT * sxx) & (spread_y > CONSTANT * syy)
        r = (sxy - sx * sy / count) / np.sqrt(spread_x * spread_y)
        return np.asarray(np.where(defined, np.clip(r, -1.0, 1.0), np.nan), dtype=np.float64)


def spearman(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Spearman correlation along the last axis, ties by average ranks; NaN where undefined.

    Examples:
        >>> float(spearman([1, 2, 3, 4], [1, 3, 2, 4]).round(3))
        0.8
        >>> float(spearman([1, 2, 3], [5, 5, 5]))
        nan
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    missing = np.isnan(first).any(axis=-1) | np.isnan(second).any(axis=-1)
    a, b = average_ranks(first), average_ranks(second)
    r = spearman_from_moments(
        a.shape[-1],
        x=a.sum(-1),
        y=b.sum(-1),
        xx=(a * a).sum(-1),
        yy=(b * b).sum(-1),
        xy=(a * b).sum(-1),
    )
    return np.asarray(np.where(missing, np.nan, r), dtype=np.float64)


def bonett_wright(r: ArrayLike, n: ArrayLike, *, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Limits of a Spearman correlation at ±z standard errors (Bonett & Wright 2000); broadcasts.

    NaN with fewer than four rows. At r = ±1 the formula would give a point; there the inner limit
    is taken from half a step below, the step to one exchanged pair of ranks being 12/(n³ - n).

    Examples:
        >>> low, high = bonett_wright(0.46, 28, z=1.959964)
        >>> print(f"{low:.3f} {high:.3f}")
        0.085 0.721
    """
    r, count = np.asarray(r, dtype=np.float64), np.asarray(n, dtype=np.float64)
    rows = np.where(count > 3, count, np.nan)
    half_step = np.maximum(6.0 / (rows**3 - rows), 1e-15)
    centre = np.arctanh(np.clip(r, half_step - 1.0, 1.0 - half_step))
    half = np.asarray(z, dtype=np.float64) * np.sqrt((1.0 + r * r / 2.0) / (rows - 3.0))
    low, high = np.tanh(centre - half), np.tanh(centre + half)
    low, high = np.minimum(low, r), np.maximum(high, r)
    return np.asarray(np.where(r == -1.0, -1.0 + 0 * half, low)), np.asarray(
        np.where(r == 1.0, 1.0 + 0 * half, high)
    )


def correlation_p(r: ArrayLike, n: ArrayLike) -> FloatArray:
    """Two-sided p-value of a correlation, t with n - 2 degrees of freedom; broadcasts.

    Examples:
        >>> float(correlation_p(0.9, 5).round(4))
        0.0374
    """
    r, count = np.asarray(r, dtype=np.float64), np.asarray(n, dtype=np.float64)
    freedom = np.where(count > 2, count - 2.0, np.nan)
    with np.errstate(divide="ignore"):
        t = np.abs(r) * np.sqrt(freedom / ((1.0 - r) * (1.0 + r)))
    return np.asarray(2.0 * stdtr(freedom, -t), dtype=np.float64)


def permutation_p(x: ArrayLike, y: ArrayLike, *, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided permutation p-value of Spearman's correlation between two short columns.

    Exact over all arrangements up to eight pairs; otherwise (1 + hits)/(1 + draws), which is never
    0 and holds its level at any number of draws.

    Examples:
        >>> shares, correlations = [0.1, 0.25, 0.45, 0.7, 0.9], [-0.3, -0.05, -0.1, 0.05, 0.2]
        >>> round(permutation_p(shares, correlations), 4)
        0.0833
    """
    if draws < 1:
        raise UsageError(f"draws={draws} is not a number of permutations. Give 10000 or more.")
    a, b = average_ranks(x), average_ranks(y)
    observed = abs(float(spearman(x, y)))
    if not np.isfinite(observed):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    # Arrangements that tie with the observed one must count, whatever their rounding.
    bar = observed * float(np.sqrt((a @ a) * (b @ b))) - 1e-9 * float(a @ a)
    n = a.size
    if n <= EXACT_UP_TO:
        every = np.array(list(permutations(range(n))), dtype=np.intp)
        return float((np.abs(b[every] @ a) >= bar).sum() / factorial(n))
    generator = np.random.default_rng(seed)
    hits, left = 0, draws
    while left:
        batch = min(left, max(1, CELLS_AT_ONCE // n))
        shuffled = generator.permuted(np.broadcast_to(b, (batch, n)), axis=1)
        hits += int((np.abs(shuffled @ a) >= bar).sum())
        left -= batch
    return (1 + hits) / (1 + draws)


def smallest_significant(n: ArrayLike, *, level: float = 0.95) -> FloatArray:
    """Smallest |r| whose t-based p-value falls below 1 - level with n rows; broadcasts.

    Examples:
        >>> float(smallest_significant(21).round(3))
        0.433
    """
    count = np.asarray(n, dtype=np.float64)
    freedom = np.where(count > 2, count - 2.0, np.nan)
    t = stdtrit(freedom, 0.5 + level / 2)
    return np.asarray(t / np.sqrt(freedom + t * t), dtype=np.float64)


def smallest_detectable(n: ArrayLike, *, level: float = 0.95, power: float = 0.8) -> FloatArray:
    """Smallest population |r| that n rows would show as different from 0 with this power.

    Examples:
        >>> float(smallest_detectable(21).round(2))
        0.59
    """
    count = np.asarray(n, dtype=np.float64)
    rows = np.where(count > 3, count - 3.0, np.nan)
    needed, beyond = critical(level), float(ndtri(power))
    r = np.zeros(count.shape)
    # The standard error depends weakly on r itself: a few rounds settle it.
    for _ in range(20):
        r = np.tanh((needed + beyond * np.sqrt(1.0 + r * r / 2.0)) / np.sqrt(rows))
    return np.asarray(r, dtype=np.float64)


THREADS = 2
# Fewer values are sorted faster as they are, and up to `SHORT` by NumPy on every processor.
FEW, SHORT = 200, 2_000
# Rows laid out by cell at once, at least; more with many cells, so that a cell's share is worth a
# slice.
CHUNK, CHUNK_BY_CELL = 2**16, 2**10
PROBE = 256
# Between these sizes values are dropped into steps, unless a sample of so many, in as many steps,
# has a crowd: about one to a step is what even values give.
MANY, MOST, SAMPLE, CROWD = 20_000, 2_000_000, 4_096, 24
KEPT = 2**22 - 2**12
# Numbers sorted, so many times, to find out which way is faster here; and how many are a run.
PROBED, PROBES, RUN = 2**14, 3, 64
# Cells are numbered in two bytes.
MOST_CELLS = 60_000
# Sums of products of whole ranks up to this many rows are exact in 64 bits.
WHOLE = 2_000_000

Integers = NDArray[np.int64]


def order_of(values: FloatArray) -> tuple[Integers, bool]:
    """Places of the values in rising order, and whether no two values are the same.

    Examples:
        >>> places, distinct = order_of(np.array([0.5, -1.0, 0.25]))
        >>> places.tolist(), distinct
        ([1, 2, 0], True)
    """
    if values.size < max(FEW, 2):
        places = np.argsort(values, kind="stable")
        risen = values[places]
        return places, not bool((risen[1:] == risen[:-1]).any())
    low = (1 << int(values.size - 1).bit_length()) - 1
    # Where the first values are not negative mostly none is; the least then tells at no cost.
    negative = bool((values[:PROBE] < 0).any())
    bits = bits_of(values) if negative else values.view(np.int64)
    held = sorted_with_rows(values, bits, low)
    if held[0] < 0 and not negative:
        held = sorted_with_rows(values, bits_of(values), low)
    places = held & low
    apart = (held[1:] ^ held[:-1]).view(np.uint64)
    if apart.min() > low:
        return places, True
    risen = moved(values, places)
    if (risen[1:] < risen[:-1]).any():
        places = within_steps(places, apart <= low, values)
        risen = moved(values, places)
    return places, not bool((risen[1:] == risen[:-1]).any())


def sorted_with_rows(values: FloatArray, bits: Integers, low: int) -> Integers:
    """The bits in rising order, each with its place in the bits of `low` instead of its own.

    Where NumPy sorts slowly, evenly spread values are dropped into as many steps as there are
    values first, by counting: turning a sparse row into columns does just that. What is then nearly
    sorted takes little more.
    """
    held = bits & ~low
    held |= np.arange(bits.size)
    if bits.size <= SHORT or numpy_sorts_fast():
        held.sort()
        return held
    steps = even_steps(values, low + 1)
    if steps is None:
        import polars as pl

        return pl.Series(held).sort(multithreaded=False).to_numpy()
    from scipy import sparse

    ends = np.array([0, held.size], dtype=np.int32)
    laid = sparse.csr_array((held, steps, ends), shape=(1, low + 1)).tocsc().data
    sort_nearly_sorted(laid)
    return np.asarray(laid)


def sort_nearly_sorted(numbers: Integers) -> None:
    """Sort in place numbers that stand a few places from their own, if they do.

    Examples:
        >>> numbers = np.array([1, 0, 3, 2, 4])
        >>> sort_nearly_sorted(numbers)
        >>> numbers.tolist()
        [0, 1, 2, 3, 4]
    """
    # Runs this short are sorted fast on every processor; others, half a run on, mend the joins.
    for start in (0, RUN // 2):
        end = start + (numbers.size - start) // RUN * RUN
        numbers[start:end].reshape(-1, RUN).sort(axis=1)
        numbers[end:].sort()
    if (numbers[1:] < numbers[:-1]).any():
        numbers.sort(kind="stable")


@cache
def numpy_sorts_fast() -> bool:
    """Whether NumPy sorts whole numbers faster than Polars on this processor, found by trying.

    It mostly does, three times as fast, with vector instructions. Some processors lack those, and
    on others (Zen 4) the widest are slow.
    """
    import polars as pl

    numbers = np.random.default_rng(0).integers(2**62, size=PROBED)
    series = pl.Series(numbers)
    ways = (lambda: np.sort(numbers), lambda: series.sort(multithreaded=False))
    ours, theirs = (min(timeit.repeat(way, number=1, repeat=PROBES)) for way in ways)
    return ours < theirs


def even_steps(values: FloatArray, count: int) -> NDArray[np.int32] | None:
    """The step of each value among `count` of equal width; None where a few would hold most."""
    if not MANY <= values.size <= MOST:
        return None
    least, most = values.min(), values.max()
    with np.errstate(all="ignore"):
        scale = (count - 1) / (most - least)
    sample = values[:: max(1, values.size // SAMPLE)]
    if not 0 < scale < np.inf:
        return None
    crowd = np.bincount(((sample - least) * (scale * SAMPLE / count)).astype(np.int32)).max()
    if crowd > CROWD:
        return None
    above: FloatArray = values - least
    above *= scale
    return above.astype(np.int32)


def bits_of(values: FloatArray) -> Integers:
    """Whole numbers in the order of the values: their bits, turned round where negative; NaN last.

    Examples:
        >>> bool((np.diff(bits_of(np.array([-2.0, -1.0, 0.0, 1.0]))) > 0).all())
        True
    """
    # Adding 0 makes one zero of the two that compare equal and differ in sign.
    bits = (values + 0.0).view(np.int64)
    turned = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    turned[np.isnan(values)] = 2**63 - 1
    return turned


def within_steps(places: Integers, same: NDArray[np.bool_], values: FloatArray) -> Integers:
    """Places put in the order of their values wherever neighbours share a step (`same`)."""
    shared = np.zeros(places.size, dtype=bool)
    shared[1:] = same
    shared[:-1] |= same
    crowd = np.flatnonzero(shared)
    members = places[crowd]
    step = np.cumsum(np.concatenate([[True], ~same]))[crowd]
    fixed = places.copy()
    fixed[crowd] = members[np.lexsort((values[members], step))]
    return fixed


def moved(values: FloatArray, places: Integers) -> FloatArray:
    """The values at these places, which must exist: four times as fast as indexing checks them."""
    return values.take(places, mode="clip")


def product(a: FloatArray, b: FloatArray) -> float:
    """Sum of products outside BLAS, whose threads would fight with ours."""
    return float(np.einsum("i,i->", a, b))


class Ranked:
    """Average ranks of one column of one cell, and how many rows share their value.

    `ranks` are by rising place, None where no value stands twice: then they are 1 to n.
    """

    __slots__ = ("places", "ranks", "size", "tied")

    def __init__(self, values: FloatArray, places: Integers | None = None) -> None:
        self.size, self.tied = values.size, 0
        self.ranks: FloatArray | None = None
        distinct = falls = False
        if places is None:
            places, distinct = order_of(values)
        else:
            falls = bool(values[places[0]] > values[places[-1]])
        self.places = places[::-1] if falls else places
        if distinct:
            return
        risen = moved(values, self.places)
        changes = np.flatnonzero(risen[1:] != risen[:-1]) + 1
        if changes.size < risen.size - 1:
            ends = np.concatenate([[0], changes, [risen.size]])
            lengths = np.diff(ends)
            self.ranks = np.repeat(ends[:-1] + (lengths + 1) / 2, lengths)
            self.tied = int(lengths[lengths > 1].sum())

    def by_place(self) -> FloatArray:
        """The ranks in rising order."""
        return np.arange(1.0, self.size + 1) if self.ranks is None else self.ranks

    def spread(self) -> FloatArray:
        """The ranks by row."""
        by_row = np.empty(self.size)
        by_row[self.places] = self.by_place()
        return by_row

    def squares(self) -> float:
        """Sum of the squared ranks."""
        n = self.size
        if self.ranks is None:
            return n * (n + 1) * (2 * n + 1) / 6
        return product(self.ranks, self.ranks)

    def against(self, other: "Ranked") -> float:
        """Sum of products with the ranks of a column whose rows stand in this one's order."""
        if self.ranks is None and other.ranks is None and self.size <= WHOLE:
            n = self.size
            return float(np.einsum("i,i->", np.arange(1, n + 1), other.places)) + n * (n + 1) / 2
        return product(moved(self.by_place(), other.places), other.by_place())

    def sorts(self, values: FloatArray) -> bool:
        """Whether another column rises or falls in this column's order: the norms of two groups."""
        steps = np.diff(moved(values, self.places[:: max(1, self.size // 64)]))
        if (steps < 0).any() and (steps > 0).any():
            return False
        steps = np.diff(moved(values, self.places))
        return bool((steps >= 0).all() or (steps <= 0).all())


class Shelf:
    """Blocks of memory that arrays are put into one after another.

    Large blocks come in large pages: as many small arrays cost up to a tenth of the work more.
    """

    def __init__(self) -> None:
        self._block, self._used = np.zeros(0), 0

    def put(self, values: FloatArray) -> FloatArray:
        """A copy of the values in a block; few of them, or very many, stay where they are."""
        if not CHUNK <= values.size <= KEPT:
            return values
        if self._used + values.size > self._block.size:
            self._block, self._used = np.empty(KEPT), 0
        place = self._block[self._used : self._used + values.size]
        place[:] = values
        self._used += values.size
        return place


class CellLayout:
    """Columns with the rows of each line together within every part of the table.

    A cell is one line or several. Lines may be met as parts are added: earlier parts lack them.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.int32], list[FloatArray]]] = []
        self._waiting: list[tuple[NDArray[Any], Sequence[FloatArray]]] = []
        self._rows_waiting = 0
        self._shelf = Shelf()

    def add(self, lines: NDArray[Any], columns: Sequence[FloatArray], *, known: int) -> None:
        """Rows of the table: the line of each, below `known`, and the columns.

        They wait until they are enough for the share of a line to be worth a slice.
        """
        if lines.size:
            self._waiting.append((lines, columns))
            self._rows_waiting += lines.size
        if self._rows_waiting >= max(CHUNK, CHUNK_BY_CELL * known):
            self.finish(known=known)

    def finish(self, *, known: int) -> None:
        """Lay out the rows that wait: turning a sparse row into columns does just that."""
        from scipy import sparse

        waiting, self._waiting, self._rows_waiting = self._waiting, [], 0
        if not waiting:
            return
        lines, columns = waiting[0]
        if len(waiting) > 1:
            lines = np.concatenate([part for part, _ in waiting])
            columns = [np.concatenate(parts) for parts in zip(*(c for _, c in waiting))]
        lines, ends = lines.astype(np.int32, copy=False), np.array([0, lines.size], dtype=np.int32)
        laid: list[FloatArray] = []
        for column in columns:
            values = np.asarray(column, dtype=np.float64)
            by_line = sparse.csr_array((values, lines, ends), shape=(1, known)).tocsc()
            laid.append(self._shelf.put(by_line.data))
        self._parts.append((by_line.indptr, laid))

    def counts(self, known: int) -> Integers:
        """How many rows each line has."""
        found = np.zeros(known, dtype=np.int64)
        for bounds, _ in self._parts:
            found[: bounds.size - 1] += np.diff(bounds)
        return found

    def of(self, cell: Sequence[int], column: int) -> FloatArray:
        """The values of one column in the rows of these lines."""
        pieces = [
            laid[column][bounds[line] : bounds[line + 1]]
            for bounds, laid in self._parts
            for line in cell
            if line + 1 < bounds.size
        ]
        return np.concatenate(pieces) if pieces else np.zeros(0)


def cell_moments(
    codes: NDArray[Any],
    score: FloatArray,
    norms: Mapping[str, FloatArray],
    *,
    cells: int,
    threads: int = THREADS,
) -> dict[str, FloatArray]:
    """By cell: n, tied, Σx, Σx², and for each norm Σy, Σy², Σxy of average ranks x and y.

    Examples:
        >>> scores, norm = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
        >>> found = cell_moments(np.zeros(4, int), scores, {"f": norm}, cells=1)
        >>> [(name, float(found[name][0])) for name in ("n", "xx", "xy:f")]
        [('n', 4.0), ('xx', 30.0), ('xy:f', 29.0)]
    """
    keep_freed_memory()
    layout = CellLayout()
    layout.add(codes, [score, *norms.values()], known=cells)
    layout.finish(known=cells)
    places = {name: place for place, name in enumerate(norms, start=1)}
    lines = [[cell] for cell in range(cells)]
    return layout_moments(layout, lines, score=0, norms=places, threads=threads)


def layout_moments(
    layout: CellLayout,
    cells: Sequence[Sequence[int]],
    *,
    score: int,
    norms: Mapping[str, int],
    threads: int = THREADS,
) -> dict[str, FloatArray]:
    """The same for columns that are laid out, by their places; each cell is given by its lines."""
    names = ["n", "tied", "x", "xx", *(f"{m}:{k}" for k in norms for m in ("y", "yy", "xy"))]
    sums = {name: np.zeros(len(cells)) for name in names}

    def work(cell: int) -> None:
        scores = layout.of(cells[cell], score)
        n = scores.size
        sums["n"][cell] = n
        if not n:
            return
        x = Ranked(scores)
        sums["tied"][cell], sums["xx"][cell] = x.tied, x.squares()
        sums["x"][cell] = n * (n + 1) / 2
        last: Ranked | None = None
        for name, place in norms.items():
            # Rows in the order of the score: the places of the norm then are ranks of the score.
            values = moved(layout.of(cells[cell], place), x.places)
            reuse = last is not None and last.sorts(values)
            y = Ranked(values, last.places if reuse and last is not None else None)
            sums[f"y:{name}"][cell], sums[f"yy:{name}"][cell] = sums["x"][cell], y.squares()
            sums[f"xy:{name}"][cell] = x.against(y)
            last = y

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(len(cells))))
    return sums


def keep_freed_memory() -> None:
    """Once a block of this size has been freed, glibc keeps what is freed later for the next cell.

    Giving it back and asking for it again would cost as much as a third of the work.
    """
    np.empty(KEPT)
