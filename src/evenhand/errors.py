"""The whole error tree: what a user can do wrong, in the words the user will read.

Every message says what is wrong with the value given, what would be right and what to do.
Only `cli/` turns these into exit codes, through `exit_code`.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class EvenhandError(Exception):
    """Anything that a user can put right."""

    exit_code = 5


class UsageError(EvenhandError):
    """An unknown argument, column, measure or engine, or an output that cannot be written."""

    exit_code = 2


class MissingExtra(UsageError):
    """An optional dependency that is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the extra '{extra}', which is not installed. "
            f"Run: pip install 'evenhand[{extra}]'"
        )
        self.extra = extra


class DataError(EvenhandError):
    """Data or a charter that cannot be used as it is."""

    exit_code = 4


class UnusableRows(DataError, ValueError):
    """Rows or weights that cannot be learnt from; also a ValueError, as scikit-learn promises."""


class LimitExceeded(EvenhandError):
    """Something lies outside its limit; raised by `check` where the command exits 1."""

    exit_code = 1


class CannotTell(LimitExceeded):
    """The data cannot tell, where that was to fail; the command exits 3."""

    exit_code = 3


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint with the known word closest to this one, or an empty string.

    Case, spaces, dashes and underscores count for nothing: `Female` finds `female`.

    Examples:
        >>> nearest("gendre", ["gender", "region"])
        " Did you mean 'gender'?"
        >>> nearest("male", ["Female", "Male"])
        " Did you mean 'Male'?"
    """
    by_letters: dict[str, str] = {}
    for name in known:
        by_letters.setdefault(_letters(name), name)
    close = get_close_matches(_letters(word), list(by_letters), n=1, cutoff=0.6)
    return f" Did you mean '{by_letters[close[0]]}'?" if close else ""


def choices(word: str, known: Iterable[str], *, called: str, most: int = 12) -> str:
    """A hint with the closest known word; where none is close, with all there are.

    Examples:
        >>> choices("ethnicity", ["race", "sex"], called="columns")
        ' The columns are race, sex.'
        >>> choices("rac", ["race", "sex"], called="columns")
        " Did you mean 'race'?"
    """
    names = list(known)
    close = nearest(word, names)
    if close or not names:
        return close
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f" The {called} are {', '.join(names[:most])}{more}."


def _letters(word: str) -> str:
    """A word without what people write one way or another."""
    return "".join(word.casefold().replace("_", " ").replace("-", " ").split()) or word
