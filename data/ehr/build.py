"""Run recipes.hospital.build, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("recipes.hospital.build", run_name="__main__")
