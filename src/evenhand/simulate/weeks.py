"""A year of moderation decisions in which one group's threshold is raised while the mix drifts."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from scipy.special import expit

# From this week on, counted from 1, one group's posts are held to another threshold.
CHANGED = 31
GROUPS = {"female": 0.4, "male": 0.4, "nonbinary": 0.2}
FIRST_MONDAY = date(2024, 12, 30)
_SLOPE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Weeks:
    """Simulated weeks, and what was planted."""

    frame: Any
    planted: dict[str, float] = field(default_factory=dict)


def moderation_weeks(
    weeks: int = 52,
    *,
    posts: int = 2_500,
    changed: int = CHANGED,
    before: float = 0.5,
    after: float = 0.62,
    satire: tuple[float, float] = (0.1, 0.3),
    seed: int = 0,
) -> Weeks:
    """Weeks of posts by three groups: who wrote it, when it was decided, topic, score and cut.

    From the week `changed` on, posts by nonbinary people are removed from `after` on instead of
    `before`. Over the year the share of satire among them goes from the first to the second of
    `satire`; violations in satire score lower, so more of them are missed.

    Examples:
        >>> weeks = moderation_weeks(2, posts=100)
        >>> weeks.frame.columns
        ['decided_at', 'gender', 'topic', 'violates', 'score', 'cut']
        >>> weeks.frame["decided_at"].min().isoformat()[:10]
        '2024-12-30'
    """
    import polars as pl

    names = list(GROUPS)
    rng = np.random.default_rng(seed)
    n = weeks * posts
    week = np.repeat(np.arange(weeks), posts)
    which = rng.choice(len(names), size=n, p=list(GROUPS.values()))
    drifts = which == names.index("nonbinary")
    share = np.where(drifts, np.linspace(*satire, weeks)[week], satire[0])
    funny = rng.random(n) < share
    violates = rng.random(n) < 0.4
    apart = np.where(funny, 1.2, 2.4)
    signal = rng.standard_normal(n) + np.where(violates, apart / 2, -apart / 2)
    # The first and last post of a week fall on its first and last day: each is whole.
    minute = rng.integers(0, 7 * 1440, n)
    minute[::posts], minute[posts - 1 :: posts] = 0, 7 * 1440 - 1
    start = datetime(FIRST_MONDAY.year, FIRST_MONDAY.month, FIRST_MONDAY.day)
    cut = np.where(drifts & (week >= changed - 1), after, before)
    frame = pl.DataFrame(
        {
            "decided_at": [start + timedelta(minutes=int(m)) for m in week * 7 * 1440 + minute],
            "gender": pl.Series(np.array(names, dtype=object)[which].tolist(), dtype=pl.String),
            "topic": np.where(funny, "satire", "other"),
            "violates": violates.astype(np.int8),
            "score": expit(_SLOPE * signal),
            "cut": cut,
        }
    )
    return Weeks(frame=frame, planted={"week": float(changed), "before": before, "after": after})
