"""Processes of a run collect as rarely as the programs that say so themselves."""

from __future__ import annotations

import os
import subprocess
import sys

from common.startup import YOUNGEST
from training.setup.device import environment

LOOKS = "import gc, sys; print(gc.get_threshold(), 'common' in sys.modules)"


def test_a_process_that_only_has_the_run_s_environment_collects_rarely_and_imports_nothing_of_ours() -> (
    None
):
    started = {
        "env": {**os.environ, **environment("cpu")},
        "capture_output": True,
        "text": True,
        "check": True,
    }
    assert (
        subprocess.run([sys.executable, "-c", LOOKS], **started).stdout
        == f"{(YOUNGEST, 10, 10)} False\n"
    )
