"""Every shell script explains itself and does nothing else."""

import subprocess

import pytest

from common.settings import ROOT

SCRIPTS = ["check.sh", "install.sh", "restart_ray.sh", "training/external.sh"]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_shown_and_nothing_starts(script, flag):
    done = subprocess.run(
        ["bash", script, flag], cwd=ROOT, capture_output=True, text=True, check=False, timeout=20
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert script.split("/")[-1] in done.stdout
