"""The command line: parses, calls, prints. Computes nothing."""
