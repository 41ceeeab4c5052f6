"""The part of check_install that looks at the machine: accelerator, ports, an address, disk and memory.

Standard library only, so that it works where nothing is installed. `python -m utils.check_install` runs it.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

ANSWER_SECONDS = 2.0
DISK_NEEDED, MEMORY_NEEDED = 5, 12  # GiB; a CPU run with the bundled model was seen to use 13 GB, caches included
INSTALL = "run ./install.sh"

Verdict = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Row:
    """One line of the table; `fix` is empty when nothing is wrong."""

    what: str
    verdict: Verdict
    seen: str
    fix: str = ""


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_accelerator() -> Iterable[Row]:
    """A GPU needs the CUDA build of torch; no GPU is fine."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        yield Row("device", "ok", "no NVIDIA driver: runs use the CPU")
        return
    try:
        run = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True)
    except (subprocess.SubprocessError, OSError):
        yield Row(
            "device", "warning", "nvidia-smi fails or hangs: CUDA unavailable", "mend the driver, or use --device cpu"
        )
        return
    if (installed("torch") or "").endswith("+cpu"):
        yield Row(
            "device", "warning", "a GPU, but torch is the CPU build", "remove .venv, then DEVICE=gpu ./install.sh"
        )
    else:
        yield Row("device", "ok", run.stdout.strip().splitlines()[0])


def check_ports(settings: Any) -> Iterable[Row]:
    """The store's port and, when it is fixed, the proxy's must be free."""
    places = [("AGL_SERVER_PORT", settings.agl_server_host, int(settings.agl_server_port))]
    if int(settings.llm_proxy_port):
        places.append(("LLM_PROXY_PORT", settings.llm_proxy_host, int(settings.llm_proxy_port)))
    for variable, host, port in places:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                yield Row(
                    variable, "failed", f"{host}:{port}: {error.strerror}", f"end what listens there, or set {variable}"
                )
            else:
                yield Row(variable, "ok", f"{host}:{port} is free")


def unreachable(url: str) -> str | None:
    """None when anything answers HTTP there, an error page included; else the reason, without the URL itself."""
    reasons: list[str | None] = []
    asking = threading.Thread(target=lambda: reasons.append(_ask(url)), daemon=True)  # name look-up has no limit
    asking.start()
    asking.join(ANSWER_SECONDS)
    return reasons[0] if reasons else f"no answer within {ANSWER_SECONDS:.0f} s"


def _ask(url: str) -> str | None:
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=ANSWER_SECONDS).close()
    except urllib.error.HTTPError:
        return None
    except (OSError, ValueError) as error:
        return f"no answer ({getattr(error, 'reason', type(error).__name__)})"
    return None


def check_resources(folder: Path) -> Iterable[Row]:
    """Free disk for checkpoints and memory for trainer, vLLM and Ray."""
    disk = shutil.disk_usage(folder).free / 2**30
    enough = disk >= DISK_NEEDED
    fix = "" if enough else f"free {DISK_NEEDED} GiB, or put runs elsewhere with --run-dir"
    yield Row("disk", "ok" if enough else "failed", f"{disk:.0f} GiB free", fix)
    memory = available_memory()
    if memory is None:
        yield Row("memory", "warning", "/proc/meminfo cannot be read", f"make sure {MEMORY_NEEDED} GiB are free")
        return
    enough = memory >= MEMORY_NEEDED
    fix = "" if enough else f"a CPU run wants about {MEMORY_NEEDED} GiB: end other programs, or lower --n-runners"
    yield Row("memory", "ok" if enough else "warning", f"{memory:.0f} GiB available", fix)


def available_memory() -> float | None:
    """GiB a new program may use, None where Linux does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith("MemAvailable:")), None)
