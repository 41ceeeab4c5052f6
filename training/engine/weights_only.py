"""Allow numpy's random state in checkpoints. TORCH_FORCE_WEIGHTS_ONLY_LOAD (`verl.toml`) refuses
whatever else would run code when it is unpickled.
"""

import numpy as np
import torch

how_arrays_begin = np.array(0).__reduce__()[0]  # a private function of numpy's
torch.serialization.add_safe_globals(
    [how_arrays_begin, np.ndarray, np.dtype, np.dtypes.UInt32DType]
)
