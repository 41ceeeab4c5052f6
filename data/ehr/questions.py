"""Run recipes.hospital.questions, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("recipes.hospital.questions", run_name="__main__")
