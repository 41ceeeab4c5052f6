"""agent-lightning's own training, run by the interpreter of its own environment
(requirements/peer.txt).
"""
