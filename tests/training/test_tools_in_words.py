"""A model whose chat template knows no tools plays the agents that call some.

Keeps of docs/training.md: tools are described in words, by one rule.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from training.setup.chat_template import with_tools
from training.setup.plan import ConfigError

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {}}}


def call(number: int, arguments: Any) -> dict[str, Any]:
    return {
        "id": f"call{number}",
        "type": "function",
        "function": {"name": "look", "arguments": arguments},
    }


TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Which?"},
    {"role": "assistant", "content": None, "tool_calls": [call(1, {"at": "药"}), call(2, {})]},
    {"role": "tool", "tool_call_id": "call1", "content": "one"},
    {"role": "tool", "tool_call_id": "call2", "content": "two"},
    {"role": "assistant", "content": "The one."},
]


def rendered(template: str, messages: list[dict[str, Any]], tools: bool = True) -> str:
    texts, _ = render_jinja_template(
        [messages],
        tools=[TOOL] if tools else None,
        chat_template=template,
        add_generation_prompt=messages[-1]["role"] != "assistant",
    )
    return str(texts[0])


def test_tools_calls_and_results_are_written_in_words() -> None:
    text = rendered(with_tools(CHATML), TURNS)
    assert text.startswith("<|im_start|>system\nBe brief.\n\nTools you can call")
    assert json.dumps(TOOL["function"]) in text
    assert (
        '<|im_start|>assistant\n<tool_call>\n{"name": "look", "arguments": {"at": "药"}}\n</tool_call>\n<tool_call>\n'
        in text
    )
    assert (
        "<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response><|im_end|>"
        in text
    )
    assert text.count("<|im_start|>") == 5


def test_each_prompt_begins_with_the_one_before_and_its_reply() -> None:
    template = with_tools(CHATML)
    assert rendered(template, TURNS).startswith(rendered(template, TURNS[:5]))
    assert rendered(template, TURNS[:5]).startswith(rendered(template, TURNS[:2]))


@pytest.mark.parametrize(
    ("template", "seen"),
    [
        (CHATML.replace("{{ m.content }}", "{{ m.content if m.role != 'system' }}"), "leaves out"),
        ("{{ raise_exception('no system message') }}", "no system message"),
    ],
)
def test_a_template_that_cannot_show_words_is_refused(template: str, seen: str) -> None:
    with pytest.raises(ConfigError, match=seen):
        with_tools(template)
