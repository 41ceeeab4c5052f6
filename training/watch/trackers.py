"""`python -m training.watch.trackers`, the earlier name of training.report.trackers."""

import sys

from training.report.trackers import main

if __name__ == "__main__":
    sys.exit(main())
