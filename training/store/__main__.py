"""="""

import sys

from common.stopping import stop_in_order
from training.store.store_server import main

if __name__ == "__main__":
    stop_in_order()
    sys.exit(main())
