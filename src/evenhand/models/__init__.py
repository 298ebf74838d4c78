"""Models of text: predictors to audit, representations and linear models to learn norms with."""
