"""Earlier names of commands; they stand in training/report."""
