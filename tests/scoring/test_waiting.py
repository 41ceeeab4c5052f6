"""Judges that are slow, busy or ask for a pause, in real seconds: waiting costs no score."""

import asyncio
import json

import pytest

from common.llm import retry
from common.settings import Settings
from scoring.case import Case
from scoring.judge import LLMJudge, RewardModelJudge
from sql_agent.judge_words import WORDS
from tests.scoring.judge_servers import LATE, SCORES, ask_llm, ask_reward_model, completion


@pytest.mark.system
@pytest.mark.parametrize("which", ["llm", "reward_model"])
def test_a_wish_to_wait_is_obeyed_by_all_and_costs_no_score(server, monkeypatch, caplog, which):
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.5)
    said = {"score": 0.5, **json.loads(completion(json.dumps(SCORES)))}
    server.replies = [(200, json.dumps(said))]
    server.busy, server.retry_after = 2.0, "0.1"  # more often than there are attempts
    timeout = Settings(_env_file=None).judge_timeout
    judge = RewardModelJudge(server.url, timeout)
    if which == "llm":
        judge = LLMJudge(WORDS, "openai/judge", f"{server.url}/v1", "k", timeout)

    async def all_at_once():
        cases = [Case(f"问题{number}？", f"回答{number}") for number in range(32)]
        return await asyncio.gather(*map(judge.judge, cases))

    verdicts = asyncio.run(all_at_once())
    assert sum(verdict.score is not None for verdict in verdicts) == 32
    assert sum(verdict.usage.calls for verdict in verdicts) == len(server.requests)
    assert caplog.text.count("asks to wait") == 1
    assert len(server.requests) < 32 * 5, "a few look whether they may, not 32 every 0.1 s"


def test_a_slow_judge_ends_within_its_budget(server):
    server.replies, server.delay = [(200, completion(json.dumps(SCORES)))], 10.0
    for ask in (ask_llm, ask_reward_model):
        assert ask(server, timeout=0.2) == LATE
        assert server.answered == 0, "the reply was not waited for"
