"""Shift the clock of every Python process that finds this folder on its path.

FAULT_CLOCK names a file with one double, the seconds, which may change at any time. It stands in
for a system clock that jumps, which only root may make. Monotonic clocks go on, as theirs do.
"""

import mmap
import os
import struct
import time

if path := os.environ.get("FAULT_CLOCK"):
    with open(path, "rb") as file:
        shift = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    real, read = time.time, struct.Struct("d").unpack_from

    def shifted() -> float:
        return real() + read(shift)[0]

    time.time = shifted
