"""The processes that play episodes, and what an episode leaves in the store."""
