"""Chat templates that drop thoughts or know no tools are noticed, and mended where that is safe."""

import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from transformers import AutoTokenizer

from common.settings import ROOT
from tests.corpora import public_template
from tests.training.plans import plan_of
from training.setup.chat_template import (
    CALL,
    SETTING,
    SWITCH,
    TEMPLATE,
    TOOL,
    choose_template,
    continues,
    keep_thinking,
    render,
    with_tools,
)
from training.setup.plan import ConfigError, EnginePlan

TURN = "{{ '<|im_start|>' ~ message.role ~ '\\n' ~ %s ~ '<|im_end|>\\n' }}"
LOOP = "{%% for message in messages %%}%s{%% endfor %%}{%% if add_generation_prompt %%}{{ %s }}{%% endif %%}"
START = "'<|im_start|>assistant\\n'"
CUT = (
    "{%- set text = message.content -%}{%- if '</think>' in text -%}"
    "{%- set text = text.split('</think>')[-1].lstrip('\\n') -%}{%- endif -%}"
)
PLAIN = LOOP % (TURN % "message.content", START)
DROPPING = LOOP % (CUT + TURN % "text", START)
OPENING = LOOP % (CUT + TURN % "text", "'<|im_start|>assistant\\n<think>\\n'")
SAYING = (
    "{%- set rule = 'Think in <think></think>.\\n' -%}"
    "{%- if '</think>' in rule -%}{{ rule }}{%- endif -%}" + DROPPING
)
CLOSING = LOOP % (TURN % "message.content.split('</think>')[-1]", START)


def prepared(folder: Path, **changes: Any) -> tuple[EnginePlan, Path, Any]:
    """A plan, a run's folder, and what of verl's tree names the template."""
    usual = {"model": str(folder), "max_turns": 4, "tools": False}
    plan = plan_of(folder / "run", **{**usual, **changes})
    return plan.engine, plan.output.run_dir, OmegaConf.create()


@pytest.mark.parametrize(
    ("template", "kept"), [(PLAIN, True), (DROPPING, False), (OPENING, False), (CLOSING, False)]
)
def test_what_drops_thoughts_is_noticed(template, kept):
    assert continues(template, tools=False) == kept


@pytest.mark.parametrize("template", [OPENING, CLOSING, SAYING])
def test_what_cannot_be_mended_safely_is_refused_with_what_to_do(template):
    with pytest.raises(ConfigError, match="chat_template=FILE"):
        keep_thinking(template, tools=False)


@pytest.mark.parametrize("keep_thinking", [False, True])
def test_a_template_without_tools_is_replaced_where_the_agent_has_some(keep_thinking, tmp_path):
    (tmp_path / TEMPLATE).write_text(PLAIN)
    plan, run_dir, config = prepared(tmp_path, tools=True, keep_thinking=keep_thinking)
    assert choose_template(plan, run_dir, config) == with_tools(PLAIN) != PLAIN
    assert OmegaConf.select(config, SETTING) == str(run_dir / TEMPLATE), "vLLM is told"


@pytest.mark.parametrize("tools", [False, True])
def test_without_thinking_a_prompt_continues_the_one_before_token_by_token(tools, tmp_path, capsys):
    """Qwen3's own template made a sequence of every turn: only the last reply has a thought."""
    qwen3 = public_template("qwen3")
    (tmp_path / TEMPLATE).write_text(qwen3)
    plan, run_dir, config = prepared(tmp_path, tools=tools)
    served = choose_template(plan, run_dir, config)
    assert served is not None
    assert OmegaConf.select(config, SETTING) == str(run_dir / TEMPLATE)
    assert capsys.readouterr().out.count("\n") == 1

    encode = AutoTokenizer.from_pretrained(ROOT / "sql_agent" / "tiny_model").encode
    asked = {"role": "user", "content": "Which?"}
    if tools:
        said: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
        told = {"role": "tool", "tool_call_id": CALL["id"], "name": "look", "content": "[]"}
        reply = f"<tool_call>\n{json.dumps(CALL['function'])}\n</tool_call><|im_end|>"
    else:
        said = {"role": "assistant", "content": "The first."}
        told = {"role": "user", "content": "And now?"}
        reply = "The first.<|im_end|>"
    turns = [asked, said, told]
    first, second = (render(served, part, tools, **{SWITCH: False}) for part in ([asked], turns))
    assert first.endswith("<think>\n\n</think>\n\n")
    held = encode(first) + encode(reply)
    assert encode(second)[: len(held)] == held
    own = render(qwen3, turns, tools)
    assert render(served, turns, tools) == own, "with thinking it is the model's own"


def call(number: int, arguments: Any) -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return {"id": f"call{number}", "type": "function", "function": function}


TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Which?"},
    {"role": "assistant", "content": None, "tool_calls": [call(1, {"at": "药"}), call(2, {})]},
    {"role": "tool", "tool_call_id": "call1", "content": "one"},
    {"role": "tool", "tool_call_id": "call2", "content": "two"},
    {"role": "assistant", "content": "The one."},
]


def test_tools_calls_and_results_are_written_in_words():
    text = render(with_tools(PLAIN), TURNS, tools=True, opened=False)
    assert text.startswith("<|im_start|>system\nBe brief.\n\nTools you can call")
    assert json.dumps(TOOL["function"]) in text
    called = '<tool_call>\n{"name": "look", "arguments": {"at": "药"}}\n</tool_call>\n<tool_call>\n'
    assert f"<|im_start|>assistant\n{called}" in text
    told = "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
    assert f"<|im_start|>user\n{told}<|im_end|>" in text
    assert text.count("<|im_start|>") == 5


def test_each_prompt_begins_with_the_one_before_and_its_reply():
    template = with_tools(PLAIN)
    first, second = (render(template, TURNS[:count], tools=True) for count in (2, 5))
    assert second.startswith(first)
    assert render(template, TURNS, tools=True, opened=False).startswith(second)


@pytest.mark.parametrize(
    ("template", "seen"),
    [
        (LOOP % (TURN % "('' if message.role == 'system' else message.content)", START), "leaves"),
        ("{{ raise_exception('no system message') }}", "no system message"),
    ],
)
def test_a_template_that_cannot_show_words_is_refused(template, seen):
    with pytest.raises(ConfigError, match=seen):
        with_tools(template)
