"""What a run did: records of rollouts, what is done about faults, the summary and the live view."""
