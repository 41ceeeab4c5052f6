"""`--help` begins with what the program is for, whole, and names no path of this machine.

Keeps of docs/evaluation.md and README.md, "Use it": the commands there explain themselves.
"""

import importlib
from pathlib import Path

import pytest

from common.settings import ROOT

COMMANDS = {
    "evaluation.compare": ["--help"],
    "evaluation.demo": ["--help"],
    "evaluation.evaluate": ["sql", "--help"],
    "evaluation.play": ["sql", "--help"],
    "evaluation.report": ["--help"],
    "evaluation.serve": ["sql", "runs/NAME", "--help"],
    "sql_agent.sqlagent_test": ["--help"],
    "training.cold_start": ["sql", "--help"],
    "training.serve": ["--help"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_the_whole_first_sentence(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(name)
    with pytest.raises(SystemExit) as ended:
        module.main(COMMANDS[name])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert module.__doc__.split("\n\n")[0] in printed
    assert str(ROOT) not in printed
    assert str(Path.home()) not in printed
