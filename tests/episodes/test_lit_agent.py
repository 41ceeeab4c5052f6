"""Any agent in agent-lightning's own runner, with its store and tracer, against a scripted server."""

import asyncio
import json
import os
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import agentlightning as agl

from common.settings import load_settings
from episodes import registry
from episodes.agent import Agent
from episodes.lit_agent import EpisodeAgent
from episodes.outcomes import EpisodeError
from sql_agent.environment import SqlEnvironment
from sql_agent.intake.question_files import COLUMNS
from tests.episodes.guessing_agent import GuessingAgent
from tests.episodes.scripted import asks, says

STORAGE = "密封，20℃以下干燥处保存"
ROW = dict.fromkeys(COLUMNS, "") | {"id": "r1", "task_type": "drug_field"}
ROW |= {"question": "朵莎洛片怎么保存？", "answer": f"朵莎洛片的贮藏方法：{STORAGE}"}
ROW["structured_gt"] = json.dumps({"columns": ["storage"], "rows": [[STORAGE]]})
CALL = asks("SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'")
ANSWER = says(ROW["answer"])


@pytest.fixture(autouse=True)
def environment(monkeypatch, database_url):
    """Settings of these tests: the small database, no judge but the offline one."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    for name in ("TEACHER_MODEL", "REWARD_MODEL_URL", "SECOND_JUDGE_MODEL", "REWARD_TERMS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CANARY_SHARE", "0")


def setting(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    load_settings.cache_clear()


def roll(
    base_url: str, row: dict[str, Any] = ROW, agent: Agent | None = None, **options: Any
) -> tuple[float | None, dict[str, Any]]:
    """Run one rollout in a real runner; return its final reward and its episode annotation."""

    async def run() -> list[Any]:
        store = agl.InMemoryLightningStore()
        runner = agl.LitAgentRunner[Any](agl.OtelTracer())
        sampling = {"temperature": 1.0, "top_k": -1}
        llm = agl.LLM(endpoint=base_url, model="tiny", sampling_parameters=sampling)
        playing = EpisodeAgent(agent or registry.get("sql"), options, turns=(3, 3))
        with runner.run_context(agent=playing, store=store):
            rollout = await runner.step(row, resources={"main_llm": llm}, mode="train")
        return list(await store.query_spans(rollout.rollout_id))

    spans = asyncio.run(run())
    (annotation,) = [span.attributes["episode"] for span in spans if "episode" in span.attributes]
    return agl.find_final_reward(spans), json.loads(annotation)


def test_the_policy_is_shown_the_run_s_token(llm, monkeypatch):
    """Without a proxy between them vLLM would refuse every call."""
    setting(monkeypatch, AGL_TOKEN="of-the-run")
    llm.script(CALL, ANSWER)
    roll(llm.base_url)
    assert llm.keys == {"Bearer of-the-run"}


def test_a_good_episode_earns_everything_and_the_books_are_told_what_happened(llm):
    llm.script(CALL, ANSWER)
    reward, note = roll(llm.base_url)
    assert reward == note["reward"] == pytest.approx(1.1)
    assert note["terms"] == {"rule": pytest.approx(0.1), "judge": pytest.approx(1.0)}
    assert (note["score"], note["unscored"]) == (pytest.approx(1.0), None)
    assert (note["stop_reason"], note["turns"], note["sample"]) == ("answered", 2, 0)
    assert (llm.requests[0]["temperature"], llm.requests[0]["top_k"]) == (1.0, -1)
    assert note["facts"]["execution_accuracy"] == note["facts"]["queried"] == 1
    assert note["facts"]["evidence_recall"] is None, "the row has no evidence"
    assert note["queries"][0]["ok"], "the agent's own values stand beside the others"
    roles = [said["role"] for said in note["transcript"]]
    assert roles[-3:] == ["assistant", "tool", "assistant"]
    counted = ("turns", "sql_calls", "sql_ok", "answered", "degenerate", "judge_calls")
    assert [note["counters"][name] for name in counted] == [2, 1, 1, 1, 0, 0]


def test_a_canary_is_judged_beside_the_episode_also_a_broken_one(llm, monkeypatch):
    setting(monkeypatch, CANARY_SHARE="1")
    llm.script(CALL, ANSWER)
    reward, note = roll(llm.base_url)
    assert (reward, note["canaries"]) == (pytest.approx(1.1), {"judged": 1, "accepted": 0})
    llm.status = 500
    assert roll(llm.base_url)[1]["canaries"] == {"judged": 1, "accepted": 0}


def test_a_canary_that_cannot_be_judged_leaves_its_episode_its_reward(llm, monkeypatch):
    setting(monkeypatch, CANARY_SHARE="1")
    llm.script(CALL, ANSWER)
    score = SqlEnvironment.score

    async def fails_for_another_answer(environment: Any, task: Any, episode: Any) -> Any:
        if episode.answer != ROW["answer"]:
            raise EpisodeError("judge_failed", "no judge")
        return await score(environment, task, episode)

    monkeypatch.setattr(SqlEnvironment, "score", fails_for_another_answer)
    reward, note = roll(llm.base_url)
    assert (reward, note["canaries"]) == (pytest.approx(1.1), {"judged": 0, "accepted": 0})


def test_a_fooled_reward_accepts_its_canary(llm, monkeypatch):
    setting(monkeypatch, CANARY_SHARE="1")
    for word, accepted in (("salt", 0), ("wrong", 1)):
        llm.script(says(word))
        _, note = roll(llm.base_url, {"id": "g", "word": word}, GuessingAgent())
        assert note["canaries"] == {"judged": 1, "accepted": accepted}


def test_a_failing_endpoint_leaves_the_episode_unscored_and_unmeasured(llm):
    llm.status = 500
    reward, note = roll(llm.base_url)
    assert reward is note["reward"] is None
    assert (note["unscored"], note["stop_reason"]) == ("endpoint_error", "failed")
    assert (note["turns"], note["measures"]) == (0, {})


@pytest.mark.parametrize(("row", "turns"), [({}, 3), ({"turns": 2}, 2)])
def test_a_tasks_own_budget_comes_first_and_options_reach_the_environment(llm, row, turns):
    llm.script(says("sugar"))
    task = {"id": "g", "word": "salt", **row}
    reward, note = roll(llm.base_url, task, GuessingAgent(), hint="colder")
    assert (reward, note["stop_reason"], note["turns"]) == (0.0, "max_turns", turns)
    assert note["facts"] == {"guesses": turns, "silent": 0}
    assert llm.requests[1]["messages"][-1]["content"] == "no; colder"
