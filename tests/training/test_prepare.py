"""What an agent says of its rows before a run is shown (docs/rewards.md, "Before a run").

That a judge which is down or likes everything stops the run: tests/cli/test_train_command.py.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from common.settings import Settings
from tests.digits_agent.agent import AGENT
from tests.messages import missing
from training.start.prepare import prepare


def test_what_an_agent_says_of_its_rows_and_of_this_partner_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else episodes that no partner can play fail while a GPU works."""
    monkeypatch.setattr(
        type(AGENT.flags), "check", lambda _, tasks, options: [f"{len(tasks)} {options['partner']}"]
    )
    settings = Settings(_env_file=None)
    rows = {name: AGENT.rows(AGENT.splits[name]) for name in ("train", "val")}
    with closing(AGENT.open(settings, {})) as environment:
        prepare(AGENT, rows, settings, {"partner": "unplayable"}, environment)
    wanted = [f"{name}: {len(part)} unplayable" for name, part in rows.items()]
    assert not missing(capsys.readouterr().out, *wanted)
