"""What stands in for a GPU: the driver's library, and what vLLM and we ask of a card."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from common.settings import ROOT

CARD = 80 * 2**30
# What vLLM's compiled part needs of the driver to be imported; each answers "no device".
DRIVER = (
    *("cuGetProcAddress_v2", "cuPointerGetAttribute", "cuTensorMapEncodeTiled"),
    *("cuCtxGetCurrent", "cuCtxSetCurrent", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain"),
    *("cuGetErrorString", "cuMemAddressFree", "cuMemAddressReserve", "cuMemCreate", "cuMemMap"),
    *("cuMemGetAllocationGranularity", "cuMemRelease", "cuMemSetAccess", "cuMemUnmap"),
)


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """The driver's library, for a machine that has none."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        folder = tmp_path_factory.mktemp("driver")
        source, library = folder / "driver.c", folder / "libcuda.so.1"
        source.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in DRIVER))
        named = f"-Wl,-soname,{library.name}"
        subprocess.run(["gcc", "-shared", "-fPIC", named, "-o", library, source], check=True)
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


@pytest.fixture
def card(driver, monkeypatch):
    """A card of 80 GB, to vLLM."""
    from vllm import platforms
    from vllm.platforms.cuda import NonNvmlCudaPlatform
    from vllm.platforms.interface import DeviceCapability

    class Card(NonNvmlCudaPlatform):
        get_device_capability = classmethod(lambda cls, device_id=0: DeviceCapability(9, 0))
        get_device_name = classmethod(lambda cls, device_id=0: "NVIDIA H100 80GB HBM3")
        get_device_total_memory = classmethod(lambda cls, device_id=0: CARD)

    monkeypatch.setattr(platforms, "_current_platform", Card())


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The SQL agent's bundled model, a Qwen3, with positions for the episodes of a GPU."""
    folder = tmp_path_factory.mktemp("model") / "model"
    shutil.copytree(ROOT / "sql_agent" / "tiny_model", folder)
    config = Path(folder / "config.json")
    shape = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps(shape | {"max_position_embeddings": 32768}), encoding="utf-8")
    return str(folder)
