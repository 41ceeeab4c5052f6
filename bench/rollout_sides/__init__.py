"""The sides that `bench.rollouts` compares, and the processes it starts."""
