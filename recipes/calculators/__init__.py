"""The questions of the code agent that a medical calculator answers."""
