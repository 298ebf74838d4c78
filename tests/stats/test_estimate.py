"""How an estimate prints, and the levels it refuses."""

import pytest

from evenhand.errors import UsageError
from evenhand.stats.estimate import Estimate, critical
from evenhand.stats.rates import rate


def test_counts_are_printed_in_full() -> None:
    assert str(rate(250_000, 1_250_000)) == "0.200 [0.199, 0.201] n=1,250,000"
    told = Estimate(value=0.5, low=0.4, high=0.6, n=1234.56, n_reference=2_000_000)
    assert str(told) == "0.500 [0.400, 0.600] n=1,234.6 against n=2,000,000"


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95.0, float("nan")])
def test_what_is_no_level(level: float) -> None:
    with pytest.raises(UsageError) as caught:
        critical(level)
    assert str(caught.value) == (
        f"level={level} is not a confidence level. Choose one such as 0.95."
    )
