"""Any agent as agent-lightning sees it: a row in, an episode, a reward out, and an annotation.

The only file outside training that imports agentlightning.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from functools import cached_property
from random import Random
from typing import Any

import agentlightning as agl

from common.proxies import ask_directly
from common.settings import Settings, load_settings, reveal
from episodes.agent import Agent, Environment, Options, accepted_from
from episodes.episode import Scored, Task
from episodes.joint import environment_of
from episodes.outcomes import EpisodeError
from episodes.play_and_score import own_code, play, score
from episodes.policy import ChatPolicy, Endpoint
from episodes.record import as_json, record_of
from episodes.turns import turns_of, with_turns

logger = logging.getLogger(__name__)

RESOURCE = "main_llm"
SHOWN = 300
MOST_MESSAGES = 50_000  # characters; the tokens of the same episode are several times that
SAMPLING = ("temperature", "top_p", "max_tokens")


class EpisodeAgent(agl.LitAgent[dict[str, Any]]):
    """Runs one rollout, in training and validation alike.

    options: own flags and addresses of services. turns: fewest and most calls of the policy.
    """

    def __init__(
        self, agent: Agent, options: Options | None = None, turns: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.agent = agent
        self.options = dict(options or {})
        self.turns = turns

    @cached_property
    def settings(self) -> Settings:
        return with_turns(self.agent, load_settings(), self.turns)

    @cached_property
    def environment(self) -> Environment:
        return self.agent.open(self.settings, self.options)

    async def training_rollout_async(
        self, task: dict[str, Any], resources: Any, rollout: Any
    ) -> float | None:
        """Run and score one episode. Return the total reward, None where it could not be scored."""
        endpoint = endpoint_of(resources[RESOURCE], rollout, reveal(self.settings.agl_token))
        checked = self.agent.task(task, self.settings)
        environment = environment_of(self.environment, checked)
        policy = ChatPolicy(endpoint, turns_of(checked, self.settings))
        # The canary needs nothing of the episode, so it is judged while the episode is played.
        canary = asyncio.create_task(self._judge_canary(environment, checked))
        try:
            episode = environment.play(checked, policy)
            scored = await play(
                environment, checked, episode, policy, self.settings.episode_timeout
            )
            with own_code(environment, "record", f"task {checked.id}"):
                own = environment.record(checked, scored.episode)
            note = note_of(scored, own, await canary)
        finally:
            canary.cancel()
        if scored.detail:
            logger.warning("episode of task %s is unscored: %s", checked.id, scored.detail)
        agl.emit_annotation({"episode": json.dumps(note, ensure_ascii=False)})
        return scored.reward.total

    validation_rollout_async = training_rollout_async  # what is measured is what is trained

    async def _judge_canary(self, environment: Environment, task: Task) -> dict[str, int]:
        # Asked in any case, because the environment may remember the task
        random = Random()
        bad = environment.dishonest(task, random)
        if not bad or random.random() >= self.settings.canary_share:
            return {"judged": 0, "accepted": 0}
        kind = random.choice(list(bad))
        try:
            reward = await score(environment, task, bad[kind])
        except EpisodeError as error:  # the judge's fault, and none of the episode beside it
            logger.warning("a canary of task %s is not judged: %s", task.id, error)
            return {"judged": 0, "accepted": 0}
        return {
            "judged": int(reward.score is not None),
            "accepted": int(reward.worth >= accepted_from(kind)),
        }


def endpoint_of(llm: Any, rollout: Any, token: str | None = None) -> Endpoint:
    """Return where a rollout's policy is called, with the trainer's sampling and the token."""
    base_url = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id)
    ask_directly(base_url)
    sampling = dict(llm.sampling_parameters)
    known = {name: sampling.pop(name) for name in SAMPLING if name in sampling}
    key = llm.api_key or token
    return Endpoint(base_url, llm.model, key, extra=sampling, **known)


def note_of(scored: Scored, own: Mapping[str, Any], canaries: dict[str, int]) -> dict[str, Any]:
    """Return the episode annotation. The trainer keeps the messages of a few."""
    episode = scored.episode
    record = record_of(scored, own)
    record.question = record.question[:SHOWN]
    record.reference = record.reference and record.reference[:SHOWN]
    record.answer = record.answer and record.answer[:SHOWN]
    counted = {"turns": episode.turns, "answered": int(bool(episode.answer))}
    record.counters = {**counted, **scored.reward.counters}
    record.canaries = canaries
    if len(as_json([episode.messages, own])) > MOST_MESSAGES:
        record.own = {}
        record.transcript = None
    return record.line()
