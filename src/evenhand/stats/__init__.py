"""Statistics that know nothing of fairness: arrays and counts in, estimates out."""
