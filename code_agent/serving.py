"""A folder as the policy's model: this project's own vLLM server for as long as episodes are
played.

    with served({"model_type": "vLLM", "model_name": "code_agent/tiny_model"}, Path("vllm.log")) as section: ...

A section that names a port or an address is left as it is: something answers there already.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common.command import Failure
from common.settings import ROOT
from episodes.agent import SERVED_NAME

STOP_SECONDS = 60.0


@contextlib.contextmanager
def served(section: Mapping[str, Any], log: Path) -> Iterator[Mapping[str, Any]]:
    """The section with the address of its model. Raises Failure: the server does not start."""
    folder = Path(str(section.get("model_name")))
    if (
        section["model_type"] != "vLLM"
        or section.get("port")
        or section.get("base_url")
        or not folder.is_dir()
    ):
        yield section
        return
    print(f"starting vLLM for {folder}, log in {log}", file=sys.stderr, flush=True)
    python = (sys.executable, "-m")
    serve = (
        *python,
        "training.serve",
        str(folder.resolve()),
        "--no-tools",
        "--log",
        str(log.resolve()),
    )
    command = [
        *python,
        "common.parent",
        str(os.getpid()),
        *serve,
    ]  # a SIGKILL of this process ends it too
    how: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, text=True, **how)
    try:
        yield {**section, "base_url": _address(process), "model_name": SERVED_NAME}
    finally:
        _stop(process)


def _address(process: subprocess.Popen[str]) -> str:
    """What the server says once it answers."""
    said = []
    for line in process.stdout or ():
        said.append(line.strip())
        if " serves " in line:
            return line.split()[0]
    raise Failure(f"the model's server did not start: {' '.join(said[-3:])}")


def _stop(process: subprocess.Popen[str]) -> None:
    """It stops vLLM and then itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
