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
from training.warmup.tiny_tokenizer import SPECIAL, TAGS, TEMPLATE, render

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
@settings(max_examples=100, deadline=None)
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


def test_several_tool_results_share_one_turn() -> None:
    call, result = as_messages("SELECT 1", "x", as_dict=True)
    call["tool_calls"] *= 2
    text = render([call, result, result], [])
    assert text.count("<|im_start|>user") == 1
    assert text.count("<tool_response>") == 2
    assert text.count("</tool_call>\n<tool_call>") == 1


def test_the_tools_are_in_the_prompt() -> None:
    function = TOOL["function"]
    text = render(first_messages("x"), [TOOL])
    assert f"\n{function['name']}(sql): {function['description']}<|im_end|>\n" in text
    assert function["name"] not in render(first_messages("x"), [])


def test_only_the_chat_marks_are_special() -> None:
    """Special tokens vanish from decoded text, and the tool parser must see the tags."""
    added = {
        token["content"]: token["special"]
        for token in json.loads((MODEL / "tokenizer.json").read_text())["added_tokens"]
    }
    assert added == dict.fromkeys(SPECIAL, True) | dict.fromkeys(TAGS, False)
    assert TOKENIZER.decode(ids(generated("SELECT 1"))) == generated("SELECT 1").removesuffix(
        "<|im_end|>"
    )


def test_each_common_character_stands_alone() -> None:
    pieces = TOKENIZER.encode("用于轻度胃部胀痛", add_special_tokens=False).ids
    assert [TOKENIZER.decode([piece]) for piece in pieces] == list("用于轻度胃部胀痛")


@settings(max_examples=200, deadline=None)
@given(TEXT | CHINESE)
def test_text_survives_the_tokenizer(text: str) -> None:
    assert TOKENIZER.decode(ids(text)) == text


def test_the_folder_is_one_that_others_can_read() -> None:
    config = json.loads((MODEL / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert config["vocab_size"] == TOKENIZER.get_vocab_size() <= 2048
    assert config["use_cache"]
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"]
    end = TOKENIZER.token_to_id("<|im_end|>")
    assert json.loads((MODEL / "generation_config.json").read_text())["eos_token_id"] == end
    assert (
        json.loads((MODEL / "tokenizer_config.json").read_text())["tokenizer_class"]
        == "PreTrainedTokenizerFast"
    )
    assert (MODEL / "chat_template.jinja").read_text() == TEMPLATE.read_text()
