"""Readers of public test sets of cases, each recognised by what its rows hold."""
