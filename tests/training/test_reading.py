"""How vLLM reads a model: the parser of its tool calls, its thinking, and what ends its replies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.messages import missing
from training.setup import reading
from training.setup.model_folder import read_template
from training.setup.plan import ConfigError
from training.setup.reading import find_parser

TINY = str(ROOT / "sql_agent" / "tiny_model")
OPENING = """{%- for m in messages %}<|im_start|>{{ m.role }}
{% if tools and loop.first %}{{ tools | tojson }}{% endif %}"""
CLOSING = """{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
CALLS = "{%% for c in m.tool_calls or [] %%}{%% set f = c.function %%}%s{%% endfor %%}"

HERMES_2 = '\n<tool_call>\n{ "arguments": {{ f.arguments | tojson }}, "name": "{{ f.name }}"}\n</tool_call> '
QWEN3_CODER = "\n<tool_call>\n<function={{ f.name }}>\n</function>\n</tool_call>"


def test_the_form_of_hermes_is_known():
    assert find_parser(TINY, read_template(TINY)) == "hermes"
    assert find_parser(TINY, OPENING + CALLS % HERMES_2 + CLOSING) == "hermes"


def test_another_form_is_named_before_anything_is_loaded():
    with pytest.raises(ConfigError) as refused:
        find_parser(TINY, OPENING + CALLS % QWEN3_CODER + CLOSING)
    assert not missing(str(refused.value), "<function=look>", "--tool-parser", "docs/gpu.md")


SWITCHED = OPENING + CLOSING.replace(
    "assistant\n", "assistant\n{% if enable_thinking is false %}<think></think>{% endif %}"
)


@pytest.mark.parametrize(("thinking", "told"), [(False, True), (True, False)])
def test_thinking_is_off_unless_it_is_asked_for(thinking, told, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "read_template", lambda *_: SWITCHED)
    flags = reading.reading_flags(TINY, tmp_path / "log", tools=False, thinking=thinking)
    assert ("--default-chat-template-kwargs" in flags) is told


def test_a_user_names_another_parser(tmp_path):
    flags = reading.reading_flags(TINY, tmp_path / "log", tools=True, tool_parser="pythonic")
    assert flags == ["--enable-auto-tool-choice", "--tool-call-parser", "pythonic"]


def test_thinking_needs_a_template_that_can_turn_it_off(monkeypatch):
    with pytest.raises(ConfigError, match="enable_thinking"):
        reading.thought_tokens(TINY, True)
    monkeypatch.setattr(reading, "read_template", lambda *_: SWITCHED)
    assert reading.thought_tokens(TINY, True) == reading.THOUGHT_TOKENS


def test_a_model_whose_replies_would_never_end_is_named(tmp_path):
    """A base model with a chat template: all episodes were cut at their limit, exit code 0."""
    folder = Path(shutil.copytree(TINY, tmp_path / "model"))
    reading.check_end(str(folder), read_template(TINY))
    for name in ("config.json", "generation_config.json"):
        settings = json.loads((folder / name).read_text()) | {"eos_token_id": 0}
        (folder / name).write_text(json.dumps(settings))
    told = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(told | {"eos_token": "<|endoftext|>"}))
    with pytest.raises(ConfigError) as refused:
        reading.check_end(str(folder), read_template(TINY))
    assert not missing(str(refused.value), folder, "<|im_end|>", "<|endoftext|>", "eos_token_id")
