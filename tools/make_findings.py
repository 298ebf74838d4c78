"""Write docs/explanation/findings-on-real-data.md: twelve findings as a reader sees them.

python tools/make_findings.py ../shared/data

The data lie beside the repository and are not part of it. Each finding is what an audit said, in
its own words; nothing on the page but the questions is written by hand.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenhand as eh
from evenhand.charter.read import parse_charter

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "findings-on-real-data.md"
SCHEMA = 'schema = "evenhand.charter/1"\n'
DEFENDANTS = (
    SCHEMA
    + """[system]
item = ["defendant", "defendants"]
decided = "flagged"
truth = ["reoffended", "did not reoffend"]
false_positive = ["wrongful prediction", "wrongful predictions"]
false_negative = ["missed reoffender", "missed reoffenders"]
[system.groups.race]
African-American = "Black defendants"
Caucasian = "White defendants"
"""
)
LOANS = (
    SCHEMA
    + """[system]
item = ["loan", "loans"]
of = "to"
decided = "granted"
truth = ["are repaid", "are not repaid"]
false_positive = ["bad loan", "bad loans"]
false_negative = ["good loan refused", "good loans refused"]
[system.groups.group]
"Non-Hispanic white" = "White people"
Black = "Black people"
Hispanic = "Hispanic people"
Asian = "Asian people"
"""
)
ARRESTS = (
    SCHEMA
    + """[system]
decided = "released"
[system.groups.colour]
Black = "Black people"
White = "White people"
"""
)
BIOGRAPHIES = (
    SCHEMA
    + """[system]
item = ["biography", "biographies"]
of = "of"
class = ["occupation", "occupations"]
"""
)
POSTS = (
    SCHEMA
    + """[system]
item = ["post", "posts"]
decided = "called sexist"
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A question, the data that answer it, and what an audit said."""

    question: str
    source: str
    audit: eh.Audit
    choose: Callable[[Any], bool] = lambda finding: True

    def text(self) -> str:
        """The finding as a reader sees it."""
        found = next(one for one in self.audit.findings if self.choose(one))
        head = f"**{found.headline}.** {found.detail}".strip() if found.detail else found.line
        then = f"*{found.next}* {found.whose or ''}".strip() if found.next else ""
        return "\n\n".join(filter(None, [f"> {head}", f"> {then}" if then else ""]))


def defendants() -> pl.DataFrame:
    """As many as ProPublica counted: flagged or not, by what happened in the next two years."""
    counts = {
        ("African-American", 0): (805, 990), ("African-American", 1): (1369, 532),
        ("Caucasian", 0): (349, 1139), ("Caucasian", 1): (505, 461),
    }  # fmt: skip
    rows = [
        (race, truth, decision)
        for (race, truth), pair in counts.items()
        for decision, n in zip((1, 0), pair)
        for _ in range(n)
    ]
    return pl.DataFrame(rows, schema=["race", "truth", "decision"], orient="row")


def people(path: Path) -> pl.DataFrame:
    """One row per person of the credit scores, repaid as often as the file says at their score."""
    parts = []
    for (group,), part in pl.read_csv(path).sort("score").group_by("group", maintain_order=True):
        share = np.diff(part["cumulative_percent"].to_numpy() / 100, prepend=0.0)
        n = np.rint(np.maximum(share, 0) * part["people"][0]).astype(int)
        good = np.rint(n * (1 - part["percent_bad"].to_numpy() / 100)).astype(int)
        repaid = np.concatenate([[1] * g + [0] * (c - g) for c, g in zip(n, good)]).astype(int)
        parts.append(
            pl.DataFrame(
                {"score": np.repeat(part["score"].to_numpy(), n), "repaid": repaid}
            ).with_columns(group=pl.lit(group))
        )
    return pl.concat(parts)


def tables(data: Path) -> Iterator[Shown]:
    """Findings on tables and on labelers."""
    compas = "ProPublica's counts of 5,278 defendants in Broward County, 2013–2014"
    two = defendants()
    asked: dict[str, Any] = {
        "truth": "truth", "decision": "decision", "group": "race",
        "reference": {"race": "Caucasian"}, "charter": parse_charter(DEFENDANTS),
    }  # fmt: skip
    yield Shown(
        question="Are people who do not reoffend flagged as often in both groups?",
        source=f"{compas}; no limits",
        audit=eh.audit(two, **asked),
    )
    yield Shown(
        question="The same, where at most 5 points between false positive rates were agreed",
        source=compas,
        audit=eh.audit(two, **asked, limits={"false_positive_rate_gap": 0.05}),
    )
    labels = pl.read_csv(data / "labelers_recidivism.csv")
    lin = "109 people's predictions on 996 defendants (Lin et al. 2020)"
    roles = {"truth": "truth", "decision": "label", "labeler": "labeler", "item": "item"}
    named = parse_charter(DEFENDANTS)
    races = labels.filter(pl.col("race").is_in(["African-American", "Caucasian"]))
    yield Shown(
        question="Do people weigh the two mistakes alike for Black and for White defendants?",
        source=lin,
        audit=eh.audit(
            races, **roles, group="race", reference={"race": "Caucasian"}, charter=named,
            lenses=["labelers"],
        ),
    )  # fmt: skip
    yield Shown(
        question="And for women and men?",
        source=lin,
        audit=eh.audit(labels, **roles, group="sex", charter=named, lenses=["labelers"]),
    )
    loans = people(data / "fico_transrisk.csv")
    fico = f"TransRISK credit scores of {loans.height:,} people, a cut of 50 for everybody"
    credit: dict[str, Any] = {
        "truth": "repaid", "score": "score", "threshold": 50, "group": "group",
        "positive_is": "benefit", "charter": parse_charter(LOANS),
        "reference": {"group": "Non-Hispanic white"},
    }  # fmt: skip
    yield Shown(
        question="Does one cut on a credit score hold everybody to one standard?",
        source=fico,
        audit=eh.audit(loans, **credit, lenses=["thresholds"]),
    )
    yield Shown(
        question="Who gets a loan at that cut, where a ratio of at least 0.8 was agreed?",
        source=fico,
        audit=eh.audit(loans, **credit, lenses=["statistical"], limits={"impact_ratio": 0.8}),
    )
    arrests = pl.read_csv(data / "arrests_toronto.csv")
    toronto = "5,226 arrests for possession in Toronto, 1997–2002"
    held: dict[str, Any] = {
        "decision": "released", "positive": "Yes", "group": "colour", "positive_is": "benefit",
        "reference": {"colour": "White"}, "charter": parse_charter(ARRESTS),
        "lenses": ["statistical"], "limits": {"selection_rate_gap": 0.05},
    }  # fmt: skip
    yield Shown(
        question="Are Black and White people released as often?",
        source=f"{toronto}; at most 5 points agreed",
        audit=eh.audit(arrests, **held),
    )
    last = arrests.filter(pl.col("year") == 2002)
    yield Shown(
        question="Is it still so in the last year?",
        source=f"the {last.height} arrests of 2002; at most 5 points agreed",
        audit=eh.audit(last, **held),
    )


def texts(data: Path) -> Iterator[Shown]:
    """Findings on text classifiers that are trained here, in the working folder."""
    frame = pl.read_csv(data / "biographies_wikipedia.csv")
    sizes = frame.group_by("occupation", "gender").len().filter(pl.col("len") >= 30)
    both = sizes.group_by("occupation").len().filter(pl.col("len") == 2)["occupation"]
    frame = frame.filter(pl.col("occupation").is_in(both.to_list()))
    frame = frame.sample(fraction=1.0, shuffle=True, seed=0)
    frame.write_parquet("bios.parquet")
    masking = {"title": "occupation", "scope": "all"}
    eh.swap_table("bios.parquet", text="text", group="gender", changes=masking,
                  out="swapped.parquet")  # fmt: skip
    made = pl.read_parquet("swapped.parquet")
    half = made.height // 2
    made.head(half).write_parquet("train.parquet")
    made.tail(-half).write_parquet("test.parquet")
    _train(made.head(half), "text", "occupation")
    eh.score_table("test.parquet", text="text", truth="occupation", model="model.joblib",
                   trust=True, out="scored.parquet")  # fmt: skip
    eh.fit_norms("train.parquet", text="text", truth="occupation", group="gender", name="name",
                 groups=["female", "male"], out="norms")  # fmt: skip
    eh.score_norms("scored.parquet", norms="norms", text="text", truth="occupation",
                   out="normed.parquet")  # fmt: skip
    # With classes of thirty people most of it cannot be told, which is worth seeing too.
    wiki = f"a word-count classifier of {half:,} Wikipedia biographies, titles masked"
    audit = eh.audit(
        "normed.parquet", truth="occupation", group="gender", text="text",
        reference={"gender": "male"}, charter=parse_charter(BIOGRAPHIES),
        limits={
            "true_positive_rate_gap_rms_corrected": 0.05,
            "counterfactual_true_positive_rate_gap_rms_corrected": 0.02, "norm_bias": 0.3,
        },
    )  # fmt: skip
    for lens, question in (
        ("statistical", "Are women and men recognised equally well in their own occupation?"),
        ("counterfactual", "What does exchanging nothing but the gendered words change?"),
        ("norms", "Does it favour those who look typical of the majority?"),
    ):
        yield Shown(
            question=question,
            source=wiki,
            audit=audit,
            choose=lambda finding, lens=lens: finding.lens == lens,
        )
    posts = pl.read_csv(data / "edos_sexism.csv").sample(6_000, seed=0)
    posts.write_parquet("posts.parquet")
    eh.swap_table("posts.parquet", text="text", out="posts_swapped.parquet")
    made = pl.read_parquet("posts_swapped.parquet")
    _train(made.head(4_000), "text", "label_sexist")
    made.tail(-4_000).write_parquet("posts_test.parquet")
    eh.score_table("posts_test.parquet", text="text", truth="label_sexist", model="model.joblib",
                   trust=True, out="posts_scored.parquet")  # fmt: skip
    yield Shown(
        question="Is a post called sexist because of its gendered words?",
        source="a word-count classifier of 4,000 posts of EDOS, tried on 2,000",
        audit=eh.audit("posts_scored.parquet", truth="label_sexist", positive="sexist",
                       text="text", charter=parse_charter(POSTS)),
    )  # fmt: skip


def _train(frame: pl.DataFrame, text: str, title: str) -> None:
    import joblib
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(min_df=2, sublinear_tf=True)
    model = make_pipeline(words, LogisticRegression(C=10, max_iter=2_000))
    model.fit(frame[text].to_list(), frame[title].to_list())
    joblib.dump(model, "model.joblib")


def page(data: Path) -> str:
    """The page, from audits run now."""
    shown = [*tables(data), *texts(data)]
    head = [
        "# Twelve findings on real data",
        "What audits of public data say, in their own words: no sentence below was written for "
        "this page. The data are not part of this repository. `tools/make_findings.py` makes the "
        "page again, and `make test-heavy` holds it to what the audits say where the data lie "
        "beside the repository.",
        "A truth here is what was recorded: an arrest, a loan repaid, the first sentence of an "
        "article. Where recording differs between groups, no audit of these tables can see it: "
        "[what the numbers cannot tell](what-the-numbers-cannot-tell.md).",
    ]
    for number, one in enumerate(shown, start=1):
        head += [f"## {number}. {one.question}", f"On {one.source}.", one.text()]
    return "\n\n".join(head) + "\n"


def main() -> None:
    data = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        text = page(data)
        os.chdir("/")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
