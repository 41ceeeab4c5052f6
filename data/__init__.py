"""From sources to files: the small embedded database and the question files made from it.

Importing does nothing.
"""
