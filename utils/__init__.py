"""The operator's scripts."""
