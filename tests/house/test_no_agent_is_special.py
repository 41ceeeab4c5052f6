"""Every agent of the repository has a folder and a command of its own."""

from __future__ import annotations

import runpy

import pytest

from common.settings import ROOT
from episodes import registry


def test_every_agent_has_its_command_and_its_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in registry.names():
        agent = registry.get(name)
        if agent.folder.parent == ROOT:
            command = ROOT / f"train_{name}_agent.py"
            assert command.is_file()
            monkeypatch.setattr("sys.argv", [str(command), "--help"])
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(str(command), run_name="__main__")
            assert ended.value.code == 0
            assert f"Train the {name} agent." in capsys.readouterr().out
