"""Return the memory of large tensors to the machine."""

import ctypes

M_MMAP_THRESHOLD = -3
# glibc raises its own threshold to 32 MB. Activations, of which no two have one size, then leave
# holes: 0.6 GB with a model of 0.5 billion parameters. Fresh pages cost a tenth more work.
RETURNED_BYTES = 2**20


def give_back() -> None:
    """Make glibc return every block of a MiB or more as soon as it is freed."""
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, RETURNED_BYTES)
