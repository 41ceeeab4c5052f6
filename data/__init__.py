"""Readers of Parquet and JSON files."""
