"""What an exported model carries: its card, and the proof that others load it."""
