"""A record as JUnit XML: a test case for each limited row, so that passes show too."""

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from evenhand.findings.sentences import row_sentence
from evenhand.findings.verdict import hide_row

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(record: Mapping[str, Any]) -> str:
    """JUnit XML: outside is a failure, cannot tell is skipped, within passes."""
    rows = [hide_row(row) for row in record["results"] if row["verdict"] != "not assessed"]
    # As for the verdict: of single labelers only those surely outside.
    rows = [row for row in rows if row["labeler"] is None or row["verdict"] == "outside"]
    counts = {
        "tests": len(rows),
        "failures": sum(row["verdict"] == "outside" for row in rows),
        "skipped": sum(row["verdict"] == "cannot tell" for row in rows),
        "errors": 0,
    }
    suite = ElementTree.Element("testsuite", {"name": "evenhand", **_texts(counts)})
    for row in rows:
        parts = (row["class"], row["group"], row["reference"], row["stratum"], row["labeler"])
        name = " · ".join(str(part) for part in (row["measure"], *parts) if part)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": _clean(f"{row['lens']}.{row['attribute']}"), "name": _clean(name)},
        )
        told = _clean(row_sentence(row))
        if row["verdict"] == "outside":
            ElementTree.SubElement(case, "failure", {"message": told}).text = told
        elif row["verdict"] == "cannot tell":
            ElementTree.SubElement(case, "skipped", {"message": told})
    body = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def _clean(text: str) -> str:
    """Without the characters that XML cannot carry: controls, surrogates, non-characters."""
    return _FORBIDDEN.sub("", text)
