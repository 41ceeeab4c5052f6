"""The code agent: answers questions about records and calculations by writing programs that are
run.
"""
