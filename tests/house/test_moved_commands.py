"""Every command that moved still runs under its old name, and from any folder where it is a file."""

import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import ROOT

pytestmark = pytest.mark.system

MODULES = (
    "data.build_database",
    "data.build_dataset",
    "data.calculators.build",
    "data.ehr.build",
    "data.ehr.questions",
    "data.import_database",
)
PROGRAMS = (
    "chat_session_filter",
    "filter_again",
    "filter_new_question",
    "filter_with_llm",
    "openevidence",
    "reward_scale",
)


def helps(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command, "--help"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_moved_runs_under_its_old_name(module: str) -> None:
    assert module in helps(["-m", module], ROOT)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_from_any_folder(program: str, tmp_path: Path) -> None:
    assert program in helps([str(ROOT / "utils" / f"{program}.py")], tmp_path)
