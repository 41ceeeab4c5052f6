"""Pairs of a better and a worse episode of one task, and what is learned from them."""
