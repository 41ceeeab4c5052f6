"""What a run did: records of rollouts, the reaction to faults, the summary and the live view."""
