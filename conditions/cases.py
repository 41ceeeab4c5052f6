"""Run recipes.doctors.cases, where this command stands now."""

import runpy

if __name__ == "__main__":
    runpy.run_module("recipes.doctors.cases", run_name="__main__")
