"""Tables and figures in a paper's layout: what stands in which file, and what is compared."""

import csv
import io

import pytest

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.papers.sheets import Absent, Cell, Figure, PaperTable, Reproduction


def table(**given):
    first = Cell(value=0.5, low=0.1, high=0.8, n=28, printed=0.79, printed_stars="**")
    rows = [
        (("BOW", "pre"), {"ρ": first}),
        (("BOW", "post"), {"ρ": Cell(value=0.6, stars="*", printed=0.80)}),
        (("WE", "pre"), {"ρ": Cell(value=-0.2, printed=-0.77)}),
        (("WE", "post"), {"ρ": Cell(reason="not run", printed=0.85)}),
    ]  # fmt: skip
    return PaperTable(
        name="table2", title="T", stub=("words", "how"), columns=("ρ",), rows=rows, **given
    )


def test_csv_has_a_line_for_each_row_of_the_paper():
    lines = list(csv.DictReader(io.StringIO(table().csv())))
    assert [(line["words"], line["how"]) for line in lines] == [
        ("BOW", "pre"), ("BOW", "post"), ("WE", "pre"), ("WE", "post"),
    ]  # fmt: skip
    assert lines[0]["ρ"] == "0.5"
    assert (lines[0]["ρ_low"], lines[0]["ρ_high"], lines[0]["ρ_n"]) == ("0.1", "0.8", "28")
    assert lines[0]["ρ_printed"] == "0.79"
    assert lines[3]["ρ"] == ""
    assert lines[3]["ρ_why"] == "not run"


def test_words_put_the_printed_value_beside_ours():
    heading, lines = table().lines()
    assert heading == ["words", "how", "ρ", "ρ, printed"]
    assert lines[0] == ["BOW", "pre", "0.50 [0.10, 0.80]", "0.79**"]
    assert lines[1] == ["BOW", "post", "0.60*", "0.80"]
    assert lines[2] == ["WE", "pre", "−0.20", "−0.77"]
    assert lines[3] == ["WE", "post", "not run", "0.85"]


def test_signs_and_order_are_compared_and_nothing_else():
    # Three rows have both numbers: all signs agree, and so do the three pairs of them.
    assert table().comparison() == ["ρ: 3 of 3 signs and 3 of 3 pairs of rows in the same order."]
    turned = [*table().rows[:2], (("WE", "pre"), {"ρ": Cell(value=0.9, printed=-0.77)})]
    other = PaperTable(name="t", title="", stub=("a", "b"), columns=("ρ",), rows=turned)
    assert other.comparison() == ["ρ: 2 of 3 signs and 1 of 3 pairs of rows in the same order."]


def test_on_the_papers_own_data_the_numbers_themselves_are_compared():
    assert table(same_data=True).comparison() == [
        "0 of 4 printed numbers are reached to the digits printed."
    ]


def test_a_folder_has_the_page_and_every_part(tmp_path):
    chart = {
        "kind": "lines",
        "series": [{"name": "<script>", "x": [0, 1], "y": [0, 1]}],
        "x_axis": "x",
        "y_axis": "y",
    }
    figure = Figure(
        name="figure1", title="F <script>", charts=[chart], columns=("x", "y"), rows=[[0, 1.5]]
    )
    absent = Absent(name="table9", title="No", reason="It was an image.")
    made = Reproduction(paper="p1", title="P", data="D", parts=[table(), figure, absent])
    where = made.write(tmp_path / "out")
    names = {path.name for path in where.iterdir()}
    assert {"index.html", "index.md", "table2.csv", "table2.md", "figure1.csv"} <= names
    assert {"figure1.svg", "figure1.pdf", "manifest.json"} <= names
    page = (where / "index.html").read_text()
    assert "<script" not in page
    assert "0.79**" in page
    assert "Not made: It was an image." in page
    assert "so only signs and order are compared" in page
    made.write(tmp_path / "out")  # what is wholly ours is replaced
    (where / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match=r"holds 'mine\.txt', which Evenhand did not write"):
        made.write(tmp_path / "out")


def test_a_paper_that_is_none():
    with pytest.raises(UsageError, match="paper='p4' is not one of the papers: p1, p2, p3"):
        eh.reproduce("p4")
    with pytest.raises(UsageError, match="Paper 3 has no data and no text model"):
        eh.reproduce("p3", data="x.csv")
