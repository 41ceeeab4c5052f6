"""Run sql_agent.gold.validate, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("sql_agent.gold.validate", run_name="__main__")
