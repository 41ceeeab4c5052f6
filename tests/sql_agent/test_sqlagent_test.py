"""The one-question script as people run it: from another folder, with and without an endpoint."""

import os
from pathlib import Path

import pytest

from common.settings import ROOT, load_settings
from sql_agent import sqlagent_test
from sql_agent.agent import AGENT
from tests.episodes.scripted import asks, says
from tests.messages import missing
from tests.programs import Ended, python

pytestmark = pytest.mark.system
SCRIPT = ROOT / "sql_agent" / "sqlagent_test.py"


def run(folder: Path, *arguments: str, **environment: str) -> Ended:
    ours = {"OPENAI_BASE_URL", "TEACHER_MODEL", "REWARD_MODEL_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return python(SCRIPT, *arguments, cwd=folder, env={**kept, "COLUMNS": "200", **environment})


def test_a_question_is_run_and_scored_from_any_folder(llm, tmp_path):
    row = AGENT.rows(AGENT.splits["val"])[0]
    sql = row["sql"]
    llm.script(asks(sql), says(row["answer"]))
    done = run(tmp_path, "--base-url", llm.base_url, "--model", "tiny", OPENAI_API_KEY="secret-key")
    assert done.returncode == 0, done.stderr
    assert not missing(done.stdout, row["question"], sql, row["answer"])
    assert not missing(done.stdout, '"status":"success"', "rule", "judge", "1.100")
    assert "secret-key" not in done.stdout + done.stderr


def test_without_an_endpoint_it_says_what_to_give(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    load_settings.cache_clear()
    with pytest.raises(SystemExit, match="2"):
        sqlagent_test.main(["--model", "m"])
    assert "--base-url" in capsys.readouterr().err


def test_an_endpoint_that_is_not_there_is_one_message(capsys):
    url = "http://me:secret@127.0.0.1:9/v1"
    assert sqlagent_test.main(["--base-url", url, "--model", "m"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "127.0.0.1:9" in line
    assert "secret" not in line
