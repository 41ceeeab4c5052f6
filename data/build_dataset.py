"""Run recipes.build_dataset, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("recipes.build_dataset", run_name="__main__")
