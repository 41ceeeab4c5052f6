"""The processes of a run import the user's modules."""

from __future__ import annotations

import os

import pytest

from common.settings import ROOT
from training.setup.device import environment


def test_a_run_s_processes_find_the_user_s_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/own/agents", "/own/tools"]))
    path = environment("cpu")["PYTHONPATH"].split(os.pathsep)
    assert path[:3] == [str(ROOT), "/own/agents", "/own/tools"]
