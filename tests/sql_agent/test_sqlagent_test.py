"""The one-question script as people run it: from another folder, with and without an endpoint."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT, load_settings
from sql_agent import sqlagent_test
from sql_agent.agent import AGENT
from tests.episodes.scripted import asks, calls, says

SCRIPT = ROOT / "sql_agent" / "sqlagent_test.py"
QUESTION = "朵莎洛片怎么保存？"


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = {"OPENAI_BASE_URL", "TEACHER_MODEL", "REWARD_MODEL_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=folder,
        env={**kept, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_question_is_run_and_scored_from_any_folder(llm: Any, tmp_path: Path) -> None:
    row = AGENT.rows(AGENT.splits["val"])[0]
    sql = row["sql"]
    llm.script(asks(sql), says(row["answer"]))
    done = run(tmp_path, "--base-url", llm.base_url, "--model", "tiny", OPENAI_API_KEY="secret-key")
    assert done.returncode == 0, done.stderr
    for shown in (
        row["question"],
        sql,
        '"status":"success"',
        row["answer"],
        "rule",
        "judge",
        "1.100",
    ):
        assert shown in done.stdout
    assert "secret-key" not in done.stdout + done.stderr


def test_a_typed_question_has_no_reference(llm: Any, tmp_path: Path, database_url: str) -> None:
    llm.script(says("密封"))
    done = run(
        tmp_path,
        "--base-url",
        llm.base_url,
        "--model",
        "m",
        "--question",
        QUESTION,
        DATABASE_URL=database_url,
    )
    assert done.returncode == 0, done.stderr
    assert "unscored: no_reference" in done.stdout


def test_the_settings_of_training_apply(llm: Any, tmp_path: Path, database_url: str) -> None:
    """The tools that describe the database are offered, the terms are those set, the closing call
    is the last.
    """
    llm.script(calls("list_tables"), says("密封"))
    settings = {"DATABASE_URL": database_url, "DATABASE_TOOLS": "schema", "REWARD_TERMS": "turns=1"}
    flags = ("--base-url", llm.base_url, "--model", "m", "--question", QUESTION, "--max-turns", "2")
    done = run(tmp_path, *flags, **settings)
    assert done.returncode == 0, done.stderr
    offered = [tool["function"]["name"] for tool in llm.requests[0]["tools"]]
    assert offered == ["query_database_by_sql", "list_tables", "describe_table"]
    assert [request.get("tool_choice") for request in llm.requests] == [None, "none"]
    assert '"tables":["disease","drugs_info"]' in done.stdout.replace(" ", "")
    assert [line.split()[0] for line in done.stdout.splitlines()[-2:]] == ["turns", "total"]
    assert not any(line.startswith("judge") for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    "wrong",
    [
        {"REWARD_TERMS": "acuracy=1"},
        {"REWARD_MODEL_URL": "http://x", "REWARD_SCALE": "/nowhere.json"},
    ],
)
def test_settings_that_cannot_be_used_are_one_message(
    wrong: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name, value in {"TEACHER_MODEL": "", **wrong}.items():
        monkeypatch.setenv(name, value)
    load_settings.cache_clear()
    assert sqlagent_test.main(["--base-url", "http://127.0.0.1:9/v1", "--model", "m"]) == 2
    load_settings.cache_clear()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sqlagent_test: REWARD_")


def test_without_an_endpoint_it_says_what_to_give(tmp_path: Path) -> None:
    done = run(tmp_path, "--model", "m")
    assert done.returncode == 2
    assert "--base-url" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_endpoint_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    done = run(tmp_path, "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_of_the_training_stack_is_imported() -> None:
    code = (
        "import sys; import sql_agent.sqlagent_test; "
        "print(sorted({'torch', 'verl', 'vllm', 'ray', 'agentlightning', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.strip() == "[]"
