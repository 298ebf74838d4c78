"""Every benchmark, as ratios measured in one run, written to RESULTS.md.

    make bench                 everything but the ledger of remedies
    python benchmarks/run.py remedies

The unit is the bare count: `scan_parquet(file).group_by(keys).len()` on Polars' streaming engine,
in the same run. Absolute seconds depend on the machine; ratios carry over.
"""

import importlib
import platform
import sys
from pathlib import Path

HERE = Path(__file__).parent
SUITES = ("foundation", "lenses", "audits", "showing", "people", "linear")


def main(names: list[str]) -> None:
    sys.path.insert(0, str(HERE))
    for name in names or SUITES:
        lines = importlib.import_module(name).run()
        text = "\n".join([f"## {name.capitalize()}", "", *lines, ""])
        print(text)
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / f"{name}.md").write_text(text)
    parts = [path.read_text() for path in sorted((HERE / "results").glob("*.md"))]
    head = [
        "# Benchmark results",
        "",
        f"Python {platform.python_version()}, {platform.machine()}. "
        "Best of three unless it says otherwise; made by `make bench`.",
        "",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(head) + "\n".join(parts))


if __name__ == "__main__":
    main(sys.argv[1:])
