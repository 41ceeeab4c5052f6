"""`.venv/bin/python -m training.prepare AGENT`: prepare rows and judge (training/start/prepare.py)."""

import sys

from training.start.prepare import main

if __name__ == "__main__":
    sys.exit(main())
