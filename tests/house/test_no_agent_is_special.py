"""The engine, the episodes and the evaluation know no agent by its name, tool, table or judge."""

from __future__ import annotations

import re
import runpy

import pytest

from common.settings import ROOT
from episodes import registry

WORDS = re.compile(
    r"query_database|TEACHER_MODEL|drugs_info|med_name|\bdisease\b|sql_agent|SqlAgent"
)
ROOMS = ("episodes", "training", "evaluation", "scoring", "common")
# Where a setting is declared or a judge is chosen by it, it has to be named.
NAMED_THERE = {"common/settings.py", "common/llm.py", "scoring/judge.py"}
EXAMPLE = re.compile(r'^(""".*?""")', re.DOTALL)  # a module's own text may give an example command


@pytest.mark.parametrize(
    "path", sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py")), ids=str
)
def test_no_file_of_a_general_room_names_an_agent(path: object) -> None:
    name = str(path).removeprefix(f"{ROOT}/")
    code = EXAMPLE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    if name not in NAMED_THERE:
        assert WORDS.findall(code) == [], name


def test_every_agent_has_its_command_and_its_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in registry.names():
        agent = registry.get(name)
        if agent.folder.parent == ROOT:
            command = ROOT / f"train_{name}_agent.py"
            assert command.is_file()
            assert len(command.read_text(encoding="utf-8").splitlines()) <= 20
            monkeypatch.setattr("sys.argv", [str(command), "--help"])
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(str(command), run_name="__main__")
            assert ended.value.code == 0
            assert f"Train the {name} agent." in capsys.readouterr().out
