"""The environment of `code_agent.medagentgym.env`. Importing this registers it with gymnasium."""

from code_agent.medagentgym.env import EHREnv, MedAgentEnv

__all__ = ["EHREnv", "MedAgentEnv"]
