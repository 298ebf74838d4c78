"""Paper 3 made again: every printed number, and what is worked through beside it."""

import pytest

import evenhand as eh
from evenhand.papers.sheets import Figure


@pytest.fixture(scope="module")
def paper():
    return eh.reproduce("p3", quick=True)


PRINTED = {
    "share of women with cancer": (0.26, 9 / 34),
    "share of men with cancer": (0.22, 7 / 32),
    "women's cancers not treated": (0.22, 2 / 9),
    "men's cancers not treated": (0.43, 3 / 7),
    "risk to treat from, c = 4": (0.20, 0.2),
    "lowest threshold with these decisions": (1 / 6, 1 / 6),
    "highest threshold with these decisions": (1 / 4, 1 / 4),
    "risk to act from, c = 0.1": (0.91, 1 / 1.1),
    "cost ratio of acting from 0.25": (3, 3),
    "cost ratio of acting from 1/6 (printed 0.16)": (5, 5),
}


@pytest.mark.parametrize("what", PRINTED)
def test_every_printed_number(paper, what):
    cell = paper.table("scalars").cell("value", what)
    printed, exact = PRINTED[what]
    assert cell.printed == pytest.approx(printed)
    assert cell.value == pytest.approx(exact)
    assert abs(cell.value - printed) <= 0.005


def test_nothing_else_stands_in_that_table(paper):
    assert [labels[0] for labels, _ in paper.table("scalars").rows] == list(PRINTED)
    told = paper.table("scalars").comparison()
    assert told == ["10 of 10 printed numbers are reached to the digits printed."]


def test_costs_of_every_rule(paper):
    table = paper.table("costs")
    # The two highest levels: 20 for men, three 22; optimal for every c from 3 to 5, from 5 to 7.
    assert table.cell("cost", "men", "from 1/4 on").value == 20
    assert table.cell("cost", "men", "from 1/6 on").value == 22
    assert table.cell("not treated", "men", "from 1/6 on").value == pytest.approx(1 / 7)
    ends = [table.cell(c, "men", "from 1/4 on").value for c in ("cheapest for c from", "to")]
    assert ends == pytest.approx([3, 5])


def test_dots_are_the_people(paper):
    figure = paper.part("figure1a")
    assert isinstance(figure, Figure)
    assert [len(chart["points"]) for chart in figure.charts] == [34, 32]
    kinds = [p["kind"] for chart in figure.charts for p in chart["points"]]
    assert kinds.count("cancer, not treated") == 5  # two women, three men
    later = [p["kind"] for chart in paper.part("figure1b").charts for p in chart["points"]]
    assert later.count("cancer, not treated") == 3  # two women, one man


def test_signal_detection_as_printed_in_figure_2(paper):
    figure = paper.part("figure2")
    assert "t = 1.00, d′ = 2.00 and a prevalence of 20%" in figure.read
    assert "from a probability of 0.20 on: one miss weighs as much as 4.0" in figure.read


def test_labelers_from_counts(paper):
    table = paper.table("labelers")
    # FPR 0.1 and FNR 0.2: t = Φ⁻¹(0.9) = 1.28155, d′ = t − Φ⁻¹(0.2) = 2.12317.
    found = {c: table.cell(c, "group A") for c in ("t", "d′", "implied threshold", "c")}
    assert found["t"].value == pytest.approx(1.28155, abs=1e-5)
    assert found["d′"].value == pytest.approx(2.12317, abs=1e-5)
    assert found["implied threshold"].value == pytest.approx(0.15056, abs=1e-5)
    assert found["c"].value == pytest.approx(5.6418, abs=1e-4)
    assert (found["c"].low, found["c"].high) == pytest.approx((3.997, 7.963), abs=1e-3)
    assert table.cell("c", "group B").value == pytest.approx(2.4026, abs=1e-4)


def test_flooding_moves_rates_and_the_model(paper):
    table = paper.table("flooded")
    implied = [cells["implied threshold"].value for _, cells in table.rows]
    assert [round(value, 3) for value in implied] == [0.151, 0.131, 0.103, 0.207]


def test_thresholds_come_back(paper):
    table = paper.table("thresholds")
    for group in ("A", "B"):
        planted = table.cell("planted", group).value
        local, window = table.cell("local line", group), table.cell("window of ±0.1", group)
        assert local.low <= planted <= local.high
        assert window.value < planted  # the density falls, so the window's mean is too low


def test_labelers_come_back(paper):
    table = paper.table("simulated")
    for group in ("A", "B"):
        for name in ("t", "d′", "c"):
            cell = table.cell(name, group)
            # Two of six intervals at 0.95 may miss by chance once in a while; not by their width.
            width = cell.high - cell.low
            assert cell.low - width / 2 <= table.cell(f"planted {name}", group).value
            assert table.cell(f"planted {name}", group).value <= cell.high + width / 2
