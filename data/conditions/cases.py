"""The command under its old name: `.venv/bin/python -m conditions.cases`."""

from runpy import run_module

if __name__ == "__main__":
    run_module("recipes.doctors.cases", run_name="__main__")
