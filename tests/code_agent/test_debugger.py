"""Errors are explained by a table or a model; a model that fails leaves the episode unscored."""

import asyncio
import json

import pytest

from code_agent.actions import SAID
from code_agent.debugger import Debugger, explain
from code_agent.medagentgym.config import debugger_of
from common.command import UsageError
from episodes.outcomes import EpisodeError
from tests.common.llm_server import Fault

FRAME = 'Traceback (most recent call last):\n  File "<program 1>", line 2, in <module>\n'


def test_the_line_is_the_one_that_failed_and_not_its_caller():
    within = '  File "<program 1>", line 1, in half\n'
    told = explain("half = lambda n: n / 0\nhalf(3)", f"{FRAME}{within}ZeroDivisionError: division")
    assert told.endswith("line 1: half = lambda n: n / 0")


@pytest.mark.parametrize("ended", ["timeout", "memory"])
def test_a_program_that_was_stopped_has_an_explanation(ended):
    assert explain("x", SAID[ended]) != explain("x", "no error that the table has")


def test_a_line_of_any_length_is_explained_at_once():
    assert explain("x", "KeyError: " + "File " * 50_000).startswith("There is no column")


@pytest.mark.parametrize("section", [None, {"model_type": "vLLM"}])
def test_without_a_model_an_error_is_explained_offline(section):
    told = asyncio.run(debugger_of(section).debug("print(dob)", "KeyError: 'dob'"))
    assert told == explain("print(dob)", "KeyError: 'dob'")


def test_a_section_with_an_unknown_key_is_one_line():
    with pytest.raises(UsageError, match="max_new_token") as caught:
        debugger_of({"model_name": "stand-in", "max_new_token": 5})
    assert "\n" not in str(caught.value)


def test_a_model_explains_the_end_of_a_long_traceback_and_sees_no_answer(llm):
    llm.answer = lambda body: json.dumps({"explanation": "Too deep."})
    error = FRAME * 200 + "RecursionError: maximum recursion depth exceeded"
    debugger = Debugger("openai/stand-in", base_url=llm.url, api_key="none")
    assert asyncio.run(debugger.debug("f()", error)) == "Too deep."
    asked = json.dumps(llm.requests[0]["messages"])
    assert "RecursionError" in asked
    assert "do not know the right answer" in asked


def test_a_sections_limits_are_kept_and_a_model_that_fails_leaves_the_episode_unscored(
    llm, no_waiting
):
    llm.answer = lambda body: json.dumps({"explanation": "dob"})
    section = {"model_type": "vLLM", "model_name": "stand-in", "base_url": llm.url}
    section |= {"max_new_tokens": 77, "temperature": 0.5, "n_retry": 1}
    assert asyncio.run(debugger_of(section).debug("x", "y")) == "dob"
    sent = llm.requests[0]
    assert (sent["max_tokens"], sent["temperature"]) == (77, 0.5)
    llm.faults = [Fault(429)] * 9
    with pytest.raises(EpisodeError, match="debugger_failed"):
        asyncio.run(debugger_of(section).debug("x", "y"))
    assert len(llm.faults) == 7
