"""Every command that moved still runs under its old name, and from any folder where it is a file."""

from pathlib import Path

import pytest

from common.settings import ROOT
from tests.programs import python

pytestmark = pytest.mark.system

MODULES = (
    "data.build_database",
    "data.build_dataset",
    "data.convert",
    "data.ehr.build",
    "data.ehr.questions",
    "data.import_database",
    "data.validate",
)
PROGRAMS = (
    "code_agent/compute_score.py",
    "code_agent/main.py",
    "code_agent/rollout.py",
    "utils/chat_session_filter.py",
    "utils/filter_again.py",
    "utils/filter_new_question.py",
    "utils/filter_with_llm.py",
    "utils/openevidence.py",
)


def helps(command: list[str], folder: Path) -> str:
    return python(*command, "--help", cwd=folder, check=True).stdout


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_moved_runs_under_its_old_name(module):
    assert f" -m {module} [" in helps(["-m", module], ROOT).split("\n")[0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_from_any_folder(program, tmp_path):
    assert program in helps([str(ROOT / program)], tmp_path).split("\n")[0]
