"""verl's trainer with rollouts from the store. batch.py hands verl the tokens of a step."""
