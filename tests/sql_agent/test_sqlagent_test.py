"""The one-question script as people run it: from another folder, with and without an endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from common.settings import ROOT
from data.load import load_rows

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


def answer(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}


def query(sql: str) -> dict[str, Any]:
    function = {"name": "query_database_by_sql", "arguments": json.dumps({"sql": sql}, ensure_ascii=False)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "", "type": "function", "function": function}],
    }
    return {"message": message, "finish_reason": "tool_calls"}


def test_a_question_is_run_and_scored_from_any_folder(llm: Any, tmp_path: Path) -> None:

    row = load_rows(ROOT / "data" / "val.parquet")[0]
    sql = row["sql"]
    llm.script(query(sql), answer(row["answer"]))
    done = run(tmp_path, "--base-url", llm.base_url, "--model", "tiny", OPENAI_API_KEY="secret-key")
    assert done.returncode == 0, done.stderr
    for shown in (row["question"], sql, '"status":"success"', row["answer"], "rule", "judge", "1.100"):
        assert shown in done.stdout
    assert "secret-key" not in done.stdout + done.stderr


def test_a_typed_question_has_no_reference(llm: Any, tmp_path: Path, database_url: str) -> None:
    llm.script(answer("密封"))
    done = run(tmp_path, "--base-url", llm.base_url, "--model", "m", "--question", QUESTION, DATABASE_URL=database_url)
    assert done.returncode == 0, done.stderr
    assert "unscored: no_reference" in done.stdout


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
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"
