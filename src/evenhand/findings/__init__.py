"""From rows to findings: limits, verdicts, the record."""
