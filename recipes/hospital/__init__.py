"""The hospital of the code agent: its tables and the questions about them."""
