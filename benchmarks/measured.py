"""How things are timed: CPU time, best of several, here or in a process of its own for memory."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

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


_PROFILER = """
import cProfile, json, pstats, time
{setup}
{body}
profile = cProfile.Profile(time.process_time)
profile.enable()
{body}
profile.disable()
stats = pstats.Stats(profile)
found = {{}}
for (file, _, name), (_, _, _, cumulative, _) in stats.stats.items():
    if "evenhand" in file and not name.startswith("<"):
        where = file.split("evenhand/")[-1] + " " + name
        found[where] = max(found.get(where, 0), cumulative)
print("RESULT", json.dumps({{"total": stats.total_tt, "parts": found}}))
"""


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """Least CPU time of several tries, in seconds: this process's and its children's."""
    times = []
    for _ in range(repeats):
        start = _used()
        work()
        times.append(_used() - start)
    return min(times)


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def alone(setup: str, body: str, repeats: int = 3) -> dict[str, float]:
    """Wall and CPU time and peak memory (MB) of code in a fresh process.

    CPU time is what ratios are taken of where the machine is shared: neighbours do not count.
    """
    return _result(_WRAPPER.format(setup=setup, body=body, repeats=repeats))


def largest_parts(setup: str, body: str, *, shown: int = 8) -> list[str]:
    """Where the CPU time of code goes: functions with what they call, as shares of the whole."""
    found = _result(_PROFILER.format(setup=setup, body=body))
    total = found["total"]
    parts = sorted(found["parts"].items(), key=lambda part: -part[1])
    apart = [(name, used / total) for name, used in parts if used < 0.6 * total]
    return [f"`{name}` {share:.0%}" for name, share in apart[:shown]]


def _result(code: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            return dict(json.loads(line.removeprefix("RESULT")))
    raise RuntimeError(done.stderr[-2000:])
