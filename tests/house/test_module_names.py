"""A module's name says what is different about it: CONTRIBUTING.md, House rules."""

import re
from collections import Counter

from common.settings import ROOT

NOT_OURS = {"tests", "runs", "outputs", "build"}
COMMAND = 'if __name__ == "__main__":'


def rule() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return next(line for line in text.splitlines() if "modules have one name" in line)


def test_no_two_modules_have_one_name_but_parts_of_an_agent_and_commands() -> None:
    parts_of_agents = {f"{name}.py" for name in re.findall(r"`(\w+)`", rule())}
    names = Counter(
        path.name
        for room in ROOT.iterdir()
        if room.is_dir() and not room.name.startswith(".") and room.name not in NOT_OURS
        for path in room.rglob("*.py")
        if not path.name.startswith("__") and COMMAND not in path.read_text(encoding="utf-8")
    )
    assert names["agent.py"] >= 4
    assert {name for name, count in names.items() if count > 1} == parts_of_agents
