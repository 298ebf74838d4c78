"""Flags that several commands share, and how their text becomes roles."""

from collections.abc import Callable
from typing import Any

import click

from evenhand.errors import UsageError

Command = Callable[..., Any]


def roles_options(command: Command) -> Command:
    """The flags that name the columns of a table."""
    flags = [
        click.option("--truth", metavar="COLUMN", help="What is the case (label, outcome)."),
        click.option("--decision", metavar="COLUMN", help="What was decided (prediction)."),
        click.option("--score", metavar="COLUMN", help="Score of the positive class."),
        click.option("--scores", metavar="PREFIX", help="One score column per class."),
        click.option(
            "--threshold",
            "thresholds",
            multiple=True,
            metavar="T",
            help="The cut: 0.8, A=0.8 for a group, or a column.",
        ),
        click.option("--rule", metavar="RULE", help="given, score>=t, argmax or one-versus-rest."),
        click.option("--positive", metavar="VALUE", help="The value that counts as positive."),
        click.option("--positive-is", metavar="WORD", help="benefit or burden for the person."),
        click.option(
            "--group", "groups", multiple=True, metavar="COLUMN",
            help="Which group a person belongs to; repeat for more.",
        ),
        click.option("--crossed", is_flag=True, default=None, help="Also all groups crossed."),
        click.option(
            "--reference", "references", multiple=True, metavar="GROUP=VALUE",
            help="Compare with this value; or <rest>, <overall>.",
        ),
        click.option("--stratum", metavar="COLUMN", help="Compare within each of its values."),
        click.option("--stratum-edges", metavar="A,B,…", help="Cut points of a numeric stratum."),
        click.option("--labeler", metavar="COLUMN", help="Who decided."),
        click.option("--item", metavar="COLUMN", help="What was decided about."),
        click.option("--cluster", metavar="COLUMN", help="Rows that belong together."),
        click.option("--weight", metavar="COLUMN", help="How many cases a row stands for."),
        click.option("--review-share", metavar="COLUMN", help="Probability of having a truth."),
        click.option("--time", metavar="COLUMN", help="When it was decided."),
        click.option("--seconds", metavar="COLUMN", help="How long the decision took."),
        click.option("--text", metavar="COLUMN", help="The text decided about."),
        click.option(
            "--counterfactual", "counterfactuals", multiple=True, metavar="VALUE=COLUMN",
            help="Decision under a value of the group.",
        ),
        click.option(
            "--norm", "norms", multiple=True, metavar="GROUP=COLUMN", help="Norm score column."
        ),
        click.option("--missing", metavar="POLICY", help="drop (default), group or error."),
        click.option(
            "--missing-words", multiple=True, metavar="A,B,…",
            help="Words that mean that nothing is known, such as NA; repeat for more.",
        ),
        click.option(
            "--classes", is_flag=True, default=None,
            help="Numbers of truth and decision are codes of classes.",
        ),
        click.option("--engine", metavar="ENGINE", help="polars (default), duckdb or spark."),
        click.option(
            "--spark-master", default="local[*]", show_default=True, metavar="URL",
            help="Where Spark runs.",
        ),
    ]  # fmt: skip
    for flag in reversed(flags):
        command = flag(command)
    return command


def lens_options(command: Command) -> Command:
    """The flags that only some lenses read."""
    flags = [
        click.option("--bandwidth", type=float, metavar="H", help="Width around the threshold."),
        click.option(
            "--prevalence", "prevalences", multiple=True, metavar="P",
            help="Share of positives where the labelled sample is enriched: 0.02 or A=0.02.",
        ),
        click.option(
            "--truth-sensitivity", "sensitivities", multiple=True, metavar="P",
            help="How often a positive is recorded as one: 0.95 or A=0.95.",
        ),
        click.option(
            "--truth-specificity", "specificities", multiple=True, metavar="P",
            help="How often a negative is recorded as one.",
        ),
        click.option(
            "--longest-seconds", type=float, metavar="S", help="Leave longer labels out of times."
        ),
        click.option(
            "--counterfactual-reference", metavar="VALUE", help="Value that swaps compare with."
        ),
        click.option(
            "--not-class/--no-not-class", default=None,
            help="Norm correlations also among rows whose truth is another class (slow).",
        ),
        click.option(
            "--evidence", type=int, metavar="K",
            help="Show K texts that flipped, and K rows nearest each threshold.",
        ),
    ]  # fmt: skip
    for flag in reversed(flags):
        command = flag(command)
    return command


def export_options(command: Command) -> Command:
    """The flags that read the export of a labelling tool in place of a table."""
    flags = [
        click.option(
            "--from", "tool", metavar="TOOL",
            help="DATA is an export of label-studio, argilla, doccano or prodigy.",
        ),
        click.option("--question", metavar="NAME", help="The question of the export to audit."),
        click.option("--has", metavar="LABEL", help="Audit whether this label was given."),
        click.option(
            "--truth-labeler", metavar="NAME", help="Whose labels in the export are the truth."
        ),
    ]  # fmt: skip
    for flag in reversed(flags):
        command = flag(command)
    return command


# Roles whose columns are fields of the items of an export.
ITEM_ROLES = ("stratum", "cluster", "weight", "review_share", "text", "score")


def read_decisions(
    data: tuple[str, ...], roles: dict[str, Any], flags: dict[str, Any], *, charter: Any = None
) -> Any:
    """The table in DATA and the roles of its columns, tally sets, or the labels of an export."""
    from evenhand.findings.run import with_roles

    names = ("tool", "question", "has", "truth_labeler")
    tool, question, has, truth_labeler = (flags.pop(name) for name in names)
    if tool is None:
        given = {"--question": question, "--has": has, "--truth-labeler": truth_labeler}
        lone = [flag for flag, value in given.items() if value is not None]
        if lone:
            raise UsageError(
                f"{lone[0]} is for the export of a labelling tool. Name the tool too, such as "
                "--from label-studio."
            )
        return with_roles(data[0] if len(data) == 1 else list(data), roles, charter)
    roles = {**(charter.roles if charter else {}), **roles}
    engine = roles.pop("engine", None) or "polars"
    if engine != "polars":
        raise UsageError(f"--engine {engine} does not read exports. Leave it out with --from.")
    roles.pop("spark_master", None)
    from evenhand.decisions.exports.table import read_labels

    fields = [*roles.get("group", ()), *(roles[name] for name in ITEM_ROLES if name in roles)]
    labels = read_labels(
        data,
        tool=tool,
        question=question,
        has=has,
        truth=roles.pop("truth", None),
        truth_labeler=truth_labeler,
        columns=fields,
    )
    return labels.decisions(**roles)


SINGLE = ("bandwidth", "longest_seconds", "counterfactual_reference", "not_class", "evidence")


def read_settings(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags of single lenses as settings; flags not given are left out."""
    settings = {name: flags.pop(name) for name in SINGLE}
    for name, key, flag in (
        ("prevalence", "prevalences", "--prevalence"),
        ("truth_sensitivity", "sensitivities", "--truth-sensitivity"),
        ("truth_specificity", "specificities", "--truth-specificity"),
    ):
        settings[name] = _by_group(flags.pop(key), flag)
    return {name: value for name, value in settings.items() if value is not None}


def _by_group(given: tuple[str, ...], flag: str) -> Any:
    """One number for all, or numbers by group."""
    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            raise UsageError(
                f"{flag} {text!r} is not a number or GROUP=NUMBER, such as {flag} 0.02."
            ) from None
        _add(found, name, number, flag)
    if not found:
        return None
    if "" in found:
        if len(found) > 1:
            raise UsageError(f"{flag} is given for all and for groups. Give one or the other.")
        return found[""]
    return found


def read_roles(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags as arguments of Decisions; flags not given are left out."""
    single = (
        "truth decision score scores rule positive positive_is crossed stratum labeler item "
        "cluster weight review_share time seconds text missing classes engine spark_master"
    )
    roles = {name: flags.pop(name) for name in single.split()}
    roles["missing_words"] = [
        word for text in flags.pop("missing_words") for word in text.split(",")
    ] or None
    roles["group"] = list(flags.pop("groups")) or None
    roles["threshold"] = _threshold(flags.pop("thresholds"))
    roles["reference"] = _pairs(flags.pop("references"), "--reference", lone=roles["group"])
    roles["counterfactual"] = _pairs(flags.pop("counterfactuals"), "--counterfactual")
    roles["norm"] = _pairs(flags.pop("norms"), "--norm")
    edges = flags.pop("stratum_edges")
    roles["stratum_edges"] = _numbers(edges, "--stratum-edges") if edges else None
    return {name: value for name, value in roles.items() if value is not None}


def _add(found: dict[str, Any], name: str, value: Any, flag: str) -> None:
    """Add a value under its name; refused where it is there already, since one would be lost."""
    if name in found:
        whom = f" for {name!r}" if name else ""
        raise UsageError(f"{flag} is given twice{whom}. Give it once.")
    found[name] = value


def _threshold(given: tuple[str, ...]) -> Any:
    if not given:
        return None
    if any("=" in text for text in given):
        found: dict[str, float] = {}
        for text in given:
            name, separator, value = text.rpartition("=")
            try:
                number = float(value) if separator else None
            except ValueError:
                number = None
            if number is None:
                raise UsageError(
                    f"--threshold {text!r} is not GROUP=NUMBER, such as --threshold A=0.8."
                )
            _add(found, name, number, "--threshold")
        return found
    if len(given) > 1:
        raise UsageError("--threshold is given twice. For one per group write A=0.8 and B=0.7.")
    try:
        return float(given[0])
    except ValueError:
        return given[0]


def _pairs(
    given: tuple[str, ...], flag: str, *, lone: list[str] | None = None
) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for text in given:
        # The longest group column that fits, since a column's name may itself hold a "=".
        known = [group for group in lone or () if text.startswith(f"{group}=")]
        start = len(max(known, key=len)) if known else 0
        name, separator, value = text[start:].partition("=")
        name = text[:start] + name
        if not separator and lone and len(lone) == 1:
            name, value = lone[0], text
        elif not separator or not name or not value:
            raise UsageError(f"{flag} {text!r} is not NAME=VALUE, such as {flag} gender=male.")
        _add(found, name, value, flag)
    return found or None


def _numbers(text: str, flag: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{flag} {text!r} is not a list of numbers, such as 18,30,65.") from None


def read_limits(given: tuple[str, ...]) -> dict[str, str]:
    """`--limit measure=band` flags as a dict."""
    found: dict[str, str] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator:
            raise UsageError(
                f"--limit {text!r} is not MEASURE=BAND, such as true_positive_rate_gap=0.05."
            )
        if name in found:
            raise UsageError(
                f"--limit {name} is given twice, as {found[name]} and as {value}. Give it once."
            )
        found[name] = value
    return found


def read_form_details(path: str | None, asked: list[str]) -> dict[str, Any]:
    """The details of each form asked for, from a TOML file with a table for each."""
    details: dict[str, Any] = {}
    if path is not None:
        from evenhand.errors import DataError
        from evenhand.files.documents import parse_toml
        from evenhand.files.reading import read_whole_text

        try:
            details = parse_toml(read_whole_text(path))
        except FileNotFoundError:
            raise UsageError(f"There is no file '{path}'.") from None
        except (OSError, ValueError) as error:
            raise DataError(f"'{path}' cannot be read as TOML: {error}.") from error
    lone = [name for name, given in details.items() if not isinstance(given, dict)]
    unasked = [name for name in details if name not in asked]
    if lone or unasked:
        name = (lone or unasked)[0]
        raise UsageError(
            f"'{path}' has {name!r}, which is no form asked for. Write a table for each form, such "
            "as [ll144], and ask for it with --form ll144=table.html."
        )
    return {name: details.get(name, {}) for name in asked}


def read_values(given: tuple[str, ...]) -> dict[str, str] | None:
    """`--value F=female` flags as a dict: a value of the group column, and what it is."""
    found = {}
    for text in given:
        group, separator, value = text.partition("=")
        if not separator or not group or not value:
            raise UsageError(f"--value {text!r} is not GROUP=VALUE, such as --value F=female.")
        found[group] = value
    return found or None


def read_words(norms: str | None, model: str | None, *, trust: bool) -> Any:
    """The weights of words in the model and in its norm scorer; None where neither is given."""
    if norms is None and model is None:
        return None
    if norms is None or model is None:
        raise UsageError(
            "--norms and --model go together: the norm scorer's folder and the model that decided, "
            "such as --norms norms --model model.joblib --trust."
        )
    from evenhand.models.words import model_words

    return model_words(model, norms=norms, trust=trust)
