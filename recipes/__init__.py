"""How the committed data were made."""
