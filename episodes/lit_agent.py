"""The SQL agent as agent-lightning sees it: a row in, an episode, a reward out, and a note of what happened.

The only file here that imports agentlightning. The note is one annotation with the attribute `episode`, which is JSON:
{"terms": {name: number}, "total": number | null, "unscored": cause | null, "stop_reason": text,
"calls": replies of the policy, "counters": {name: number}, "measures": {name: number},
"canaries": {"judged": number, "accepted": number}}.
"""

from __future__ import annotations

import asyncio
import json
import logging
from functools import cached_property
from typing import Any

import agentlightning as agl

from common.settings import Settings, load_settings
from episodes.openai_agents import Endpoint, Episode, EpisodeError, run_episode
from scoring.canaries import Canaries, was_accepted
from scoring.judge import Judge, choose_judge
from scoring.rubric import Reward, Rubric
from sql_agent.judge_words import WORDS
from sql_agent.reward import case_of, rubric_from, score_episode
from sql_agent.task import Task
from tools.sql.query import QueryTool
from tools.sql.schema_tools import SchemaTools

logger = logging.getLogger(__name__)

RESOURCE = "main_llm"
SAMPLING = ("temperature", "top_p", "max_tokens")


class SqlAgent(agl.LitAgent[dict[str, Any]]):
    """Runs one rollout; validation is the same as training.

    Tool and judge are made in the process that runs rollouts, so the agent can be pickled or forked before.

    Args:
        max_turns: calls of the policy in one episode, the closing one included; default: the setting MAX_TURNS.
    """

    def __init__(self, max_turns: int | None = None) -> None:
        super().__init__()
        self.max_turns = max_turns or load_settings().max_turns

    @cached_property
    def settings(self) -> Settings:
        return load_settings()

    @cached_property
    def tool(self) -> QueryTool:
        return QueryTool(self.settings.database_url)

    @cached_property
    def schema(self) -> SchemaTools | None:
        return SchemaTools(self.tool) if self.settings.database_tools == "schema" else None

    @cached_property
    def judge(self) -> Judge:
        return choose_judge(self.settings, WORDS)

    @cached_property
    def rubric(self) -> Rubric:
        return rubric_from(self.settings)

    @cached_property
    def canaries(self) -> Canaries:
        return Canaries(self.settings.canary_share if "judge" in self.rubric.weights else 0.0)

    async def training_rollout_async(self, task: dict[str, Any], resources: Any, rollout: Any) -> float | None:
        """Run and score one episode; return the total reward, or None when the episode could not be scored."""
        endpoint, checked = endpoint_of(resources[RESOURCE], rollout), Task.from_row(task)
        # The canary needs nothing of the episode, so it is judged while the episode is played.
        canary = asyncio.create_task(self._judge_canary(checked))
        try:
            episode, reward = await self._play(checked, endpoint)
            record = record_of(episode, reward, await canary)
        finally:
            canary.cancel()
        agl.emit_annotation({"episode": json.dumps(record, ensure_ascii=False)})
        return reward.total

    async def validation_rollout_async(self, task: dict[str, Any], resources: Any, rollout: Any) -> float | None:
        """The same as training: what is measured is what is trained."""
        return await self.training_rollout_async(task, resources, rollout)

    async def _judge_canary(self, task: Task) -> dict[str, int]:
        """How many known-bad answers to this question were judged and accepted; none judged when it is not its turn."""
        case = self.canaries.draw(case_of(task, Episode()))
        accepted = was_accepted(await self.judge.judge(case)) if case else None
        return {"judged": int(accepted is not None), "accepted": int(bool(accepted))}

    async def _play(self, task: Task, endpoint: Endpoint) -> tuple[Episode | None, Reward]:
        episode = None
        try:
            async with asyncio.timeout(self.settings.episode_timeout):
                episode = await run_episode(task.question, endpoint, self.tool, self.max_turns, self.schema)
                return episode, await score_episode(task, episode, self.judge, self.rubric)
        except TimeoutError:
            cause, detail = "timeout", f"no end after {self.settings.episode_timeout:g} s"
        except EpisodeError as error:
            cause, detail = error.cause, str(error)
        logger.warning("episode of task %s is unscored: %s", task.id, detail)
        return episode, Reward(total=None, terms={}, unscored=cause)


def endpoint_of(llm: Any, rollout: Any) -> Endpoint:
    """Return where this rollout's policy is called, with the trainer's own sampling parameters."""
    base_url = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id)
    sampling = dict(llm.sampling_parameters)
    known = {name: sampling.pop(name) for name in SAMPLING if name in sampling}
    traced = not isinstance(llm, agl.ProxyLLM)  # the proxy records; without it, the tracer of this process
    return Endpoint(base_url, llm.model, llm.api_key, extra=sampling, traced=traced, **known)


def record_of(episode: Episode | None, reward: Reward, canaries: dict[str, int]) -> dict[str, Any]:
    """Return the episode annotation; an episode that broke off has the stop reason "failed" and no counts but zeros."""
    results = episode.tool_results if episode else []
    counters: dict[str, float] = {
        "turns": episode.turns if episode else 0,
        "sql_calls": len(results),
        "sql_ok": sum(result.ok for result in results),
        "answered": int(bool(episode and episode.answer)),
        **reward.counters,
    }
    stop_reason = episode.stop_reason if episode else "failed"
    return {
        "terms": reward.terms,
        "total": reward.total,
        "unscored": reward.unscored,
        "stop_reason": stop_reason,
        "calls": counters["turns"],
        "counters": counters,
        "measures": reward.measures,
        "canaries": canaries,
    }
