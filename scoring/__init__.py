"""Judge answers, for all agents, without knowing tools or training."""
