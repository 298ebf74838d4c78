"""Columns stay aligned and within the width, whatever stands in them."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import evenhand as eh
from evenhand.report.columns import BETWEEN, laid_out
from evenhand.report.terminal import show

CELLS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Mn", "Me", "Cf"]), max_size=40)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6), st.integers(40, 100))
def test_columns_line_up_and_fit(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = laid_out(rows, width=width, right=[2])
    for column in zip(*lines):
        assert len({cell_len(cell) for cell in column}) == 1
    assert cell_len((" " * BETWEEN).join(lines[0])) <= width


def test_nothing_is_cut_where_there_is_room() -> None:
    rows = [["female", "1,000"], ["日本", "9"]]
    assert laid_out(rows, width=80, right=[1]) == [["female", "1,000"], ["日本  ", "    9"]]


def test_the_longest_names_are_cut_before_numbers() -> None:
    rows = [["a" * 40, "b" * 12, "[−0.141, −0.088]"]]
    assert laid_out(rows, width=50, right=[2]) == [["a" * 15 + "…", "b" * 12, "[−0.141, −0.088]"]]


def printed(audit: eh.Audit, width: int) -> list[str]:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    show(audit.record(), Console(file=out, width=width, color_system=None, highlight=False))
    return out.getvalue().splitlines()


def test_a_screen_of_80_columns_shows_whole_words() -> None:
    n = 400
    table = {"y": [0, 1] * (n // 2), "d": [0, 1, 1, 0] * (n // 4)}
    table["people"] = ["women of colour", "nonbinary", "men", "men"] * (n // 4)
    decisions = eh.Decisions(table, truth="y", decision="d", group="people")
    audit = eh.audit(decisions, limits={"true_positive_rate_gap": 0.05})
    for width in (80, 100):
        lines = printed(audit, width)
        assert max(cell_len(line) for line in lines) <= width
        header = next(i for i, line in enumerate(lines) if line.startswith("   group"))
        assert lines[header + 2] == " true positive rate gap"
        # Ends of the right-aligned columns are the same in the header and in every row.
        row = next(line for line in lines[header:] if line.startswith("   nonbinary"))
        assert "…" not in row
        assert row.split()[-1] in {"outside", "within", "tell"}
        end = lines[header].index("value") + len("value")
        assert row[end - 1].isdigit()
        assert row[end] == " "
