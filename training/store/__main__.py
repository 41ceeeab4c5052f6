"""The command `python -m training.store`."""

import sys

from training.store.serving import main

if __name__ == "__main__":
    sys.exit(main())
