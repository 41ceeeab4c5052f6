"""Checkpoints hold data and never programs: what would run code when it is unpickled is refused.

torch reads no more than tensors and plain values where TORCH_FORCE_WEIGHTS_ONLY_LOAD is set,
whatever its caller says (verl says `weights_only=False`); both are set for every process of a run
(`verl.toml`). Beside what torch itself lets in, verl saves numpy's random state.

verl imports this module (VERL_USE_EXTERNAL_MODULES); nobody runs it.
"""

import numpy as np
import torch

how_arrays_begin = np.array(0).__reduce__()[0]  # a private function of numpy's
torch.serialization.add_safe_globals(
    [how_arrays_begin, np.ndarray, np.dtype, np.dtypes.UInt32DType]
)
