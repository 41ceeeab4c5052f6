"""What a run shows while it works, and its summary."""
