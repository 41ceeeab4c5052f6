"""What is no action is named, and no text raises; test_corpus.py reads replies of many forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_agent.protocol import LONGEST_DICT, PROBLEMS, Action, Malformed, read_reply

RUN = Action("validate_code", {"code": "print(1)\nprint({'a': 2})"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>only a thought</think>", "empty"),
        ("print(1)", "no_action"),
        ('{"code": "print(1)"}', "no_action"),
        ('{"action": 7}', "no_action"),
        ('[{"action": {}}]', "no_action"),
        (f"{RUN}\n{RUN}", "several_actions"),
        ('{"action": "submit", "params": [1]}', "bad_params"),
        (f"{{'action': 'submit', 'params': {{'answer': '{'9' * LONGEST_DICT}'}}}}", "no_action"),
    ],
)
def test_what_is_no_action_is_named(text: str, problem: str) -> None:
    found = read_reply(text)
    assert isinstance(found, Malformed)
    assert found.problem == problem


def test_the_words_of_a_program_are_not_a_thought() -> None:
    reply = str(Action("validate_code", {"code": "print('</think>')"}))
    assert read_reply(reply) == Action("validate_code", {"code": "print('</think>')"})


@given(st.text() | st.text(alphabet="{}[]\"'action: ,\\params\ud800"))
def test_no_text_raises(text: str) -> None:
    found = read_reply(text)
    assert isinstance(found, Action) or found.problem in PROBLEMS


@pytest.mark.parametrize(
    "text", ["{" * 200_000, '{"a":' * 50_000, "{'a':" * 50_000, '{"a' * 100_000, "[" * 200_000]
)
def test_a_huge_reply_is_read_too(text: str) -> None:
    assert isinstance(read_reply(text), Malformed)
