"""How much more data would settle what cannot be told, in words that fit the measure."""

import re

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.findings.settling import settling
from evenhand.lenses.rows import Rows
from evenhand.stats.estimate import critical


def rows_of(gaps: list[float], error: float, *, measure: str, n: float, high: float) -> Rows:
    """A size over classes or groups with its parts; the size's own interval is not needed."""
    z = critical(0.95)
    over = "class" if "_rms" in measure else "group"
    base = re.sub(r"_(rms|spread).*", "", measure)
    parts = Rows.block(
        (len(gaps),),
        lens="statistical",
        attribute="sex",
        measure=base,
        value=gaps,
        low=[g - z * error for g in gaps],
        high=[g + z * error for g in gaps],
        **{over: [str(i) for i in range(len(gaps))]},
        **({"group": "f", "reference": "m"} if over == "class" else {"class": "1"}),
    )
    whole = Rows.block(
        (1,), lens="statistical", attribute="sex", measure=measure, value=0.1, level=0.95, n=n,
        limit_low=0.0, limit_high=high, verdict="cannot tell",
        **({"group": "f", "reference": "m"} if over == "class" else {"class": "1"}),
    )  # fmt: skip
    return Rows.concatenate([parts, whole])


def told(rows: Rows) -> str:
    return settling(list(rows)[-1], rows)


@pytest.mark.parametrize("measure", ["accuracy_gap_rms", "accuracy_gap_rms_corrected"])
def test_a_size_over_classes_needs_a_multiple_of_the_data(measure: str) -> None:
    found = told(rows_of([0.1, -0.1, 0.08], 0.045, measure=measure, n=3, high=0.05))
    # The doctest of further_cases_rms has 710 further cases for 1,000: 1.7 times as many.
    # 0.045 squared is 0.0020.
    assert found == "About 1.7 times as many cases in every group would settle it."


def test_more_noise_needs_more_data() -> None:
    def times(error: float) -> float:
        rows = rows_of([0.1, -0.1, 0.08], error, measure="accuracy_gap_rms", n=3, high=0.05)
        return float(told(rows).split()[1])

    # Doubling errors leaves less of the size itself, so it takes more than four times the cases.
    assert times(0.09) > 4 * times(0.045)


def test_a_spread_over_groups() -> None:
    rows = rows_of([0.2, 0.3, 0.4], 0.05, measure="accuracy_spread", n=3, high=0.06)
    assert re.fullmatch(r"About [\d.,]+ times as many cases in every group would settle it\.",
                        told(rows))  # fmt: skip


def test_nothing_is_said_of_a_class_that_is_hidden() -> None:
    rows = rows_of([0.1, np.nan, 0.08], 0.045, measure="accuracy_gap_rms", n=3, high=0.05)
    assert told(rows) == "It cannot be told whether that is within the limit."
    rows = rows_of([0.1, 0.08], 0.045, measure="accuracy_gap_rms", n=3, high=0.05)
    assert told(rows) == "It cannot be told whether that is within the limit."


def test_swaps_count_pairs_of_texts() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"decision@f": rng.random(400) < 0.32, "decision@m": rng.random(400) < 0.3}
    )
    audit = eh.audit(
        eh.Decisions(table), limits={"counterfactual_selection_rate_gap": 0.06}, lenses=["causal"]
    )
    assert audit.verdict == "cannot tell"
    assert re.search(
        r"About [\d,]+ further pairs of texts would settle it\.$", audit.findings[0].sentence
    )


def test_sizes_count_classes_and_groups() -> None:
    rng = np.random.default_rng(1)
    n = 3000
    table = pl.DataFrame(
        {
            "y": rng.choice(["a", "b", "c"], n),
            "d": rng.choice(["a", "b", "c"], n),
            "g": rng.choice(["f", "m", "x"], n),
        }
    )
    limits = {"true_positive_rate_gap_rms": 0.02, "selection_rate_spread": 0.001}
    audit = eh.audit(eh.Decisions(table, truth="y", decision="d", group="g"), limits=limits)
    sentences = {finding.measure: finding.sentence for finding in audit.findings}
    assert ", 3 classes. About" in sentences["true_positive_rate_gap_rms"]
    assert ", 3 groups. " in sentences["selection_rate_spread"]
