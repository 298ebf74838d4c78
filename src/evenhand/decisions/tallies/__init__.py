"""Tallies."""
