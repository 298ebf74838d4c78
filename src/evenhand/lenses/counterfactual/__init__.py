"""Counterfactual."""
