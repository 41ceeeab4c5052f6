"""The lessons of the SQL agent's bundled model."""
