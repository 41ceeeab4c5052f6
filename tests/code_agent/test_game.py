"""Under submit nothing is told before the end; under oracle a right output ends the episode."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from code_agent.actions import ACTIONS, HERE
from code_agent.environment import CodeEnvironment
from code_agent.game import Game
from code_agent.judging import Handed
from code_agent.task import CodeTask
from common.settings import load_settings
from episodes.episode import Episode, Message, ToolSpec
from episodes.script import Script
from scoring.rubric import Reward
from tests.code_agent.cases import COUNT, HAND_IN, RUN, SUBMIT
from tests.code_agent.conftest import played_in
from tests.corpora import cases_of
from tests.own_processes import OwnProcesses


def played(environment: CodeEnvironment, *texts: str) -> tuple[Episode, Reward]:
    return played_in(environment, "small", *texts)


@pytest.mark.system
def test_a_closed_environment_leaves_no_sandbox(opened, plain_processes):
    """Nor does an episode leave its interpreter: a step of thousands would leave thousands."""
    own = OwnProcesses()
    environment = opened()
    assert played(environment, RUN % COUNT, HAND_IN)[1].score == 1.0, "it finds its data too"
    assert own.more_after(lambda: played(environment, RUN % COUNT, HAND_IN)) <= 0
    assert own.alive()
    environment.close()
    assert own.left(at_most=0) == 0


@pytest.mark.system
def test_few_sandboxes_are_kept_for_tasks_with_files_of_their_own(
    opened, tables, plain_processes, monkeypatch
):
    monkeypatch.setattr("code_agent.environment.SANDBOXES", 1)
    own = OwnProcesses()
    environment = opened()
    files = [tables / "patients.csv", tables / "hospital.db"]
    for visible in ([], files[:1], files[1:], files):
        monkeypatch.setattr(environment.set_of("small"), "files", lambda task, seen=visible: seen)
        assert played(environment, RUN % "print(3)", HAND_IN)[1].score == 1.0
    assert own.left(at_most=1) == 1


@pytest.mark.usefixtures("bubblewrap")
def test_a_program_runs_and_what_it_printed_is_handed_in(opened):
    episode, reward = played(opened(), RUN % COUNT, HAND_IN)
    assert played(opened(), RUN % COUNT, RUN % "1 / 0", HAND_IN)[1].score == 1.0
    silent, _ = played(opened(), RUN % "raise SystemExit(1)", HAND_IN)
    assert silent.messages[3]["content"].startswith("The program failed")
    assert episode.stop_reason == "answered"
    assert episode.answer == "3"
    assert reward.score == 1.0
    assert reward.total == 1.0
    assert episode.messages[3]["content"].startswith("3\nStep 2 of 2.")


@pytest.mark.usefixtures("bubblewrap")
def test_an_answer_is_one_and_nothing_tells_before(opened):
    episode, reward = played(
        opened(), RUN % "print(3)", RUN % "print(4)", SUBMIT % "4", SUBMIT % "3"
    )
    assert (episode.answer, reward.score, episode.turns) == ("4", 0.0, 0)
    assert len(episode.events) == 3
    assert not any("right" in str(message["content"]) for message in episode.messages)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(("share", "ends"), [(0.9, False), (0.95, True)])
def test_oracle_ends_with_predictions_that_are_a_success(opened, monkeypatch, share, ends):
    environment = opened(ending="oracle")
    tasks = environment.set_of("small")
    task = tasks.task(0)

    async def worth(*handed: object) -> float:
        return share

    monkeypatch.setattr(tasks, "worth", worth)
    monkeypatch.setattr(tasks, "succeeds", lambda task, worth: worth > 0.9)

    game = Game(tasks, task, environment.context_of(task), "oracle")
    observation = asyncio.run(game.answer(RUN % "print(3)"))
    assert (game.handed is not None) == ends
    assert ("not right" in observation["env_message"]) != ends


class Meeting(Script):
    """Says its next text when another policy has come as far."""

    def __init__(self, *texts: str, waits: asyncio.Event, sets: asyncio.Event) -> None:
        super().__init__(texts, len(texts))
        self.waits, self.sets = waits, sets

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        if self.turns == 1:
            self.sets.set()
            await asyncio.wait_for(self.waits.wait(), 60)
        return await super().reply(messages, tools)


@pytest.mark.system
def test_episodes_of_one_task_at_the_same_time_share_nothing(opened, plain_processes):
    """A group's samples are such: one would be paid for what another found out."""
    environment = opened()
    task = environment.set_of("small").task(0)

    async def both() -> list[Episode]:
        one, other = asyncio.Event(), asyncio.Event()
        policies = [
            Meeting(RUN % f"found = {number}", RUN % "print(found)", HAND_IN, waits=a, sets=b)
            for number, a, b in ((3, one, other), (4, other, one))
        ]
        return await asyncio.gather(*(environment.play(task, policy) for policy in policies))

    assert [episode.answer for episode in asyncio.run(both())] == ["3", "4"]


@pytest.mark.system
def test_what_was_submitted_is_graded_and_not_the_last_run(opened, plain_processes):
    """Where a task has a frame around the program, a program is what is handed in."""
    environment = opened()
    tasks = environment.set_of("small")
    framed = replace(tasks.task(0), context=f"n = 0\n{HERE}\nprint(n)")

    async def handed(*texts: str, task: CodeTask = framed) -> Handed | None:
        context = environment.context_of(task)
        game = Game(tasks, task, context)
        try:
            for text in texts:
                await game.answer(text)
        finally:
            await context.sandbox.end(context.episode)
        return game.handed

    ran, submitted = RUN % "n = 3", SUBMIT % "n = 4"
    assert asyncio.run(handed(ran, submitted)) == Handed("n = 4", "n = 4")
    assert asyncio.run(handed(ran, HAND_IN)) == Handed("3", "n = 3")
    plain = tasks.task(0)
    assert asyncio.run(handed(RUN % "print(3)", SUBMIT % "4", task=plain)) == Handed(
        "4", "print(3)"
    )


@pytest.mark.usefixtures("bubblewrap")
def test_oracle_ends_with_a_right_output_and_tells_of_a_wrong_one(opened):
    episode, reward = played(
        opened(ending="oracle"), RUN % "print(4)", RUN % "print(3)", RUN % "print(5)"
    )
    assert (episode.stop_reason, reward.score, len(episode.events)) == ("answered", 1.0, 2)
    assert "not right" in str(episode.messages[3]["content"])
    episode, reward = played(opened(ending="oracle"), SUBMIT % "3")
    assert (episode.stop_reason, reward.score) == ("max_turns", 0.0)
    assert "Step" not in str(episode.messages[-1]["content"])


@pytest.mark.parametrize(("reply", "said"), cases_of(__file__, "corpus/refusals"))
def test_a_refusal_is_an_observation(opened, reply, said):
    episode, reward = played(opened(), reply, SUBMIT % "3")
    assert said in str(episode.messages[3]["content"])
    assert reward.terms == {"format": pytest.approx(0.05), "success": 0.9}


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("ending", ["submit", "oracle"])
@pytest.mark.parametrize(
    "noise",
    [
        "import warnings; warnings.warn('a note'); print(3)",
        "import os; os.system('echo a note >&2; echo 3'); answer = 3",
        "import warnings; warnings.warn('a note'); answer = 3; never = lambda: print(4)",
    ],
)
def test_the_answer_is_standard_output_and_standard_error_is_shown(opened, noise, ending):
    episode, reward = played(opened(ending=ending), RUN % noise, HAND_IN)
    assert reward.score == 1.0
    if ending == "submit":
        assert episode.answer == "3"
        assert "a note" in str(episode.messages[3]["content"])


@pytest.mark.usefixtures("bubblewrap")
def test_an_answer_that_a_function_has_is_not_printed(opened):
    episode, _ = played(opened(), RUN % "def f():\\n    answer = 3\\n    return answer\\nx = f()")
    assert episode.events[0].status == "SUCCESS"


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("block", ["```python\n{}\n```", "\ufeff\n```\n{}", "```py \r\n{}\n```\n"])
def test_a_block_of_markdown_around_a_program_is_no_part_of_it(opened, block):
    code = block.format("s = '```'\nprint(3)").replace("\n", "\\n")
    assert played(opened(), RUN % code, HAND_IN)[1].score == 1.0


@pytest.mark.usefixtures("bubblewrap")
def test_a_shell_command_and_an_explanation(opened):
    error = "NameError: name 'n' is not defined"
    twice = "for n in 1 2; do ls /data; echo 'Traceback (most recent call last):'; done; echo 1/0 > a.py; python /tmp/a.py"
    episode, _ = played(
        opened(),
        f'{{"action": "terminal", "params": {{"cmd": "{twice}"}}}}',
        f'{{"action": "debug", "params": {{"code": "print(n)", "error_msg": "{error}"}}}}',
        SUBMIT % "3",
    )
    heard = [str(message["content"]) for message in episode.messages if message["role"] == "user"]
    assert heard[1].count("patients.csv") == 2, "nothing between two tracebacks is left out"
    assert '"/tmp/a.py", line 1' in heard[1], "a script is the policy's own, too"
    assert "n was never given a value" in heard[2]


def test_environments_that_describe_an_action_in_other_words_are_told_apart(opened, monkeypatch):
    """The policy reads these words: evaluations with others are not comparable."""
    before = opened().description()
    assert opened().description() == before
    monkeypatch.setitem(ACTIONS["submit"], "says", "guess")
    worded = opened().description()
    monkeypatch.setenv("SANDBOX_SECONDS", "7")
    load_settings.cache_clear()
    assert before != worded != opened().description()


@pytest.mark.usefixtures("bubblewrap")
def test_what_gold_says_is_what_the_policy_would_read(opened):
    """A rehearsed episode has the very messages that an episode has."""
    environment = opened()
    task = environment.set_of("small").task(0)
    gold = asyncio.run(environment.gold(task))
    texts = [str(message["content"]) for message in gold.messages if message["role"] == "assistant"]
    policy = Script(texts, max_turns=3)
    episode = asyncio.run(environment.play(task, policy))
    assert episode.messages == gold.messages
