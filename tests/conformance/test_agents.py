"""What every agent keeps to: `episodes/conformance_checks.py` over every agent, the tests' own too.

An agent of another repository runs them by `python -m pytest -p episodes.conformance --agent NAME`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from common.settings import ROOT, Settings
from episodes import registry
from episodes.agent import Options
from episodes.episode import Episode, Message, Policy, Scored, Task, ToolSpec
from episodes.outcomes import EpisodeError
from episodes.play_and_score import play
from episodes.script import Script
from episodes.turns import turns_of, with_turns
from tests.digits_agent.agent import AGENT as DIGITS
from tests.digits_agent.agent import DigitsAgent, DigitsEnvironment

pytest.register_assert_rewrite("episodes.conformance_checks")
from episodes import conformance_checks  # noqa: E402 (after it is rewritten)
from episodes.conformance_checks import *  # noqa: E402, F403 (the tests themselves)

registry.register(DIGITS)
pytest.mark.system(conformance_checks.test_importing_an_agent_imports_nothing_heavy)


@pytest.fixture(scope="module", params=registry.names())
def agent(request):
    return registry.get(request.param)


DEAD_URL = "http://127.0.0.1:9"
UNREACHABLE = {
    "sql": {"reward_model_url": f"{DEAD_URL}/score"},
    "code": {"hospital": "/nowhere"},
    "digits": {"partner": "gone"},
}
for name, role in {"consultation": "patient", "diagnosis": "simulator"}.items():
    UNREACHABLE[name] = {
        "reward_model_url": f"{DEAD_URL}/score",
        role: "llm",
        f"{role}_model": "openai/none",
        f"{role}_base_url": f"{DEAD_URL}/v1",
    }


@pytest.fixture(scope="module")
def unreachable(agent):
    return UNREACHABLE[agent.name]


class CarelessEnvironment(DigitsEnvironment):
    """Takes the end of its partner for a policy that said nothing, which earns 0."""

    async def play(self, task: Task, policy: Policy) -> Episode:
        try:
            return await super().play(task, policy)
        except EpisodeError:
            return Episode(stop_reason="no_answer", turns=1)


class CarelessAgent(DigitsAgent):
    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Any:
        return CarelessEnvironment(options.get("partner", "here"), None)


def test_an_agent_that_pays_where_its_partner_is_dead_does_not_pass(settings, tmp_path):
    """A run with it would learn from the failures of a machine."""
    agent = CarelessAgent()
    tasks = [agent.task(row, settings) for row in agent.rows(agent.splits["test"])[:1]]
    check = conformance_checks.test_what_a_dead_judge_or_partner_leaves_is_unscored_and_named
    careless = conformance_checks.Tried(agent, settings, agent.open(settings, {}), tasks)
    with pytest.raises(AssertionError):
        check(careless, UNREACHABLE["digits"], tmp_path)


class Cut(Script):
    """Its last reply is as long as its limit allows."""

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        message = await super().reply(messages, tools)
        self.finish_reason = "length" if self.turns == len(self.replies) else "stop"
        return message


@pytest.mark.system  # an agent's programs run in a sandbox
@pytest.mark.parametrize("opened", ["<think>\nThe row says <tool_call>.", "I look at the row."])
def test_a_thought_before_a_reply_changes_nothing_and_a_cut_end_earns_nothing(
    agent, opened, settings, has_packages_of
):
    """Of the second thought the chat template wrote the beginning."""
    thought = f"{opened}\n</think>\n\n"
    has_packages_of(agent.name)
    own = with_turns(agent, settings, (agent.turns, agent.turns))
    task = agent.task(agent.rows(agent.splits["test"])[0], own)
    turns = turns_of(task, own)
    with closing(agent.open(own, {}, evaluating=True)) as environment:
        gold = asyncio.run(environment.gold(task)).messages
        said = [one for one in gold if one["role"] == "assistant"]
        behind = []
        for one in said:
            text = one.get("content")
            behind.append(one | {"content": thought + text} if text else one)

        def score(policy: Script) -> Scored:
            playing = environment.play(task, policy)
            return asyncio.run(play(environment, task, playing, policy, 60.0))

        plain, thinking = (score(Script(replies, max_turns=turns)) for replies in (said, behind))
        cut = score(Cut(said, max_turns=turns))
    assert plain.reward.score == 1
    assert thinking.reward.total == plain.reward.total
    assert thinking.reward.terms == plain.reward.terms
    assert (cut.episode.stop_reason, cut.episode.answer) == ("length", None)
    assert cut.reward.total < plain.reward.total / 4


# A commit's CI trains the SQL agent, and the consultation agent in tests/engine/test_updates.py.
TRAINED = [
    pytest.param(name, marks=() if name == "sql" else pytest.mark.nightly)
    for name in registry.names()
    if (ROOT / f"train_{name}_agent.py").is_file()
]


@pytest.mark.engine
@pytest.mark.parametrize("name", TRAINED)
def test_one_step_trains_on_the_real_engine(name, fast_run):
    summary = fast_run(name).summary()
    assert summary["rollouts"]["finished"] > 0
    assert summary["rollouts"]["unscored"] == summary["rollouts"]["failed"] == 0
    assert summary["generated_tokens"] == summary["trained_tokens"]
    assert summary["weight_updates"] + summary["steps_without_signal"] == 1
