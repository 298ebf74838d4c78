"""Sentences, made last: findings and rows in words, by lens; nothing reads one back."""
