"""Readers of public test sets, as they are published."""
