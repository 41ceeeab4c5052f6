"""Gold of question rows: checked against the database, and answers drafted from it."""
