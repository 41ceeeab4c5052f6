"""What the sandbox sees of this machine: bubblewrap's command line, environment, program.

mounts.toml has the lists. docs/safety.md says what they keep out.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from common.toml import table_beside
from tools.sandbox.errors import SandboxError

HELP = "docs/safety.md says what a machine or container must allow"
_SHOWN = table_beside(__file__)
SYSTEM: list[str] = _SHOWN["system"]
DEVICES: list[str] = _SHOWN["devices"]
LIBRARIES: dict[str, str] = _SHOWN["libraries"]
ENVIRONMENT: dict[str, str] = _SHOWN["environment"] | LIBRARIES
PACKAGES = ENVIRONMENT["PYTHONPATH"]
# Each imports those before it
INSIDE = ("kernel", "clock", "frames", "programs", "supervisor", "warm")
PROGRAM = ("-I", "-")  # an interpreter that reads its program from standard input


def data_paths(data: Iterable[str | Path]) -> dict[Path, str]:
    """Return the places inside. Raises SandboxError: one is missing, or two have one name.

    A symbolic link keeps its own name: in a Hugging Face snapshot, files are links to blobs.
    """
    paths = {Path(path).absolute(): f"/data/{Path(path).absolute().name}" for path in data}
    for path in paths:
        if not path.exists():
            raise SandboxError(f"no data for the sandbox at {path}")
    if len(set(paths.values())) < len(paths):
        raise SandboxError(f"data of the sandbox must differ in name: {', '.join(map(str, paths))}")
    return paths


def protected(data: dict[Path, str]) -> tuple[list[str], dict[str, str]]:
    """Return an interpreter's command and environment. Raises SandboxError: no bubblewrap."""
    bubblewrap = shutil.which("bwrap")
    if not bubblewrap:
        raise SandboxError(
            "programs run in bubblewrap, which is not installed: apt-get install bubblewrap; "
            "SANDBOX=process runs them without, with this account's rights"
        )
    base = Path(sys.base_prefix)
    python = f"/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    binds = {path: Path(path) for path in SYSTEM}
    binds |= {"/python/bin": base / "bin", "/python/lib": base / "lib"}
    binds[PACKAGES] = Path(sysconfig.get_path("platlib"))
    binds |= {place: path for path, place in data.items()}
    line = [bubblewrap, *_SHOWN["flags"]]
    for folder in map(Path, _SHOWN["root_folders"]):
        if folder.is_symlink():
            line += ["--symlink", os.readlink(folder), str(folder)]
        else:
            line += bind(folder, str(folder))
    for place, path in binds.items():
        line += bind(path, place)
    for name in DEVICES:
        line += ["--dev-bind", name, name]
    for name, target in _SHOWN["standard"].items():
        line += ["--symlink", f"/proc/self/{target}", f"/dev/{name}"]
    for folder in own_folders():
        for place, path in binds.items():
            if folder.is_relative_to(path.resolve()):
                within = f"{place}/{folder.relative_to(path.resolve())}"
                line += ["--tmpfs", within, "--remount-ro", within]
    line += ["--dir", "/dev/shm", "--dir", "/scratch", "--symlink", "scratch", "/tmp"]
    line += ["--proc", "/proc"]
    for name, value in ENVIRONMENT.items():
        line += ["--setenv", name, value]
    line += ["--symlink", python, "/usr/local/bin/python", "--remount-ro", "/"]
    return [*line, "--", python, *PROGRAM], {}


def own_folders() -> list[Path]:
    """Return this project's folders among the installed packages. They hold the gold answers."""
    places = set[Path]()
    # Several, where one was built in the folder of the repository
    for project in metadata.distributions(name="medical-agent-rl"):
        tops = {file.parts[0] for file in project.files or ()} - {".."}
        places |= {Path(str(project.locate_file(top))).resolve() for top in tops}
    return sorted(place for place in places if place.is_dir())


def bind(path: Path, place: str) -> list[str]:
    return ["--ro-bind-try" if place in SYSTEM else "--ro-bind", str(path), place]


def unprotected() -> tuple[list[str], dict[str, str]]:
    """Return the command and environment of an interpreter with this account's files and network."""
    return [sys.executable, *PROGRAM], {"PATH": os.defpath, **LIBRARIES}


def program(settings: dict[str, Any]) -> bytes:
    """Return tools/sandbox/inside as one program, which leaves nothing of it to be imported."""
    folder = Path(__file__).with_name("inside")
    texts = {
        f"tools.sandbox.inside.{name}": (folder / f"{name}.py").read_text(encoding="utf-8")
        for name in INSIDE
    }
    return f"""
import sys, types
for name, text in {texts!r}.items():
    sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), sys.modules[name].__dict__)
main = sys.modules[name].main
for name in {list(texts)!r}:
    del sys.modules[name]
main({settings!r})
""".encode()
