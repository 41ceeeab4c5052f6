"""Measurements: each program runs as `.venv/bin/python -m bench.NAME` and prints one line of JSON last."""
