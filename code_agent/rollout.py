"""Run code_agent.medagentgym.runs with 16 rollouts of each task, under MedAgentGym's own path."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    sys.argv[1:1] = ["--num_rollouts", "16"]
    runpy.run_module("code_agent.medagentgym.runs", run_name="__main__")
