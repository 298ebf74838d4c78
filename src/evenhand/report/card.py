"""A record as a section of a model card: bias, risks and limitations, with their numbers."""

from collections.abc import Mapping
from typing import Any

from evenhand.report.markdown import as_markdown
from evenhand.report.table import printable
from evenhand.report.whole import whole

_OPEN = "<!-- evenhand: begin -->"
_CLOSE = "<!-- evenhand: end -->"


def as_card_section(record: Mapping[str, Any]) -> str:
    """The section "Bias, Risks, and Limitations" of a Hugging Face model card, in Markdown.

    Between two comments, so that a script can put a newer one in its place.

    Examples:
        >>> base = {"schema": "evenhand.audit/1", "made": {"version": "1"}, "results": []}
        >>> base |= {"data": {"fingerprint": "f"}, "findings": [], "verdict": "not assessed"}
        >>> print(as_card_section(base).splitlines()[2])
        ## Bias, Risks, and Limitations
    """
    held = whole(record)
    data, made = held["data"], held["made"]
    told = as_markdown(
        held | {"made": {"version": "", **made}, "data": {"fingerprint": "", **data}}
    )
    roles = data.get("roles") or {}
    groups = ", ".join(f"`{printable(name)}`" for name in roles.get("group") or [])
    rows = f"{data['rows']:,} rows" if data.get("rows") is not None else "the audited rows"
    lead = f"Audited on {rows}" + (f", by {groups}." if groups else ".")
    limits = (
        "An audit speaks of the data it saw: other people, places and times may differ, and "
        "groups that the data does not name cannot be seen."
    )
    parts = [_OPEN, "", "## Bias, Risks, and Limitations", "", lead, "", told, limits, "", _CLOSE]
    return "\n".join(parts) + "\n"


def put_into(card: str, section: str) -> str:
    """A model card with this section: in place of an older one, or at its end.

    Examples:
        >>> new = put_into("# Card\\n", f"{_OPEN}\\nnew\\n{_CLOSE}\\n")
        >>> put_into(new, f"{_OPEN}\\nnewer\\n{_CLOSE}\\n").count("new")
        1
    """
    start, end = card.find(_OPEN), card.find(_CLOSE)
    if 0 <= start < end:
        return card[:start] + section.rstrip("\n") + card[end + len(_CLOSE) :]
    return card.rstrip("\n") + "\n\n" + section
