"""The bundled model's chat template: a conversation that goes on begins with exactly the tokens
that were there.

Keeps of docs/architecture.md: calls of an episode merge by prefix, so that no token is trained
twice.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from common.settings import ROOT
from sql_agent.prompts import TOOL, TOOL_NAME, first_messages
from training.warmup.tiny_tokenizer import render

MODEL = ROOT / "sql_agent" / "tiny_model"
TOKENIZER = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
# Text without the tokenizer's own tags; the tool takes them out of what it returns.
TEXT = st.text(
    st.characters(exclude_characters="<", exclude_categories=["Cs"]), min_size=1, max_size=60
)
CHINESE = st.text("朵莎洛片的贮藏方法：，。20℃'\" _SELECT", min_size=1, max_size=40)


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).ids


def generated(sql: str) -> str:
    """What the model writes to run a query."""
    call = json.dumps({"name": TOOL_NAME, "arguments": {"sql": sql}}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call><|im_end|>"


def as_messages(sql: str, result: str, as_dict: bool) -> list[dict[str, Any]]:
    arguments: Any = {"sql": sql} if as_dict else json.dumps({"sql": sql}, ensure_ascii=False)
    function = {"name": TOOL_NAME, "arguments": arguments}
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    return [call, {"role": "tool", "tool_call_id": "c", "content": result}]


@pytest.mark.parametrize("as_dict", [True, False])
@settings(max_examples=50, deadline=None)
@given(
    question=TEXT | CHINESE, queries=st.lists(st.tuples(TEXT | CHINESE, TEXT | CHINESE), max_size=3)
)
def test_every_turn_extends_the_tokens_of_the_one_before(
    as_dict: bool, question: str, queries: list[tuple[str, str]]
) -> None:
    messages: list[dict[str, Any]] = [*first_messages(question)]
    for sql, result in queries:
        seen = ids(render(messages, [TOOL], add_generation_prompt=True)) + ids(generated(sql))
        messages += as_messages(sql, result, as_dict)
        later = ids(render(messages, [TOOL], add_generation_prompt=True))
        assert later[: len(seen)] == seen
        assert TOKENIZER.decode(later[len(seen) :], skip_special_tokens=False) == (
            f"\n<|im_start|>user\n<tool_response>\n{result}\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
        )


def test_text_before_a_tool_call_is_kept_as_it_was_generated() -> None:
    message = as_messages("SELECT 1", "", as_dict=True)[0] | {"content": "先查一下。\n"}
    assert render([message], []) == f"<|im_start|>assistant\n先查一下。\n{generated('SELECT 1')}\n"
