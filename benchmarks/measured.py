"""How things are timed: best of several in this process, or in a process of its own for memory."""

import json
import subprocess
import sys
import time
from collections.abc import Callable

_WRAPPER = """
import json, re, time
{setup}
seconds, cpu = [], []
for _ in range({repeats}):
    start, used = time.perf_counter(), time.process_time()
    {body}
    seconds.append(time.perf_counter() - start)
    cpu.append(time.process_time() - used)
# Not getrusage: its maximum is handed down from the process that started this one.
status = open("/proc/self/status").read()
peak = int(re.search("VmHWM:[^0-9]*([0-9]+)", status)[1]) / 1024
print("RESULT", json.dumps({{"seconds": min(seconds), "cpu": min(cpu), "peak_mb": peak}}))
"""


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """Shortest of several wall times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def alone(setup: str, body: str, repeats: int = 3) -> dict[str, float]:
    """Wall and CPU time and peak memory (MB) of code in a fresh process.

    CPU time is what ratios are taken of where the machine is shared: neighbours do not count.
    """
    code = _WRAPPER.format(setup=setup, body=body, repeats=repeats)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            return dict(json.loads(line.removeprefix("RESULT")))
    raise RuntimeError(done.stderr[-2000:])
