"""Claims of coverage and error rates, simulated by `make simulate` for docs/explanation."""
