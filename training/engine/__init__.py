"""verl's trainer with rollouts from the store: collecting, sequences, updates, checkpoints."""
