"""A word list that somebody else has put into the shared temporary folder."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path

from common.settings import ROOT


def said_with(planted: dict[str, int], folder: Path, code: str) -> str:
    """Return what a program prints whose temporary folder has this list of jieba's."""
    (folder / "jieba.cache").write_bytes(marshal.dumps((planted, 1)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
