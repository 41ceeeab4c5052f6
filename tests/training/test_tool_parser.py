"""vLLM's parser of tool calls is the one that reads a call as the model's own template writes it.

Keeps of docs/gpu.md, "Which model".
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from common.settings import ROOT
from tests.messages import missing
from training.setup import reading, tool_parser
from training.setup.model_folder import read_template
from training.setup.plan import ConfigError
from training.setup.tool_parser import find_parser, rendered_call

TINY = str(ROOT / "sql_agent" / "tiny_model")
OPENING = """{%- for m in messages %}<|im_start|>{{ m.role }}
{% if tools and loop.first %}{{ tools | tojson }}{% endif %}"""
CLOSING = """{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
# The forms of families, each as its public template writes a call.
FORMS = {
    "qwen3_coder": """{% for c in m.tool_calls or [] %}<tool_call>
<function={{ c.function.name }}>
{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>
{{ v }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}""",
    "glm45": """{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}
{% for k, v in c.function.arguments.items() %}<arg_key>{{ k }}</arg_key>
<arg_value>{{ v }}</arg_value>
{% endfor %}</tool_call>{% endfor %}""",
}
IN_WORDS = "{% if m.tool_calls %}please use {{ m.tool_calls[0].function.name }}{% endif %}"


def test_the_form_of_hermes_is_known_without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_parser.subprocess, "run", lambda *_, **__: pytest.fail("asked vLLM"))
    assert find_parser(TINY, read_template(TINY)) == "hermes"


def test_a_template_that_opens_the_thought_is_read_too() -> None:
    """Of <tool_call> the first letters are those of <think>, and were cut off."""
    begun = "{{- '<|im_start|>assistant\\n' -}}"
    assert begun in read_template(TINY)
    opens = read_template(TINY).replace(begun, "{{- '<|im_start|>assistant\\n<think>\\n' -}}")
    assert find_parser(TINY, opens) == "hermes"


@pytest.mark.system
@pytest.mark.parametrize("name", FORMS)
def test_the_parser_reads_the_form_of_the_template(name: str) -> None:
    assert find_parser(TINY, OPENING + FORMS[name] + CLOSING) == name


@pytest.mark.system
def test_a_form_that_no_parser_reads_is_named_before_anything_is_loaded() -> None:
    template = OPENING + IN_WORDS + CLOSING
    assert rendered_call(template) == "please use look"
    with pytest.raises(ConfigError, match=r"please use look.*--tool-parser"):
        find_parser(TINY, template)


SWITCHED = OPENING + CLOSING.replace(
    "assistant\n", "assistant\n{% if enable_thinking is false %}<think></think>{% endif %}"
)


@pytest.mark.parametrize(("thinking", "told"), [(False, True), (True, False)])
def test_thinking_is_off_unless_it_is_asked_for(
    thinking: bool, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "read_template", lambda *_: SWITCHED)
    flags = reading.reading_flags(TINY, tmp_path / "log", tools=False, thinking=thinking)
    assert ("--default-chat-template-kwargs" in flags) is told


def test_a_parser_that_vllm_lacks_is_named_at_once(tmp_path: Path) -> None:
    """vLLM said so after half a minute, in a traceback."""
    with pytest.raises(ConfigError) as refused:
        reading.reading_flags(TINY, tmp_path / "log", tools=True, tool_parser="nosuch")
    assert not missing(str(refused.value), "nosuch", "hermes", "llama3_json")


def test_a_user_names_another_parser(tmp_path: Path) -> None:
    flags = reading.reading_flags(TINY, tmp_path / "log", tools=True, tool_parser="pythonic")
    assert flags == ["--enable-auto-tool-choice", "--tool-call-parser", "pythonic"]


def test_a_model_whose_replies_would_never_end_is_named(tmp_path: Path) -> None:
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


def test_thinking_needs_a_template_that_can_turn_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="enable_thinking"):
        reading.thought_tokens(TINY, True)
    monkeypatch.setattr(reading, "read_template", lambda *_: SWITCHED)
    assert reading.thought_tokens(TINY, True) == reading.THOUGHT_TOKENS


def test_a_resumed_run_says_that_it_reads_otherwise() -> None:
    now = OmegaConf.create({})
    OmegaConf.update(now, reading.PARSER, "hermes", force_add=True)
    assert reading.changed_reading(now, now) == []
    before = OmegaConf.create({})
    OmegaConf.update(before, reading.PARSER, "glm45", force_add=True)
    [line] = reading.changed_reading(now, before)
    assert not missing(line, "hermes", "glm45")
