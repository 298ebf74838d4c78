"""A record shown: on the terminal, in a notebook, as Markdown and JUnit. Computes nothing."""
