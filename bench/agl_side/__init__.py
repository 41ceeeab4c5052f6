"""agent-lightning's own training, for `bench.agl_step`: run by the interpreter of its own
environment (requirements/peer.txt).
"""
