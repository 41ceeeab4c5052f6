"""Which device a run uses, and what its processes need there. Imports nothing heavy."""

import ctypes
import getpass
import os
import shutil
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from common.settings import ROOT
from training.setup.model_folder import weights_bytes
from training.setup.plan import ConfigError
from training.setup.presets import VERL_DEFAULTS

THREADS = "OMP_NUM_THREADS"
# Of weights: the bundled models have 2 million bytes, the smallest real one 270 million
LARGE_BYTES = 50_000_000
BFLOAT16 = {"avx512_bf16", "amx_bf16"}  # of /proc/cpuinfo: the processor multiplies these itself
# Libraries that vLLM's CPU build is linked against and no wheel brings, with their packages of
# Debian. Without one, vLLM starts and fails a minute later without its name.
SYSTEM_LIBRARIES = {"libnuma.so.1": "libnuma1"}


def built_for() -> str:
    """Return the device that the installed torch is built for."""
    try:
        return "cpu" if version("torch").endswith("+cpu") else "cuda"
    except PackageNotFoundError:
        return "cpu"


def choose_device(asked: str) -> str:
    """Return the device: `auto` means a GPU where torch is built for one and a driver is there."""
    if asked != "auto":
        return asked
    return "cuda" if built_for() == "cuda" and shutil.which("nvidia-smi") else "cpu"


def is_large(model: str) -> bool:
    """Return whether a model has so many weights that one core is not enough for it."""
    return weights_bytes(model) > LARGE_BYTES


def in_bfloat16(model: str) -> bool:
    """Return whether the CPU computes this model in bfloat16. A tiny one gains nothing by it."""
    if not is_large(model):
        return False
    with suppress(OSError):
        return bool(BFLOAT16 & set(Path("/proc/cpuinfo").read_text().split()))
    return False


def environment(device: str, model: str | None = None, processes: int = 1) -> dict[str, str]:
    """Return the variables that every process of a run on this device needs.

    model: on the CPU a large one gets all cores, shared by `processes`.
    """
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = dict.fromkeys([str(ROOT), *filter(None, given), str(ROOT / "training" / "cpu" / "site")])
    variables = VERL_DEFAULTS["environment"]
    shared = variables["every"] | {"PYTHONPATH": os.pathsep.join(path)} | variables.get(device, {})
    if device == "cpu" and model and is_large(model):
        shared |= variables["large"]
        shared[THREADS] = str(max(1, len(os.sched_getaffinity(0)) // processes))
    try:
        getpass.getuser()
    except (KeyError, OSError):
        # In a container under an id without a name: torch's compiler asks for one, and ends
        shared["USER"] = f"uid{os.getuid()}"
    return shared


def check_libraries(device: str) -> None:
    """Raise ConfigError if torch is of the other lock, or vLLM lacks a system library."""
    if device != built_for():
        lock = "gpu" if device == "cuda" else "cpu"
        raise ConfigError(
            f"the device is {device}, but {sys.prefix} holds torch {version('torch')}, of the "
            f"other lock; install this one beside it: DEVICE={lock} VENV=.venv-{lock} ./install.sh"
        )
    if device != "cpu":
        return
    for library, package in SYSTEM_LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            raise ConfigError(
                f"vLLM on the CPU loads {library}, which is not on this machine; as root, on"
                f" Debian or Ubuntu: apt-get install {package}"
            ) from None
