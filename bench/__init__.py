"""Measurements: each program runs as `python -m bench.NAME` without arguments and prints one line
of JSON last.
"""
