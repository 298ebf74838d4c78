"""Reading a charter: what it holds, and the exact words of every refusal."""

import datetime
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.charter.charter import Charter, TruthQuality
from evenhand.charter.read import KEYS, parse_charter, read_charter
from evenhand.charter.words import charter_text
from evenhand.decisions.roles import Roles
from evenhand.errors import DataError

SCHEMA = 'schema = "evenhand.charter/1"\n'
CHOICE = "[[choices]]\ncost_ratio = 4\ntolerance = 1.25\n"
FULL = """\
schema = "evenhand.charter/1"

[system]
name = "Comment moderation"
decision = "remove the comment"
false_positive = "wrongful removal"
false_negative = ["missed insult", "missed insults"]

[product]
owner = "Ada Obi"
date = 2026-01-15
consulted = ["writers' council"]
serves_everyone = "Yes, save for \
quotations."
whose_interests = "Readers' before writers'."

[product.without_a_person]
answer = "Only above 0.9."
owner = "Legal"
date = 2026-02-01
consulted = "union"

[policy]
owner = "Bo Lind"
review_by = 2027-02-01

[implementation]
owner = "Trust engineering"

[[stakeholders]]
name = "writers"
interest = "being heard"
consulted = true

[[stakeholders]]
name = "readers"

[[catalogue]]
outcome = "false_positive"
borne_by = "writers"
what = "silenced"

[[catalogue]]
outcome = "true_positive"
borne_by = "readers"
what = "spared"
attribute = "writer"
group = "a"

[[choices]]
cost_ratio = 4
tolerance = 1.25
positive_is = "burden"
decided_by = "Policy council"
decided_on = 2026-01-31
review_by = "2027-01-31"
reason = "Insults drive readers away."

[[choices]]
attribute = "writer*reader"
group = "a*b"
cost_ratio = 2
tolerance = [1.5, 3]

[limits]
true_positive_rate_gap = 0.05
selection_rate_ratio = "0.8"
accuracy = [0.7, 1]

[prevalence]
all = 0.02
[prevalence.writer]
a = 0.03

[truth_quality.writer]
a = {sensitivity = 0.9, specificity = 0.99}

[roles]
truth = "violates"
score = "score"
threshold = {a = 0.8, b = 0.7}
positive = true
group = ["writer", "reader"]
reference = {writer = "a"}
stratum_edges = [18, 30]
counterfactual = {b = "swapped"}
missing = "group"
"""


@pytest.fixture(scope="module")
def full() -> Charter:
    return parse_charter(FULL, source="full.toml")


def test_system_and_layers(full: Charter) -> None:
    assert full.system.false_positive == ("wrongful removal", "wrongful removals")
    assert full.system.false_negative == ("missed insult", "missed insults")
    product = full.layers["product"]
    assert (product.owner, product.date) == ("Ada Obi", datetime.date(2026, 1, 15))
    first, _, last = product.answers
    assert (first.text, first.owner) == ("Yes, save for quotations.", "Ada Obi")
    assert first.consulted == ("writers' council",)
    assert (last.text, last.owner, last.consulted) == ("Only above 0.9.", "Legal", ("union",))
    assert last.date == datetime.date(2026, 2, 1)
    assert full.owner_of("implementation") == "Trust engineering"
    assert full.layers["policy"].answers[0].text is None


def test_stakeholders_and_catalogue(full: Charter) -> None:
    assert [(s.name, s.consulted) for s in full.stakeholders] == [
        ("writers", True),
        ("readers", False),
    ]
    assert [(c.outcome, c.kind, c.group) for c in full.catalogue] == [
        ("false_positive", "cost", None),
        ("true_positive", "benefit", "a"),
    ]


def test_choices(full: Charter) -> None:
    for_all, pair = full.choices
    # 4/1.25 = 3.2 and 4·1.25 = 5; 1/(1+4) = 0.2, 1/(1+5) = 1/6, 1/(1+3.2) = 0.2381.
    assert (for_all.low, for_all.high, for_all.threshold) == (3.2, 5.0, 0.2)
    assert for_all.threshold_band == pytest.approx((1 / 6, 1 / 4.2))
    assert for_all.review_by == datetime.date(2027, 1, 31)
    assert (pair.attribute, pair.group, pair.low, pair.high) == ("writer*reader", "a*b", 1.5, 3)
    assert full.choice_for("writer*reader", "a*b") is pair
    assert full.choice_for("writer*reader", "b*a") is for_all
    assert full.positive_is == "burden"


def test_limits_prevalence_and_roles(full: Charter) -> None:
    assert full.limits == {
        "true_positive_rate_gap": (-0.05, 0.05),
        "selection_rate_ratio": (0.8, 1.25),
        "accuracy": (0.7, 1.0),
    }
    assert full.prevalence == {(None, None): 0.02, ("writer", "a"): 0.03}
    assert full.truth_quality == {("writer", "a"): TruthQuality(sensitivity=0.9, specificity=0.99)}
    assert full.roles == {
        "truth": "violates",
        "score": "score",
        "threshold": {"a": 0.8, "b": 0.7},
        "positive": "1",
        "group": ["writer", "reader"],
        "reference": {"writer": "a"},
        "stratum_edges": [18, 30],
        "counterfactual": {"b": "swapped"},
        "missing": "group",
        "crossed": True,
    }


def test_a_pair_may_be_written_as_lists() -> None:
    text = SCHEMA + CHOICE + 'attribute = ["writer", "reader"]\ngroup = ["a", 1]\n'
    choice = parse_charter(text).choices[0]
    assert (choice.attribute, choice.group) == ("writer*reader", "a*1")


def test_the_only_group_column_needs_no_naming() -> None:
    text = SCHEMA + CHOICE + 'group = true\n[roles]\ngroup = "member"\n'
    assert parse_charter(text).choices[0].whom == "member=1"


def test_carriage_returns_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(b"\xef\xbb\xbf" + (SCHEMA + CHOICE).replace("\n", "\r\n").encode())
    assert read_charter(file).choices[0].cost_ratio == 4


REFUSED = {
    # the file
    "": 'c.toml has no schema. Write schema = "evenhand.charter/1" as its first line.',
    'schema = "evenhand.charter/2"': 'c.toml, line 1: schema = "evenhand.charter/2" is not a '
    'schema that this version reads. It reads "evenhand.charter/1".',
    SCHEMA + "[[choices]]\ncost_ratio = 3:1": "c.toml, line 3: 'cost_ratio = 3:1' is not valid "
    "TOML (expected newline or end of document after a statement). Put words in quotes, write "
    "dates as 2026-01-31 and numbers without units or colons.",
    SCHEMA + "[[choices]]\ndecided_on = 2026-02-30\n": "c.toml, line 3: 'decided_on = 2026-02-30' "
    "is not valid TOML (invalid date or datetime). Put words in quotes, write dates as 2026-01-31 "
    "and numbers without units or colons.",
    # keys
    SCHEMA + "[chioces]\n": "c.toml, line 2: 'chioces' is not a key of a charter. Did you mean "
    f"'choices'? The keys are {', '.join(KEYS)}.",
    SCHEMA + CHOICE + "resaon = 'x'\n": "c.toml, line 5: 'resaon' is not a key of [choices]. Did "
    "you mean 'reason'? The keys are compare, cost_ratio, tolerance, attribute, group, "
    "positive_is, decided_by, decided_on, review_by, reason.",
    SCHEMA + "[policy]\nwhat_count = 'x'\n": "c.toml, line 3: 'what_count' is not a key of "
    "[policy]. Did you mean 'what_counts'? The keys are owner, date, review_by, consulted, "
    "fits_every_group, what_counts, which_mistake_hurts.",
    # forms
    SCHEMA + "system = 3": "c.toml, line 2: system = 3 is not a table. Write [system] and its "
    "keys on lines of their own.",
    SCHEMA + "[choices]\ncost_ratio = 3\n": "c.toml, line 2: choices is not a list of tables. "
    "Write [[choices]] above each of them.",
    SCHEMA + "[policy]\nowner = 3\n": "c.toml, line 3: policy.owner = 3 is not text. Put words "
    "in quotes.",
    SCHEMA + "[policy]\nconsulted = [1]\n": "c.toml, line 3: policy.consulted = [1] is not a list "
    'of names. Write it as ["one", "another"].',
    SCHEMA + "[system]\nfalse_positive = ['a', 'b', 'c']\n": "c.toml, line 3: "
    'system.false_positive = ["a", "b", "c"] is more than one name and its plural. Write one, or '
    "two in a list.",
    SCHEMA + "[system]\ntruth = 'break the rules'\n": "c.toml, line 3: system.truth = "
    '"break the rules" does not say both what is the case and what is not. Write two, such as '
    '["break the rules", "do not break the rules"].',
    SCHEMA + "[system]\nitems = 'post'\n": "c.toml, line 3: 'items' is not a key of [system]. Did "
    "you mean 'item'? The keys are name, decision, of, decided, item, class, false_positive, "
    "false_negative, truth, groups.",
    SCHEMA + "[system.groups]\ngender = 'x'\n": "c.toml, line 3: system.groups.gender = \"x\" is "
    "not a table. Write [system.groups.gender] and its keys on lines of their own.",
    SCHEMA + "[system.groups.gender]\nx = 3\n": "c.toml, line 3: system.groups.gender.x = 3 is not "
    "text. Put words in quotes.",
    # choices
    SCHEMA + "[[choices]]\ntolerance = 1.25\n": "c.toml, line 2: choices has no cost_ratio. Write "
    "how many false positives one false negative counts as, such as cost_ratio = 3.",
    SCHEMA + "[[choices]]\ncost_ratio = '3:1'\ntolerance = 1.25": "c.toml, line 3: "
    'choices.cost_ratio = "3:1" is not a number. Write how many false positives one false '
    "negative counts as, such as cost_ratio = 3, or 0.333 where one false positive counts as 3 "
    "false negatives.",
    SCHEMA + "[[choices]]\ncost_ratio = inf\ntolerance = 1.25": "c.toml, line 3: "
    "choices.cost_ratio = inf is not finite. Write how many false positives one false negative "
    "counts as, such as cost_ratio = 3, or 0.333 where one false positive counts as 3 false "
    "negatives.",
    SCHEMA + "[[choices]]\ncost_ratio = -3\ntolerance = 1.25": "c.toml, line 3: "
    "choices.cost_ratio = -3 is negative, as if a mistake were free or wished for. Write how many "
    "false positives one false negative counts as, such as cost_ratio = 3, above 0.",
    SCHEMA + "[[choices]]\ncost_ratio = 0\ntolerance = 1.25": "c.toml, line 3: "
    "choices.cost_ratio = 0 is zero, as if a mistake were free or wished for. Write how many "
    "false positives one false negative counts as, such as cost_ratio = 3, above 0.",
    SCHEMA + "[[choices]]\ncost_ratio = 4\n": "c.toml, line 2: choices has no tolerance. Write a "
    "factor above 1, such as 1.25, or a band, such as [3, 5].",
    SCHEMA + "[[choices]]\ncost_ratio = 4\ntolerance = 0.8": "c.toml, line 4: choices.tolerance = "
    "0.8 leaves no room around the cost ratio. Write a factor above 1, such as 1.25, or a band, "
    "such as [3, 5].",
    SCHEMA + "[[choices]]\ncost_ratio = 4\ntolerance = '25 %'": "c.toml, line 4: "
    'choices.tolerance = "25 %" is not a number. Write a factor above 1, such as 1.25, or a band, '
    "such as [3, 5].",
    SCHEMA + "[[choices]]\ncost_ratio = 4\ntolerance = [3]": "c.toml, line 4: choices.tolerance = "
    "[3] is not a band of two numbers. Write a factor above 1, such as 1.25, or a band, such as "
    "[3, 5].",
    SCHEMA + "[[choices]]\ncost_ratio = 4\ntolerance = [5, 3]": "c.toml, line 4: "
    "choices.tolerance = [5, 3] is not a band. Write the lower end first, above 0.",
    SCHEMA + "[[choices]]\ncost_ratio = 4\ntolerance = [5, 6]": "c.toml, line 4: "
    "choices.tolerance = [5, 6] does not hold the chosen cost ratio 4. Widen the band.",
    SCHEMA + CHOICE + CHOICE: "c.toml, line 5: choices chooses a cost ratio for everybody a "
    "second time, first on line 2. Keep one of the two.",
    SCHEMA + (CHOICE + "attribute = 'sex'\ngroup = 'f'\n") * 2: "c.toml, line 7: choices chooses "
    "a cost ratio for sex=f a second time, first on line 2. Keep one of the two.",
    SCHEMA + CHOICE + "decided_on = 'last May'\n": "c.toml, line 5: choices.decided_on = "
    '"last May" is not a date. Write year-month-day, such as decided_on = 2026-01-31.',
    SCHEMA + CHOICE + "review_by = 2027\n": "c.toml, line 5: choices.review_by = 2027 is not a "
    "date. Write year-month-day, such as review_by = 2026-01-31.",
    SCHEMA + CHOICE + "decided_on = 2026-05-01\nreview_by = 2026-05-01\n": "c.toml, line 6: "
    "choices.review_by = 2026-05-01 is not after decided_on = 2026-05-01. Give a later day for "
    "the review.",
    SCHEMA + CHOICE + "positive_is = 'benefits'\n": "c.toml, line 5: choices.positive_is = "
    '"benefits" is not known. Did you mean \'benefit\'? Write "benefit" or "burden".',
    SCHEMA + CHOICE + "positive_is = 'burden'\n[roles]\npositive_is = 'benefit'\n": "c.toml, "
    'line 5: choices.positive_is = "burden" contradicts "benefit", said before. One decision is '
    "either a benefit or a burden for the person decided about: say the same everywhere.",
    SCHEMA + CHOICE + "group = 'f'\n": "c.toml, line 5: choices.group = \"f\" does not say of "
    'which column. Add attribute, such as "gender".',
    SCHEMA + CHOICE + "attribute = 'sex'\n": 'c.toml, line 5: choices.attribute = "sex" has no '
    "group beside it. Add group, or leave attribute out for everybody.",
    SCHEMA + CHOICE + "attribute = 'a*b'\ngroup = 'x'\n": 'c.toml, line 6: choices.group = "x" '
    'names too few values for a*b. Write one for each column, in the same order: "a*b".',
    SCHEMA + CHOICE + "attribute = 'a'\ngroup = [{x = 1}]\n": "c.toml, line 6: choices.group = "
    '[{x = 1}] is not a value of a column. Write it as "north" or 1.',
    SCHEMA + CHOICE + "attribute = 'gendre'\ngroup = 'f'\n[roles]\ngroup = ['gender', 'age']\n": ""
    'c.toml, line 5: choices.attribute = "gendre" is not a group column of [roles]. Did you mean '
    "'gender'? They are gender, age.",
    SCHEMA + CHOICE + "attribute = 'r*w'\ngroup = 'f*f'\n[roles]\ngroup = ['w', 'r']\n": "c.toml, "
    'line 5: choices.attribute = "r*w" is not how [roles] crosses its group columns, which gives '
    "w*r. Write the columns in the same order in both places.",
    SCHEMA
    + CHOICE
    + "attribute = 'w*r'\ngroup = 'f*f'\n[roles]\ngroup = ['w', 'r']\ncrossed = false": ""
    'c.toml, line 5: choices.attribute = "w*r" is a pair, but [roles] says crossed = false. Set '
    "crossed = true.",
    # one bar
    SCHEMA + "[[choices]]\ncompare = 'bars'\ncost_ratio = 4\ntolerance = 2\n": "c.toml, line 3: "
    'choices.compare = "bars" is not known. Did you mean \'bar\'? Write "cost_ratio" or "bar".',
    SCHEMA + "[[choices]]\ncompare = 'bar'\n": "c.toml, line 2: choices has no tolerance. Write "
    "how far bars may differ, in standard deviations, such as 0.2.",
    SCHEMA + "[[choices]]\ncompare = 'bar'\ntolerance = 0\n": "c.toml, line 4: choices.tolerance = "
    "0 leaves no room. Write how far bars may differ, in standard deviations, such as 0.2, "
    "above 0.",
    SCHEMA + "[[choices]]\ncompare = 'bar'\ntolerance = 0.2\n[limits]\ncriterion_gap = 0.3\n":
    "c.toml, line 6: limits.criterion_gap = 0.3 says again what [[choices]] says. Change the "
    "tolerance there, and drop this.",
    # stakeholders and catalogue
    SCHEMA + "[[stakeholders]]\ninterest = 'x'\n": "c.toml, line 2: stakeholders has no name. Add "
    'one, such as name = "people who comment".',
    SCHEMA + "[[stakeholders]]\nname = 'x'\n[[stakeholders]]\nname = 'x'\n": "c.toml, line 5: "
    'stakeholders.name = "x" is listed twice. Keep one of the two.',
    SCHEMA + "[[stakeholders]]\nname = 'x'\nconsulted = 'yes'\n": "c.toml, line 4: "
    'stakeholders.consulted = "yes" is neither true nor false. Write one of the two, without '
    "quotes.",
    SCHEMA + "[[catalogue]]\nborne_by = 'x'\nwhat = 'y'\n": ""
    "c.toml, line 2: catalogue does not say which outcome it is about. Add one of "
    "false_positive, false_negative, true_positive, true_negative.",
    SCHEMA + "[[catalogue]]\noutcome = 'false positive'\nborne_by = 'x'\nwhat = 'y'\n": ""
    "c.toml, line 3: catalogue.outcome = "
    "\"false positive\" is not known. Did you mean 'false_positive'? Write \"false_positive\", "
    '"false_negative", "true_positive" or "true_negative".',
    SCHEMA + "[[catalogue]]\noutcome = 'false_positive'\nwhat = 'y'\n": ""
    "c.toml, line 2: catalogue does not say who bears it. Add borne_by and a stakeholder.",
    SCHEMA + "[[catalogue]]\noutcome = 'false_positive'\nborne_by = 'x'\n": "c.toml, line 2: "
    "catalogue does not say what happens to them. Add what, in words.",
    SCHEMA
    + "[[stakeholders]]\nname = 'readers'\n[[catalogue]]\noutcome = 'false_positive'\n"
    + "borne_by = 'reader'\nwhat = 'x'\n": 'c.toml, line 6: catalogue.borne_by = "reader" is not a '
    "stakeholder. Did you mean 'readers'? Add them under [[stakeholders]].",
    # limits
    SCHEMA + "[limits]\nselection_rate_gab = 0.1\n": "c.toml, line 3: 'selection_rate_gab' is not "
    "a measure. Did you mean 'selection_rate_gap'? See the list with: evenhand audit "
    "--list-measures",
    SCHEMA + "[limits]\nselection_rate_gap = 'small'\n": "c.toml, line 3: limit "
    "selection_rate_gap=small is not a number or a band. Write selection_rate_gap=0.05, or "
    "selection_rate_gap=-0.02:0.05 for both sides.",
    SCHEMA + "[limits]\naccuracy = [1, 0.5]\n": "c.toml, line 3: limit accuracy=1:0.5 leaves no "
    "room between 1 and 0.5. The lower end comes first and must be smaller.",
    SCHEMA + CHOICE + "[limits]\ncost_ratio = [3, 5]\n": "c.toml, line 6: limits.cost_ratio = "
    "[3, 5] says again what [[choices]] says. Change the tolerance there, and drop this.",
    SCHEMA + "[limits]\nselection_rate_gap = inf\n": "c.toml, line 3: limits.selection_rate_gap = "
    "inf has no lower end, so nothing could be judged. Write a number such as 0.05.",
    # what is known from elsewhere
    SCHEMA + "[prevalence]\nall = 2\n": "c.toml, line 3: prevalence.all = 2 is not a share. Write "
    "the share of true cases, between 0 and 1, such as 0.02.",
    SCHEMA + "[prevalence.sex]\nf = '2 %'\n": 'c.toml, line 3: prevalence.sex.f = "2 %" is not a '
    "number. Write the share of true cases, between 0 and 1, such as 0.02.",
    SCHEMA + "[prevalence]\nf = 0.02\n": "c.toml, line 3: prevalence.f = 0.02 is not a table. "
    "Write all = … for everybody, or [prevalence.f] with a line for each group.",
    SCHEMA + "[truth_quality]\nall = {sensitivity = 0.9}\n": "c.toml, line 3: truth_quality.all = "
    "{sensitivity = 0.9} has no specificity. Give both sensitivity and specificity.",
    SCHEMA + "[truth_quality]\nall = {sensitivity = 0.9, specificity = 95}\n": "c.toml, line 3: "
    "truth_quality.all.specificity = 95 is not a share. Write a share above 0 and at most 1, such "
    "as 0.95.",
    SCHEMA + "[truth_quality.sex]\nf = {sensitivity = 0.4, specificity = 0.6}\n": "c.toml, "
    "line 3: truth_quality.sex.f = {sensitivity = 0.4, specificity = 0.6} is no better than a "
    "coin: the two must add up to more than 1. Check them.",
    # roles
    SCHEMA + "[roles]\nrule = 'argmin'\n": 'c.toml, line 3: roles.rule = "argmin" is not known. '
    "Did you mean 'argmax'? Write \"given\", \"score>=t\", \"argmax\" or \"one-versus-rest\".",
    SCHEMA + "[roles]\nthreshold = true\n": "c.toml, line 3: roles.threshold = true is not a "
    "number. Write a number such as 0.8, the name of a column, or one number for each group.",
    SCHEMA + "[roles]\nstratum_edges = '18,30'\n": 'c.toml, line 3: roles.stratum_edges = "18,30" '
    "is not a list of numbers. Write it as [18, 30, 65].",
    SCHEMA + "[roles]\npositive = []\n": "c.toml, line 3: roles.positive = [] is not a value. "
    "Write the value that counts as positive.",
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED.items(), ids=range(len(REFUSED)))
def test_every_refusal_names_line_value_and_remedy(text: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_charter(text, source="c.toml")
    assert str(caught.value) == words
    assert caught.value.exit_code == 4


def refusals(text: str) -> list[str]:
    """Each refusal of a text on its own, without the head and the marks of the list."""
    with pytest.raises(DataError) as caught:
        parse_charter(text, source="c.toml")
    head, *told = str(caught.value).split("\n- ")
    return told or [head]


def test_all_mistakes_are_told_at_once_in_the_order_of_lines() -> None:
    text = (
        "[system]\nname = 3\nfalse_postive = 'x'\n"  # lines 1 to 3; and there is no schema
        "[[choices]]\ncost_ratio = '3:1'\ndecided_on = 'last May'\nreveiw_by = 2027-01-31\n"
        "[[choices]]\ncost_ratio = 0\ntolerance = 1.25\nattribute = 'sex'\n"
        "[limits]\nselection_rate_gab = 0.1\naccuracy = [1, 0.5]\n"
        "[roles]\ntruht = 'y'\npositive = []\n"
    )
    with pytest.raises(DataError) as caught:
        parse_charter(text, source="c.toml")
    assert str(caught.value).startswith("c.toml has 13 mistakes:\n- c.toml has no schema.")
    assert caught.value.exit_code == 4
    lines = [re.match(r"c\.toml, line (\d+): ", one) for one in refusals(text)]
    assert [int(line[1]) for line in lines if line] == [2, 3, 4, 5, 6, 7, 9, 11, 13, 14, 16, 17]
    assert all(one.endswith((".", "--list-measures")) for one in refusals(text))


def test_a_value_that_was_refused_is_not_also_called_missing() -> None:
    wrong = "[[choices]]\ncost_ratio = -4\ntolerance = [3, 5]\n"
    assert len(refusals(SCHEMA + wrong)) == 1
    wrong = "[[choices]]\ncost_ratio = 4\ntolerance = []\ngroup = 'f'\n"
    assert len(refusals(SCHEMA + wrong + "[[choices]]\ncost_ratio = 4\ntolerance = 2\n")) == 2
    wrong = "[[catalogue]]\noutcome = 'x'\nborne_by = 3\nwhat = ['y']\n"
    assert len(refusals(SCHEMA + wrong)) == 3
    wrong = "[truth_quality]\nall = 3\n[prevalence]\nall = []\n"
    assert len(refusals(SCHEMA + wrong)) == 2


def test_twenty_mistakes_are_told_and_the_rest_counted() -> None:
    text = SCHEMA + "[[choices]]\ncost_ratio = 0\ntolerance = 0\n" * 12
    found = refusals(text)
    assert len(found) == 21
    assert found[-1] == "and 15 more. Mend these first."  # 24 numbers and 11 seconds for all


def test_another_schema_ends_the_reading() -> None:
    text = 'schema = "evenhand.charter/9"\n[system]\nname = 3\n'
    assert len(refusals(text)) == 1


def test_an_unknown_role_is_refused_with_the_nearest() -> None:
    with pytest.raises(DataError) as caught:
        parse_charter(SCHEMA + "[roles]\ntruht = 'y'\n", source="c.toml")
    assert str(caught.value).startswith(
        "c.toml, line 3: 'truht' is not a key of [roles]. Did you mean 'truth'? The keys are truth"
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "charter.toml").write_text(SCHEMA)
    missing = tmp_path / "chartre.toml"
    with pytest.raises(DataError) as caught:
        read_charter(missing)
    assert str(caught.value) == (
        f"There is no file '{missing}'. Did you mean 'charter.toml'? "
        "Start one with: evenhand charter new > charter.toml"
    )
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'schema = "\xe9"')
    with pytest.raises(DataError) as caught:
        read_charter(latin)
    assert str(caught.value) == f"'{latin}' is not UTF-8 text. Save it as UTF-8 and try again."
    with pytest.raises(DataError) as caught:
        read_charter(tmp_path)
    assert str(caught.value) == f"'{tmp_path}' cannot be read: Is a directory."


ratios = st.floats(1e-3, 1e3)
factors = st.floats(1.01, 20)


def one(ratio: float, tolerance: object) -> str:
    return f"{SCHEMA}[[choices]]\ncost_ratio = {ratio!r}\ntolerance = {tolerance!r}\n"


@given(ratios, factors)
def test_a_factor_reaches_as_far_down_as_up(ratio: float, factor: float) -> None:
    choice = parse_charter(one(ratio, factor)).choices[0]
    assert choice.low < choice.cost_ratio < choice.high
    assert choice.low * choice.high == pytest.approx(ratio**2)
    low, high = choice.threshold_band
    assert 0 < low < choice.threshold < high < 1
    # The bands are images of each other: c = (1 − p)/p turns the ends round.
    assert ((1 - high) / high, (1 - low) / low) == pytest.approx((choice.low, choice.high))


@given(ratios, factors)
def test_a_factor_and_its_band_are_the_same_choice(ratio: float, factor: float) -> None:
    by_factor = parse_charter(one(ratio, factor)).choices[0]
    band = [by_factor.low, by_factor.high]
    assert parse_charter(one(ratio, band)).choices[0] == by_factor


@given(ratios, factors)
def test_the_other_mistake_mirrors_the_threshold(ratio: float, factor: float) -> None:
    # Swapping what is called positive turns c into 1/c, p into 1 − p, and the band round.
    here = parse_charter(one(ratio, factor)).choices[0]
    there = parse_charter(one(1 / ratio, factor)).choices[0]
    assert here.threshold == pytest.approx(1 - there.threshold)
    assert here.threshold_band == pytest.approx(tuple(1 - p for p in there.threshold_band[::-1]))


LINE_COUNT = len(FULL.splitlines())
WRITTEN = (
    *("''", "'x'", "'*'", "0", "-1", "1e400", "nan", "true", "{}", "{a = 1}", "{answer = 1}"),
    *("[]", "[[]]", "[1]", "[true]", "['a', 2]", "2026-01-31", "2026-01-31T10:00:00Z", "10:00:00"),
)


def read_or_refuse(text: str) -> Charter | str:
    try:
        return parse_charter(text, source="c.toml")
    except DataError as error:
        return str(error)


@given(st.integers(1, LINE_COUNT - 1), st.sampled_from(WRITTEN))
def test_whatever_is_written_is_read_or_refused_in_words(line: int, value: str) -> None:
    lines = FULL.splitlines()
    key, equals, _ = lines[line].partition(" = ")
    lines[line] = f"{key} = {value}" if equals else value
    found = read_or_refuse("\n".join(lines))
    if isinstance(found, str):
        assert re.match(r"c\.toml(, line \d+: | has \d+ mistakes:\n- c\.toml, line \d+: )", found)
        assert "nan" not in found or value == "nan"
    else:
        json.dumps(found.plain(), allow_nan=False)
        assert charter_text(found)


@pytest.mark.parametrize("role", Roles.__slots__)
def test_every_role_of_a_table_can_be_written_in_a_charter(role: str) -> None:
    # One of these is right for each role; a role that the charter does not know would raise.
    values = ("'given'", "'drop'", "'burden'", "'x'", "true", "[18]", "{a = 'x'}")
    found = [read_or_refuse(f"{SCHEMA}[roles]\n{role} = {value}\n") for value in values]
    assert any(isinstance(one, Charter) and role in one.roles for one in found)


def test_the_words_of_the_system_are_read_and_recorded() -> None:
    text = (
        '[system]\nitem = "story"\nof = "by"\ndecided = "cut"\nclass = ["genus", "genera"]\n'
        'truth = ["are long", "are short"]\n[system.groups.age]\n1 = "the old"\n2 = ""\n'
    )
    system = parse_charter(SCHEMA + text).system
    assert (system.item, system.class_) == (("story", "stories"), ("genus", "genera"))
    assert (system.of, system.decided, system.truth) == ("by", "cut", ("are long", "are short"))
    assert system.groups == {"age": {"1": "the old"}}
    recorded = parse_charter(SCHEMA + text).plain()["system"]
    assert recorded == {
        "name": None,
        "decision": None,
        "item": ["story", "stories"],
        "of": "by",
        "decided": "cut",
        "truth": ["are long", "are short"],
        "class": ["genus", "genera"],
        "false_positive": ["wrongful decision", "wrongful decisions"],
        "false_negative": ["missed case", "missed cases"],
        "groups": {"age": {"1": "the old"}},
    }
    bare = parse_charter(SCHEMA).plain()["system"]
    assert [bare[k] for k in ("item", "of", "decided", "truth", "class")] == [None] * 5
    assert bare["groups"] == {}
