"""The three stories of the demo: what is planted, the commands a user would type, what is found."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from evenhand.cli.output import Guarded, Output, show
from evenhand.files import write_text
from evenhand.files.folders import close_folder, open_folder
from evenhand.files.writing import new_file, refusals
from evenhand.speech import number, signed

STEPS = 11
KIND = "demos"
FILES = ("posts.parquet", "labels.parquet", "charter.toml", "report.html", "labelers.html",
         "train.parquet", "test.parquet", "swapped.parquet", "scored.parquet*", "normed.parquet",
         "model.joblib", "norms/*", "occupations.html", "weeks.parquet", "store/*", "watch.html",
         "watch.toml")  # fmt: skip


@click.command("demo", cls=Guarded)
@click.option(
    "--folder",
    type=Output(folder=KIND),
    default="demo",
    metavar="FOLDER",
    show_default=True,
    help="Where the files go.",
)
@click.option("--seed", default=0, show_default=True)
@click.option("--no-text", is_flag=True, help="Leave out the occupation classifier.")
def demo_command(folder: str, seed: int, no_text: bool) -> int:
    """Simulate systems with planted biases, audit and watch them, say what was found."""
    open_folder(folder, FILES, kind=KIND)
    place = Path(folder)
    with _bar() as bar:
        step = _stepper(bar)
        told = moderation_story(place, seed=seed, step=step)
        if not no_text:
            told += occupation_story(place, seed=seed, step=step)
        told += watching_story(place, seed=seed, step=step)
    close_folder(folder, kind=KIND)
    show(lambda console: _draw(told, console))
    return 0


def _draw(story: "Story", console: Any) -> None:
    """A story as wide as the window; commands stay in one line, so that they can be copied."""
    from evenhand.report.terminal import Page

    page = Page(console)
    for mark, words in story:
        if mark == TITLE:
            page.line("─" * page.width)
            page.say(words, style="bold")
            page.line("─" * page.width)
        elif mark == COMMAND:
            page.line(f"{mark}{words}", style="dim")
        elif words:
            page.say(words, mark=mark)
        else:
            page.blank()


def _bar() -> AbstractContextManager[Any]:
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _stepper(bar: Any) -> Callable[[str], None]:
    if bar is None:
        return lambda words: None
    task = bar.add_task("Starting", total=STEPS)

    def step(words: str) -> None:
        bar.update(task, description=words, advance=1)

    return step


Step = Callable[[str], None]
Story = list[tuple[str, str]]
# What stands before the words of a line: a heading, a command, and what goes on below another.
TITLE, COMMAND, BELOW = "# ", "$ ", " " * 9
# What the occupation classifier's charter calls things, what was agreed and who looks after it.
OCCUPATIONS = """\
schema = "evenhand.charter/1"

[system]
name = "Occupations of biographies"
item = ["biography", "biographies"]
of = "of"
class = ["occupation", "occupations"]

[limits]
true_positive_rate_gap_rms_corrected = 0.05
counterfactual_true_positive_rate_gap_rms_corrected = 0.02
norm_bias = 0.3

[product]
owner = "the search team"

[policy]
owner = "the hiring council"

[implementation]
owner = "the model team"
"""
CHARTER = """\
schema = "evenhand.charter/1"

[system]
name = "Comment removal"
decision = "remove a post"
item = ["post", "posts"]
of = "by"
decided = "removed"
truth = ["break the rules", "do not break the rules"]
false_positive = ["wrongful removal", "wrongful removals"]
false_negative = ["missed violation", "missed violations"]

[system.groups.gender]
nonbinary = "nonbinary people"

[system.groups.group]
nonbinary = "nonbinary people"

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
labelers_follow = {owner = "guidelines and training"}
"""


def moderation_story(folder: Path, *, seed: int, step: Step) -> Story:
    """A comment-removal system in which one group is held to another standard."""
    step("Simulating a comment-removal system")
    cuts = _simulate_moderation(folder, seed=seed)
    step("Auditing the model's decisions")
    flags = " ".join(f"--threshold {name}={cut:g}" for name, cut in cuts.items())
    command = (
        f"evenhand audit {folder}/posts.parquet --truth violates --score score {flags} "
        f"--group gender --charter {folder}/charter.toml --out {folder}/report.html"
    )
    roles = {"truth": "violates", "score": "score", "threshold": cuts, "group": "gender"}
    model = _chartered(folder, "posts.parquet", command, roles, seed=seed)
    step("Auditing the labelers")
    command_labels = (
        f"evenhand audit {folder}/labels.parquet --truth truth --decision decision "
        f"--labeler labeler --item item --group group --charter {folder}/charter.toml "
        f"--out {folder}/labelers.html"
    )
    roles = {name: name for name in ("truth", "decision", "labeler", "item", "group")}
    people = _chartered(folder, "labels.parquet", command_labels, roles, seed=seed)
    step("Writing the reports")
    model.save(folder / "report.html")
    people.save(folder / "labelers.html")
    return [
        (TITLE, "1  A comment-removal system, its charter and its labelers"),
        (COMMAND, command),
        *_verdict(model),
        (COMMAND, command_labels),
        *_verdict(people),
        ("", ""),
        *_moderation_found(model, people),
        ("Pages:   ", f"{folder}/report.html, {folder}/labelers.html"),
        ("", ""),
    ]


def _simulate_moderation(folder: Path, *, seed: int) -> dict[str, float]:
    """Posts, labels and a charter, written; and the cut of each group."""
    from evenhand.decisions.batches import write_table
    from evenhand.simulate.labelers import LabelerGroup, Variation, simulate_labelers
    from evenhand.simulate.moderation import Group, moderation

    groups = {
        "female": Group(share=0.44, base_rate=0.12, threshold=0.6),
        "male": Group(share=0.44, base_rate=0.12, threshold=0.6),
        "nonbinary": Group(share=0.12, base_rate=0.12, threshold=0.35),
    }
    posts = moderation(60_000, groups=groups, seed=seed)
    write_table(posts.frame, folder / "posts.parquet")
    write_text(folder / "charter.toml", CHARTER)
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
    write_table(labels.frame, folder / "labels.parquet")
    return {name: group.threshold for name, group in groups.items()}


def _chartered(folder: Path, table: str, command: str, roles: dict[str, Any], *, seed: int) -> Any:
    """An audit of one of the tables under the charter."""
    from evenhand.decisions.table import Decisions
    from evenhand.findings.run import audit

    return audit(
        Decisions(folder / table, positive_is="burden", **roles),
        charter=folder / "charter.toml",
        seed=seed,
        arguments={"command": command},
    )


def _moderation_found(model: Any, people: Any) -> Story:
    """What was planted in posts and labels, and what the audits found of it."""
    ratios = {r["group"]: r for r in model.rows.where(measure="cost_ratio", lens="thresholds")}
    gap = next(
        r for r in people.rows.where(measure="criterion_gap", lens="labelers", stratum=None)
        if r["group"] == "nonbinary" and r["labeler"] is None
    )  # fmt: skip
    return [
        (
            "Planted: ",
            "posts by nonbinary people come down from a score of 0.35, everybody else's from 0.60; "
            "labelers call their posts a violation on weaker signs (criterion 0.40 against 0.90), "
            "with the same skill.",
        ),
        (
            "Found:   ",
            "one missed violation weighs as much as so many wrongful removals: "
            + "; ".join(f"{g} {_short(r)}" for g, r in ratios.items())
            + "; agreed: 2.67 to 6.",
        ),
        (
            BELOW,
            f"labelers' criterion gap {signed(gap['value'])} "
            f"[{number(gap['low'])}, {number(gap['high'])}] (planted −0.500).",
        ),
    ]


def occupation_story(folder: Path, *, seed: int, step: Step) -> Story:
    """An occupation classifier with statistical, counterfactual and norm bias, and remedies."""
    from evenhand.decisions.table import Decisions
    from evenhand.findings.run import audit
    from evenhand.remedies.ledger.compare import compare
    from evenhand.report.render import render

    normed, words = _prepare_occupations(folder, seed=seed, step=step)
    step("Auditing the classifier")
    write_text(folder / "occupations.toml", OCCUPATIONS)
    command = (
        f"evenhand audit {normed} --truth title --group gender --text text "
        f"--reference gender=male --charter {folder}/occupations.toml --norms {folder}/norms "
        f"--model {folder}/model.joblib --trust --out {folder}/occupations.html"
    )
    found = audit(
        Decisions(normed, truth="title", group="gender", reference={"gender": "male"}, text="text"),
        charter=folder / "occupations.toml",
        words=words,
        seed=seed,
        arguments={"command": command},
    )
    step("Comparing four remedies")
    ledger = compare(
        folder / "train.parquet",
        folder / "test.parquet",
        text="text",
        truth="title",
        group="gender",
        name="name",
        remedies=["kamiran_calders", "augment", "reweigh_augment", "residualise"],
        texts={"representations": ["bow"]},
        seeds=1,
        seed=seed,
    )
    render(found, ledger, path=folder / "occupations.html")
    return [
        (TITLE, "2  An occupation classifier, swapped words, norms and four remedies"),
        (COMMAND, command),
        *_verdict(found),
        ("", ""),
        *_occupations_found(found),
        ("Remedy:  ", _remedy(ledger)),
        ("Page:    ", f"{folder}/occupations.html"),
    ]


def _prepare_occupations(folder: Path, *, seed: int, step: Step) -> tuple[Path, Any]:
    """Biographies swapped, scored and normed, and the words of model and norm."""
    from evenhand.decisions.batches import write_table
    from evenhand.models.norms.table import fit_norms, score_norms
    from evenhand.models.table import score_table
    from evenhand.models.words import model_words
    from evenhand.simulate.biographies import biographies
    from evenhand.text.table import swap_table

    step("Simulating biographies and training a classifier")
    made = biographies(9_000, leak="class_words", seed=seed)
    train, test = made.frame.head(4_500), made.frame.tail(4_500)
    write_table(train, folder / "train.parquet")
    write_table(test, folder / "test.parquet")
    model = _classifier(train, folder / "model.joblib")
    step("Swapping the gendered words")
    paths = {name: folder / f"{name}.parquet" for name in ("swapped", "scored", "normed")}
    swap_table(
        folder / "test.parquet", text="text", group="gender", out=paths["swapped"], seed=seed
    )
    score_table(paths["swapped"], text="text", truth="title", model=model, out=paths["scored"])
    step("Learning how typical of a group a text looks")
    fitted = fit_norms(
        folder / "train.parquet",
        text="text",
        truth="title",
        group="gender",
        name="name",
        seed=seed,
        out=folder / "norms",
    )
    score_norms(
        paths["scored"],
        norms=folder / "norms",
        text="text",
        truth="title",
        name="name",
        out=paths["normed"],
    )
    return paths["normed"], model_words(model, norms=fitted.scorer)


def _occupations_found(found: Any) -> Story:
    """What was planted in the biographies, and what the audit found of it."""
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
        (
            "Planted: ",
            "occupations differ in how many women they have; pronouns and norm words leak into the "
            "classifier, and an occupation's own words are rarer for people who do not look "
            "typical of their gender.",
        ),
        (
            "Found:   ",
            "a typical gap over occupations between women and men of "
            f"{_points(size['true_positive_rate_gap_rms_corrected'])} points; by swapping the "
            f"words alone {_points(size['counterfactual_true_positive_rate_gap_rms_corrected'])} "
            f"points; for women the rank correlation of norm bias is {_interval(bias)} over "
            f"{bias['n']:.0f} occupations.",
        ),
    ]


def watching_story(folder: Path, *, seed: int, step: Step) -> Story:
    """A year of weeks in which one group's threshold is raised while the mix of posts drifts."""
    import shutil

    from evenhand.decisions.batches import write_table
    from evenhand.simulate.weeks import CHANGED, moderation_weeks
    from evenhand.watching.run import watch
    from evenhand.watching.sentences import owner_words

    step("Simulating a year of weeks")
    made = moderation_weeks(seed=seed)
    write_table(made.frame, folder / "weeks.parquet")
    # What things are called, and the one limit that is watched.
    limit = "[limits]\nfalse_negative_rate_gap = 0.05\n\n"
    limit += '[implementation]\nowner = "the model team"\n'
    write_text(folder / "watch.toml", CHARTER.partition("[[catalogue]]")[0] + limit)
    store = folder / "store"
    shutil.rmtree(store, ignore_errors=True)
    step("Watching them")
    command = (
        f"evenhand watch {store} {folder}/weeks.parquet --time decided_at --every week "
        "--truth violates --score score --threshold cut --group gender --reference male "
        f"--stratum topic --charter {folder}/watch.toml --horizon 52 "
        f"--out {folder}/watch.html"
    )
    found = watch(
        store,
        folder / "weeks.parquet",
        time="decided_at",
        every="week",
        truth="violates",
        score="score",
        threshold="cut",
        group="gender",
        reference="male",
        stratum="topic",
        charter=folder / "watch.toml",
        horizon=52,
        seed=seed,
        arguments={"command": command},
    )
    found.save(folder / "watch.html")
    alarm = found.alarms[0] if found.alarms else {}
    whose = owner_words(found.document["charter"])
    planted = made.planted
    return [
        (TITLE, "3  A year of weeks: is it still so, since when, and why did it move"),
        (COMMAND, command),
        ("  ", found.sentence),
        *((("  · ", alarm["detail"]), ("  · ", f"{alarm['next']} {whose}")) if alarm else ()),
        ("", ""),
        (
            "Planted: ",
            f"from week {CHANGED} on posts by nonbinary people come down from a score of "
            f"{planted['after']:.2f} instead of {planted['before']:.2f}; all year long more of "
            "them are satire, where violations are harder to see.",
        ),
        *(
            ("Found:   ", f"a change since {each['onset']}, raised in {each['raised']}.")
            for each in found.alarms
            if each["detector"] == "change"
        ),
        ("Page:    ", f"{folder}/watch.html"),
    ]


def _classifier(train: Any, path: Path) -> Any:
    """A plain bag-of-words classifier, as a user might have one, and its file."""
    import joblib
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    from evenhand.models.linear import LogisticClassifier
    from evenhand.models.predictor import ScikitPredictor

    pipeline = make_pipeline(CountVectorizer(min_df=2), LogisticClassifier())
    pipeline.fit(train["text"].to_list(), train["title"].to_list())
    with new_file(path) as made, refusals(path):
        joblib.dump(pipeline, made)
    return ScikitPredictor(pipeline)


def _verdict(result: Any) -> Story:
    """The finding that leads, the first others in a line each, what to do and whose job it is."""
    from evenhand.report.outline import FEW, MARKS, outline

    parts = outline(result.record())
    lines = [(f"  {MARKS[one.verdict]} ", one.text) for one in parts.findings[:FEW]]
    step = [("  What to do: ", text) for text in parts.steps[:1]]
    return [("  ", f"{parts.tag}. {parts.headline}"), *lines, *step]


def _short(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"undefined ({row['undefined']})"
    return f"{row['value']:.1f} [{row['family_low']:.1f}, {row['family_high']:.1f}]"


def _interval(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"undefined ({row['undefined']})"
    return f"{number(row['value'])} [{number(row['low'])}, {number(row['high'])}]"


def _points(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"undefined ({row['undefined']})"
    low, high = (100 * row[end] for end in ("low", "high"))
    return f"{100 * row['value']:.1f} ({low:.1f} to {high:.1f})"


def _remedy(ledger: Any) -> str:
    from evenhand.remedies.ledger.sentences import recommend

    document = ledger.document
    return recommend(document["rows"], groups=document["data"]["groups"], budget=0.01)
