"""Everything that is wrong with a charter, gathered so that one reading tells all of it."""

from evenhand.errors import DataError

MOST_TOLD = 20


class Problems:
    """Refusals of one file in the order of its lines.

    Examples:
        >>> found = Problems("c.toml")
        >>> found.add("c.toml, line 7: b is wrong. Mend it.", line=7)
        >>> found.add("c.toml, line 3: a is wrong. Mend it.", line=3)
        >>> print(found.error())
        c.toml has 2 mistakes:
        - c.toml, line 3: a is wrong. Mend it.
        - c.toml, line 7: b is wrong. Mend it.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._found: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, message: str, *, line: int = 0) -> None:
        """Note a refusal; the same words about the same line count once."""
        if (line, message) not in self._found:
            self._found.append((line, message))

    def error(self) -> DataError:
        """All refusals as one error: the sentence itself where there is one."""
        told = [message for _, message in sorted(self._found, key=lambda one: one[0])]
        if len(told) == 1:
            return DataError(told[0])
        lines = [f"{self.source} has {len(told):,} mistakes:"]
        lines += [f"- {message}" for message in told[:MOST_TOLD]]
        if len(told) > MOST_TOLD:
            lines.append(f"- and {len(told) - MOST_TOLD:,} more. Mend these first.")
        return DataError("\n".join(lines))
