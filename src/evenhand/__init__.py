"""Evenhand: are groups of people held to the same standard, and how sure can we be?"""

__version__ = "0.1.0"
