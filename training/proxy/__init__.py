"""The LLM proxy: calls of the policy pass here and are recorded."""
