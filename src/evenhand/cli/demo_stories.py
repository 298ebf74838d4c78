"""The two stories of the demo: what is planted, the commands a user would type, what is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenhand.findings.sentences import number, signed

Step = Callable[[str], None]
RULE = "─" * 96
LIMITS = {
    "true_positive_rate_gap_rms_corrected": 0.05,
    "counterfactual_true_positive_rate_gap_rms_corrected": 0.02,
    "norm_bias": 0.3,
}
CHARTER = """\
schema = "evenhand.charter/1"

[system]
name = "Comment removal"
decision = "remove a post"
false_positive = "wrongful removal"
false_negative = "missed violation"

[roles]
positive_is = "burden"

[[catalogue]]
outcome = "false_positive"
kind = "cost"
borne_by = "posters"
what = "A harmless post disappears and its writer is silenced."

[[catalogue]]
outcome = "false_negative"
kind = "cost"
borne_by = "readers"
what = "A post that breaks the rules stays up."

[[stakeholders]]
name = "posters"
interest = "being heard"
consulted = true

[[stakeholders]]
name = "readers"
interest = "not being insulted"
consulted = false

[[choices]]
cost_ratio = 4.0
tolerance = 1.5
decided_by = "the policy council"
decided_on = 2026-03-03
review_by = 2027-03-03
reason = "A post that breaks the rules is seen by many; a wrongful removal can be appealed."

[product]
owner = "the product lead"

[policy]
owner = "the policy council"
consulted = ["posters", "moderators"]

[implementation]
owner = "the model team"
"""


def moderation_story(folder: Path, *, seed: int, step: Step) -> list[str]:
    """A comment-removal system in which one group is held to another standard."""
    from evenhand.decisions.table import Decisions
    from evenhand.findings.run import audit
    from evenhand.simulate.labelers import LabelerGroup, Variation, simulate_labelers
    from evenhand.simulate.moderation import Group, moderation

    step("Simulating a comment-removal system")
    groups = {
        "female": Group(share=0.44, base_rate=0.12, threshold=0.6),
        "male": Group(share=0.44, base_rate=0.12, threshold=0.6),
        "nonbinary": Group(share=0.12, base_rate=0.12, threshold=0.35),
    }
    posts = moderation(60_000, groups=groups, seed=seed)
    posts.frame.write_parquet(folder / "posts.parquet")
    (folder / "charter.toml").write_text(CHARTER, encoding="utf-8")
    labels = simulate_labelers(
        {
            "female": LabelerGroup(prevalence=0.2, separation=1.8, criterion=0.9),
            "male": LabelerGroup(prevalence=0.2, separation=1.8, criterion=0.9),
            "nonbinary": LabelerGroup(prevalence=0.2, separation=1.8, criterion=0.4),
        },
        labelers=30,
        items_each=200,
        variation=Variation(criterion_across=0.2, separation_across=0.15),
        seed=seed,
    )
    labels.frame.write_parquet(folder / "labels.parquet")
    step("Auditing the model's decisions")
    cuts = {name: group.threshold for name, group in groups.items()}
    decisions = Decisions(
        folder / "posts.parquet",
        truth="violates",
        score="score",
        threshold=cuts,
        group="gender",
        positive_is="burden",
    )
    flags = " ".join(f"--threshold {name}={cut:g}" for name, cut in cuts.items())
    command = (
        f"evenhand audit {folder}/posts.parquet --truth violates --score score {flags} "
        f"--group gender --charter {folder}/charter.toml --out {folder}/report.html"
    )
    model = audit(
        decisions,
        charter=folder / "charter.toml",
        seed=seed,
        arguments={"command": command},
    )
    step("Auditing the labelers")
    command_labels = (
        f"evenhand audit {folder}/labels.parquet --truth truth --decision decision "
        f"--labeler labeler --item item --group group --charter {folder}/charter.toml "
        f"--out {folder}/labelers.html"
    )
    people = audit(
        Decisions(
            folder / "labels.parquet",
            truth="truth",
            decision="decision",
            labeler="labeler",
            item="item",
            group="group",
            positive_is="burden",
        ),
        charter=folder / "charter.toml",
        seed=seed,
        arguments={"command": command_labels},
    )
    step("Writing the reports")
    write_page(folder / "report.html", model.record())
    write_page(folder / "labelers.html", people.record())
    ratios = {r["group"]: r for r in model.rows.where(measure="cost_ratio", lens="thresholds")}
    gap = next(
        r for r in people.rows.where(measure="criterion_gap", lens="labelers", stratum=None)
        if r["group"] == "nonbinary" and r["labeler"] is None
    )  # fmt: skip
    return [
        RULE,
        "1  A comment-removal system, its charter and its labelers",
        RULE,
        f"$ {command}",
        *_verdict(model),
        f"$ {command_labels}",
        *_verdict(people),
        "",
        "Planted: posts of nonbinary people come down from a score of 0.35, of everybody else "
        "from 0.60; labelers",
        "         call their posts a violation on weaker signs (criterion 0.40 against 0.90), "
        "with the same skill.",
        "Found:   implied cost ratio "
        + "; ".join(f"{g} {_short(r)}" for g, r in ratios.items())
        + "; agreed: 2.67 to 6.",
        f"         labelers' criterion gap {signed(gap['value'])} "
        f"[{number(gap['low'])}, {number(gap['high'])}] (planted −0.500).",
        f"Pages:   {folder}/report.html, {folder}/labelers.html",
        "",
    ]


def occupation_story(folder: Path, *, seed: int, step: Step) -> list[str]:
    """An occupation classifier with statistical, counterfactual and norm bias, and remedies."""
    from evenhand.decisions.table import Decisions
    from evenhand.findings.run import audit
    from evenhand.mitigation.compare import compare_remedies
    from evenhand.models.carrying_words import model_words
    from evenhand.models.norm_files import save_norms
    from evenhand.models.norm_table import fit_norms, score_norms
    from evenhand.models.score_table import score_table
    from evenhand.simulate.biographies import biographies
    from evenhand.text.swap_table import swap_table

    step("Simulating biographies and training a classifier")
    made = biographies(9_000, leak="class_words", seed=seed)
    train, test = made.frame.head(4_500), made.frame.tail(4_500)
    train.write_parquet(folder / "train.parquet")
    test.write_parquet(folder / "test.parquet")
    model = _classifier(train, folder / "model.joblib")
    step("Swapping the gendered words")
    paths = {name: folder / f"{name}.parquet" for name in ("swapped", "scored", "normed")}
    swap_table(
        folder / "test.parquet", text="text", group="gender", out=paths["swapped"], seed=seed
    )
    score_table(paths["swapped"], text="text", truth="title", model=model, out=paths["scored"])
    step("Learning how typical of a group a text looks")
    fitted = fit_norms(
        folder / "train.parquet", text="text", truth="title", group="gender", name="name", seed=seed
    )
    save_norms(fitted.scorer, folder / "norms", card=fitted.card.plain())
    score_norms(
        paths["scored"],
        norms=folder / "norms",
        text="text",
        truth="title",
        name="name",
        out=paths["normed"],
    )
    step("Auditing the classifier")
    limits = " ".join(f"--limit {name}={value}" for name, value in LIMITS.items())
    command = (
        f"evenhand audit {paths['normed']} --truth title --group gender --text text "
        f"--reference gender=male {limits} --norms {folder}/norms --model {folder}/model.joblib "
        f"--trust --out {folder}/occupations.html"
    )
    found = audit(
        Decisions(
            paths["normed"],
            truth="title",
            group="gender",
            reference={"gender": "male"},
            text="text",
        ),
        limits=LIMITS,
        words=model_words(model, norms=fitted.scorer),
        seed=seed,
        arguments={"command": command},
    )
    step("Comparing four remedies")
    ledger = compare_remedies(
        folder / "train.parquet",
        folder / "test.parquet",
        text="text",
        truth="title",
        group="gender",
        name="name",
        remedies=["kamiran_calders", "augment", "reweigh_augment", "residualise"],
        representations=["bow"],
        seeds=1,
        seed=seed,
    )
    write_page(folder / "occupations.html", found.record(), ledger.document)
    rows = found.rows
    size = {
        name: next(iter(rows.where(measure=name, group="female")))
        for name in (
            "true_positive_rate_gap_rms_corrected",
            "counterfactual_true_positive_rate_gap_rms_corrected",
        )
    }
    bias = next(r for r in rows.where(measure="norm_bias", group="female") if r["norm"] == "female")
    return [
        RULE,
        "2  An occupation classifier, swapped words, norms and four remedies",
        RULE,
        f"$ {command}",
        *_verdict(found, most=4),
        "",
        "Planted: classes differ in how many women they have; pronouns and norm words leak into "
        "the classifier, and",
        "         class words are rarer for people who do not look typical.",
        f"Found:   true positive rate gaps of women, root mean square "
        f"{_interval(size['true_positive_rate_gap_rms_corrected'])};",
        f"         by swapping the words alone "
        f"{_interval(size['counterfactual_true_positive_rate_gap_rms_corrected'])};",
        f"         norm bias ρ {_interval(bias)} over {bias['n']:.0f} classes.",
        *(f"         {line}" for line in _remedies(ledger)),
        f"Page:    {folder}/occupations.html",
    ]


def write_page(path: Path, record: dict[str, Any], ledger: dict[str, Any] | None = None) -> None:
    """The report of a record, replaced whole."""
    from evenhand.findings.record import write_text
    from evenhand.report.html import as_page

    write_text(path, as_page(record, ledger=ledger))


def _classifier(train: Any, path: Path) -> Any:
    """A plain bag-of-words classifier, as a user might have one, and its file."""
    import joblib
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    from evenhand.models.linear import LogisticClassifier
    from evenhand.models.predictor import ScikitPredictor

    pipeline = make_pipeline(CountVectorizer(min_df=2), LogisticClassifier())
    pipeline.fit(train["text"].to_list(), train["title"].to_list())
    joblib.dump(pipeline, path)
    return ScikitPredictor(pipeline)


def _verdict(result: Any, *, most: int = 3) -> list[str]:
    shown = [f"  {result.sentence}"]
    return shown + [f"  · {finding.sentence}" for finding in result.findings[:most]]


def _short(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"undefined ({row['undefined']})"
    return f"{row['value']:.1f} [{row['family_low']:.1f}, {row['family_high']:.1f}]"


def _interval(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"undefined ({row['undefined']})"
    return f"{number(row['value'])} [{number(row['low'])}, {number(row['high'])}]"


def _remedies(ledger: Any) -> list[str]:
    return [f"{row['remedy']}: {row['sentence']}" for row in ledger.document["rows"]]
