"""The diagnosis agent: a doctor who orders one examination after another, and ends with a
diagnosis.
"""
