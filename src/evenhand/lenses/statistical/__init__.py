"""Statistical."""
