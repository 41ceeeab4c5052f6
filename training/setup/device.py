"""Which device a run uses, the variables its processes need (`verl.toml`), and the libraries.

Imports nothing heavy.
"""

from __future__ import annotations

import ctypes
import os
import shutil

from common.settings import ROOT
from training.setup.plan import ConfigError
from training.setup.presets import VERL_DEFAULTS

# Libraries that vLLM's CPU build is linked against and no wheel brings, with their packages of
# Debian. Without one, vLLM starts and fails a minute later without its name.
SYSTEM_LIBRARIES = {"libnuma.so.1": "libnuma1"}


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


def check_libraries(device: str) -> None:
    """Raise ConfigError if this machine lacks a library that vLLM loads on the device."""
    for library, package in SYSTEM_LIBRARIES.items() if device == "cpu" else ():
        try:
            ctypes.CDLL(library)
        except OSError:
            raise ConfigError(
                f"vLLM on the CPU loads {library}, which is not on this machine; as root, on"
                f" Debian or Ubuntu: apt-get install {package}"
            ) from None
