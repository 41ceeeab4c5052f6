"""What Python runs first in every process of a run, spawned ones of vLLM too (PYTHONPATH,
training/setup/device.py).

The collector's rate of common/startup.py, which says why, without importing it: a program that is
started from another folder may have a package `common` of its own.
"""

import gc

gc.set_threshold(50_000, 10, 10)
