"""Every chart of a report as files for a paper: SVG, PNG and PDF, as wide as a page of text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.errors import MissingExtra, UsageError
from evenhand.files.folders import new_folder
from evenhand.report.charts import specification, with_legend
from evenhand.report.page import figures, summarise
from evenhand.report.svg import can_draw, own_ids, pdf, png, raw_svg
from evenhand.report.view import whole

KIND = "figures"
# A text block is 6.5 inches wide on most paper; charts are drawn larger and scaled, so that
# their letters come out at nine points.
PAPER_POINTS, DRAWN = 468, 624
SCALE = PAPER_POINTS / DRAWN
DOTS_PER_INCH = 300
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def paper_charts(
    record: Mapping[str, Any] | None,
    *,
    earlier: Sequence[Mapping[str, Any]] = (),
    ledger: Mapping[str, Any] | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the specification of every chart that the page of these records draws."""
    page = summarise(
        None if record is None else whole(record),
        ledger=ledger,
        earlier=[whole(one) for one in earlier],
    )
    for block, _ in figures(page):
        several = len(block["charts"]) > 1
        for i, chart in enumerate(block["charts"], start=1):
            if chart.get("rows") or chart.get("points") or chart.get("series"):
                name = f"{block['id']}-{i}" if several else str(block["id"])
                yield name, with_legend(specification(chart, width=DRAWN), block["legend"])


def write_figures(
    folder: str | Path,
    record: Mapping[str, Any] | None,
    *,
    earlier: Sequence[Mapping[str, Any]] = (),
    ledger: Mapping[str, Any] | None = None,
) -> int:
    """Write every chart as SVG, PNG and PDF into a folder, whole or not at all; how many charts.

    A folder with files that are not figures of ours is refused.
    """
    if not can_draw():
        raise MissingExtra("report", "A chart")
    charts = list(paper_charts(record, earlier=earlier, ledger=ledger))
    if not charts:
        raise UsageError("There is no chart to write: no lens gave rows that can be drawn.")
    with new_folder(folder, kind=KIND) as place:
        for name, spec in charts:
            (place / f"{name}.svg").write_text(paper_svg(spec, name), encoding="utf-8")
            (place / f"{name}.png").write_bytes(png(spec, scale=SCALE, dots=DOTS_PER_INCH))
            (place / f"{name}.pdf").write_bytes(pdf(paper_svg(spec, name, unit="")))
    return len(charts)


def paper_svg(spec: Mapping[str, Any], name: str, *, unit: str = "pt") -> str:
    """A chart as SVG of a size in points, as a page of text sets it."""

    def in_points(found: re.Match[str]) -> str:
        width, height = (float(size) * SCALE for size in found.groups())
        return f'width="{width:g}{unit}" height="{height:g}{unit}"'

    return _SIZE.sub(in_points, own_ids(raw_svg(spec), name), count=1)
