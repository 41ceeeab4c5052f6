"""The engine room: agent-lightning rollouts inside verl's trainer. Knows no agent's words."""
