"""The files of data, and readers of Parquet and JSON."""
