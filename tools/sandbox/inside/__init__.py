"""What runs inside the sandbox, by the standard library alone: the texts of these files are given to an
interpreter of its own (`mounts.program`), and every process inside is a fork of it. docs/safety.md
has a drawing.
"""
