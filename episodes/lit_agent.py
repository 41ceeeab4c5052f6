"""Any agent as agent-lightning sees it: a row in, an episode, a reward out, and a note of what
happened.

The only file outside training that imports agentlightning. The note is one annotation with the
attribute `episode`, which is JSON: {"terms": {name: number}, "total": number | null, "unscored":
cause | null, "stop_reason": text, "calls": replies of the policy, "counters": {name: number},
"measures": {name: number}, "canaries": {"judged": number, "accepted": number}, "question": text,
"answer": text}. The texts are for people: their first SHOWN characters.
"""

from __future__ import annotations

import asyncio
import json
import logging
from functools import cached_property
from random import Random
from typing import Any

import agentlightning as agl

from common.llm import reveal
from common.proxies import ask_directly
from common.settings import Settings, load_settings
from episodes.agent import ACCEPTED_FROM, Agent, Environment, Options
from episodes.episode import Scored, Task
from episodes.play import play
from episodes.policy import ChatPolicy, Endpoint
from episodes.turns import with_turns

logger = logging.getLogger(__name__)

RESOURCE = "main_llm"
SHOWN = 300
SAMPLING = ("temperature", "top_p", "max_tokens")


class EpisodeAgent(agl.LitAgent[dict[str, Any]]):
    """Runs one rollout; validation is the same as training. The environment is made where rollouts
    run, not before.

    options: the agent's own flags and the addresses of its services. turns: the fewest and the most
    calls of the policy in one episode, the closing one included; default: as the settings say.
    """

    def __init__(
        self, agent: Agent, options: Options | None = None, turns: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.agent, self.options, self.turns = agent, dict(options or {}), turns

    @cached_property
    def settings(self) -> Settings:
        return with_turns(self.agent, load_settings(), self.turns)

    @cached_property
    def environment(self) -> Environment:
        return self.agent.open(self.settings, self.options)

    @cached_property
    def random(self) -> Random:
        return Random()

    async def training_rollout_async(
        self, task: dict[str, Any], resources: Any, rollout: Any
    ) -> float | None:
        """Run and score one episode; return the total reward, None where it could not be scored."""
        endpoint = endpoint_of(resources[RESOURCE], rollout, reveal(self.settings.agl_token))
        checked = self.agent.task(task, self.settings)
        policy = ChatPolicy(endpoint, checked.max_turns or self.settings.max_turns)
        # The canary needs nothing of the episode, so it is judged while the episode is played.
        canary = asyncio.create_task(self._judge_canary(checked))
        try:
            episode = self.environment.play(checked, policy)
            scored = await play(
                self.environment, checked, episode, policy, self.settings.episode_timeout
            )
            note = note_of(
                scored, dict(self.environment.facts(checked, scored.episode)), await canary
            )
        finally:
            canary.cancel()
        if scored.detail:
            logger.warning("episode of task %s is unscored: %s", checked.id, scored.detail)
        agl.emit_annotation({"episode": json.dumps(note, ensure_ascii=False)})
        return scored.reward.total

    validation_rollout_async = training_rollout_async  # what is measured is what is trained

    async def _judge_canary(self, task: Task) -> dict[str, int]:
        """How many known-bad episodes of this task were scored and accepted; none when it is not
        its turn.
        """
        bad = self.environment.dishonest(
            task, self.random
        )  # also where none is kept: it may remember the task
        if not bad or self.random.random() >= self.settings.canary_share:
            return {"judged": 0, "accepted": 0}
        kind = self.random.choice(list(bad))
        bound = self.environment.accepted_from.get(kind, ACCEPTED_FROM)
        reward = await self.environment.score(task, bad[kind])
        return {"judged": int(reward.score is not None), "accepted": int(reward.worth >= bound)}


def endpoint_of(llm: Any, rollout: Any, token: str | None = None) -> Endpoint:
    """Return where this rollout's policy is called, with the trainer's own sampling parameters; the
    run's token.
    """
    base_url = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id)
    ask_directly(base_url)
    sampling = dict(llm.sampling_parameters)
    known = {name: sampling.pop(name) for name in SAMPLING if name in sampling}
    traced = not isinstance(
        llm, agl.ProxyLLM
    )  # the proxy records; without it, the tracer of this process
    key = llm.api_key or token
    return Endpoint(base_url, llm.model, key, extra=sampling, traced=traced, **known)


def note_of(
    scored: Scored, facts: dict[str, float | None], canaries: dict[str, int]
) -> dict[str, Any]:
    """Return the episode annotation; facts of a scored episode are measures like those the reward
    brings.
    """
    episode, reward = scored.episode, scored.reward
    known = {
        name: value
        for name, value in facts.items()
        if value is not None and reward.total is not None
    }
    return {
        "terms": reward.terms,
        "total": reward.total,
        "unscored": reward.unscored,
        "stop_reason": episode.stop_reason,
        "calls": episode.turns,
        "counters": {
            "turns": episode.turns,
            "answered": int(bool(episode.answer)),
            **reward.counters,
        },
        "measures": {**known, **reward.measures},
        "canaries": canaries,
        "question": scored.task.question[:SHOWN],
        "answer": (episode.answer or "")[:SHOWN],
    }
