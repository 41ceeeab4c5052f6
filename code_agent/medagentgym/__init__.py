"""MedAgentGym's command line, its YAML, its history files and its gymnasium environment."""
