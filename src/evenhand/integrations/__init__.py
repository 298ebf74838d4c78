"""Evenhand where people already work: pytest, scikit-learn, MLflow, Hugging Face."""
