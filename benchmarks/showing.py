"""What showing an audit takes, in units of the audit itself: 50 groups × 28 classes, 1M rows.

    python benchmarks/run.py showing

CPU time in one process, best of three. A page and a notebook draw charts: what the renderer of
Vega-Lite takes for them stands apart, since it does not grow with groups or classes.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import vl_convert
from audits import write_decisions

ROWS, GROUPS, CLASSES = 1_000_000, 50, 28
FORMS = ("page", "markdown", "json", "csv", "junit")
LIMITS = {"true_positive_rate_gap": 0.05, "selection_rate_gap": 0.01}


def cpu(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """CPU seconds of a piece of work, the best of several, and what it gave."""
    used, made = [], None
    for _ in range(repeats):
        start = time.process_time()
        made = work()
        used.append(time.process_time() - start)
    return min(used), made


def run() -> list[str]:
    """Every form, without limits and with two that judge 2,744 rows."""
    import evenhand as eh

    drawing = [0.0]
    draw = vl_convert.vegalite_to_svg

    def drawn(specification: Any) -> Any:
        start = time.process_time()
        made = draw(specification)
        drawing[0] += time.process_time() - start
        return made

    lines = [
        f"Showing an audit of {ROWS:,} rows, {GROUPS} groups × {CLASSES} classes, in CPU time of "
        "the audit (wanted: at most 1). The last column is what drawing its charts takes of it.",
        "",
        "| form | audit, s | form, s | × audit | × with two limits | of it charts, s |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.parquet"
        write_decisions(path, ROWS, groups=GROUPS, classes=CLASSES)
        roles: dict[str, Any] = {"truth": "truth", "decision": "decision", "group": "group"}
        plain, audit = cpu(lambda: eh.audit(path, **roles))
        limited, judged = cpu(lambda: eh.audit(path, limits=LIMITS, **roles))
        works: dict[str, Callable[[Any], Any]] = {
            "terminal": str,
            "notebook": lambda one: one._repr_html_(),
            **{form: lambda one, form=form: eh.render(one, form=form) for form in FORMS},
        }
        for form, show in works.items():
            used, _ = cpu(lambda show=show: show(audit))
            with_limits, _ = cpu(lambda show=show: show(judged))
            vl_convert.vegalite_to_svg, drawing[0] = drawn, 0.0
            cpu(lambda show=show: show(audit), 1)
            vl_convert.vegalite_to_svg = draw
            lines.append(
                f"| {form} | {plain:.2f} | {used:.2f} | {used / plain:.1f} | "
                f"{with_limits / limited:.1f} | {drawing[0]:.2f} |"
            )
    return lines
