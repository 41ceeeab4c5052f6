"""The LightningStore, served in this run or for several programs, and its client."""
