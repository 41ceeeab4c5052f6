"""The sides `bench.rollouts` compares, and what it starts as processes."""
