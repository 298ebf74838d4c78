"""Charts of an audit on their own: shown in a notebook, saved as SVG or PNG."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from evenhand.decisions.batches import check_writable
from evenhand.errors import UsageError, nearest
from evenhand.findings.record import write_text
from evenhand.report.charts import WIDE, specification
from evenhand.report.svg import own_ids, png, raw_svg
from evenhand.report.whole import whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with the words that go with it; `spec` is Vega-Lite."""

    name: str
    title: str
    read: str
    spec: dict[str, Any]

    def _repr_svg_(self) -> str:
        return own_ids(raw_svg(self.spec), self.name)

    def _repr_html_(self) -> str:
        return (
            f"<figure style='margin:0;background:#fff;color:#15181e;padding:12px;max-width:780px'>"
            f"<strong>{escape(self.title)}</strong>{self._repr_svg_()}"
            f"<figcaption>How to read: {escape(self.read)}</figcaption></figure>"
        )

    def save(self, path: str | Path) -> None:
        """Write the chart to a file that ends in .svg or .png."""
        kind = Path(path).suffix.lower()
        if kind == ".svg":
            write_text(path, self._repr_svg_())
        elif kind == ".png":
            check_writable(path)
            Path(path).write_bytes(png(self.spec))
        else:
            raise UsageError(
                f"'{path}' is neither an SVG nor a PNG. Choose a name that ends in .svg or .png."
            )


def charts_of(
    record: Mapping[str, Any] | None, *, ledger: Mapping[str, Any] | None = None
) -> dict[str, Chart]:
    """Every chart of an audit, or of a ledger, by its name, in the order of the report."""
    from evenhand.report.summary import summarise

    found: dict[str, Chart] = {}
    page = summarise(whole(record) if record else None, ledger=ledger)
    _gather(page["sections"], found)
    return found


def show_chart(
    record: Mapping[str, Any] | None,
    name: str | None = None,
    *,
    ledger: Mapping[str, Any] | None = None,
) -> Chart:
    """A chart of an audit, or of a ledger; the leading one where no name is given.

    Examples:
        >>> import evenhand as eh
        >>> from evenhand.simulate.moderation import moderation
        >>> posts = moderation(3000).frame
        >>> table = eh.Decisions(posts, truth="violates", decision="removed", group="gender")
        >>> show_chart(eh.audit(table).record(), "accuracy-gap-gender").title[:22]
        "Decisions on '1' are r"
    """
    known = charts_of(record, ledger=ledger)
    if not known:
        raise UsageError(
            "This audit has no chart: none of its lenses gave rows that can be drawn."
            if record
            else "This ledger has no chart: none of its remedies gave numbers that can be drawn."
        )
    chosen = next(iter(known)) if name is None else name
    if chosen not in known:
        raise UsageError(
            f"chart {chosen!r} does not exist.{nearest(chosen, list(known))} "
            f"The charts are {', '.join(known)}."
        )
    return known[chosen]


def _gather(blocks: list[dict[str, Any]], found: dict[str, Chart]) -> None:
    for block in blocks:
        if block.get("kind") == "figure":
            several = len(block["charts"]) > 1
            for i, chart in enumerate(block["charts"], start=1):
                name = f"{block['id']}-{i}" if several else block["id"]
                found[name] = Chart(
                    name=name,
                    title=str(chart.get("title") if several else block["title"]),
                    read=block["read"],
                    spec=specification(chart, width=WIDE),
                )
        _gather(block.get("blocks", []), found)
