"""What a model may call. A tool knows no agent and no reward."""
