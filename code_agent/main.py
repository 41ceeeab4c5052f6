"""Run code_agent.medagentgym.runs under MedAgentGym's own path."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("code_agent.medagentgym.runs", run_name="__main__")
