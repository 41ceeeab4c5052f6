"""Run sql_agent.curation.filter_new_question, where this program stands now."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("sql_agent.curation.filter_new_question", run_name="__main__")
