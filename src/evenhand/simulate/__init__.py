"""Data with a planted, known bias."""
