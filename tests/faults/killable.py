"""Commands in processes that can be killed: forked from one that has imported everything.

Run as a program it reads one JSON line for each command from standard input and answers with one:
where it runs (`folder`), what (`arguments`), and when it is killed: after `seconds`, counted from
when a file is there where `when` names one, or at its `step`-th change of the file system (renames,
replacements and removals are counted), before that change or `after` it.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

STEPS = ("replace", "rename", "unlink", "rmdir")


def count_steps(*, step: int | None, after: bool) -> list[str]:
    """Note every change of the file system, and end this process at one of them."""
    seen: list[str] = []

    def counted(name: str) -> Any:
        change = getattr(os, name)

        def counting(*given: Any, **options: Any) -> Any:
            seen.append(name)
            if len(seen) == step and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            done = change(*given, **options)
            if len(seen) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return counting

    for name in STEPS:
        setattr(os, name, counted(name))
    return seen


def child(job: dict[str, Any]) -> None:
    from evenhand.cli.main import main

    # A suite under nohup hands on that hang-ups are ignored, and so would the command.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(job["folder"])
    said = os.open(job["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    seen = count_steps(step=job.get("step"), after=job.get("after", False))
    code = 5
    try:
        main(job["arguments"])
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        Path(job["said"] + ".steps").write_text(str(len(seen)))
        os._exit(code)


def serve() -> None:
    import evenhand.cli.audit
    import evenhand.cli.compare
    import evenhand.cli.main
    import evenhand.cli.report
    import evenhand.findings.run
    import evenhand.models.norms.table
    import evenhand.models.table
    import evenhand.remedies.ledger.compare
    import evenhand.report.page
    import evenhand.text.table
    import evenhand.watching.run  # noqa: F401

    for line in sys.stdin:
        job = json.loads(line)
        began = time.monotonic()
        process = os.fork()
        if process == 0:
            child(job)
        seconds, killed, started = job.get("seconds"), False, began
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                break
            if "when" in job and not (Path(job["folder"]) / job["when"]).exists():
                started = time.monotonic()
            elif seconds is not None and not killed and time.monotonic() - started >= seconds:
                os.kill(process, job.get("signal", signal.SIGKILL))
                killed = True
            time.sleep(0.002)
        steps = Path(job["said"] + ".steps")
        # Killed as it wrote its number, a command leaves the file empty: it counts as none.
        count = steps.read_text() if steps.exists() else ""
        answer = {
            "code": os.waitstatus_to_exitcode(status),
            "seconds": time.monotonic() - began,
            "steps": int(count) if count else None,
        }
        steps.unlink(missing_ok=True)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
