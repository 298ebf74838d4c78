"""Columns stay aligned and within the width, whatever stands in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import evenhand as eh
from evenhand.report.terminal import BETWEEN, laid_out, show

CELLS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Mn", "Me", "Cf"]), max_size=40)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6), st.integers(70, 120))
def test_columns_line_up_fit_and_lose_nothing(rows: list[tuple[str, str, str]], width: int) -> None:
    blocks = laid_out(rows, width=width, right=[2])
    assert blocks is not None
    lines = [line for block in blocks for line in block]
    for column in zip(*lines):
        assert len({cell_len(cell) for cell in column}) == 1
    assert cell_len((" " * BETWEEN).join(lines[0])) <= width
    for row, block in zip(rows, blocks, strict=True):
        for i, cell in enumerate(row):
            shown = "".join(line[i] for line in block)
            assert "".join(shown.split()) == "".join(cell.split())


def test_nothing_is_wrapped_where_there_is_room() -> None:
    rows = [["female", "1,000"], ["日本", "9"]]
    assert laid_out(rows, width=80, right=[1]) == [[["female", "1,000"]], [["日本  ", "    9"]]]


def test_long_names_are_wrapped_and_numbers_never() -> None:
    rows = [["a" * 40, "b" * 12, "[−0.141, −0.088]"]]
    assert laid_out(rows, width=50, right=[2]) == [
        [
            ["a" * 16, "b" * 12, "[−0.141, −0.088]"],
            ["a" * 16, " " * 12, " " * 16],
            ["a" * 8 + " " * 8, " " * 12, " " * 16],
        ]
    ]
    assert laid_out(rows, width=40, right=[2]) is None


def printed(audit: eh.Audit, width: int, *, verbose: bool = False) -> list[str]:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    show(audit.record(), console, verbose=verbose)
    return out.getvalue().splitlines()


@pytest.fixture(scope="module")
def people() -> eh.Audit:
    n = 400
    table = {"y": [0, 1] * (n // 2), "d": [0, 1, 1, 0] * (n // 4)}
    table["people"] = ["women of colour", "nonbinary", "men", "men"] * (n // 4)
    decisions = eh.Decisions(table, truth="y", decision="d", group="people")
    return eh.audit(decisions, limits={"true_positive_rate_gap": 0.05})


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_window_of_any_width_shows_whole_words_and_numbers(people: eh.Audit, width: int) -> None:
    # men: 100 positives, none decided 1 → 0%; nonbinary: 100 positives, all decided 1 → 100%.
    for verbose in (False, True):
        lines = printed(people, width, verbose=verbose)
        assert max(cell_len(line) for line in lines) <= width
        text = "\n".join(lines)
        assert "…" not in text
        for name in ("women of colour", "nonbinary", "men"):
            assert name in " ".join(text.split())
        assert "100.0% [9" in text


def test_rates_of_every_group_come_before_any_gap(people: eh.Audit) -> None:
    lines = printed(people, 80)
    rates = next(i for i, line in enumerate(lines) if line.startswith(" group"))
    assert lines[rates - 1] == "people, compared with men"
    assert lines[rates].split("  ")[-1].strip() == "n"
    # Columns end where their headings end.
    end = lines[rates].index("true positive rate") + len("true positive rate")
    row = next(line for line in lines[rates:] if line.startswith(" nonbinary"))
    assert row[end - 1] == "]"
    assert row[end] == " "
    assert not any("gap" in line for line in lines[2:rates])
    assert not any(line.startswith("   nonbinary") for line in lines)
    assert any(line.startswith("   nonbinary") for line in printed(people, 80, verbose=True))


def test_the_measure_of_the_headline_is_the_first_column(people: eh.Audit) -> None:
    lines = printed(people, 60)
    heading = next(line for line in lines if line.startswith(" group"))
    assert heading.split() == ["group", "true", "positive", "rate", "n"]
    told = " ".join(" ".join(lines).split())
    assert "More rates (--verbose): selection rate; false positive rate." in told
