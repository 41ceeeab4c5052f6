"""The LightningStore: in this run, kept on disk or external, and its client."""
