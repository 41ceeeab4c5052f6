"""A skeleton that `episodes.new` writes is a whole agent: gold earns all, and conformance passes."""

import os
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.messages import missing
from tests.programs import Ended, python

PLUGIN = ("-p", "episodes.conformance", "-p", "no:cacheprovider")


def run(folder: Path, *arguments: str) -> Ended:
    """Run a module in a folder that is outside the repository, with its agents on the path."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    return python("-m", *arguments, cwd=folder, env=env)


@pytest.mark.system
@pytest.mark.parametrize("kind", ["tool", pytest.param("partner", marks=pytest.mark.nightly)])
def test_a_skeleton_is_a_whole_agent(kind, tmp_path):
    written = run(tmp_path, "episodes.new", "ward_round", "--kind", kind)
    assert written.returncode == 0, written.stderr
    assert "training.launch ward_round --ci-fast" in written.stdout
    assert (tmp_path / "ward_round_agent" / "__init__.py").exists(), "else find_packages misses it"
    checks = run(tmp_path, "pytest", *PLUGIN, "--agent", "ward_round", "-q")
    assert checks.returncode == 0, checks.stdout
    assert "Warning" not in checks.stdout + checks.stderr
    judge = run(tmp_path, "evaluation.check_judge", "ward_round")
    assert judge.returncode == 0, judge.stderr


@pytest.mark.system
@pytest.mark.parametrize("flags", [("--agent", "ward_rond"), ("--agent=sql", "--unreachable=foo")])
def test_conformance_of_what_there_is_not_is_a_wrong_usage(flags, tmp_path):
    """Every check would fail for it, with a traceback of its own."""
    checks = run(tmp_path, "pytest", *PLUGIN, *flags)
    assert checks.returncode == pytest.ExitCode.USAGE_ERROR
    assert not missing(checks.stderr, flags[-1].split("=")[-1])
    assert "Traceback" not in checks.stderr
