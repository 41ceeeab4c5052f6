"""A checkpoint is data: what verl saves is read again, and what would run code is not."""

import os
from pathlib import Path

import pytest

from tests.programs import python
from training.setup.device import environment

pytestmark = pytest.mark.system
SAVE = """
import os, random, sys
import numpy, torch
class Program:
    def __reduce__(self): return os.system, (f"touch {sys.argv[1]}/ran",)
random_state = {"cpu": torch.get_rng_state(), "numpy": numpy.random.get_state(), "random": random.getstate()}
torch.save({"lr_scheduler": {"lr_lambdas": [None]}, "rng": random_state}, f"{sys.argv[1]}/state.pt")
torch.save({"weight": torch.ones(2), "more": Program()}, f"{sys.argv[1]}/program.pt")
"""
# As verl's own loaders do.
LOAD = """
import sys, torch, {module}
for name in ("state", "program"):
    try:
        torch.load(f"{{sys.argv[1]}}/{{name}}.pt", weights_only=False)
        print(name, "read")
    except Exception as error:
        print(name, error)
"""


def run(program: str, folder: Path, **variables: str) -> str:
    engine = environment("cpu")
    own = {name: value for name, value in os.environ.items() if name not in engine}
    return python("-c", program, folder, env=own | variables, check=True).stdout


def test_weights_and_random_state_are_read_and_programs_are_not_run(tmp_path):
    run(SAVE, tmp_path)
    for device in ("cpu", "cuda"):
        said = run(LOAD.format(module="verl"), tmp_path, **environment(device)).splitlines()
        assert said[0] == "state read"
        assert said[1] != "program read"
        assert not (tmp_path / "ran").exists()
    assert "program read" in run(LOAD.format(module="numpy"), tmp_path)
    assert (tmp_path / "ran").exists(), "without these variables it would have run"
