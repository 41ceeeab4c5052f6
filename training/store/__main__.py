"""The command `python -m training.store`."""

import sys

from common.stopping import stop_in_order
from training.store.serving import main

if __name__ == "__main__":
    stop_in_order()
    sys.exit(main())
