"""His or him: what a "her" stands for, read from the words around it."""
