"""A lazy table of decisions, the roles of its columns, and the tallies taken from it.

The only room that touches a frame's methods, always through Narwhals.
"""
