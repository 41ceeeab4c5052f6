"""A small disk that can be full: a file system in memory, in a mount of its own that needs no root
(bubblewrap).
"""

import errno
import os
import subprocess
import time
from pathlib import Path

import psutil

from common.settings import ROOT

BLOCK = 2**16


class SmallDisk:
    """A disk of `size` bytes at `folder`, for commands with the prefix `enter`. Others find it at
    `seen`.
    """

    def __init__(self, folder: Path, size: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        mount = [
            "bwrap",
            "--unshare-user",
            "--dev-bind",
            "/",
            "/",
            "--size",
            str(size),
            "--tmpfs",
            str(folder),
        ]
        self._holder = subprocess.Popen([*mount, "--", "sleep", "infinity"])
        children = psutil.Process(self._holder.pid).children
        while not [child for child in children() if child.name() == "sleep"]:
            time.sleep(0.1)
        inside = children()[0].pid
        self.enter = (
            "nsenter",
            "--preserve-credentials",
            "-U",
            "-m",
            "-t",
            str(inside),
            "env",
            f"--chdir={ROOT}",
        )
        self.seen = Path(f"/proc/{inside}/root{folder}")

    def fill(self, leave: int) -> None:
        """Fill it but for so many bytes."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * BLOCK)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            os.truncate(self._filler, max(0, file.tell() - leave))

    def free(self) -> None:
        self._filler.unlink()

    def close(self) -> None:
        for child in psutil.Process(self._holder.pid).children():
            child.kill()
        self._holder.wait()

    @property
    def _filler(self) -> Path:
        return self.seen / "filler"
