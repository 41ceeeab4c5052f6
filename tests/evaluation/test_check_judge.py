"""The command that checks an agent's judge, on real agents and against a real HTTP judge; and its
table in the docs.

.venv/bin/python -m tests.evaluation.test_check_judge      # writes the table of docs/rewards.md anew
"""

import re

import pytest

from common.settings import ROOT
from episodes import registry
from evaluation.check_judge import HEADER, main
from evaluation.tables import table
from tests.digits_agent.agent import AGENT as DIGITS
from tests.messages import missing
from tests.programs import python
from tests.scoring.judge_servers import Server
from tests.serving import serving

PAGE = ROOT / "docs" / "rewards.md"
TABLE = re.compile(rf"^{re.escape(table([HEADER])[0])}\n(?:\|.*\n)+", re.MULTILINE)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """The default settings."""
    for name in ("DATABASE_URL", "REWARD_TERMS"):
        monkeypatch.delenv(name, raising=False)
    registry.register(DIGITS)


@pytest.fixture
def generous(monkeypatch):
    """A reward model that gives everything full marks."""
    server = Server()
    server.replies = [(200, '{"score": 1.0}')]
    monkeypatch.setenv("REWARD_MODEL_URL", f"{server.url}/score")
    with serving(server):
        yield server


@pytest.mark.system
def test_the_offline_judge_passes_on_the_bundled_questions_and_the_page_shows_the_table(capsys):
    code = main(["sql"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert shown.err.splitlines()[-1] == "200 tasks: nothing wrong"
    found = TABLE.findall(PAGE.read_text(encoding="utf-8"))
    assert found == [shown.out], f"write it anew: {__doc__}"


def test_a_judge_that_likes_everything_fails_after_few_calls(generous, capsys):
    assert main(["sql"]) == 1
    shown = capsys.readouterr()
    assert not missing(shown.err, "5 of 5 tasks", "TEACHER_MODEL")
    assert "Traceback" not in shown.err
    assert 10 < len(generous.requests) <= 30


if __name__ == "__main__":
    told = python("-m", "evaluation.check_judge", "sql").stdout
    text = TABLE.sub(lambda _: told, PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
