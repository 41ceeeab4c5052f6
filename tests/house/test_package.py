"""A wheel holds all that the commands need, and an agent in another repository works with it."""

import zipfile
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.messages import missing
from tests.programs import Ended, python, ran

pytestmark = pytest.mark.system

OUTSIDE = ("tests", "docs", "bench", ".ci")
AGENT = """
from pathlib import Path

from tests.digits_agent.agent import DigitsAgent


class Counting(DigitsAgent):
    name = "counting"


AGENT = Counting()
"""


def run(*arguments: object, folder: Path = ROOT, path: object = "") -> Ended:
    """Run Python in a folder with `path` as PYTHONPATH."""
    return python(*arguments, cwd=folder, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(path)})


def tracked() -> list[str]:
    listed = ran("git", "ls-files")
    if listed.returncode:
        pytest.skip("no git checkout: which files belong to the project is not known")
    files = [name for name in listed.stdout.splitlines() if "/" in name or name.endswith(".py")]
    return [name for name in files if not name.startswith(OUTSIDE)]


def test_a_wheel_holds_every_file_of_the_rooms_and_imports_from_elsewhere(tmp_path):
    source = tmp_path / "source"
    ran("git", "clone", "-q", ROOT, source, check=True)
    flags = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q"]
    built = run("-m", "pip", "wheel", ".", *flags, "-w", tmp_path, folder=source)
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        held = set(wheel.namelist())
        wheel.extractall(tmp_path / "installed")
    assert "medical_agent_rl-0.1.0.dist-info/licenses/LICENSE" in held
    for card in source.glob("*/tiny_model/README.md"):
        assert "license: apache-2.0" in card.read_text(encoding="utf-8"), card
    assert [name for name in tracked() if name not in held and (source / name).is_file()] == []
    program = (
        "from common.settings import WORK; from episodes import registry;"
        "from episodes.agent import folder_of;"
        "agent = registry.get('sql');"
        "print(folder_of(agent), len(agent.rows(agent.splits['val'])) > 0, WORK)"
    )
    found = run("-c", program, folder=tmp_path, path=tmp_path / "installed")
    folder = tmp_path / "installed" / "sql_agent"
    assert found.stdout.split() == [str(folder), "True", str(tmp_path)], found.stderr


def test_its_command_runs_the_programs_whatever_folders_lie_here(tmp_path):
    for name in ("tools", "evaluation"):  # the user's own
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    program = "import sys; sys.path[0] = {!r}; from utils.installed import main; main(sys.argv[1:])"
    command = ("-c", program.format(str(ROOT)))
    helped = run(*command, "evaluate", "sql", "--help", folder=tmp_path, path=ROOT)
    assert helped.returncode == 0, helped.stderr
    assert not missing(helped.stdout, "usage: medical-agent-rl evaluate", "--baseline")
    refused = run(*command, "evaluation", folder=tmp_path, path=ROOT)
    assert refused.returncode == 2
    assert not missing(refused.stderr, "'evaluation'", "evaluate", "train")


def test_an_agent_in_another_repository_is_found_on_the_path(tmp_path):
    folder = tmp_path / "counting_agent"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    command = ("-m", "training.launch", "counting", "--help")
    helped = run(*command, path=f"{tmp_path}:{ROOT}")
    assert helped.returncode == 0, helped.stderr
    assert "python -m training.launch counting --ci-fast" in helped.stdout
    program = (
        "import os; from episodes import registry; from episodes.agent import folder_of;"
        "agent = registry.get('counting');"
        "print(folder_of(agent), os.environ['PYTHONPATH'].split(':')[0])"
    )
    found = run("-c", program, folder=tmp_path, path=ROOT)
    assert found.stdout.split() == [str(folder), str(tmp_path)], found.stderr
