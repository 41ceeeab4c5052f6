"""Python runs this file first in every process of a run, also in those that vLLM spawns.

It sets the collector's rate as common/startup.py does, without importing it: a program started from
another folder may have a package `common` of its own.
"""

import gc

gc.set_threshold(50_000, 10, 10)
