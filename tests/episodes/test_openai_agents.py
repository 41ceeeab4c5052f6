"""The agent's loop against a real HTTP server with scripted replies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from episodes.openai_agents import Endpoint, Episode, EpisodeError, run_episode
from sql_agent.prompts import SYSTEM_PROMPT, TOOL, TOOL_NAME
from tools.sql.query import QueryTool
from tools.sql.schema_tools import SchemaTools

QUESTION = "朵莎洛片怎么保存？"
SQL = "SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"


def say(content: str | None, finish_reason: str = "stop") -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}


def call(arguments: str, name: str = TOOL_NAME) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "set by the server", "type": "function", "function": function}],
    }
    return {"message": message, "finish_reason": "tool_calls"}


def query(sql: str) -> dict[str, Any]:
    return call(json.dumps({"sql": sql}, ensure_ascii=False))


def play(llm: Any, url: str, max_turns: int = 3, **endpoint: Any) -> Episode:
    target = Endpoint(llm.base_url, "tiny", **endpoint)
    return asyncio.run(run_episode(QUESTION, target, QueryTool(url), max_turns))


def test_a_question_is_answered_from_a_query(llm: Any, database_url: str) -> None:
    llm.script(query(SQL), say("密封，20℃以下干燥处保存"))
    episode = play(llm, database_url)
    assert (episode.stop_reason, episode.answer, episode.turns) == ("answered", "密封，20℃以下干燥处保存", 2)
    assert episode.tool_results[0].rows == [["密封，20℃以下干燥处保存"]]
    assert [message["role"] for message in episode.messages] == ["system", "user", "assistant", "tool", "assistant"]


def test_what_is_sent_is_the_prompt_the_tool_and_the_sampling(llm: Any, database_url: str) -> None:
    llm.script(say("好"))
    play(llm, database_url, temperature=0.5, top_p=1.0, max_tokens=77, extra={"top_k": -1})
    (sent,) = llm.requests
    assert sent["messages"] == [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": QUESTION}]
    function = sent["tools"][0]["function"]
    assert {key: function[key] for key in TOOL["function"]} == TOOL["function"]
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"], sent["top_k"]) == (0.5, 1.0, 77, -1)


def test_openais_own_client_would_send_the_same(llm: Any, database_url: str) -> None:
    def sent(traced: bool) -> list[Any]:
        llm.script(query(SQL), say("密封"))
        llm.requests = []
        assert play(llm, database_url, traced=traced, max_tokens=77, extra={"top_k": -1}).stop_reason == "answered"
        return llm.requests

    ours = sent(traced=False)
    assert len(ours) == 2
    assert ours == sent(traced=True)


def test_a_policy_on_an_unfamiliar_database_looks_around_first(llm: Any, database_url: str) -> None:
    tool = QueryTool(database_url)
    llm.script(call("{}", "list_tables"), call('{"table": "disease"}', "describe_table"), query(SQL), say("密封"))
    target = Endpoint(llm.base_url, "tiny")
    episode = asyncio.run(run_episode(QUESTION, target, tool, 4, SchemaTools(tool)))
    assert (episode.stop_reason, episode.turns, len(episode.tool_results)) == ("answered", 4, 1)
    tables, columns, _ = (json.loads(message["content"]) for message in episode.messages if message["role"] == "tool")
    assert tables["tables"] == ["disease", "drugs_info"]
    assert "disease_name" in [column["name"] for column in columns["columns"]]


def test_each_request_extends_the_one_before(llm: Any, database_url: str) -> None:
    llm.script(query(SQL), query(SQL), say("好"))
    play(llm, database_url)
    for earlier, later in zip(llm.requests, llm.requests[1:], strict=False):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert later["tools"] == earlier["tools"]


@pytest.mark.parametrize("max_turns", [1, 2, 3, 5])
def test_only_the_last_allowed_call_forbids_tools(llm: Any, database_url: str, max_turns: int) -> None:
    llm.script(*[query(SQL)] * (max_turns - 1), say("好"))
    episode = play(llm, database_url, max_turns)
    assert (episode.turns, episode.stop_reason) == (max_turns, "answered")
    assert [request.get("tool_choice", "auto") for request in llm.requests] == ["auto"] * (max_turns - 1) + ["none"]
    assert all(request["tools"] for request in llm.requests)


def test_a_tool_call_in_the_closing_reply_ends_the_episode(llm: Any, database_url: str) -> None:
    llm.script(query(SQL))
    episode = play(llm, database_url, 2)
    assert (episode.turns, episode.stop_reason, episode.answer) == (2, "max_turns", None)


def test_max_turns_below_one_is_refused(llm: Any, database_url: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        play(llm, database_url, 0)


def test_a_wrong_query_is_told_to_the_policy(llm: Any, database_url: str) -> None:
    llm.script(query("SELECT nothing FROM drugs_info"), query(SQL), say("好"))
    episode = play(llm, database_url)
    assert [result.ok for result in episode.tool_results] == [False, True]
    assert json.loads(llm.requests[1]["messages"][-1]["content"])["status"] == "error"


@pytest.mark.parametrize("arguments", ["", "{", "[]", "null", '{"sql": 1}', '{"query": "x"}', '"SELECT 1"'])
def test_arguments_without_sql_end_the_episode(llm: Any, database_url: str, arguments: str) -> None:
    llm.script(call(arguments))
    episode = play(llm, database_url)
    assert (episode.stop_reason, episode.answer, episode.turns) == ("bad_tool_call", None, 1)


def test_an_unknown_tool_ends_the_episode(llm: Any, database_url: str) -> None:
    llm.script(call('{"sql": "SELECT 1"}', name="query_databse_by_sql"))
    assert play(llm, database_url).stop_reason == "bad_tool_call"


@pytest.mark.parametrize("content", ["", None, "  \n"])
def test_an_empty_reply_is_no_answer(llm: Any, database_url: str, content: str | None) -> None:
    llm.script(say(content))
    episode = play(llm, database_url)
    assert (episode.stop_reason, episode.answer) == ("no_answer", None)


@pytest.mark.parametrize(("content", "answer"), [("密封", "密封"), ("", None)])
def test_a_reply_cut_by_its_limit_is_named(llm: Any, database_url: str, content: str, answer: str | None) -> None:
    llm.script(say(content, "length"))
    episode = play(llm, database_url)
    assert (episode.stop_reason, episode.answer) == ("length", answer)


@pytest.mark.parametrize(
    "error",
    [
        "This model's maximum context length is 1024 tokens. However, you requested 1200 tokens.",
        "litellm.ContextWindowExceededError: too long",
        "The decoder prompt (length 1200) is longer than the maximum model length of 1024.",
    ],
)
def test_a_prompt_that_does_not_fit_is_the_policys_doing(llm: Any, database_url: str, error: str) -> None:
    llm.status, llm.error = 400, error
    assert play(llm, database_url).stop_reason == "context_overflow"


@pytest.mark.parametrize(
    ("status", "error"), [(500, "x"), (503, "x"), (401, "x"), (404, "no such model"), (400, "bad field")]
)
def test_an_endpoint_that_fails_raises(llm: Any, database_url: str, status: int, error: str) -> None:
    llm.status, llm.error = status, error
    with pytest.raises(EpisodeError) as caught:
        play(llm, database_url)
    assert caught.value.cause == "endpoint_error"
    assert str(status) in str(caught.value)


def test_a_reply_without_choices_raises(llm: Any, database_url: str) -> None:
    llm.script({})
    with pytest.raises(EpisodeError, match="no choices"):
        play(llm, database_url)


def test_an_endpoint_that_is_not_there_raises(database_url: str) -> None:
    with pytest.raises(EpisodeError) as caught:
        asyncio.run(run_episode(QUESTION, Endpoint("http://127.0.0.1:9/v1", "tiny"), QueryTool(database_url), 3))
    assert caught.value.cause == "endpoint_unreachable"


def test_a_database_that_is_gone_raises_and_is_not_told_to_the_policy(llm: Any, tmp_path: Path) -> None:
    llm.script(query(SQL), say("好"))
    with pytest.raises(EpisodeError) as caught:
        play(llm, f"sqlite:///{tmp_path}/gone.db")
    assert caught.value.cause == "database_error"
    assert len(llm.requests) == 1


def test_many_episodes_share_one_event_loop(llm: Any, database_url: str) -> None:
    llm.script(say("好"))
    llm.delay = 0.05

    async def run() -> list[Episode]:
        tool, endpoint = QueryTool(database_url), Endpoint(llm.base_url, "tiny")
        return await asyncio.gather(*(run_episode(QUESTION, endpoint, tool, 3) for _ in range(20)))

    assert {episode.answer for episode in asyncio.run(run())} == {"好"}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arguments=st.text()
    | st.recursive(st.none() | st.text() | st.integers(), lambda x: st.dictionaries(st.text(), x)).map(json.dumps)
)
def test_no_arguments_make_the_episode_raise(llm: Any, database_url: str, arguments: str) -> None:
    llm.requests.clear()
    llm.script(call(arguments), say("好"))
    assert play(llm, database_url).stop_reason in {"answered", "bad_tool_call"}
