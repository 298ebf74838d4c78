"""Paper 2 made again on tiny simulated texts: its layout cell by cell, and what must hold."""

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from evenhand.papers import statistical_and_causal as causal
from evenhand.papers.agreement import BINS, bins_of
from evenhand.papers.printed import printed_gaps
from evenhand.papers.runs import run_remedies
from evenhand.papers.sheets import Absent, Figure, Reproduction
from evenhand.papers.sources import COMMENTS, Encoding, Source, ledger_rows
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


def made(*, agreement):
    """The paper on tiny texts; half of the comments have annotators who all agree."""
    chosen = {name: each for name, each in occupations().items() if name in FEW}
    people = biographies(320, occupations=chosen, leak="class_words", seed=2).frame
    comments = biographies(280, occupations=COMMENTS, seed=3).frame
    runs = []
    for frame, names in zip((people, comments), causal.wanted("bow", "vectors"), strict=True):
        source = Source(
            rows=ledger_rows(frame, truth="title", name=None, seed=0), words="", own=False
        )
        texts = Encoding().prepare(source, setting="masked", seed=0)
        runs.append(run_remedies(texts, names, seeds=1))
    known = {text: (0.6, 1.0)[k % 2] for k, text in enumerate(comments["text"])}
    parts = causal.reproduce_statistical(
        runs[0],
        runs[1],
        main="bow",
        other="vectors",
        same_data=False,
        agreement=known if agreement else None,
    )
    return Reproduction(paper="p2", title="", data="", parts=parts), runs[1]


@pytest.fixture(scope="module")
def both():
    return made(agreement=True)


@pytest.fixture(scope="module")
def paper(both):
    return both[0]


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
    assert not [part.name for part in paper.parts if isinstance(part, Absent)]


def test_areas_have_delongs_interval(paper):
    cell = paper.table("table8").cell("bow", "Normal")
    assert 0.5 < cell.low < cell.value <= cell.high <= 1
    assert cell.n == 73  # a quarter of 280, cell by cell


def test_agreement_is_binned_at_edges_that_rounding_misses():
    assert bins_of([0.51, 0.6, 0.65, 0.9 - 0.05, 1.1 - 0.15]).tolist() == [0, 0, 1, 3, 4]
    assert len(BINS) == 5


def test_gaps_by_agreement_are_those_of_its_comments(both):
    """Figure 13 by hand: rates of the test comments whose annotators agree."""
    paper, runs = both
    rows = runs.texts.rows
    found = runs.of("bow", "baseline")[0].outcome
    counted = {tuple(row[:2]): row[2] for row in paper.part("figure7").rows}
    assert sum(counted.values()) == 280
    assert counted["0.65 to 0.75", "female"] == 0
    values = {(row[0], row[1], row[2]): row[3:] for row in paper.part("figure13").rows}
    assert len(values) == 8 * 5 * 2
    assert values["Normal", "0.65 to 0.75", "SG"][0] is None
    assert values["Normal", "0.65 to 0.75", "SG"][-1] == "fewer than 10 comments of a gender"
    whole = paper.table("table1").cell("SG PPR", "Normal").value
    women = rows.group[rows.test] == rows.groups.index("female")
    parts = []
    for name, agreed in (("0.50 to 0.65", 0.6), ("0.95 and more", 1.0)):
        value, low, high, n, why = values["Normal", name, "SG"]
        assert low <= value <= high
        assert why is None
        assert n == counted_women(paper, rows, women, agreed)
        parts.append(value)
    assert min(parts) <= whole <= max(parts)
    paired = [values["Normal", name, "CG"] for name in ("0.50 to 0.65", "0.95 and more")]
    assert sum(each[3] for each in paired) == rows.test.size
    mean = sum(each[0] * each[3] for each in paired) / rows.test.size
    plain = found.do["female"] == 1
    assert mean == pytest.approx(100 * np.mean(plain * 1.0 - (found.do["male"] == 1)))


def counted_women(paper, rows, women, agreed):
    """Women among the test comments of one agreement: every other comment has the same."""
    comments = biographies(280, occupations=COMMENTS, seed=3).frame["text"].to_list()
    known = {text: (0.6, 1.0)[k % 2] for k, text in enumerate(comments)}
    held = np.array([known[rows.people.texts[row]] == agreed for row in rows.test])
    return int((held & women).sum())


def test_without_annotators_two_figures_say_so(both):
    from evenhand.papers.agreement import agreement_figure, agreement_gaps

    runs = both[1]
    for part in (agreement_figure(runs, None), agreement_gaps(runs, "bow", None)):
        assert isinstance(part, Absent)
        assert "no annotators" in part.reason


ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
POINTS = ORACLES["2.11_public_notebook_figure_rms_x100"]
METHODS = {
    "Baseline": "Normal",
    "Oversampling": "OS",
    "Undersampling": "US",
    "Reweight": "RW",
    "CDA": "CDA",
    "Zari": "Zari",
    "Zari w/ CDA": "Zari w/CDA",
    "Oversampling w/ CDA": "OS-CDA",
    "Undersampling w/ CDA": "US-CDA",
    "Reweight w/ CDA": "RW-CDA",
}


def rms(values):
    return sqrt(sum(v * v for v in values) / len(values))


@pytest.mark.parametrize(
    ("figure", "rate", "close"), [("figure5", "TPR", 1e-3), ("figure10", "FPR", 1e-4)]
)
@pytest.mark.parametrize("gap", ["SG", "CG"])
def test_points_of_the_figures_are_those_of_the_notebooks(figure, rate, close, gap):
    for name, value in POINTS[f"albert_{rate}_{gap}"].items():
        held = printed_gaps(figure, METHODS[name], gap)
        assert len(held) == 28
        assert rms(held.values()) == pytest.approx(value, abs=close)


def test_six_occupations_have_opposite_signs_in_the_papers_figure(paper):
    sg, cg = (printed_gaps("figure2", "Normal", gap) for gap in ("SG", "CG"))
    opposite = sorted(title for title in sg if sg[title] * cg[title] < 0)
    assert opposite == POINTS["opposite_sign_occupations_fig2"]
    figure = paper.part("figure2")
    assert "Printed: 6 of 28 occupations have opposite signs." in figure.read
    assert len(figure.charts) == 2  # ours, and the paper's
    assert figure.rows
    for row in figure.rows:
        held = dict(zip(figure.columns, row, strict=True))
        title = held["occupation"]
        assert [held["SG printed"], held["CG printed"]] == [sg[title], cg[title]]


def test_figures_stand_for_the_model_that_the_paper_shows(paper):
    """Figures 2 and 5 are ALBERT's as Table 3 is, Figures 4 and 8 BERT's as Table 4."""
    place = {"table3": "bow", "table4": "vectors"}
    for name, where in place.items():
        assert f"{where} in the place of" in paper.table(name).title
    for name, where in {"figure2": "bow", "figure5": "bow", "figure4": "vectors",
                        "figure8": "vectors"}.items():  # fmt: skip
        assert {row[0] for row in paper.part(name).rows} == {where}
    assert {row[0] for row in paper.part("figure10").rows} == {"bow", "vectors"}
    printed = {row[-1] for row in paper.part("figure4").rows}
    assert printed == {None}  # BERT's points are not known
    values = {(r[1], r[2], r[3]): r[-1] for r in paper.part("figure5").rows}
    assert values["SG", "RW", "surgeon"] == printed_gaps("figure5", "RW", "SG")["surgeon"]


@pytest.mark.parametrize("name", ["figure1", "figure2", "figure5", "figure8", "figure9",
                                  "figure10", "figure11"])  # fmt: skip
def test_every_number_of_a_figure_has_an_interval_and_n(paper, name):
    figure = paper.part(name)
    for row in figure.rows:
        held = dict(zip(figure.columns, row, strict=True))
        for value in ("SG", "CG") if "SG low" in held else ("value",):
            before = "" if value == "value" else f"{value} "
            assert held[f"{before}low"] <= held[value] <= held[f"{before}high"]
            assert held[f"{before}n"] > 0


def test_one_sided_weights_stand_beside_the_notebooks(paper):
    for words, mark in (("female", "F"), ("male", "M")):
        for gap in ("SG", "CG"):
            held = [r[-1] for r in paper.part("figure12").rows if r[:2] == [words, gap]]
            expected = list(POINTS[f"bow_{gap}_{mark}"].values())
            assert held == pytest.approx(expected, abs=0.006)


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
    cell = paper.table("table1").cell("SG PPR", "Normal")
    assert f"] n {cell.n}</small>" in page
    titles = [part.title for part in paper.parts]
    assert len(set(titles)) == len(titles)  # figures of one kind say whose they are
    assert (where / "figure3.svg").read_text().startswith("<svg")
    assert (where / "figure3.pdf").read_bytes().startswith(b"%PDF")
