"""The supervised phase before reinforcement learning, and the tiny models made from nothing."""
