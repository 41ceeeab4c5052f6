"""Run recipes.build_database, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("recipes.build_database", run_name="__main__")
