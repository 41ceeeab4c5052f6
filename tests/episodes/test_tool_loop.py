"""The loop with tools: a bad call is answered with an error, the machine's own faults raise."""

import asyncio
import json
from typing import Any

import pytest
from agents import TracingProcessor, add_trace_processor
from hypothesis import example, given, settings
from hypothesis import strategies as st

from episodes.episode import Episode, Policy
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.script import Script, tool_call
from episodes.tool_loop import Tool, play_with_tools
from tests.corpora import cases_of
from tests.episodes.scripted import ScriptedPolicy, calls, calls_text, says
from tests.messages import missing


def spec(name: str, **kinds: str) -> dict[str, Any]:
    properties = {argument: {"type": kind} for argument, kind in kinds.items()}
    parameters = {"type": "object", "properties": properties, "required": list(kinds)}
    told = {"name": name, "description": f"the tool {name}", "parameters": parameters}
    return {"type": "function", "function": told}


async def look(word: str) -> str:
    return f"seen: {word}"


async def add(first: int, second: float) -> str:
    return str(first + second)


async def index() -> str:
    return "apple, salt"


TOOLS = [
    Tool(spec("look", word="string"), look),
    Tool(spec("add", first="integer", second="number"), add),
    Tool(spec("index"), index),
]


def play(policy: Policy, tools: list[Tool] = TOOLS) -> Episode:
    return asyncio.run(play_with_tools(policy, "You look.", "Where is it?", tools))


def test_each_request_extends_the_one_before_and_names_the_same_tools():
    policy = ScriptedPolicy(calls("look", word="a"), calls("look", word="b"), says("c"))
    episode = play(policy)
    assert policy.asked[0] == episode.messages[:2]
    roles = [message["role"] for message in episode.messages]
    for number, asked in enumerate(policy.asked):
        assert [message["role"] for message in asked] == roles[: 2 + 2 * number]
        assert asked[: 2 * number] == policy.asked[number - 1][: 2 * number]
    for sent in policy.tools:
        for tool, described in zip(TOOLS, sent, strict=True):
            function = described["function"]
            assert {name: function[name] for name in tool.spec["function"]} == tool.spec["function"]


def test_several_calls_are_answered_in_their_order_however_long_each_takes():
    """Answered as they end, the same reply would lead to other tokens and another reward."""

    async def patient(word: str) -> str:
        for _ in range(20):
            await asyncio.sleep(0)
        return f"seen: {word}"

    both = calls("look", word="a")
    both["message"]["tool_calls"] += calls("index")["message"]["tool_calls"]
    policy = ScriptedPolicy(both, says("c"))
    episode = play(policy, [Tool(spec("look", word="string"), patient), TOOLS[2]])
    told = [message["content"] for message in episode.messages if message["role"] == "tool"]
    assert told == ["seen: a", "apple, salt"]


def test_both_calls_of_a_script_are_made():
    """The second had the id of the first, and ended the episode."""
    asked = [tool_call("look", {"word": word}) for word in "ab"]
    episode = play(Script([*asked, "c"], max_turns=3))
    told = [message["content"] for message in episode.messages if message["role"] == "tool"]
    assert (told, episode.answer) == (["seen: a", "seen: b"], "c")


@pytest.mark.parametrize("arguments", ["", "null", '{"word": 1}', '{"words": "x"}'])
def test_arguments_the_tool_does_not_take_are_answered_with_an_error_and_cost_a_turn(arguments):
    policy = ScriptedPolicy(calls_text("look", arguments), says("c"))
    episode = play(policy)
    assert (episode.stop_reason, episode.answer, policy.turns) == ("answered", "c", 2)
    told = json.loads(episode.messages[3]["content"])
    assert told["status"] == "error"
    assert "word" in told["error"], "the names of what is required"
    [sent] = policy.asked[1][2]["tool_calls"]
    assert isinstance(json.loads(sent["function"]["arguments"]), dict), "servers refuse others"


@pytest.mark.parametrize(("given", "told"), cases_of(__file__, "arguments_not_required"))
def test_an_argument_that_is_not_required_reaches_the_tool(given, told):
    """It was dropped, and the tool answered for another day than the policy asked for."""

    async def look_on(word: str, day: str = "the last day") -> str:
        return f"{word} on {day}"

    described = spec("look", word="string", day="string")
    described["function"]["parameters"]["required"] = ["word"]
    episode = play(Script([tool_call("look", given), "c"], 2), [Tool(described, look_on)])
    assert told in episode.messages[3]["content"]


def test_a_tool_that_forgets_its_answer_is_the_agents_fault():
    """The policy read the word None."""

    async def forgetful(word: str) -> Any:
        return None

    with pytest.raises(TypeError, match="look returned None"):
        play(Script([tool_call("look", {"word": "a"})], 2), [Tool(TOOLS[0].spec, forgetful)])


def test_an_unknown_tool_is_answered_with_the_names_of_those_there_are():
    episode = play(ScriptedPolicy(calls("lok", word="a"), says("c")))
    assert episode.stop_reason == "answered"
    assert not missing(episode.messages[3]["content"], "error", "lok", "look", "add", "index")


CUT_CALL = calls("look", word="a") | {"finish_reason": "length"}


@pytest.mark.parametrize(
    "cut", [says("in the", "length"), says("", "length"), says("<tool_call>{", "length"), CUT_CALL]
)
def test_a_reply_cut_by_its_limit_is_named_and_no_answer(cut):
    policy = ScriptedPolicy(cut)
    episode = play(policy)
    assert (episode.stop_reason, episode.answer, policy.turns) == ("length", None, 1)


def test_what_stops_the_policy_is_the_reason():
    first = calls("look", word="a")
    stopped = play(ScriptedPolicy(first, PolicyStop("context_overflow")))
    assert stopped.stop_reason == "context_overflow"
    policy = ScriptedPolicy(first, max_turns=2)
    episode = play(policy)
    assert (episode.stop_reason, episode.answer, policy.turns) == ("max_turns", None, 2)


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (EpisodeError("database_error", "gone"), EpisodeError),
        (KeyError("a bug"), KeyError),
        (SystemExit(0), RuntimeError),
    ],
)
def test_what_a_tool_raises_is_raised_and_not_shown_to_the_policy(raised, seen):
    async def broken(word: str) -> str:
        raise raised

    policy = ScriptedPolicy(calls("look", word="a"), says("c"))
    with pytest.raises(seen):
        play(policy, [Tool(spec("look", word="string"), broken)])
    assert policy.turns == 1


def test_nothing_of_an_episode_is_traced_to_anybody():
    """With OPENAI_API_KEY set, the library would upload prompts, calls and results."""
    told: list[str] = []

    class Tracer(TracingProcessor):
        def on_trace_start(self, trace: Any) -> None:
            told.append("a trace")

        def on_span_start(self, span: Any) -> None:
            told.append("a span")

        on_trace_end = on_span_end = shutdown = force_flush = lambda *_: None

    add_trace_processor(Tracer())
    play(ScriptedPolicy(calls("look", word="a"), says("c")))
    assert told == []


LEAVES = st.none() | st.text() | st.integers()
JSON_VALUES: Any = st.recursive(LEAVES, lambda part: st.dictionaries(st.text(), part))


@settings(max_examples=15, deadline=None)
@given(arguments=st.text() | JSON_VALUES.map(json.dumps))
@example(arguments="[" * 9000)
@example(arguments='{"word": "\\ud800"}')
def test_no_arguments_make_the_episode_raise(arguments):
    episode = play(ScriptedPolicy(calls_text("look", arguments), says("c")))
    assert episode.stop_reason in {"answered", "bad_tool_call"}


@pytest.mark.parametrize("left", cases_of(__file__, "calls_left_as_text"))
def test_a_call_left_as_text_is_handed_back_in_whatever_form(left):
    answer = "CRP<10时不用function calling。</tool_call>"  # which is no call
    policy = ScriptedPolicy(says(left), says(answer))
    assert (play(policy).answer, policy.turns) == (answer, 2)
    assert play(ScriptedPolicy(says(left))).stop_reason == "bad_tool_call"
