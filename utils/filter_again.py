"""Run sql_agent.curation.filter_with_llm with --strict, which was a program of this name."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    sys.argv.append("--strict")
    runpy.run_module("sql_agent.curation.filter_with_llm", run_name="__main__")
