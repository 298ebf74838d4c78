"""What a swap of a whole table did, for people and as plain values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evenhand.stats.estimate import Estimate
from evenhand.text.validity import SwapValidity

SCHEMA = "evenhand.swap/1"
_MEASURES = {
    "changed": "texts changed",
    "mixed": "words of both values",
    "unresolved": "with an unresolved word",
    "round_trip": "changed texts that come back",
    "articles": "changed texts with a wrong a/an",
    "placebo_changed": "texts that a placebo would change",
    "leak": "leak: AUC of telling the swap (0.5: cannot)",
}
_FEW = 5
_WIDTH = 43


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapReport:
    """What was swapped, and how far the swap can be trusted."""

    source: str
    out: str
    rows: int
    text: str
    lexicon: str
    attribute: str
    group: str | None
    columns: list[str]
    validity: tuple[SwapValidity, ...]
    unresolved_rows: list[dict[str, Any]] = field(default_factory=list)
    other_values: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, Estimate] = field(default_factory=dict)
    tagger: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, with the first thousand unresolved rows."""
        return {"schema": SCHEMA, **asdict(self)}

    def __str__(self) -> str:
        missing = self.validity[0].missing
        null = f", {missing:,} without a text" if missing else ""
        tagger = f", his or him by {self.tagger}" if self.tagger else ""
        lines = [f"{self.rows:,} rows of {self.source}{null}; lexicon {self.lexicon}{tagger}."]
        lines += [f"  {name:<{_WIDTH}} {value}" for name, value in self.changes.items()]
        for each in self.validity:
            lines += ["", f"{self.text}@{each.to}"]
            lines += [
                f"  {told:<{_WIDTH}} {getattr(each, name)}" for name, told in _MEASURES.items()
            ]
        lines += ["", *self._told()]
        return "\n".join(lines)

    def _told(self) -> list[str]:
        """Sentences on what stayed open."""
        told = []
        words: dict[str, int] = {}
        for each in self.validity:
            for word, n in each.unresolved_words.items():
                words[word] = words.get(word, 0) + n
        if words:
            top = sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))
            listed = ", ".join(f"{word} ({n:,})" for word, n in top[:_FEW])
            more = f" and {len(top) - _FEW} more" if len(top) > _FEW else ""
            rows = list(dict.fromkeys(each["row"] for each in self.unresolved_rows))
            first = ", ".join(str(row) for row in rows[:_FEW])
            told.append(
                f"Unresolved words: {listed}{more}; rows {first}{', …' * (len(rows) > _FEW)}."
            )
        if self.other_values:
            n = sum(self.other_values.values())
            names = ", ".join(repr(name) for name in list(self.other_values)[:_FEW])
            told.append(
                f"{n:,} rows have another value of {self.group} ({names}); the words of their text "
                "say what it is rewritten from."
            )
        added = ", ".join(self.columns)
        told.append(f"Wrote {self.out} with {added}.")
        return told
