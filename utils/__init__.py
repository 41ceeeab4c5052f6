"""The floor every room stands on (settings), and the operator's scripts."""
