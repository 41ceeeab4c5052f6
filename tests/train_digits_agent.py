"""The training command of the tests' own agent, as `train_sql_agent.py` is of the SQL agent."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from episodes.registry import register
from tests.digits_agent.agent import AGENT
from training.start.command import main

if __name__ == "__main__":
    register(AGENT)
    sys.exit(main("digits"))
