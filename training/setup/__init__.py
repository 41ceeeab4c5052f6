"""Settle and check what a run does before anything heavy is imported."""
