"""The charter: which trade-offs were chosen, by whom, until when and why."""
