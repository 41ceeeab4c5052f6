"""What the machine takes from a process is seen in every process that asks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from common.settings import ROOT

pytestmark = pytest.mark.system
FORKS = """
import os, sys, threading
from common.slowness import Slowness

Slowness(os.getpid())
if os.fork() == 0:
    Slowness(os.getpid())
    os._exit(0 if "slowness" in [thread.name for thread in threading.enumerate()] else 1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_fork_watches_with_a_thread_of_its_own() -> None:
    """Threads do not live on in a fork: lost time would be blamed on the program."""
    assert subprocess.run([sys.executable, "-c", FORKS], cwd=ROOT, check=False).returncode == 0
