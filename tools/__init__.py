"""What a model may call. Tools know neither agents nor rewards."""
