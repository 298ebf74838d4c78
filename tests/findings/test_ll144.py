"""Local Law 144: the rule's own examples, and what the form refuses.

The numbers are those of the tables in 6 RCNY § 5-301, subdivisions (b) and (d), as adopted by the
Department of Consumer and Worker Protection (Notice of Adoption, 2023). Every printed ratio follows
from the printed counts.
"""

import csv
import io
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import UsageError
from evenhand.findings.ll144 import impact_rows

RACES = ("Hispanic or Latino", "White", "Black or African American",
         "Native Hawaiian or Pacific Islander", "Asian", "Native American or Alaska Native",
         "Two or More Races")  # fmt: skip
# § 5-301 (b): applicants, selected, rate in percent, impact ratio.
SELECTED = {
    "Male": [(205, 90, 43.9, 0.841), (412, 215, 52.2, 1.000), (226, 95, 42.0, 0.806),
             (87, 37, 42.5, 0.815), (321, 167, 52.0, 0.997), (24, 11, 45.8, 0.878),
             (115, 52, 45.2, 0.866)],
    "Female": [(190, 82, 43.2, 0.827), (385, 197, 51.2, 0.981), (164, 75, 45.7, 0.876),
               (32, 15, 46.9, 0.898), (295, 135, 45.8, 0.877), (17, 7, 41.2, 0.789),
               (98, 44, 44.9, 0.860)],
}  # fmt: skip
# § 5-301 (d): applicants, scoring rate in percent, impact ratio.
SCORED = {
    "Male": [(16, 75.0, 1.00), (20, 35.0, 0.47), (20, 50.0, 0.67), (4, 75.0, 1.00),
             (12, 58.3, 0.78), (8, 62.5, 0.83), (12, 50.0, 0.67)],
    "Female": [(12, 50.0, 0.67), (20, 40.0, 0.53), (12, 50.0, 0.67), (4, 50.0, 0.67),
               (12, 25.0, 0.33), (8, 62.5, 0.83), (8, 50.0, 0.67)],
}  # fmt: skip


@pytest.fixture(scope="module")
def applicants() -> pl.DataFrame:
    """The people of the first example, and the 250 of unknown category beside them."""
    rows = [
        (sex, race, int(i < selected))
        for sex, cells in SELECTED.items()
        for race, (people, selected, *_) in zip(RACES, cells)
        for i in range(people)
    ]
    rows += [("Male", None, 1)] * 100 + [(None, "Asian", 0)] * 100 + [(None, None, 1)] * 50
    return pl.DataFrame(rows, schema=["sex", "race", "selected"], orient="row")


@pytest.fixture(scope="module")
def scored() -> pl.DataFrame:
    """The people of the second example: as many above the median of all as the rates say."""
    rows = []
    for sex, cells in SCORED.items():
        for race, (people, rate, _) in zip(RACES, cells):
            above = round(people * rate / 100)
            rows += [
                (sex, race, 60.0 + i if i < above else 40.0 + above - i) for i in range(people)
            ]
    rows += [(None, "White", 99.0)] * 15
    return pl.DataFrame(rows, schema=["sex", "race", "score"], orient="row")


def filled(table, **given) -> dict:
    details = given.pop("details", {})
    return eh.audit(table, group=["sex", "race"], forms={"ll144": details}, **given).forms["ll144"]


def rows_of(form: dict, name: str) -> dict[str, dict]:
    table = next(table for table in form["tables"] if table["name"] == name)
    return {row["category"]: row for row in table["rows"]}


def test_the_example_of_the_rule_for_selection(applicants):
    form = filled(applicants, decision="selected")
    assert (form["kind"], form["people"]) == ("selection", 2571)
    assert form["unknown"] == {"first": 150, "second": 150, "either": 250, "outcome": 0}
    sex = rows_of(form, "Sex")
    assert [(sex[s]["people"], sex[s]["chosen"]) for s in ("Male", "Female")] == [
        (1390, 667), (1181, 555),
    ]  # fmt: skip
    assert f"{sex['Male']['rate']:.0%}, {sex['Male']['impact_ratio']:.2f}" == "48%, 1.00"
    assert f"{sex['Female']['rate']:.0%}, {sex['Female']['impact_ratio']:.3f}" == "47%, 0.979"
    crossed = rows_of(form, "Sex and race/ethnicity")
    for who, cells in SELECTED.items():
        for race, (people, selected, rate, ratio) in zip(RACES, cells):
            row = crossed[f"{who}*{race}"]
            assert (row["people"], row["chosen"]) == (people, selected)
            assert round(100 * row["rate"], 1) == rate
            assert round(row["impact_ratio"], 3) == ratio


def test_the_example_of_the_rule_by_race():
    # As printed; its Hispanic or Latino row (408, 204) is not the sum of its crossed rows.
    people = np.array([408.0, 797, 390, 119, 616, 41, 213])
    selected = np.array([204.0, 412, 170, 52, 302, 18, 96])
    rows = impact_rows(RACES, people, selected, exclude={})
    rates = [f"{row['rate']:.0%}" for row in rows]
    assert rates == ["50%", "52%", "44%", "44%", "49%", "44%", "45%"]
    ratios = [f"{row['impact_ratio']:.2f}" for row in rows]
    assert ratios == ["0.97", "1.00", "0.84", "0.85", "0.95", "0.85", "0.87"]


def test_the_example_of_the_rule_for_scores(scored):
    form = filled(scored, score="score")
    assert form["kind"] == "scoring"
    assert form["unknown"]["either"] == 15
    # Half of the 168 lie above the median; the 15 of unknown category do not move it.
    assert form["median"] == 50.0
    sex = rows_of(form, "Sex")
    shown = {name: (f"{r['rate']:.1%}", f"{r['impact_ratio']:.2f}") for name, r in sex.items()}
    assert shown == {"Male": ("54.3%", "1.00"), "Female": ("44.7%", "0.82")}
    race = rows_of(form, "Race/ethnicity")
    assert [round(race[name]["impact_ratio"], 2) for name in RACES] == [
        1.00, 0.58, 0.78, 0.97, 0.65, 0.97, 0.78,
    ]  # fmt: skip
    crossed = rows_of(form, "Sex and race/ethnicity")
    for who, cells in SCORED.items():
        for name, (people, rate, ratio) in zip(RACES, cells):
            row = crossed[f"{who}*{name}"]
            assert row["people"] == people
            assert round(100 * row["rate"], 1) == rate
            assert round(row["impact_ratio"], 2) == ratio


def test_a_small_category_may_be_the_base_and_is_shown(scored):
    # Four people, three above the median: by the rule as good a base as any.
    crossed = rows_of(filled(scored, score="score"), "Sex and race/ethnicity")
    assert crossed["Male*Native Hawaiian or Pacific Islander"]["impact_ratio"] == 1.0


def test_a_category_is_excluded_only_with_a_reason_and_under_two_percent(applicants):
    name = "Native American or Alaska Native"
    why = "41 applicants, most for one position."
    form = filled(applicants, decision="selected", details={"exclude": {name: why}})
    row = rows_of(form, "Race/ethnicity")[name]
    assert (row["people"], row["chosen"], row["impact_ratio"], row["excluded"]) == (
        41,
        18,
        None,
        why,
    )
    assert round(row["rate"], 2) == 0.44
    assert rows_of(form, "Sex and race/ethnicity")[f"Male*{name}"]["impact_ratio"] is not None
    for exclude, words in (
        ({name: " "}, "is excluded without a justification, which § 5-301 (d) asks for."),
        ({"Asian": "few"}, "'Asian' has 24.0% of the applicants. Only a category under 2% may be"),
        ({"Asia": "few"}, "exclude names 'Asia', which is not a category. Did you mean 'Asian'?"),
        ([name], "lacks the justification that § 5-301 (d) asks for."),
    ):
        with pytest.raises(UsageError) as told:
            filled(applicants, decision="selected", details={"exclude": exclude})
        assert words in str(told.value)


def test_an_excluded_category_is_never_the_base():
    rows = impact_rows(["a", "b", "c"], np.array([1.0, 50, 50]), np.array([1.0, 20, 10]),
                       exclude={"a": "one person"})  # fmt: skip
    assert [row["impact_ratio"] for row in rows] == [None, 1.0, 0.5]


def test_categories_without_anybody_have_no_rate():
    rows = impact_rows(["a", "b"], np.array([0.0, 5]), np.array([0.0, 0]), exclude={})
    assert [(row["rate"], row["impact_ratio"]) for row in rows] == [(None, None), (0.0, None)]


def test_classes_have_tables_of_their_own():
    table = {"sex": ["f", "m"] * 60, "race": ["a", "a", "b", "b"] * 30,
             "style": ["leads", "follows", "asks"] * 40}  # fmt: skip
    form = filled(table, decision="style")
    assert [t["outcome"] for t in form["tables"]] == ["asks"] * 3 + ["follows"] * 3 + ["leads"] * 3


def test_values_that_name_no_category_are_unknown(applicants):
    said = applicants.with_columns(pl.col("race").fill_null("Decline to state"))
    form = filled(said, decision="selected", details={"unknown": ["Decline to state"]})
    assert form["unknown"]["either"] == 250
    assert form == filled(applicants, decision="selected") | {"data": form["data"]}


def test_every_engine_counts_the_same(scored, tmp_path):
    pytest.importorskip("duckdb")
    scored.write_parquet(tmp_path / "scored.parquet")
    ours = filled(tmp_path / "scored.parquet", score="score")
    assert filled(tmp_path / "scored.parquet", score="score", engine="duckdb") == ours


@pytest.mark.parametrize(
    ("groups", "details", "words"),
    [
        (["sex"], {}, "needs a group column for race or ethnicity: of sex none has such a name."),
        (
            ["race"],
            {},
            "The form ll144 needs a group column for sex: of race none has such a name.",
        ),
        (
            ["sex", "race"],
            {"sex": "gender"},
            "sex='gender' of the form ll144 is not a group column.",
        ),
        (["sex", "race"], {"dates": 1}, "The form ll144 has no detail 'dates'."),
        (["sex", "race"], {"audit_date": "soon"}, "audit_date='soon' is not a date."),
    ],
)
def test_a_form_without_what_it_needs_is_refused(applicants, groups, details, words):
    with pytest.raises(UsageError) as told:
        eh.audit(applicants, decision="selected", group=groups, forms={"ll144": details})
    assert words in str(told.value)


def test_what_else_is_refused(applicants):
    roles = {"decision": "selected", "group": ["sex", "race"]}
    with pytest.raises(UsageError, match=r"^'ll145' is not a form. Did you mean 'll144'\?"):
        eh.audit(applicants, **roles, forms=["ll145"])
    with pytest.raises(UsageError, match=r"^The audit did not fill in the form ll144\."):
        eh.render(eh.audit(applicants, **roles), form="ll144")
    weighted = applicants.with_columns(w=1.0)
    with pytest.raises(UsageError, match=r"^The form ll144 counts people"):
        eh.audit(weighted, **roles, weight="w", forms=["ll144"])


class Cells(HTMLParser):
    """The text of table cells, and of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.words: list[str] = []
        self.inside = False

    def handle_starttag(self, tag, attrs):
        self.inside = tag == "td"

    def handle_data(self, data):
        self.words.append(data)
        if self.inside:
            self.cells.append(data)
            self.inside = False


def test_the_command_writes_page_and_table(applicants, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    applicants.write_parquet("applicants.parquet")
    (tmp_path / "details.toml").write_text(
        '[ll144]\ntool = "Screener <b>2</b>"\naudit_date = 2026-03-01\n'
        'distribution_date = "2026-01-15"\ndata = "Applications of 2025"\n'
    )
    flags = ["--decision", "selected", "--group", "sex", "--group", "race", "--quiet",
             "--form-details", "details.toml"]  # fmt: skip
    with pytest.raises(SystemExit) as end:
        main(["audit", "applicants.parquet", *flags, "--form", "ll144=table.html", "--form",
              "ll144=table.csv", "--json", "audit.json"])  # fmt: skip
    assert end.value.code == 0
    page = (tmp_path / "table.html").read_text(encoding="utf-8")
    seen = Cells()
    seen.feed(page)
    text = " ".join(seen.words)
    assert seen.cells[:5] == ["Female", "1,181", "555", "47.0%", "0.979"]
    assert "Screener <b>2</b>" in text
    assert "<b>2</b>" not in page
    assert "250 (sex 150, race/ethnicity 150)" in text
    assert all(words in text for words in ("2026-03-01", "2026-01-15", "Applications of 2025"))
    assert "The rule sets no pass mark, and this form gives none." in text
    assert not {"pass", "fail", "0.8", "80%", "four-fifths"} & set(" ".join(seen.cells).split())
    lines = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert len(lines) == 2 + 7 + 14
    assert (lines[0]["category"], lines[0]["impact_ratio"]) == ("Female", "0.979337")
    again = eh.read_record("audit.json")
    assert eh.render(again, form="ll144") == page
    with pytest.raises(SystemExit) as end:
        main(["report", "audit.json", "--form", "ll144=again.html"])
    assert end.value.code == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(SystemExit) as end:
        main(["audit", "applicants.parquet", *flags, "--form", "ll144=applicants.parquet"])
    assert end.value.code == 2


def test_scores_without_a_cut_need_no_lens(scored):
    result = eh.audit(scored, score="score", group=["sex", "race"], forms=["ll144"])
    assert result.verdict == "not assessed"
    assert result.forms["ll144"]["people"] == 168
    assert str(result)
    assert eh.render(result, form="page", charts=False).startswith("<!doctype html>")
    assert eh.render(result, form="markdown")
