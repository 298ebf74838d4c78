"""Watching: is it still so, since when, and why did it move."""
