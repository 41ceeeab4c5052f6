"""Readers of foreign tables: files and databases row by row, their headers and cells."""
