"""Cases of public test sets."""
