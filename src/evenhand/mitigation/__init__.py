"""Remedies: before, in and after training, each usable alone with scikit-learn's conventions."""
