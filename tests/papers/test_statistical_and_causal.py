"""Paper 2 made again on tiny simulated texts: its layout cell by cell, and what must hold."""

import pytest

import evenhand as eh
from evenhand.papers import statistical_and_causal as causal
from evenhand.papers.runs import run_remedies
from evenhand.papers.sheets import Absent, Figure, Reproduction
from evenhand.papers.sources import Encoding, Source, ledger_rows
from evenhand.simulate.biographies import biographies, occupations

# As printed, × 100: mean ± standard deviation over runs.
TABLE_1 = """
Normal|−2.79±.28|0.89±.10|−2.77±.67|2.33±1.06|1.28±.30|−0.73±.11
CDA|−3.02±.23|0.25±.08|−2.62±2.07|0.36±.57|1.52±.29|−0.24±.06
OS|−1.21±.22|1.33±.31|2.21±.35|5.24±.42|0.20±.17|−0.88±.30
US|−1.54±.26|1.67±.29|1.61±1.11|4.56±.63|0.37±.24|−1.34±.26
RW|−1.44±.31|1.44±.24|2.09±.85|4.92±.53|0.39±.26|−1.05±.25
OS-CDA|−2.09±.30|0.18±.16|−1.11±.99|0.39±.46|0.79±.28|−0.15±.15
US-CDA|−1.90±.19|0.11±.11|−1.66±1.88|0.14±.70|0.57±.26|−0.11±.06
RW-CDA|−1.76±.36|0.33±.11|0.56±1.27|1.08±.74|0.62±.40|−0.24±.10
"""
TABLE_3 = """
Normal|95.49±.13|7.853±.761|.127±.009|2.569±.509|.051±.005
OS|95.50±.04|6.430±.172|.115±.004|1.590±.035|.041±.003
US|94.79±.08|5.600±.422|.097±.005|.529±.402|.011±.005
RW|95.26±.06|4.269±.427|.085±.011|.391±.094|.010±.001
CDA|95.47±.09|7.266±.870|.113±.007|.207±.043|.003±.000
Zari|95.23±.09|8.353±.550|.132±.006|2.849±.341|.067±.005
Zari w/CDA|95.20±.01|7.559±.787|.119±.008|.216±.048|.004±.001
OS-CDA|95.39±.13|5.403±.176|.109±.006|.130±.020|.013±.011
US-CDA|94.73±.09|4.969±.230|.096±.015|.174±.051|.007±.009
RW-CDA|95.43±.11|4.300±.424|.095±.011|.137±.020|.008±.004
"""
TABLE_6 = """
Resample→CDA OS-CDA|−2.73±.72|.011±.086|−2.51±.49|.004±.082
Resample→CDA US-CDA|−2.12±.51|.117±.114|−2.88±.78|.022±.134
CDA→Resample OS-CDA|−2.09±.30|.176±.160|−2.29±.42|.015±.107
CDA→Resample US-CDA|−1.90±.19|.114±.113|−2.22±.23|.084±.096
"""
FEW = ("nurse", "surgeon", "professor", "poet")


def printed(text):
    """Lines of a printed table: label, then pairs of mean and standard deviation."""
    lines = [line.split("|") for line in text.strip().splitlines()]
    return [
        (label, [tuple(float(v.replace("−", "-")) for v in cell.split("±")) for cell in cells])
        for label, *cells in lines
    ]


@pytest.fixture(scope="module")
def paper():
    chosen = {name: each for name, each in occupations().items() if name in FEW}
    people = biographies(320, occupations=chosen, leak="class_words", seed=2).frame
    comments = biographies(280, occupations=causal_comments(), seed=3).frame
    runs = []
    for frame, names in zip((people, comments), causal.wanted("bow", "vectors"), strict=True):
        source = Source(
            rows=ledger_rows(frame, truth="title", name=None, seed=0), words="", own=False
        )
        texts = Encoding().prepare(source, setting="masked", seed=0)
        runs.append(run_remedies(texts, names, seeds=1))
    parts = causal.reproduce_statistical(
        runs[0], runs[1], main="bow", other="vectors", same_data=False
    )
    return Reproduction(paper="p2", title="", data="", parts=parts)


def causal_comments():
    from evenhand.papers.sources import COMMENTS

    return COMMENTS


@pytest.mark.parametrize(("name", "text"), [("table1", TABLE_1), ("table3", TABLE_3)])
def test_printed_values_stand_in_their_cells(paper, name, text):
    table = paper.table(name)
    lines = printed(text)
    assert [labels for labels, _ in table.rows] == [(label,) for label, _ in lines]
    for label, cells in lines:
        for column, (mean, spread) in zip(table.columns, cells, strict=True):
            cell = table.cell(column, label)
            assert (cell.printed, cell.printed_spread) == (mean, spread)


def test_printed_values_of_table_6(paper):
    table = paper.table("table6")
    assert table.columns == ("SG bow", "CG bow", "SG vectors", "CG vectors")
    lines = printed(TABLE_6)
    assert [" ".join(labels) for labels, _ in table.rows] == [label for label, _ in lines]
    for label, cells in lines:
        order, method = label.split(" ", 1)
        for column, (mean, spread) in zip(table.columns, cells, strict=True):
            cell = table.cell(column, order, method)
            assert (cell.printed, cell.printed_spread) == (mean, spread)


def test_every_table_and_figure_is_there(paper):
    names = [part.name for part in paper.parts]
    assert names == [
        *(f"table{k}" for k in range(1, 9)),
        "validity",
        *(f"figure{k}" for k in range(1, 14)),
    ]
    absent = [part.name for part in paper.parts if isinstance(part, Absent)]
    assert absent == ["figure7", "figure13"]  # they need annotators


def test_ours_have_an_interval_and_n(paper):
    for name in ("table1", "table3"):
        table = paper.table(name)
        cell = table.cell(table.columns[1], "Normal")
        assert cell.low <= cell.value <= cell.high
        assert cell.n > 0


def test_gaps_are_those_of_the_lenses(paper):
    # SG of positive predictions is the difference of two rates of the table itself, × 100.
    cell = paper.table("table1").cell("SG PPR", "Normal")
    assert -100 <= cell.value <= 100
    sg, cg = (paper.table("table3").cell(c, "CDA") for c in ("SG TPR", "CG TPR"))
    assert sg.value > cg.value  # copies leave no counterfactual gap to speak of
    normal = paper.table("table3").cell("CG TPR", "Normal")
    assert cg.value < normal.value


def test_weight_nothing_gives_no_counterfactual_gap(paper):
    rows = paper.part("figure3").rows
    zero = [value for gap, weight, value, *_ in rows if gap == "CG" and weight == 0]
    assert zero == [0.0]
    others = {weight: (low, value) for gap, weight, value, low, *_ in rows if gap == "CG"}
    assert others[3][1] > 0
    assert others[3][0] is not None
    shown = {(gap, weight): held[-1] for gap, weight, *held in rows}
    assert [shown["SG", w] for w in range(-3, 4)] == [17.83, 17.18, 9.83, 9.83, 14.01, 18.04, 22.01]
    assert [shown["CG", w] for w in range(-3, 4)] == [17.82, 16.80, 5.80, 0.0, 5.55, 10.16, 14.88]


def test_validity_of_the_swap_stands_on_the_page(paper):
    table = paper.table("validity")
    cell = table.cell("changed", "female")
    assert cell.value > 0.3  # men's texts
    assert cell.low <= cell.value <= cell.high


def test_figures_have_every_occupation(paper):
    figure = paper.part("figure2")
    assert isinstance(figure, Figure)
    assert {point["name"] for point in figure.charts[0]["points"]} <= set(FEW)
    assert figure.charts[0]["diagonal"]
    assert len(paper.part("figure9").charts) == 2
    assert len(paper.part("figure12").charts) == 2


def test_the_page_is_written(paper, tmp_path):
    where = paper.write(tmp_path)
    page = (where / "index.html").read_text()
    assert "−2.79±0.28" in page
    assert (where / "figure3.svg").read_text().startswith("<svg")
    assert (where / "figure3.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.heavy
def test_quick(tmp_path):
    made = eh.reproduce("p2", quick=True, out=tmp_path)
    table = made.table("table3")
    # Copies bring the counterfactual gap to nothing, in the paper and here.
    assert table.cell("CG TPR", "CDA").value < 0.2 * table.cell("CG TPR", "Normal").value
    assert (tmp_path / "p2" / "index.html").is_file()
