"""The `evenhand` command: its subcommands are loaded when they are called."""

import sys
from importlib import import_module

import click

from evenhand import __version__
from evenhand.errors import EvenhandError

COMMANDS = {
    "audit": "evenhand.cli.audit:audit_command",
    "demo": "evenhand.cli.demo:demo_command",
    "plan": "evenhand.cli.plan:plan_command",
    "charter": "evenhand.cli.charter:charter_command",
    "swap": "evenhand.cli.swap:swap_command",
    "score": "evenhand.cli.score:score_command",
    "norms": "evenhand.cli.norms:norms_command",
    "compare": "evenhand.cli.compare:compare_command",
    "report": "evenhand.cli.report:report_command",
    "verify": "evenhand.cli.verify:verify_command",
}
HELP = {
    "audit": "Audit a table of decisions.",
    "demo": "Simulate decisions with a planted bias and audit them.",
    "plan": "Cases needed before collecting any.",
    "charter": "Write, check and show the file that records the chosen trade-offs.",
    "swap": "Rewrite texts under each value of a group: counterfactual texts.",
    "score": "Score texts, and their counterfactuals, with a model.",
    "norms": "Learn how typical of a group a text looks, and score it.",
    "compare": "Train remedies side by side and measure each on every lens.",
    "report": "Render a record as a page, or compare two.",
    "verify": "Recompute the shared rates with other tools that are installed.",
}


class LazyGroup(click.Group):
    """A group that imports a command only when it runs, so that --help is instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, HELP[name]) for name in COMMANDS])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from evenhand.errors import UsageError, nearest

            raise UsageError(
                f"{args[0]!r} is not a command.{nearest(args[0], list(COMMANDS))} "
                "See: evenhand --help"
            )
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evenhand")
def evenhand() -> None:
    """Are groups of people held to the same standard, and how sure can we be?"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; every error a user can put right ends in one sentence and its exit code."""
    try:
        code = evenhand.main(args=arguments, prog_name="evenhand", standalone_mode=False)
    except EvenhandError as error:
        click.echo(f"evenhand: {error}", err=True)
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 0
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "evenhand"
        click.echo(f"evenhand: {error.format_message()} See: {where} --help", err=True)
        code = 2
    except click.exceptions.Exit as exit_:
        code = exit_.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("evenhand: interrupted.", err=True)
        code = 130
    except BrokenPipeError:
        # The reader closed early (such as `| head`); nothing is wrong.
        sys.stderr.close()
        code = 0
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        click.echo(
            f"evenhand: something went wrong inside ({told}). This is a bug in Evenhand; please "
            "report it with the command you ran.",
            err=True,
        )
        code = 5
    sys.exit(code if isinstance(code, int) else 0)
