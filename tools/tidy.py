"""Files as every tool likes them: no blanks at line ends, one line break last, no merge marks.

python tools/tidy.py FILE…   mend what can be mended, say what was wrong; exit 1 where anything was
"""

import re
import sys
from pathlib import Path

MOST_BYTES = 500_000
UNTIDY = "has blanks at line ends, or does not end in one line break"
_MERGE = re.compile(rb"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)
_BLANKS = re.compile(rb"[ \t\r]+$", re.MULTILINE)


def mended(content: bytes) -> bytes:
    """The content without blanks at line ends and with one line break at its end.

    Examples:
        >>> mended(b"a \\r\\n\\nb")
        b'a\\n\\nb\\n'
    """
    text = _BLANKS.sub(b"", content).rstrip(b"\n")
    return text + b"\n" if text else b""


def complaints(content: bytes) -> list[str]:
    """What is wrong with a file, in words."""
    found = []
    if len(content) > MOST_BYTES:
        found.append(f"has {len(content):,} bytes; {MOST_BYTES:,} are the most")
    if _MERGE.search(content):
        found.append("has marks of a merge in it")
    if b"\0" not in content and content != mended(content):
        found.append(UNTIDY)
    return found


def main(paths: list[str]) -> int:
    failed = False
    for path in map(Path, paths):
        content = path.read_bytes()
        found = complaints(content)
        for complaint in found:
            print(f"{path} {complaint}.")
        if UNTIDY in found:
            path.write_bytes(mended(content))
        failed |= bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
