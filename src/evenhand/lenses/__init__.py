"""The five lenses: decisions in, rows with values and intervals out."""
