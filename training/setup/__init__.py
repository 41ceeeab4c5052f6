"""What a run is to do, checked before anything heavy is imported."""
