"""`evenhand demo`: simulated moderation decisions with a planted gap, audited."""

from pathlib import Path

import click

from evenhand.cli.output import console


@click.command("demo")
@click.option("--rows", default=40_000, show_default=True, help="Posts to simulate.")
@click.option("--seed", default=0, show_default=True)
@click.option("--folder", default="demo", show_default=True, help="Where the files go.")
def demo_command(rows: int, seed: int, folder: str) -> int:
    """Simulate decisions with a planted bias, audit them, and say what was planted and found."""
    from evenhand.decisions.table import Decisions
    from evenhand.findings.record import write_text
    from evenhand.findings.run import audit
    from evenhand.findings.sentences import number, signed
    from evenhand.report.terminal import show
    from evenhand.simulate.moderation import moderation

    posts = moderation(rows, seed=seed)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    path = place / "decisions.parquet"
    posts.frame.write_parquet(path)
    click.echo(f"Simulated {rows:,} moderation decisions in {path}.")
    click.echo(
        f"$ evenhand audit {path} --truth violates --decision removed --group gender "
        "--group region --positive-is burden --limit true_positive_rate_gap=0.05\n"
    )
    decisions = Decisions(
        path,
        truth="violates",
        decision="removed",
        group=["gender", "region"],
        positive_is="burden",
    )
    result = audit(decisions, limits={"true_positive_rate_gap": 0.05}, seed=seed)
    show(result.record(), console())
    write_text(place / "audit.json", result.to_json())

    planted = {g: rates["true_positive_rate"] for g, rates in posts.planted.items()}
    gap = planted["female"] - planted["male"]
    found = next(
        iter(
            result.rows.where(
                measure="true_positive_rate_gap", class_="1", group="female", reference="male"
            )
        )
    )
    click.echo(
        f"\nPlanted: violations by female posters are removed less often than by male ones, "
        f"{number(planted['female'])} against {number(planted['male'])}: gap {signed(gap)}; "
        "region has no effect.\n"
        f"Found:   gap {signed(found['value'])} "
        f"[{number(found['low'])}, {number(found['high'])}], verdict: {found['verdict']}.\n"
        f"Record:  {place / 'audit.json'}"
    )
    return 0
