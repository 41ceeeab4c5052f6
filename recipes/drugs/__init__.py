"""What the SQL agent's bundled model was made from."""
