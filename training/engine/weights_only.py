"""Checkpoints hold data and never programs: unpickling refuses whatever would run code.

torch reads no more than tensors and plain values where TORCH_FORCE_WEIGHTS_ONLY_LOAD is set,
whatever its caller asks for (verl sets `weights_only=False`); `verl.toml` sets the variable, and
the import of this module, for every process of a run (VERL_USE_EXTERNAL_MODULES). Numpy's random
state, which verl saves, is allowed in addition to what torch allows.
"""

import numpy as np
import torch

how_arrays_begin = np.array(0).__reduce__()[0]  # a private function of numpy's
torch.serialization.add_safe_globals(
    [how_arrays_begin, np.ndarray, np.dtype, np.dtypes.UInt32DType]
)
