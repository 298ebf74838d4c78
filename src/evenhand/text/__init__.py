"""Interventions on text: change only the words of a group, remove them, or mask what they tell."""
