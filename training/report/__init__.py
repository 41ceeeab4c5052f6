"""The progress and the summary of a run."""
