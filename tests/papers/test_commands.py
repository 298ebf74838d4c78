"""`evenhand reproduce` as it is called: where it writes, and every paper once with --quick."""

import csv
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.papers.reproduce import PAPERS

TABLES = {"p1": (2, 3), "p2": range(1, 9), "p3": ()}
FIGURES = {"p1": range(1, 7), "p2": range(1, 14), "p3": ("1a", "1b", "2")}


def test_papers_share_a_folder_and_are_made_again(run, tmp_path):
    """DIR/p3 goes into a folder that is there already and holds other things."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    for _ in range(2):
        code, out, err = run("reproduce", "p3", "--quick", "--out", "out")
        assert (code, err) == (0, "")
        assert out.endswith("Written to out/p3: index.html, index.md and every part as files.\n")
    assert (tmp_path / "out" / "mine.txt").read_text() == "x"
    assert (tmp_path / "out" / "p3" / "figure2.svg").is_file()


def test_places_that_are_refused(run, tmp_path):
    code, _, err = run("reproduce", "p3", "--out", " ")
    assert (code, err) == (2, "evenhand: --out names no place. Give a name such as out.parquet.\n")
    (tmp_path / "file").write_text("x")
    code, _, err = run("reproduce", "p3", "--out", "file")
    assert code == 2
    assert "'file' cannot be written" in err
    code, _, err = run("reproduce", "p1", "--data", "gone.csv", "--out", "out")
    assert (code, err) == (4, "evenhand: 'gone.csv' does not exist.\n")
    code, _, err = run("reproduce", "p2", "--ratings", "words.csv", "--out", "out")
    assert (code, err) == (
        2,
        "evenhand: Ratings of words (--ratings) are for paper 1. Leave them out.\n",
    )


@pytest.fixture(scope="session", params=PAPERS)
def quick(request, tmp_path_factory):
    """One paper made once, by the command itself: its name and its folder."""
    out = tmp_path_factory.mktemp("papers")
    with pytest.raises(SystemExit) as end:
        main(["reproduce", request.param, "--quick", "--out", str(out)])
    assert not end.value.code
    return request.param, out / request.param


def column(path: Path, name: str) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [line[name] for line in csv.DictReader(file)]


@pytest.mark.heavy
def test_every_table_and_figure_is_a_file(quick):
    paper, folder = quick
    page = (folder / "index.html").read_text(encoding="utf-8")
    for number in TABLES[paper]:
        for ending in ("csv", "md"):
            assert (folder / f"table{number}.{ending}").stat().st_size > 0
        assert f'<section id="table{number}">' in page
    for number in FIGURES[paper]:
        assert (folder / f"figure{number}.csv").stat().st_size > 0
        for ending in ("svg", "pdf"):
            one, first = f"figure{number}.{ending}", f"figure{number}-1.{ending}"
            assert (folder / one).is_file() or (folder / first).is_file(), one
    assert "Not made" not in page
    assert "<script" not in page


@pytest.mark.heavy
def test_what_the_papers_find_comes_back(quick):
    """Signs and order, on the simulator: where the paths are planted they have to be found."""
    paper, folder = quick
    if paper == "p1":
        low = [float(v) for v in column(folder / "table2.csv", "ρ_low")[:10]]
        assert sum(each > 0 for each in low) >= 8  # norm bias stays, whatever evens out gaps
        gaps = column(folder / "table2.csv", "Gap RMS")
        assert float(gaps[1]) == pytest.approx(0, abs=1e-9)  # BOW post, fitted
        assert column(folder / "table2.csv", "ρ_printed")[6] == "0.85"  # WE post
    elif paper == "p2":
        methods = column(folder / "table3.csv", "method")
        paired = dict(zip(methods, column(folder / "table3.csv", "CG TPR"), strict=True))
        # Copies bring the counterfactual gap to nothing, in the paper and here.
        assert float(paired["CDA"]) < 0.2 * float(paired["Normal"])
        assert {*column(folder / "figure13.csv", "method")} >= {"Normal", "RW-CDA"}
    else:
        assert len(column(folder / "scalars.csv", "value")) == 10
