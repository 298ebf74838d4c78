"""Simulated tables that tests share with the claims of `make simulate`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
