"""The import contract breaks when a room imports what it must not: each violation below is really tried."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import ROOT

ROOMS = ("utils", "tools", "scoring", "data", "sql_agent", "training", "bench")
VIOLATIONS = [
    ("common/settings.py", "import data.load"),
    ("common/llm.py", "import data.load"),
    ("common/journal.py", "def late():\n    import scoring"),
    ("utils/curation/screening.py", "import utils.filter_again"),
    ("utils/filter_again.py", "import utils.filter_with_llm"),
    ("data/load.py", "import utils.curation.screening"),
    ("tools/sql/query.py", "import scoring"),
    ("scoring/judge.py", "import tools.sql.query"),
    ("scoring/judge.py", "def late():\n    import torch"),
    ("data/load.py", "import sql_agent.task"),
    ("sql_agent/task.py", "import torch"),
    ("sql_agent/task.py", "def late():\n    import verl.trainer"),
    ("sql_agent/task.py", "import training.plan"),
    ("sql_agent/task.py", "import data.build_dataset"),
    ("sql_agent/task.py", "import agents"),
    ("sql_agent/task.py", "import agentlightning"),
    ("training/plan.py", "import agents"),
    ("training/plan.py", "import sql_agent.task"),
    ("training/plan.py", "def late():\n    import tools.sql.query"),
    ("training/plan.py", "import utils.check_install"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The Python files of all rooms, and the contract."""
    for path in [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]:
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


def test_the_contract_holds(copy: Path) -> None:
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout
    assert " 0 broken" in result.stdout


@pytest.mark.parametrize(("file", "line"), VIOLATIONS)
def test_a_violation_breaks_the_contract(copy: Path, file: str, line: str) -> None:
    with (copy / file).open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")
    result = lint_imports(copy)
    assert result.returncode == 1, result.stdout
    assert "BROKEN" in result.stdout
