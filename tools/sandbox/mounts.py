"""What the sandbox sees of this machine: the command line of bubblewrap, and the environment inside.

The system's programs and libraries, the interpreter at /python, its packages at /packages, the task's data below /data:
all read-only, and nothing else. No /etc but the loader's cache, no /sys, no terminals, no devices but the harmless
ones; the repository's path is not there.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from tools.sandbox.errors import SandboxError

HELP = "docs/sandbox.md says what a machine or container must allow"
INSTALL = "apt-get install bubblewrap"
SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/alternatives")
ROOT_FOLDERS = ("/bin", "/lib", "/lib64")
PACKAGES = "/packages"
DEVICES = ("null", "zero", "full", "random", "urandom")
STANDARD = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # a fork has only one, and episodes are many
ENVIRONMENT = {
    "HOME": "/scratch",
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": "/python/lib",
    "MALLOC_ARENA_MAX": "2",
    "MPLBACKEND": "Agg",
    "PATH": "/python/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": PACKAGES,
    "TMPDIR": "/scratch",
    **dict.fromkeys(THREADS, "1"),
}
FLAGS = (
    *("--unshare-all", "--unshare-user", "--cap-add", "ALL"),  # rights over its own namespaces, to make others within
    *("--as-pid-1", "--new-session", "--hostname", "sandbox", "--clearenv"),
)
PROGRAM = ("-I", "-")  # an interpreter that reads its program from standard input


def data_paths(data: Iterable[str | Path]) -> dict[Path, str]:
    """Where each file or folder is inside. Raises SandboxError: it is not there, or two have one name."""
    paths = {Path(path).resolve(): f"/data/{Path(path).resolve().name}" for path in data}
    for path in paths:
        if not path.exists():
            raise SandboxError(f"no data for the sandbox at {path}")
    if len(set(paths.values())) < len(paths):
        raise SandboxError(f"data of the sandbox must differ in name: {', '.join(map(str, paths))}")
    return paths


def protected(data: dict[Path, str]) -> tuple[list[str], dict[str, str]]:
    """The command that starts an interpreter in a sandbox, and its own environment. Raises SandboxError: no bubblewrap."""
    bubblewrap = shutil.which("bwrap")
    if not bubblewrap:
        raise SandboxError(
            f"programs run in bubblewrap, which is not installed: {INSTALL}; SANDBOX=process runs them without, "
            "with this account's rights"
        )
    python = Path(sys.executable).resolve()
    packages = Path(sysconfig.get_path("platlib"))
    binds = {Path(path): path for path in SYSTEM}
    binds |= {python.parent: "/python/bin", python.parent.with_name("lib"): "/python/lib", packages: PACKAGES}
    line = [bubblewrap, *FLAGS]
    for folder in map(Path, ROOT_FOLDERS):
        line += ["--symlink", os.readlink(folder), str(folder)] if folder.is_symlink() else bind(folder, str(folder))
    for path, place in (binds | data).items():
        line += bind(path, place)
    for name in DEVICES:
        line += ["--dev-bind", f"/dev/{name}", f"/dev/{name}", "--remount-ro", f"/dev/{name}"]  # its mode is not theirs
    for name, target in STANDARD.items():
        line += ["--symlink", f"/proc/self/{target}", f"/dev/{name}"]
    line += ["--dir", "/dev/shm", "--dir", "/scratch", "--symlink", "scratch", "/tmp", "--proc", "/proc"]
    for name, value in ENVIRONMENT.items():
        line += ["--setenv", name, value]
    return [*line, "--remount-ro", "/", "--", f"/python/bin/{python.name}", *PROGRAM], {}


def bind(path: Path, place: str) -> list[str]:
    return ["--ro-bind-try", str(path), place]


def unprotected() -> tuple[list[str], dict[str, str]]:
    """The command that starts it as a process of this account, whose files and network it has, and its environment."""
    return [sys.executable, *PROGRAM], {"PATH": os.defpath, **dict.fromkeys(THREADS, "1")}
