"""Readers of published corpora in their real file layouts, from local files."""
