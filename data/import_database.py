"""Run sql_agent.intake.import_database, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("sql_agent.intake.import_database", run_name="__main__")
