"""The table of claims on the page that says how sure the numbers are."""

import json
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from claims.claim import Claim, Outcome

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "how-sure.md"
START, END = "<!-- claims: made by make simulate -->", "<!-- end of claims -->"
KINDS = {
    "coverage": "Intervals: how often they hold the truth",
    "joint": "Families: how often all intervals hold at once",
    "error": "Errors: how often something is said that is not so",
    "settled": "Further units: how often they settle it, if the truth is as it looked",
    "told": "Next steps: how often the interval of what they ask for holds the truth, where it is "
    "told",
    "found": "Planted differences: how often they are found",
    "looks": "Watching: how often something is said over 52 weekly looks at which nothing changed",
    "dated": "Watching: how soon a change is found, and whether its date is right",
}
# Beyond this share an interval could have been narrower.
WIDE = 0.98
HEAD = ["| measure | setting | wanted | measured | repetitions | |", "|---|---|---|---|---|---|"]


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as Markdown, one table for each kind of claim."""
    parts = []
    for kind, title in KINDS.items():
        rows = [outcome for outcome in outcomes if outcome.claim.kind == kind]
        if rows:
            parts += [f"## {title}", "", *HEAD, *(_row(outcome) for outcome in rows), ""]
    return "\n".join([*parts, *_remarks(outcomes)])


def _remarks(outcomes: Sequence[Outcome]) -> list[str]:
    """What is wider than it need be, and what does not hold, in words."""
    covering = [o for o in outcomes if o.claim.kind in ("coverage", "joint")]
    wide = [o for o in covering if o.rate > WIDE]
    weak = [o for o in outcomes if o.claim.said]
    failing = [o for o in outcomes if o.verdict in ("below", "above") and not o.claim.said]
    said = []
    if wide:
        said += [f"Wider than they need be ({_share(WIDE)} and more): {_names(wide)}.", ""]
    for outcome in weak:
        beside = f"its `method` says so beside it: “{outcome.claim.said}”"
        said += [f"Less sure than it looks: {_names([outcome])}; {beside}.", ""]
    if failing:
        said += [f"Not as wanted: {_names(failing)}.", ""]
    return said


def _names(outcomes: Sequence[Outcome]) -> str:
    return "; ".join(f"{o.claim.measure} ({o.claim.setting}) {_share(o.rate)}" for o in outcomes)


def _row(outcome: Outcome) -> str:
    low, high = outcome.claim.wanted
    wanted = f"≤ {_share(high)}" if low <= 0 else f"≥ {_share(low)}" if high >= 1 else None
    measured = f"{_share(outcome.rate)} ± {_share(outcome.error)}"
    cells = [
        # A stroke within a cell would end it.
        outcome.claim.measure.replace("|", "\\|"),
        outcome.claim.setting,
        wanted or f"{_share(low)}–{_share(high)}",
        measured if outcome.repetitions else "–",
        f"{outcome.repetitions:,}",
        "" if outcome.verdict == "holds" else f"**{outcome.verdict}**",
    ]
    return f"| {' | '.join(cells)} |"


def _share(value: float) -> str:
    return f"{value:.3f}".lstrip("0") if 0 < value < 1 else f"{value:g}"


def held(claims: Sequence[Claim], page: Path = PAGE) -> list[Outcome]:
    """What the page says of these claims already, for those that are not simulated again."""
    rows = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) >= 5 and "±" in cells[3]:
            rows[cells[0].replace("\\|", "|"), cells[1]] = cells
    found = []
    for claim in claims:
        cells = rows.get((claim.measure, claim.setting))
        if cells:
            count = int(cells[4].replace(",", ""))
            rate = float(cells[3].split(" ±")[0])
            found.append(Outcome(claim=claim, hits=rate * count, repetitions=count))
    return found


def keep(outcome: Outcome, *, folder: Path) -> None:
    """Keep what is known of a claim so far, one file for each claim."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        "claim": outcome.claim.name, "hits": outcome.hits, "repetitions": outcome.repetitions,
    }  # fmt: skip
    place = folder / f"{crc32(outcome.claim.name.encode()):08x}.json"
    place.write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")


def kept(claims: Sequence[Claim], folder: Path) -> list[Outcome]:
    """What a folder says of these claims."""
    found = {}
    for place in folder.glob("*.json"):
        facts = json.loads(place.read_text(encoding="utf-8"))
        found[facts["claim"]] = facts
    return [
        Outcome(
            claim=claim, hits=found[claim.name]["hits"],
            repetitions=found[claim.name]["repetitions"],
        )
        for claim in claims if claim.name in found
    ]  # fmt: skip


def write(outcomes: Sequence[Outcome], page: Path = PAGE) -> None:
    """Put the table between its marks on the page; the rest of the page stays."""
    text = page.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{page} lacks the marks {START!r} and {END!r}. Put them where it goes.")
    page.write_text(f"{before}{START}\n\n{table(outcomes)}\n{END}{after}", encoding="utf-8")
