"""The code agent: answers questions about records and calculations by running programs."""
