"""The start of a run: its plan, the checks before it, its rows, and the order of all of them."""
