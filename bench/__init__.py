"""Measurements: each program runs as `python -m bench.NAME` and prints one line of JSON last."""
