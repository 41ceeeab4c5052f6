"""What Python runs first in every process of a run, spawned ones of vLLM too (PYTHONPATH, training/device.py)."""

from common.startup import collect_rarely

collect_rarely()
