"""verl's platform plug-in for machines without an accelerator, imported by every Ray process."""

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psutil
import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

_init_process_group = torch.distributed.init_process_group


def _accept_repeated_backend(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
    """Accept verl's process group "cpu:gloo,cpu:gloo", whose repetition torch refuses."""
    _init_process_group("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)


torch.distributed.init_process_group = _accept_repeated_backend


def _memory_info(device: Any = None) -> tuple[int, int]:
    memory = psutil.virtual_memory()
    return memory.available, memory.total


def _resident_bytes(device: Any = None) -> int:
    return psutil.Process().memory_info().rss


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: answer


# verl expects torch.cuda's functions of its device module. torch.cpu has only some of them.
_of_torch = {name: getattr(torch.cpu, name) for name in torch.cpu.__all__}
DEVICE_MODULE = SimpleNamespace(
    **_of_torch,
    __name__="training.cpu.verl_platform.DEVICE_MODULE",
    empty_cache=_always(None),
    ipc_collect=_always(None),
    get_device_name=_always("cpu"),
    memory_allocated=_resident_bytes,
    memory_reserved=_resident_bytes,
    max_memory_allocated=_resident_bytes,
    max_memory_reserved=_resident_bytes,
    reset_peak_memory_stats=_always(None),
    manual_seed=torch.manual_seed,
    manual_seed_all=torch.manual_seed,
    get_rng_state=lambda device=None: torch.get_rng_state(),
    set_rng_state=lambda state, device=None: torch.set_rng_state(state),
    mem_get_info=_memory_info,
)


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """One logical device. Ray counts it as a GPU, so that verl's placement works unchanged."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = DEVICE_MODULE
    is_available = _always(True)
    is_platform_available = _always(False)  # never guessed: chosen by VERL_PLATFORM=cpu
    # verl hands this to Module.to(), where an index would mean an accelerator
    current_device = _always("cpu")
    device_count = _always(1)
    get_device_capability = _always((None, None))
    communication_backend_name = _always("gloo")
    visible_devices_envvar = _always("CUDA_VISIBLE_DEVICES")
    ray_resource_name = _always("GPU")
    ray_noset_envvars = _always(["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"])
    is_ipc_supported = _always(False)
    nvtx_range = _always(contextlib.nullcontext())
    set_device = synchronize = set_allocator_settings = empty_cache = _always(None)
    profiler_start = profiler_stop = cudart = _always(None)
    manual_seed = manual_seed_all = staticmethod(torch.manual_seed)
