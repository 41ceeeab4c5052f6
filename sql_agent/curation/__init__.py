"""From chat exports to training rows: the programs that users run, and what they share."""
