"""Users' tables and question files: read, understood, and written into the medical database."""
