"""The command under its old name: `.venv/bin/python -m conditions.intake.diagnosis`."""

from runpy import run_module

if __name__ == "__main__":
    run_module("conditions.intake.diagnosis", run_name="__main__")
