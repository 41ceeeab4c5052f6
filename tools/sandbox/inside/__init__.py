"""What runs inside the sandbox. Standard library only.

The texts of these files are given to an interpreter (`mounts.program`), and every process inside is
a fork of it. docs/safety.md has a drawing.
"""
