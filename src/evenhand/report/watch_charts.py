"""Charts of a look at a store: a number over periods, and why it moved, for screens and phones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from typing import Any

from evenhand.lenses.measures import CATALOGUE
from evenhand.speech import opening

Document = Mapping[str, Any]
Series = Mapping[str, Any]
Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSize:
    """Sizes of a line chart; `sizes` is the height of the bars that say n by period."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    labels: int
    sizes: int = 0
    dot: float = 3
    words: bool = True

    @property
    def end(self) -> int:
        """Where the last period lies."""
        return self.width - self.right

    @property
    def floor(self) -> int:
        """Where the lowest value lies."""
        return self.height - self.bottom


WIDE = ChartSize(width=960, height=306, left=60, right=40, top=34, bottom=64, labels=13, sizes=26)
PHONE = ChartSize(
    width=340, height=270, left=38, right=10, top=44, bottom=58, labels=4, sizes=22, dot=2
)
SMALL = ChartSize(
    width=320, height=150, left=34, right=8, top=12, bottom=24, labels=3, dot=2, words=False
)


def line_chart(
    one: Series, document: Document, alarm: Mapping[str, Any] | None, layout: ChartSize
) -> str:
    """A watched number over periods: each one's own, all so far, the band, alarm, onset and n."""
    x = _times(document["periods"], layout)
    ready = [i for i, known in enumerate(one["ready"]) if known] or [len(one["periods"]) - 1]
    unit = units(one["measure"])
    shown = [v for v in one["gap"] if v is not None]
    shown += [one[side][i] for side in ("low", "high") for i in ready]
    shown += [*(one["limit"] or ()), *([0.0] if unit else ())]
    y, ticks = _values(shown, layout)
    parts = _ground(one, document, x, y, layout)
    for tick in ticks:
        parts.append(
            f'<line x1="{layout.left}" x2="{layout.end}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" '
            'stroke="var(--line)"/>'
        )
        parts.append(_text(layout.left - 8, y(tick) + 4, _tick(tick, unit), "end"))
    xs = [x[name] for name in one["periods"]]
    upper = [f"{xs[i]:.1f},{y(one['high'][i]):.1f}" for i in ready]
    lower = [f"{xs[i]:.1f},{y(one['low'][i]):.1f}" for i in reversed(ready)]
    parts.append(f'<polygon points="{" ".join(upper + lower)}" fill="var(--plain)" opacity=".16"/>')
    line = " ".join(f"{a:.1f},{y(v):.1f}" for a, v in zip(xs, one["value"]))
    parts.append(f'<polyline points="{line}" fill="none" stroke="var(--plain)" stroke-width="2"/>')
    since = x.get(alarm["onset"]) if alarm else None
    for a, v in zip(xs, one["gap"]):
        colour = "var(--bad)" if since is not None and a >= since else "var(--ink2)"
        parts.append(
            f'<circle cx="{a:.1f}" cy="{y(v):.1f}" r="{layout.dot}" fill="{colour}" opacity=".75"/>'
        )
    if alarm and since is not None:
        parts += _alarm_marks(alarm, x, since, layout)
    parts += _axis(one, document, x, layout)
    label = escape(f"{CATALOGUE[one['measure']].label} by period", quote=True)
    return (
        f'<svg viewBox="0 0 {layout.width} {layout.height}" width="{layout.width}" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def _ground(
    one: Series, document: Document, x: Mapping[str, float], y: Scale, layout: ChartSize
) -> list[str]:
    """What lies below the lines: the band agreed on, what is not judged, where sequences begin."""
    parts = []
    if one["limit"]:
        low, high = (y(v) for v in one["limit"])
        parts.append(_rect(layout.left, high, layout.end - layout.left, low - high, "var(--band)"))
    half = (layout.end - layout.left) / max(len(x), 1) / 2
    high, deep = layout.top, layout.floor - layout.top
    last = None
    for period in document["periods"]:
        at = x[period["period"]]
        if not period["judged"]:
            left, right = max(at - half, layout.left), min(at + half, layout.end)
            parts.append(_rect(left, high, right - left, deep, "var(--untold)"))
        if last is not None and period["sequence"] != last:
            parts.append(
                f'<line x1="{at - half:.1f}" x2="{at - half:.1f}" y1="{high}" '
                f'y2="{layout.floor}" stroke="var(--ink2)" stroke-dasharray="1 3"/>'
            )
            if layout.words and period["sequence"] == document["sequences"]:
                said = f"sequence {period['sequence']}"
                parts.append(_text(at - half + 4, layout.floor - 6, said, "start"))
        last = period["sequence"]
    return parts


def _axis(one: Series, document: Document, x: Mapping[str, float], layout: ChartSize) -> list[str]:
    """Names of periods, and cases by period as bars."""
    names = [period["period"] for period in document["periods"]]
    down = layout.floor + (22 if layout.words else 16)
    parts = [_text(x[names[i]], down, short(names[i]), "middle")
             for i in _label_places(len(names), layout.labels)]  # fmt: skip
    if not layout.words:
        return parts
    base = layout.floor + 30 + layout.sizes
    most = max([n for n in one["n"] if n is not None] or [1.0])
    wide = max((layout.end - layout.left) / max(len(x), 1) * 0.6, 1.5)
    for name, n in zip(one["periods"], one["n"]):
        tall = layout.sizes * (n or 0.0) / max(most, 1e-12)
        parts.append(
            _rect(x[name] - wide / 2, base - tall, wide, tall, "var(--ink2)", extra=' opacity=".4"')
        )
    parts.append(_text(layout.left - 8, base, "n", "end"))
    return parts


def _alarm_marks(
    alarm: Mapping[str, Any], x: Mapping[str, float], since: float, layout: ChartSize
) -> list[str]:
    raised = x.get(alarm["raised"])
    top, bottom = layout.top, layout.floor
    found = [
        f'<line x1="{since:.1f}" x2="{since:.1f}" y1="{top}" y2="{bottom}" stroke="var(--bad)" '
        'stroke-dasharray="4 4"/>'
    ]
    if raised is not None:
        found.append(
            f'<line x1="{raised:.1f}" x2="{raised:.1f}" y1="{top}" y2="{bottom}" '
            'stroke="var(--bad)"/>'
        )
    if not layout.words:
        return found
    first, last = alarm["onset_low"], alarm["onset_high"]
    between = "" if first == last else f" ({short(first)} to {short(last)})"
    verb = "changed in" if alarm["detector"] == "change" else "outside since"
    said = f"{verb} {short(alarm['onset'])}{between}"
    # Words stand above the plot, each on the side of its line that has room.
    middle = (layout.left + layout.end) / 2
    found.append(_text(since, top - 8, said, "end" if since > middle else "start", bold=True))
    if raised is not None:
        told = f"alarm in {short(alarm['raised'])}"
        beside = layout.width > 600 and since > middle and raised < layout.end - 110
        if beside:
            found.append(_text(raised + 4, top - 8, told, "start", bold=True))
        else:
            anchor = "end" if raised > middle else "start"
            found.append(_text(raised, top - 24, told, anchor, bold=True))
    return found


def waterfall(causes: Sequence[Mapping[str, Any]], alarm: Mapping[str, Any], *, wide: bool) -> str:
    """The gap before, what each part did, and the gap since, one below the other."""
    total = next(cause for cause in causes if cause["part"] == "total")
    parts = [c for c in causes if c["stratum"] is None and c["part"] != "total"]
    unit = units(alarm["measure"])
    before, at = alarm["before"] or 0.0, alarm["before"] or 0.0
    steps = [(f"before {short(alarm['onset'])}", 0.0, before, "var(--ink2)")]
    for cause in sorted(parts, key=lambda c: -abs(c["value"])):
        grows = cause["value"] * total["value"] >= 0
        colour = "var(--bad)" if grows else "var(--plain)"
        steps.append((cause["label"], at, at + cause["value"], colour))
        at += cause["value"]
    steps.append((f"since {short(alarm['onset'])}", 0.0, at, "var(--ink2)"))
    ends = [end for step in steps for end in step[1:3]] + [0.0]
    low, high = min(ends), max(ends)
    width, start, room = (860, 230, 480) if wide else (340, 8, 250)
    tall, above = (38, 0) if wide else (48, 16)
    drawn = []
    for i, (name, first, last, colour) in enumerate(steps):
        top = 14 + tall * i + above
        left, right = sorted(
            start + room * (v - low) / ((high - low) or 1.0) for v in (first, last)
        )
        drawn.append(
            _text(start - 10, top + 17, name, "end", bold=True)
            if wide
            else _text(start, top - 4, name, "start", bold=True)
        )
        drawn.append(
            _rect(left, top, max(right - left, 2), 24, colour, extra=' rx="3" opacity=".8"')
        )
        ends_here = i in (0, len(steps) - 1)
        said = amount(last, unit, signed=False) if ends_here else amount(last - first, unit)
        drawn.append(_text(right + 8, top + 17, said, "start"))
    height = 20 + above + tall * len(steps)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="Why the gap moved">{"".join(drawn)}</svg>'
    )


def units(measure: str) -> str:
    """Points for differences between shares, else plain numbers."""
    record = CATALOGUE[measure]
    return "points" if record.low in (-1, 0) and record.high == 1 else ""


def number(value: float | None, unit: str, *, signed: bool = True) -> str:
    """A value as tables and charts print it: in points, or as it is."""
    if value is None:
        return "–"
    shown = f"{100 * value:+.1f}" if unit else f"{value:+.3g}"
    text = shown if signed and unit else shown.removeprefix("+")
    return ("0.0" if text in ("-0.0", "+0.0") else text).replace("-", "−")


def amount(value: float, unit: str, *, signed: bool = True) -> str:
    """A value with its unit."""
    return f"{number(value, unit, signed=signed)} {unit}".rstrip()


def caption(one: Series) -> str:
    """What a chart draws: the measure, who against whom, what was agreed, and the bars."""
    unit = units(one["measure"])
    against = f" against {one['reference']}" if one["reference"] else ""
    name = CATALOGUE[one["measure"]].label
    said = [f"{opening(name)}{f' in {unit}' if unit else ''}, {one['group']}{against}."]
    if one["limit"]:
        low, high = one["limit"]
        plain = [number(end, unit, signed=False).removesuffix(".0") for end in (low, high)]
        band = f"within {plain[1]}" if low == -high else f"{plain[0]} to {plain[1]}"
        said.append(f"Green: agreed, {f'{band} {unit}'.rstrip()}.")
    most = max([n for n in one["n"] if n is not None] or [0.0])
    return " ".join([*said, f"Bars: cases, {most:,.0f} at most."])


def short(name: str) -> str:
    """A period as an axis names it: week 31 of 2026-W31."""
    return f"week {int(name.rpartition('W')[2])}" if "-W" in name else name


def _times(periods: Sequence[Mapping[str, Any]], layout: ChartSize) -> dict[str, float]:
    """Where each period lies by its date: one that is missing leaves its place empty."""
    days = [date.fromisoformat(period["start"]).toordinal() for period in periods]
    first, span = days[0], days[-1] - days[0]
    width = layout.end - layout.left
    places = [layout.left + (width * (day - first) / span if span else width / 2) for day in days]
    return {period["period"]: place for period, place in zip(periods, places)}


def _values(values: Sequence[float], layout: ChartSize) -> tuple[Scale, list[float]]:
    """Where a value lies, and the ticks: round numbers around all values."""
    low, high = min(values), max(values)
    if high - low < 1e-9:
        low, high = low - 0.01, high + 0.01
    raw = (high - low) / (5 if layout.words else 3)
    power = 10.0 ** int(f"{raw:e}".split("e")[1])
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    first, last = int(low // step), int(-(-high // step))
    ticks = [step * i for i in range(first, last + 1)]
    span = (ticks[-1] - ticks[0]) or 1.0
    deep = layout.floor - layout.top
    return (lambda v: layout.floor - deep * (v - ticks[0]) / span), ticks


def _tick(value: float, unit: str) -> str:
    if not unit:
        return f"{value:.4g}".replace("-", "−")
    return f"{100 * value:+.4g}".replace("-", "−") if value else "0"


def _label_places(count: int, most: int) -> list[int]:
    step = max(1, -(-count // most))
    return list(range(0, count, step))


def _rect(x: float, y: float, width: float, height: float, fill: str, *, extra: str = "") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" '
        f'height="{max(height, 0):.1f}" fill="{fill}"{extra}/>'
    )


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    css = ' class="n"' if bold else ""
    return f'<text{css} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
