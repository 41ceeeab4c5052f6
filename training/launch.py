"""`.venv/bin/python -m training.launch AGENT`: the training command of any agent (training/start/command.py)."""

import sys

from common.command import start

if __name__ == "__main__":
    sys.exit(start("training.start.command", "main_of_any", sys.argv[1:]))
