"""Checkpoints hold data and never programs: unpickling refuses whatever would run code.

TORCH_FORCE_WEIGHTS_ONLY_LOAD is set in `verl.toml`. Numpy's random state is allowed in addition.
"""

import numpy as np
import torch

how_arrays_begin = np.array(0).__reduce__()[0]  # a private function of numpy's
torch.serialization.add_safe_globals(
    [how_arrays_begin, np.ndarray, np.dtype, np.dtypes.UInt32DType]
)
