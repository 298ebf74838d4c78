"""What a measure is: one record that says all there is to know of it.

Lenses, verdicts, sentences, reports, peers and the reference read these records; none of them
reads anything off a measure's name.
"""

from dataclasses import dataclass
from math import inf

from evenhand.errors import UsageError, nearest

# The cells of one class against the rest: the truth's state (another class, the class, unknown)
# and whether the class was decided.
CELLS = {
    "true_negative": (0, 0),
    "false_positive": (0, 1),
    "false_negative": (1, 0),
    "true_positive": (1, 1),
    "unreviewed_refused": (2, 0),
    "unreviewed_selected": (2, 1),
}
UNREVIEWED = frozenset({"unreviewed_refused", "unreviewed_selected"})
REVIEWED = frozenset(CELLS) - UNREVIEWED
POSITIVE = frozenset({"false_negative", "true_positive"})
NEGATIVE = frozenset({"true_negative", "false_positive"})
SELECTED = frozenset({"true_positive", "false_positive", "unreviewed_selected"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What sort of number a measure is: what it can be, what no difference is, what limits mean."""

    low: float
    high: float
    neutral: float | None
    meaning: str


KINDS = {
    "rate": Kind(low=0, high=1, neutral=None,
                 meaning="a share between 0 and 1; a limit of x means [0, x]"),
    "odds": Kind(low=0, high=inf, neutral=None,
                 meaning="hits for each other case; a limit of x means [0, x]"),
    "gap": Kind(low=-1, high=1, neutral=0,
                meaning="group − reference; a limit of x means ±x"),
    "ratio": Kind(low=0, high=inf, neutral=1,
                  meaning="group ÷ reference; a limit of x means [x, 1/x]"),
    "distance": Kind(low=0, high=1, neutral=0,
                     meaning="0 or more; a limit of x means [0, x]"),
    "correlation": Kind(low=-1, high=1, neutral=0,
                        meaning="between −1 and 1; a limit of x means ±x"),
    "number": Kind(low=-inf, high=inf, neutral=None,
                   meaning="any number; write a band low:high"),
    "floor": Kind(low=0, high=inf, neutral=None,
                  meaning="what noise alone would give; takes no limit"),
    "test": Kind(low=0, high=inf, neutral=None,
                 meaning="a test statistic with its p; takes no limit"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Which cells of one class against the rest a rate counts as hits, and which as cases.

    Examples:
        >>> Cells(hits={"false_negative"}, cases={"false_negative", "true_positive"}).masks[0]
        ((0, 0), (1, 0), (0, 0))
    """

    hits: frozenset[str] | set[str]
    cases: frozenset[str] | set[str]

    def __post_init__(self) -> None:
        for name in sorted({*self.hits, *self.cases}):
            if name not in CELLS:
                raise UsageError(
                    f"{name!r} is not a cell.{nearest(name, list(CELLS))} "
                    f"The cells are {', '.join(CELLS)}."
                )
        if not self.hits < self.cases:
            raise UsageError("The hits of a rate must be some of its cases, and not all of them.")

    @property
    def masks(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Hits and cases as tables of 0 and 1, by (truth's state, decided)."""
        return tuple(
            tuple(
                tuple(int((state, decided) in places) for decided in (0, 1)) for state in range(3)
            )
            for places in ({CELLS[name] for name in side} for side in (self.hits, self.cases))
        )

    @property
    def needs_truth(self) -> bool:
        """Whether a row without a truth counts for nothing."""
        return not self.cases & UNREVIEWED

    @property
    def disjoint(self) -> bool:
        """Whether no row is a case of two classes, so that classes are independent."""
        return self.cases <= POSITIVE or self.cases <= SELECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure: what it is called, what kind of number, and what it counts.

    Attributes:
        name: Its name in rows, limits and records.
        label: A name that a person can say aloud; `many` for several of them.
        lenses: The lenses that give it.
        kind: One of KINDS.
        cells: For a rate or an odds counted from decisions: which cells are hits, which are cases.
        mirror: The rate that this one leaves over: the two add up to 1.
        base: The rate that a gap, a ratio or a size compares.
        parts: The measure that a size over classes or groups is taken of.
        variant_of: The measure that this one is another reading of, such as without noise.
        floor: The measure that says what noise alone would give.
        counts: What `n` counts.
        unit: What would have to be collected to settle a verdict.
        inferred: Read from several rates at once, so that n does not vary as one share does.
        leads: Whether it may lead an audit without limits; the catalogue's order is theirs.
        low, high: The least and the most it can be.
        neutral: The value that means no difference, where there is one.
    """

    name: str
    label: str
    lenses: tuple[str, ...]
    kind: str
    many: str = ""
    cells: Cells | None = None
    mirror: str | None = None
    base: str | None = None
    parts: str | None = None
    variant_of: str | None = None
    floor: str | None = None
    counts: str = "cases"
    unit: str = "cases"
    inferred: bool = False
    leads: bool = False
    low: float | None = None
    high: float | None = None
    neutral: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(
                f"kind={self.kind!r} of {self.name!r} is not a kind of measure."
                f"{nearest(self.kind, list(KINDS))} The kinds are {', '.join(KINDS)}."
            )
        kind = KINDS[self.kind]
        usual = {"low": kind.low, "high": kind.high, "neutral": kind.neutral}
        usual["many"] = f"{self.label}s"  # type: ignore[assignment]
        for name, value in usual.items():
            if getattr(self, name) in (None, ""):
                object.__setattr__(self, name, value)

    @property
    def takes_limit(self) -> bool:
        """Whether a limit may be set on it."""
        return self.kind not in ("floor", "test")

    @property
    def counts_cases(self) -> bool:
        """Whether its n are cases, so that the floors on cases hold for it."""
        return self.kind != "floor" and self.counts not in ("classes", "groups")

    @property
    def over_groups(self) -> bool:
        """Whether it is taken over all groups, whichever two it names."""
        return self.kind == "distance" and self.counts != "classes"

    def size(self, value: float) -> float:
        """How far a value lies from no difference, or from 0 where nothing means that."""
        return abs(float(value) - (self.neutral or 0.0))
