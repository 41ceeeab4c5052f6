"""The SQL agent: answers medical questions by querying a database of drugs and diseases."""
