"""MedAgentGym's front: its command line, its YAML, its history files and its gymnasium
environment.
"""
