"""The start of a run: its plan, the checks before it, and its rows."""
