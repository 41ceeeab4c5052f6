"""The next turn of an episode reads the tokens of the turns before, as the policy wrote them."""

from typing import Any

import pytest

from tests.corpora import cases_of
from training.proxy.kept_turns import KEPT, KeptTurns, continued
from training.proxy.recorder import Taken

ASKED = {"role": "user", "content": "Which?"}
CALL = {"id": "call-1", "function": {"name": "look", "arguments": '{"sql":"1"}'}}
REPLY = {"role": "assistant", "content": None, "tool_calls": [CALL]}
OTHER_CALL = {"id": "call-1", "function": {"name": "look", "arguments": '{"sql":"2"}'}}
RESULT = {"role": "tool", "tool_call_id": "call-1", "content": "[]"}
TOOLS = [{"type": "function", "function": {"name": "look"}}]
FIRST = {"model": "policy-0", "messages": [ASKED], "tools": TOOLS}
TAKEN = Taken("reply-1", [1, 2], [3, 4], None)


def asked_next(finish: str = "tool_calls", attempt: str = "r/a", **changed: Any) -> Any:
    """The second request of an episode, as vLLM gets it."""
    turns = KeptTurns()
    turns.remember("r/a", FIRST, {"message": REPLY, "finish_reason": finish}, TAKEN)
    # Clients order a call's fields as they like, and leave out what is null
    call = {"function": {"arguments": '{"sql":"1"}', "name": "look"}, "id": "call-1"}
    said = {"role": "assistant", "tool_calls": [call]}
    return turns.add(attempt, {**FIRST, "messages": [ASKED, said, RESULT], **changed})


def test_a_request_names_the_turn_that_it_goes_on_from():
    request = asked_next(chat_template_kwargs={})
    assert request["chat_template_kwargs"] == {KEPT: {"messages": 2, "tokens": [1, 2, 3, 4]}}
    assert request["messages"][2] == RESULT


def test_a_call_that_nobody_can_read_is_handed_back_without_arguments():
    turns = KeptTurns()
    unreadable = {"id": "call-1", "function": {"name": "look", "arguments": '"SELECT 1"'}}
    reply = {"message": {**REPLY, "tool_calls": [unreadable]}, "finish_reason": "tool_calls"}
    turns.remember("r/a", FIRST, reply, TAKEN)
    empty = {"id": "call-1", "function": {"name": "look", "arguments": "{}"}}
    request = {**FIRST, "messages": [ASKED, {**REPLY, "tool_calls": [empty]}, RESULT]}
    asked = turns.add("r/a", request)
    assert asked["chat_template_kwargs"][KEPT]["tokens"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "changed",
    [
        *cases_of(__file__, "other_conversations"),
        {"messages": [{**ASKED, "content": "Another?"}, REPLY, RESULT]},
        {"messages": [ASKED, {**REPLY, "content": "What the policy did not say"}, RESULT]},
        {"messages": [ASKED, {**REPLY, "tool_calls": [OTHER_CALL]}, RESULT]},
    ],
)
def test_what_is_another_conversation_is_rendered(changed):
    assert KEPT not in (asked_next(**changed).get("chat_template_kwargs") or {})


def text(ids: list[int]) -> str:
    return "".join(map(chr, ids))


def prompt_of(*texts: str) -> str:
    """Return what is continued of texts of a token a character; `$` ends a turn."""
    return text(continued(*[[ord(sign) for sign in one] for one in texts], text))


def test_what_follows_a_turn_stands_behind_its_own_tokens():
    found = prompt_of("q$ call $\nresult$\n>", "q$ call $\n", "q$call$")
    assert found == "q$call$\nresult$\n>"


@pytest.mark.parametrize(
    ("prompt", "written", "kept"), cases_of(__file__, "turns_written_otherwise")
)
def test_the_template_decides_where_it_writes_another_turn(prompt, written, kept):
    assert prompt_of(prompt, written, kept) == prompt
