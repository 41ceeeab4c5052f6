"""The judges behind HTTP, against a real server: good replies, and every way to fail."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from common.llm.client import Usage
from common.llm.errors import LLMError
from common.settings import Settings
from scoring import remote
from scoring.case import Case, Verdict
from scoring.judge import LLMJudge, RewardModelJudge, choose_judge, why_unusable
from scoring.llm_judge import MAX_TOKENS
from scoring.remote import FAILURES, RemoteJudge
from scoring.reward_model_judge import LogisticScale
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.judge_words import WORDS
from tests.corpora import cases_of
from tests.judges import Fixed
from tests.messages import missing
from tests.scoring.judge_servers import (
    CASE,
    FAILED,
    NONSENSE,
    SCORES,
    TOTAL,
    ask_llm,
    ask_reward_model,
    completion,
)


def test_the_llm_judge_sends_the_case_and_weighs_the_scores(server):
    server.replies = [(200, completion(json.dumps(SCORES)))]
    verdict = ask_llm(server)
    assert verdict.score == pytest.approx(TOTAL)
    assert verdict.parts == SCORES
    assert verdict.cause is None
    ((path, headers, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer key-canary"
    assert body["temperature"] == 0
    assert body["max_tokens"] == MAX_TOKENS, "without a bound a judge that does not end is paid for"
    assert body["model"] == "judge"
    form = body["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["required"] == list(WORDS.weights)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_both_judges_try_again_after_a_passing_failure(server, status):
    said = [completion("not json"), completion(json.dumps(SCORES))]
    server.replies = [(status, "{}"), *((200, text) for text in said)]
    assert ask_llm(server).score == pytest.approx(TOTAL)
    assert len(server.requests) == 3
    server.replies = [(status, "{}"), (200, '{"score": 0.25}')]
    assert ask_reward_model(server) == Verdict(0.25, {"reward_model": 0.25})


@pytest.mark.parametrize(("status", "said"), cases_of(__file__, "refusals"))
def test_a_refused_key_or_empty_account_is_not_tried_again_and_not_logged(
    server, caplog, status, said
):
    server.replies = [(status, json.dumps({"error": f"{said}, of key-canary"}))]
    assert ask_llm(server) == FAILED
    assert "***" in caplog.text
    assert "key-canary" not in caplog.text
    assert len(server.requests) == 1
    server.requests.clear()
    assert ask_reward_model(server) == FAILED
    assert len(server.requests) == 1


def test_a_filtered_reply_is_not_asked_for_again_and_named(server, caplog):
    """It says nothing about the judge, which goes on with the other answers."""
    server.replies = [(200, completion("", "content_filter"))]
    judge = LLMJudge(WORDS, "openai/judge", f"{server.url}/v1", "key", 20.0)
    for number in range(FAILURES):
        assert asyncio.run(judge.judge(replace(CASE, answer=f"密封{number}"))) == FAILED
    assert len(server.requests) == FAILURES
    assert "content_filter" in caplog.text
    assert judge.breaker.allows()
    server.replies = [(200, completion(json.dumps(SCORES)))]
    assert asyncio.run(judge.judge(CASE)).score == pytest.approx(TOTAL)


@pytest.mark.parametrize("body", cases_of(__file__, "replies_without_a_score"))
def test_a_reward_model_reply_that_is_no_score_is_not_scored(server, body):
    server.replies = [(200, body)]
    assert ask_reward_model(server) == NONSENSE


def test_an_answer_that_says_nothing_is_zero_without_a_call(server):
    nothing = Verdict(0.0, {"degenerate": 1.0})
    for answer in ("", "：", "\u200b"):
        case = Case(CASE.question, answer)
        assert ask_llm(server, case=case) == ask_reward_model(server, case=case) == nothing
    assert server.requests == []


def test_the_settings_choose_the_judge(tmp_path):
    def choose(**values):
        return choose_judge(Settings(_env_file=None, **values), WORDS, ReferenceJudge())

    told = {"teacher_model": "openai/m", "teacher_api_key": "k", "judge_timeout": 7}
    teacher = choose(**told, teacher_base_url="http://t")
    assert isinstance(teacher, LLMJudge)
    client, provider = teacher.client, teacher.client.chat_model.provider
    assert client.model == "openai/m"
    assert client.patience.budget == 7
    assert provider.base_url == "http://t"
    assert provider.api_key == "k"
    both = choose(teacher_model="openai/m", reward_model_url="http://r")
    assert isinstance(both, LLMJudge)
    assert both.client.chat_model.provider.api_key is None
    reward_model = choose(reward_model_url="http://r", judge_timeout=7)
    assert isinstance(reward_model, RewardModelJudge)
    assert (reward_model.url, reward_model.patience.budget) == ("http://r", 7)
    path, scale = tmp_path / "scale.json", LogisticScale(center=0.5, scale=2.0)
    path.write_text(scale.model_dump_json())
    assert choose(reward_model_url="http://r", reward_scale=path).scale == scale
    assert isinstance(choose(), ReferenceJudge)


def test_the_same_case_is_asked_once_and_one_with_anything_else_beside_it_again(server):
    server.replies = [(200, '{"score": 0.5}'), (200, '{"score": 0.75}')]
    judge = RewardModelJudge(server.url, 20.0)
    others = [replace(CASE, **other) for other in ({"reference": "别的"}, {"gold": {}})]

    async def all_of_them():
        return [await judge.judge(case) for case in (CASE, CASE, *others)]

    first, again, *rest = asyncio.run(all_of_them())
    assert first == again == Verdict(0.5, {"reward_model": 0.5})
    assert [verdict.score for verdict in rest] == [0.75, 0.75]
    assert (first.usage.calls, again.usage.calls, again.usage.cached) == (1, 0, 1)
    assert len(server.requests) == 3
    assert server.requests[0][2] == {"prompt": CASE.question, "response": CASE.answer}


def test_a_scale_maps_raw_scores_and_refuses_none_that_is_finite(server):
    judge = RewardModelJudge(server.url, 20.0, LogisticScale(center=1.0, scale=2.0))
    server.replies = [(200, '{"score": 1.0}')]
    assert asyncio.run(judge.judge(CASE)).score == 0.5
    server.replies = [(200, '{"score": 3.0}')]
    found = asyncio.run(judge.judge(Case("q？", "one scale above"))).score
    assert found == pytest.approx(1 / (1 + math.exp(-1)))
    server.replies = [(200, '{"score": -400}')]
    assert asyncio.run(judge.judge(Case("q？", "a"))).score == pytest.approx(0.0)
    server.replies = [(200, '{"score": Infinity}')]
    assert asyncio.run(judge.judge(Case("q？", "b"))) == NONSENSE


def test_a_judge_that_is_down_is_described(server):
    assert asyncio.run(why_unusable(ReferenceJudge(), WORDS.known_case)) is None
    server.replies = [(200, '{"score": 0.5}')]
    assert asyncio.run(why_unusable(RewardModelJudge(server.url, 20.0), WORDS.known_case)) is None
    server.replies = [(401, "wrong key")]
    seen = asyncio.run(why_unusable(RewardModelJudge(server.url, 20.0), WORDS.known_case))
    assert not missing(str(seen), "reward_model", "judge_failed", server.url, 401, "wrong key")
    silent = Fixed(Verdict(None, cause="judge_timeout"))
    seen = asyncio.run(why_unusable(silent, WORDS.known_case))
    assert not missing(str(seen), "fixed", "judge_timeout")
    assert silent.asked == [WORDS.known_case]


class Moody(RemoteJudge):
    """Gives every call another score."""

    name = "moody"

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.calls, self.fails, self.go_on = 0, fails, asyncio.Event()

    async def _ask(self, case: Case, spent: Usage) -> Verdict:
        self.calls += 1
        spent.calls += 1
        await self.go_on.wait()
        if self.fails:
            raise LLMError("failed", "it is down")
        return Verdict(self.calls / 10)


@pytest.mark.parametrize("fails", [False, True])
async def test_equal_answers_at_the_same_time_share_one_call(fails):
    """An advantage made of a judge's moods would be trained."""
    judge = Moody(fails)
    asked = [asyncio.create_task(judge.judge(CASE)) for _ in range(8)]
    await asyncio.sleep(0)
    asked[0].cancel()  # its episode ran out of time; the others wait on
    judge.go_on.set()
    verdicts = await asyncio.gather(*asked[1:])
    assert judge.calls == 1
    assert {verdict.score for verdict in verdicts} == {None if fails else 0.1}
    assert {verdict.cause for verdict in verdicts} == {"judge_failed" if fails else None}
    assert sum(verdict.usage.calls for verdict in verdicts) == 0


LATE = LLMError("late", "timeout")
GONE = ConnectionError("gone")


class Scripted(RemoteJudge):
    """Raises what a list holds, and answers where it holds None."""

    name = "scripted"

    def __init__(self, *errors: BaseException | None) -> None:
        super().__init__()
        self.errors = list(errors)

    async def _ask(self, case: Case, spent: Usage) -> Verdict:
        error = self.errors.pop(0)
        if error is not None:
            raise error
        return Verdict(0.5)

    def causes(self, count: int) -> list[str | None]:
        async def play() -> list[str | None]:
            cases = [Case("问题？", f"回答{number}") for number in range(count)]
            return [(await self.judge(case)).cause for case in cases]

        return asyncio.run(play())


ODD = LLMError("odd", "malformed"), "judge_malformed"
FILTERED = LLMError("a content filter", "refused", 400), "judge_failed"


@pytest.mark.parametrize(("between", "cause"), [(None, None), ODD, FILTERED])
def test_an_answer_of_any_kind_shows_that_the_judge_is_there(between, cause):
    """Left alone for odd answers, a judge that works would leave episodes unscored."""
    judge = Scripted(*[LATE] * (FAILURES - 1), between, *[LATE] * FAILURES)
    late = ["judge_timeout"] * (FAILURES - 1)
    assert judge.causes(2 * FAILURES - 1) == [*late, cause, *late]


def test_a_judge_that_fails_is_left_alone_but_for_one_call_every_thirty_seconds(monkeypatch):
    def later(seconds: float) -> None:
        monkeypatch.setattr(remote, "monotonic", lambda: seconds)

    later(0.0)
    judge = Scripted(*[GONE] * (FAILURES + 1), asyncio.CancelledError(), None, None)
    failed = ["judge_failed"] * FAILURES
    assert judge.causes(FAILURES + 2) == [*failed, "judge_unavailable", "judge_unavailable"]
    later(31.0)
    assert judge.causes(2) == ["judge_failed", "judge_unavailable"]
    later(62.0)
    with pytest.raises(asyncio.CancelledError):
        judge.causes(1)
    later(93.0)
    assert judge.causes(2) == [None, None], "a call that was cancelled does not end the asking"


def test_a_judge_that_asks_for_a_pause_is_not_left_alone():
    paused = LLMError("busy", "timeout", retry_after=1.0)
    count = FAILURES + 2
    assert Scripted(*[paused] * count).causes(count) == ["judge_timeout"] * count
