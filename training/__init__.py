"""The engine room: agent-lightning rollouts inside verl's trainer. Knows no SQL and no medicine."""
