"""Environments of other programs that play the agents."""

import subprocess
import venv
from pathlib import Path

import pytest

from common.settings import ROOT


def installed(folder: Path, extra: str) -> Path:
    """The programs of an environment with this extra."""
    venv.create(folder, with_pip=True)
    command = [folder / "bin/python", "-m", "pip", "install", "-q", "-e"]
    subprocess.run([*command, f"{ROOT / 'interop'}[{extra}]"], check=True)
    return folder / "bin"


@pytest.fixture(scope="session")
def verifiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("verifiers"), "verifiers")


@pytest.fixture(scope="session")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("inspect"), "inspect")
