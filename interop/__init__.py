"""Agents of this repository in other people's trainers and evaluators (docs/interop.md)."""
