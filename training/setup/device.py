"""Which device a run uses, and the variables its processes need (`verl.toml`).

Imports nothing heavy.
"""

from __future__ import annotations

import os
import shutil

from common.settings import ROOT
from training.setup.presets import VERL_DEFAULTS


def choose_device(asked: str) -> str:
    """Return the device: `auto` means a GPU where the driver's tool is installed, else the CPU."""
    found = "cuda" if shutil.which("nvidia-smi") else "cpu"
    return found if asked == "auto" else asked


def environment(device: str) -> dict[str, str]:
    """Return the variables that every process of a run on this device needs."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = dict.fromkeys([str(ROOT), *filter(None, given), str(ROOT / "training" / "cpu" / "site")])
    variables = VERL_DEFAULTS["environment"]
    return variables["every"] | {"PYTHONPATH": os.pathsep.join(path)} | variables.get(device, {})
