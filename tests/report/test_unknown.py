"""What the data cannot tell, concretely: which, how many, the widest and the nearest."""

from typing import Any

import numpy as np
import polars as pl

import evenhand as eh
from evenhand.report.outline import outline


def table(sizes: dict[str, tuple[int, int]], seed: int = 5) -> pl.DataFrame:
    """Titles of women and men, right in nine of ten, as many as the sizes say."""
    rng = np.random.default_rng(seed)
    names = list(sizes)
    rows = []
    for name, counts in sizes.items():
        for gender, count in zip(("female", "male"), counts):
            for right in rng.random(count) < 0.9:
                other = names[int(rng.integers(len(names)))]
                rows.append((gender, name, name if right else other))
    return pl.DataFrame(rows, schema=["gender", "title", "decision"], orient="row")


MANY = {name: (80 + 10 * i, 90) for i, name in enumerate("abcdef")} | {"rare": (4, 60)}
ROLES = {"truth": "title", "decision": "decision", "group": "gender"}


def questions(frame: pl.DataFrame, **more: Any) -> list[str]:
    audit = eh.audit(frame, **ROLES, reference={"gender": "male"}, **more)
    return list(outline(audit.record()).unknown)


def test_many_classes_with_a_limit_name_the_widest_and_the_nearest() -> None:
    said = questions(table(MANY), limits={"true_positive_rate_gap": 0.05})
    many = next(text for text in said if "comparisons are open" in text)
    assert many.startswith(
        "True positive rate gap by gender: 7 of 7 comparisons are open (at most 5 points was "
        "agreed). Widest is"
    )
    assert "Widest is '" in many
    assert "Nearest to being settled is '" in many
    assert "across both groups would do it four times out of five." in many


def test_many_classes_without_limits_say_for_how_many_chance_would_do() -> None:
    said = questions(table(MANY))
    assert said[0].startswith(
        "For 6 of 7 classes the data cannot tell whether the selection rate differs between women "
        "and men. Widest is 'f': anything from no difference to 11 points more fits."
    )
    assert said[-1] == (
        "Fewer than 10 cases stand behind the true positive rate of women for 'rare': hidden until "
        "there are 10, and not judged under 50."
    )


def test_two_open_comparisons_are_told_one_by_one() -> None:
    frame = table({"a": (200, 200), "b": (200, 200)})
    said = questions(frame, positive="a", limits={"accuracy_gap": 0.02})
    assert len(said) == 1
    assert said[0].startswith("Accuracy gap, women: if the gap is what it looks like, about ")


def test_groups_without_a_limit() -> None:
    """Groups of 200 whose three in ten chance alone moves, but for one of seven in ten."""
    rng, n = np.random.default_rng(2), 1600
    region = np.arange(n) % 8
    frame = pl.DataFrame(
        {
            "region": [f"r{i}" for i in region],
            "decision": (rng.random(n) < np.where(region == 7, 0.7, 0.3)).astype(int),
        }
    )
    audit = eh.audit(frame, decision="decision", group="region", reference={"region": "r0"})
    assert (
        outline(audit.record())
        .unknown[0]
        .startswith(
            "For 6 of 7 groups the data cannot tell whether the selection rate differs from that "
            "of group r0. Widest is group r"
        )
    )


def test_of_two_classes_a_missing_rate_is_told_once() -> None:
    """Five of group s have the truth and none of group n: the other truth's rates are mirrors."""
    groups = ["a"] * 200 + ["b"] * 200 + ["s"] * 30 + ["n"] * 30
    truth = [0, 1] * 200 + [1] * 5 + [0] * 25 + [0] * 30
    frame = pl.DataFrame({"g": groups, "t": truth, "d": [0, 0, 1, 1] * 115})
    audit = eh.audit(frame, truth="t", decision="d", group="g")
    said = outline(audit.record()).unknown
    assert (
        "Fewer than 10 cases stand behind the true positive rate of group s: hidden until there "
        "are 10, and not judged under 50."
    ) in said
    assert "Undefined is the true positive rate of group n: no cases in the group." in said
