"""The tool calls of Inspect's model reach the agent with the arguments that the endpoint gave."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.system, pytest.mark.nightly]

# Calls with one id, without ids, and with an object, in Inspect's own objects
PAIRED = """
import json
from inspect_ai.event import ModelEvent
from inspect_ai.log._transcript import Transcript, init_transcript
from inspect_ai.model import GenerateConfig, ModelCall, ModelOutput
from medical_agents.for_inspect import completion_of
from openai.types.chat import ChatCompletion

texts = [json.dumps({"sql": f"SELECT {number}"}) for number in (1, 2)]
functions = [{"name": "query", "arguments": text} for text in texts]
same = [{"id": "x", "function": function} for function in functions]
none = [{"function": function} for function in functions]
whole = [{"id": "x", "function": {"name": "query", "arguments": {"sql": "SELECT 1"}}}]
found = []
for calls in (same, none, whole):
    transcript = Transcript()
    init_transcript(transcript)
    answer = ModelCall(request={}, response={"choices": [{"message": {"tool_calls": calls}}]})
    event = ModelEvent(
        model="m",
        input=[],
        tools=[],
        tool_choice="auto",
        config=GenerateConfig(),
        output=ModelOutput.from_content("m", "x"),
        call=answer,
    )
    transcript._event(event)
    empty = {"name": "query", "arguments": "{}"}
    read = [{"id": "x", "type": "function", "function": dict(empty)} for _ in calls]
    message = {"role": "assistant", "content": None, "tool_calls": read}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    reply = ChatCompletion.model_construct(choices=[choice])
    read = completion_of(reply)["choices"][0]["message"]["tool_calls"]
    found.append([call["function"]["arguments"] for call in read])
print(json.dumps(found))
"""


def test_inspect_hands_on_each_calls_own_arguments(inspect: Path) -> None:
    done = subprocess.run([inspect / "python", "-c", PAIRED], check=True, capture_output=True)
    given = [json.dumps({"sql": f"SELECT {number}"}) for number in (1, 2)]
    assert json.loads(done.stdout) == [given, given, [{"sql": "SELECT 1"}]]
