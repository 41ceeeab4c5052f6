"""The cold start: its command line, and a very small model built from nothing (needs torch)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sql_agent.cold_start import main, parse_arguments
from sql_agent.demonstrations import tool_call
from sql_agent.prompts import TOOL, first_messages
from sql_agent.tiny_tokenizer import render
from utils.settings import ROOT


@pytest.mark.parametrize("flag", ["--steps-a", "--steps-b", "--threads"])
def test_a_count_below_one_is_a_usage_error(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(["--out", "x", flag, "0"])
    assert caught.value.code == 2
    assert flag in capsys.readouterr().err


@pytest.mark.engine
def test_a_missing_training_file_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path / "m"), "--train-file", str(tmp_path / "none.parquet")]) == 1
    assert "none.parquet" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.mark.engine
def test_a_small_model_is_built_from_nothing(tmp_path: Path) -> None:
    out = tmp_path / "model"
    command = [sys.executable, "-m", "sql_agent.cold_start", "--out", str(out), "--steps-a", "12", "--steps-b", "3"]
    done = subprocess.run(
        [*command, "--no-measure"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["parameters"] == "316,032"
    assert {path.name for path in out.iterdir()} == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.engine
def test_only_the_assistants_tokens_are_learned() -> None:
    from transformers import AutoTokenizer

    from sql_agent.cold_start_training import encode
    from sql_agent.demonstrations import Conversation

    tokenizer = AutoTokenizer.from_pretrained(ROOT / "sql_agent" / "tiny_model")
    turns = [tool_call("SELECT 1"), {"role": "tool", "content": "{}"}, {"role": "assistant", "content": "好"}]
    messages = [*first_messages("朵莎洛片怎么保存？"), *turns]

    def learned(learn: list[bool]) -> str:
        example = encode(Conversation(messages, learn), tokenizer)
        return tokenizer.decode([i for i, kept in zip(example.ids, example.learned, strict=True) if kept])

    call = '<tool_call>\n{"name": "query_database_by_sql", "arguments": {"sql": "SELECT 1"}}\n</tool_call><|im_end|>'
    assert learned([True, True]) == f"{call}好<|im_end|>"
    assert learned([False, True]) == "好<|im_end|>"


@pytest.mark.engine
def test_transformers_renders_the_template_as_we_do() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(ROOT / "sql_agent" / "tiny_model")
    messages = [*first_messages("朵莎洛片怎么保存？"), tool_call("SELECT '片'"), {"role": "tool", "content": "{}"}]
    theirs = tokenizer.apply_chat_template(messages, tools=[TOOL], tokenize=False, add_generation_prompt=True)
    assert theirs == render(messages, [TOOL], add_generation_prompt=True)
    assert tokenizer.eos_token == "<|im_end|>"
