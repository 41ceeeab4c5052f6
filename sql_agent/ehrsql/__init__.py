"""EHRSQL: the published questions, and a small database drawn from their statements."""
