"""The card of an exported model, and the proof that other libraries load it."""
