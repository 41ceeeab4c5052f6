"""Workers that are forks of one process draw object ids of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from common.settings import ROOT
from training.setup.device import environment

DRAW = """
import os
from training.cpu import fork_server

fork_server.import_engine(os.getppid())
import ray

for _ in range(3):
    if not os.fork():
        print(ray.ObjectRef.from_random().hex(), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.engine
def test_forks_draw_object_ids_of_their_own() -> None:
    """Ray's generator would be theirs in one state: two workers that start at once would end."""
    done = subprocess.run(
        [sys.executable, "-c", DRAW],
        cwd=ROOT,
        env=os.environ | environment("cpu"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    ids = done.stdout.split()
    assert len(ids) == 3
    assert len(set(ids)) == 3
