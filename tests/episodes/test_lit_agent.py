"""The LitAgent in agent-lightning's own runner, with its store and tracer, against a scripted server."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import agentlightning as agl

from common.settings import load_settings
from episodes.lit_agent import SqlAgent, endpoint_of

ROW = {
    "id": "r1",
    "question": "朵莎洛片怎么保存？",
    "answer": "朵莎洛片的贮藏方法：密封，20℃以下干燥处保存",
    "task_type": "drug_field",
    "structured_gt": json.dumps({"columns": ["storage"], "rows": [["密封，20℃以下干燥处保存"]]}),
}
SQL = json.dumps({"sql": "SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"}, ensure_ascii=False)
CALL = {
    "message": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "", "type": "function", "function": {"name": "query_database_by_sql", "arguments": SQL}}],
    },
    "finish_reason": "tool_calls",
}
ANSWER = {"message": {"role": "assistant", "content": ROW["answer"]}, "finish_reason": "stop"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[None]:
    """Settings of these tests: the small database, no judge but the offline one."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    for name in ("TEACHER_MODEL", "REWARD_MODEL_URL", "SECOND_JUDGE_MODEL", "REWARD_TERMS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CANARY_SHARE", "0")
    load_settings.cache_clear()
    yield
    load_settings.cache_clear()


def roll(base_url: str, row: dict[str, Any] | None = None) -> tuple[float | None, dict[str, Any]]:
    """Run one rollout in a real runner; return its final reward and its episode annotation."""

    async def run() -> list[Any]:
        store = agl.InMemoryLightningStore()
        runner = agl.LitAgentRunner[Any](agl.OtelTracer())
        llm = agl.LLM(endpoint=base_url, model="tiny", sampling_parameters={"temperature": 1.0, "top_k": -1})
        with runner.run_context(agent=SqlAgent(max_turns=3), store=store):
            rollout = await runner.step(row or ROW, resources={"main_llm": llm}, mode="train")
        return list(await store.query_spans(rollout.rollout_id))

    spans = asyncio.run(run())
    (annotation,) = [span.attributes["episode"] for span in spans if "episode" in span.attributes]
    return agl.find_final_reward(spans), json.loads(annotation)


def test_a_good_episode_earns_everything(llm: Any) -> None:
    llm.script(CALL, ANSWER)
    reward, record = roll(llm.base_url)
    assert reward == pytest.approx(1.1)
    assert record["counters"].pop("judge_seconds") > 0
    assert record.pop("measures")
    assert record.pop("canaries") == {"judged": 0, "accepted": 0}
    assert record == {
        "terms": {"rule": pytest.approx(0.1), "judge": pytest.approx(1.0)},
        "total": pytest.approx(1.1),
        "unscored": None,
        "stop_reason": "answered",
        "calls": 2,
        "counters": {
            "turns": 2,
            "sql_calls": 1,
            "sql_ok": 1,
            "answered": 1,
            "judge_calls": 0,
            "judge_cached": 0,
            "judge_cost_usd": 0,
            "degenerate": 0,
            "second_judged": 0,
        },
    }


def test_a_canary_is_judged_beside_the_episode(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_SHARE", "1")
    load_settings.cache_clear()
    llm.script(CALL, ANSWER)
    reward, record = roll(llm.base_url)
    assert reward == pytest.approx(1.1)
    assert record["canaries"] == {"judged": 1, "accepted": 0}


def test_a_broken_episode_still_reports_its_canary(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_SHARE", "1")
    load_settings.cache_clear()
    llm.status = 500
    assert roll(llm.base_url)[1]["canaries"] == {"judged": 1, "accepted": 0}


def test_the_terms_are_a_setting(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARD_TERMS", "execution=0.5, turns=0.25")
    load_settings.cache_clear()
    llm.script(CALL, ANSWER)
    reward, record = roll(llm.base_url)
    assert reward == pytest.approx(0.75)
    assert record["terms"] == {"execution": 0.5, "turns": 0.25}
    assert "judge_seconds" not in record["counters"]


def test_sampling_parameters_come_from_the_resource(llm: Any) -> None:
    llm.script(ANSWER)
    roll(llm.base_url)
    assert (llm.requests[0]["temperature"], llm.requests[0]["top_k"]) == (1.0, -1)


def test_a_failing_endpoint_leaves_the_episode_unscored(llm: Any) -> None:
    llm.status = 500
    reward, record = roll(llm.base_url)
    assert reward is None
    assert (record["total"], record["unscored"], record["stop_reason"]) == (None, "endpoint_error", "failed")


def test_a_database_that_is_gone_leaves_the_episode_unscored(
    llm: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/gone.db")
    load_settings.cache_clear()
    llm.script(CALL, ANSWER)
    assert roll(llm.base_url)[1]["unscored"] == "database_error"


def test_an_endless_episode_ends_as_a_timeout(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPISODE_TIMEOUT", "0.3")
    load_settings.cache_clear()
    llm.script(ANSWER)
    llm.delay = 2.0
    reward, record = roll(llm.base_url)
    assert (reward, record["unscored"]) == (None, "timeout")


def test_a_row_without_reference_is_unscored(llm: Any) -> None:
    llm.script(CALL, ANSWER)
    reward, record = roll(llm.base_url, {"id": "r2", "question": "朵莎洛片怎么保存？", "answer": ""})
    assert (reward, record["unscored"]) == (None, "no_reference")
    assert record["terms"] == {"rule": pytest.approx(0.1)}


def test_the_agent_survives_pickling(llm: Any) -> None:
    agent = SqlAgent(max_turns=2)
    assert agent.tool is agent.tool
    assert pickle.loads(pickle.dumps(agent)).max_turns == 2


def test_the_proxys_address_names_the_rollout() -> None:
    llm = agl.ProxyLLM(
        endpoint="http://127.0.0.1:1/v1", model="tiny", sampling_parameters={"max_tokens": 5, "top_k": -1}
    )
    rollout = SimpleNamespace(rollout_id="ro-1", attempt=SimpleNamespace(attempt_id="at-1"))
    endpoint = endpoint_of(llm, rollout)
    assert endpoint.base_url == "http://127.0.0.1:1/rollout/ro-1/attempt/at-1/v1"
    assert (endpoint.max_tokens, endpoint.extra) == (5, {"top_k": -1})
    assert not endpoint.traced
    llm = agl.LLM(endpoint="http://127.0.0.1:1/v1", model="tiny", sampling_parameters={})
    assert endpoint_of(llm, rollout).traced
