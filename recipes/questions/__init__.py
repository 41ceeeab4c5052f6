"""Questions for the medical database, drawn from its rows."""
