"""The whole error tree: what a user can do wrong, in the words the user will read.

Every message says what is wrong with the value given, what would be right and what to do.
Only `cli/` turns these into exit codes, through `exit_code`.
"""

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


class LimitExceeded(EvenhandError):
    """Something lies outside its limit; raised by `check` where the command exits 1."""

    exit_code = 1


def nearest(word: str, known: list[str]) -> str:
    """A hint with the known word closest to this one, or an empty string.

    Examples:
        >>> nearest("gendre", ["gender", "region"])
        " Did you mean 'gender'?"
    """
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""
