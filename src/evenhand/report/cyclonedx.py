"""A record as a CycloneDX model card: fairness assessments and metrics with their intervals."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from evenhand.findings.sentences.words import words
from evenhand.report.first_screen import title
from evenhand.report.labels import spoken
from evenhand.report.table import chosen_rows
from evenhand.report.view import View, whole

VERSION = "1.6"
_OUTCOMES = {"cost": "harms", "benefit": "benefits"}


def as_cyclonedx(record: Mapping[str, Any]) -> str:
    """A CycloneDX document as JSON whose one component carries the audit in its model card.

    Harms and benefits come from the charter's catalogue; metrics from the leading rows.
    """
    return json.dumps(document(record), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def document(record: Mapping[str, Any]) -> dict[str, Any]:
    """The CycloneDX document as plain values."""
    held = whole(record)
    view = View.of(held)
    made, data = held["made"], held["data"]
    mark = str(data.get("fingerprint") or "")
    name = title(held)
    card: dict[str, Any] = {
        "quantitativeAnalysis": {"performanceMetrics": list(_metrics(held))},
        "considerations": {
            "technicalLimitations": [spoken(note) for note in held["notes"]],
            "fairnessAssessments": list(_assessments(view)),
        },
    }
    if held["charter"]:
        card["considerations"]["performanceTradeoffs"] = [spoken(held["charter"]["sentence"])]
    tool = {"type": "application", "name": "evenhand", "version": str(made.get("version", ""))}
    found: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": VERSION,
        "version": 1,
        "metadata": {"tools": {"components": [tool]}},
        "components": [
            {
                "type": "machine-learning-model",
                "bom-ref": f"evenhand-{mark or 'audit'}",
                "name": name,
                "modelCard": card,
                "properties": [
                    {"name": "evenhand:verdict", "value": str(held["verdict"])},
                    {"name": "evenhand:sentence", "value": spoken(held["sentence"])},
                    {"name": "evenhand:fingerprint", "value": mark},
                ],
            }
        ],
    }
    if len(mark) == 16:
        # The same audit gives the same document: its number is made from the fingerprint.
        found["serialNumber"] = f"urn:uuid:{UUID(hex=mark * 2, version=4)}"
    if made.get("at"):
        found["metadata"]["timestamp"] = str(made["at"])
    return found


def _metrics(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in chosen_rows(record, most=60)[0]:
        if row["value"] is None:
            continue
        keys = ("attribute", "class", "group", "reference", "stratum", "norm")
        slice_ = ", ".join(f"{key}={spoken(row[key])}" for key in keys if row[key] is not None)
        metric: dict[str, Any] = {
            "type": words(row["measure"]),
            "value": f"{row['value']:.6g}",
            "slice": slice_,
        }
        if row["family_low"] is not None and row["family_high"] is not None:
            metric["confidenceInterval"] = {
                "lowerBound": f"{row['family_low']:.6g}",
                "upperBound": f"{row['family_high']:.6g}",
            }
        yield metric


def _assessments(view: View) -> Iterator[dict[str, str]]:
    """One assessment for each finding on a group, then what the charter says of groups."""
    for finding in view.findings:
        row = view.lead_row(finding) if finding["rows"] else None
        if row is None:
            continue
        who = f"{spoken(row['attribute'])}={spoken(row['group'])}" if row["group"] else ""
        yield {
            "groupAtRisk": who or spoken(row["attribute"]),
            "harms": f"{finding['verdict'].capitalize()}: {spoken(finding['sentence'])}",
        }
    for line in (view.record["charter"] or {}).get("catalogue") or []:
        kind = _OUTCOMES.get(line.get("kind", ""))
        if kind is None:
            continue
        own = f" ({line['attribute']}={line['group']})" if line.get("group") else ""
        yield {"groupAtRisk": spoken(f"{line['borne_by']}{own}"), kind: spoken(line["what"])}
