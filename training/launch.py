"""`python -m training.launch AGENT`: the training command of any agent (training/start/command.py)."""

import sys

from training.start.command import main_of_any

if __name__ == "__main__":
    sys.exit(main_of_any(sys.argv[1:]))
