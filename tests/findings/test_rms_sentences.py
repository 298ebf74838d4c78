"""Gaps over all classes in words: direction without a claim where there is none."""

import pytest

from evenhand.findings.rms_sentences import rms_words
from evenhand.report.view import after, headline


@pytest.mark.parametrize(
    ("measure", "value", "expected"),
    [
        (
            "true_positive_rate_gap_rms",
            0.2,
            "Over the classes, true positive rates of f lie apart from those of m",
        ),
        (
            "accuracy_gap_rms_corrected",
            0.0001,
            "Over the classes, accuracies of f lie with those of m",
        ),
        (
            "counterfactual_selection_rate_gap_rms_corrected",
            0.056,
            "Over the classes, exchanging only the words of the group changes selection rates",
        ),
        (
            "counterfactual_selection_rate_gap_rms",
            0.0,
            "Over the classes, exchanging only the words of the group leaves selection rates",
        ),
    ],
)
def test_words(measure, value, expected):
    told, shown = rms_words({"measure": measure, "group": "f", "value": value}, "m")
    assert told == expected
    assert shown.startswith(f"root mean square {value:.3f}")
    assert shown.endswith("sampling noise") is measure.endswith("corrected")
    # The page takes the words as heading and keeps the numbers for below.
    sentence = f"{told}: {shown} [0.046, 0.067], 28 classes."
    assert headline(sentence) == told
    assert after(sentence).startswith("Root mean square")


@pytest.mark.parametrize("measure", ["true_positive_rate_gap", "norm_bias", "flip_rate"])
def test_other_measures_are_left_to_others(measure):
    assert rms_words({"measure": measure, "group": "f", "value": 0.1}, "m") is None
