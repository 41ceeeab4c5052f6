"""What an exported model carries: its card, and the proof that other libraries load it."""
