"""Every shell script explains itself and does nothing else."""

import pytest

from tests.programs import ran

SCRIPTS = ["check.sh", "install.sh", "restart_ray.sh", "training/external.sh"]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_shown_and_nothing_starts(script, flag):
    done = ran("bash", script, flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert script.split("/")[-1] in done.stdout
