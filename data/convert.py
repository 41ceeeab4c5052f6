"""Run sql_agent.gold.convert, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("sql_agent.gold.convert", run_name="__main__")
