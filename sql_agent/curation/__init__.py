"""From chat exports to rows for training: the programs that users run, and what they share."""
