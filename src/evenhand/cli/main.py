"""The `evenhand` command: its subcommands are loaded when they are called."""

import codecs
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from evenhand import __version__, load
from evenhand.cli.output import say
from evenhand.errors import EvenhandError
from evenhand.files.writing import remove_stages
from evenhand.speech import without_secrets

COMMANDS = {
    "audit": "cli.audit:audit_command",
    "demo": "cli.demo:demo_command",
    "plan": "cli.plan:plan_command",
    "charter": "cli.charter:charter_command",
    "swap": "cli.swap:swap_command",
    "score": "cli.score:score_command",
    "norms": "cli.norms:norms_command",
    "words": "cli.words:words_command",
    "compare": "cli.compare:compare_command",
    "remedy": "cli.remedy:remedy_command",
    "report": "cli.report:report_command",
    "verify": "cli.verify:verify_command",
    "watch": "cli.watch:watch_command",
    "alarms": "cli.alarms:alarms_command",
    "tally": "cli.tally:tally_command",
    "reproduce": "cli.reproduce:reproduce_command",
}
HELP = {
    "audit": "Audit a table of decisions.",
    "demo": "Simulate decisions with a planted bias and audit them.",
    "plan": "Cases needed before collecting any.",
    "charter": "Write, check and show the file that records the chosen trade-offs.",
    "swap": "Rewrite texts under each value of a group: counterfactual texts.",
    "score": "Score texts, and their counterfactuals, with a model.",
    "norms": "Learn how typical of a group a text looks, and score it.",
    "words": "What each word weighs in a model and in a norm; words that two models differ by.",
    "compare": "Train remedies side by side and measure each on every lens.",
    "remedy": "Write the training set that a remedy makes, for any trainer.",
    "report": "Render a record as a page, or compare two.",
    "tally": "Count what an audit needs, without rows; audit takes such files.",
    "verify": "Recompute the shared rates with other tools that are installed.",
    "watch": "Add periods to a store, judge the whole sequence, say why a gap moved.",
    "alarms": "List the alarms of a store, and answer them.",
    "reproduce": "Make the papers' tables and figures again.",
}


class LazyGroup(click.Group):
    """A group that imports a command only when it runs, so that --help is instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(load(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, HELP[name]) for name in COMMANDS])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from evenhand.errors import UsageError, choices

            hint = choices(args[0], COMMANDS, called="commands", most=len(COMMANDS))
            raise UsageError(f"{args[0]!r} is not a command.{hint} See: evenhand --help")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evenhand")
def evenhand() -> None:
    """Are groups of people held to the same standard, and how sure can we be?"""


# What signs become where a terminal knows only ASCII; other characters are shown by their number.
_SIGNS = {"−": "-", "–": "-", "—": "-", "─": "-", "…": "...", "·": "*", "’": "'", "×": "x",
          "≥": ">=", "≤": "<=", "±": "+/-", "→": "->", "✓": "ok", "✗": "x", "✕": "x"}  # fmt: skip
_COMPLETION = "_EVENHAND_COMPLETE"
# Seconds that a stopped command has to end by itself before it is ended.
GRACE = 5.0


class Stopped(SystemExit):
    """The end of a command that was stopped from outside."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; every error a user can put right ends in one sentence and its exit code."""
    _prepare_streams()
    with stopping():
        code = _call(arguments)
    if arguments is None:
        # The process ends: what is left in it need not be looked through once more.
        gc.freeze()
    sys.exit(code)


def _call(arguments: list[str] | None) -> int:
    try:
        code = evenhand.main(args=arguments, prog_name="evenhand", standalone_mode=False)
    except EvenhandError as error:
        complain(str(error))
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        code = 0
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "evenhand"
        complain(f"{_usage_message(error)} See: {where} --help")
        code = 2
    except click.exceptions.Exit as exit_:
        code = exit_.exit_code
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted.")
        code = 130
    except Stopped as stop:
        complain("stopped.")
        code = stop.code
    except SystemExit as stop:
        if _COMPLETION in os.environ:  # click ends this way once it has answered the shell
            return stop.code if isinstance(stop.code, int) else 0
        complain(f"ended by sys.exit({stop.code!r}), which a model's own code may have called.")
        code = 4
    except OSError as error:
        # What the system refuses (a full disk, too many open files) is no fault of ours.
        where = f"'{error.filename}' cannot be used" if error.filename else "The system refused"
        complain(f"{where}: {error.strerror or error}.")
        code = 2
    except Exception as error:
        complain(
            f"something went wrong inside ({type(error).__name__}: {error}). This is a bug in "
            "Evenhand; please report it with the command you ran."
        )
        code = 5
    except BaseException as error:
        # Polars panics over bytes that no file of that format can have.
        if type(error).__name__ != "PanicException":
            raise
        complain(f"the data cannot be read: {str(error).strip().partition(chr(10))[0]}. They may "
                 "be damaged.")  # fmt: skip
        code = 4
    return code if isinstance(code, int) else 0


def _usage_message(error: click.UsageError) -> str:
    """What is wrong with the command; a flag of another tool is answered with ours."""
    if isinstance(error, click.NoSuchOption):
        from evenhand.decisions.roles import peer_role

        role = peer_role(error.option_name)
        if role is not None:
            return f"No such option '{error.option_name}': it is called --{role} here."
    return error.format_message()


def complain(text: str) -> None:
    """Say what is wrong, on standard error, without secrets."""
    say(f"evenhand: {without_secrets(text)}", err=True)


def _prepare_streams() -> None:
    """Streams that are there and take every character, whatever the terminal knows."""
    codecs.register_error("evenhand", _plain_signs)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by the shell (>&-): else the next file opened would take its number.
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="evenhand")


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    words = (_SIGNS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in signs)
    return "".join(words), error.end


@contextmanager
def stopping() -> Iterator[None]:
    """A stop from outside ends the command as an error does, with what it put aside removed.

    Python hears of a signal only between two of its own steps. Where one of them takes long, a
    second thread hears at once, waits a little and then ends the process itself.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, _stop) for number in numbers}
    hear, tell = os.pipe()
    os.set_blocking(tell, False)
    earlier = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    over = threading.Event()
    watch = threading.Thread(target=_end_soon, args=(hear, set(numbers), over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(earlier)
        os.close(tell)
        watch.join()
        os.close(hear)
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: object) -> None:
    raise Stopped(128 + number)


def _end_soon(hear: int, numbers: set[signal.Signals], over: threading.Event) -> None:
    while number := os.read(hear, 1):
        if number[0] in numbers and not over.wait(GRACE):
            remove_stages()
            os._exit(128 + number[0])
