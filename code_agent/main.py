"""The command of `code_agent.medagentgym.runs` under MedAgentGym's own path."""

import sys
from pathlib import Path

# The path of a script would begin with this folder
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from code_agent.medagentgym.runs import main

if __name__ == "__main__":
    sys.exit(main())
