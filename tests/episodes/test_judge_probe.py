"""Which judges a run refuses, by honest and dishonest episodes and what the surest one earns."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from random import Random

import pytest

from common.command import Failure
from episodes import registry
from episodes.agent import Environment
from episodes.episode import Episode, Policy, Task
from episodes.judge_probe import PAID_TASKS, Probed, check_judge, problem_of
from scoring.rubric import Reward
from tests.messages import missing

WORTH = {"evidence": 1.0, "reference": 0.9, "right, but half": 0.8, "wrong": 0.2, "praise": 0.0}


class Judged(Environment):
    """Its episodes are their kinds; `score_of` (task number, kind) gives a score, or None."""

    bad: Sequence[str] = ("right, but half", "wrong", "praise")

    def __init__(self, score_of: Callable[[int, str], float | None]) -> None:
        self.score_of = score_of
        self.asked: list[tuple[str, str]] = []

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        return {kind: Episode(answer=kind) for kind in ("evidence", "reference")}

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        return {kind: Episode(answer=kind) for kind in self.bad}

    async def play(self, task: Task, policy: Policy) -> Episode:
        raise NotImplementedError

    async def score(self, task: Task, episode: Episode) -> Reward:
        self.asked.append((task.id, episode.answer or ""))
        score = self.score_of(int(task.id), episode.answer or "")
        return Reward(score, {}, None if score is not None else "judge_failed", score=score)


def asked(environment: Environment, tasks: int = 100) -> list[Probed]:
    numbered = [Task(id=str(n), question="？") for n in range(tasks)]
    return asyncio.run(check_judge(environment, numbered))


def problem(score_of: Callable[[int, str], float | None], tasks: int = 100) -> str | None:
    return problem_of(asked(Judged(score_of), tasks))


def test_an_honest_judge_passes_and_what_is_half_right_need_lose_to_the_evidence_only():
    assert problem(lambda _, kind: WORTH[kind]) is None
    assert problem(lambda _, kind: {**WORTH, "reference": 0.3}[kind]) is None


def test_the_tasks_that_are_asked_about_are_spread_over_the_file():
    judged = Judged(lambda _, kind: WORTH[kind])
    numbers = [int(one.task.id) for one in asked(judged, 350)]
    assert (len(numbers), numbers[0], numbers[-1]) == (200, 0, 348)


@pytest.mark.parametrize("kind", ["right, but half", "praise"])
def test_two_percent_of_the_tasks_may_be_out_of_order(kind):
    def fooled(share: int) -> Callable[[int, str], float]:
        return lambda number, asked: 1.0 if asked == kind and number < share else WORTH[asked]

    assert problem(fooled(2)) is None
    assert not missing(str(problem(fooled(3))), "3 of 100", f"{kind} 3", "2%")


def test_a_kind_for_which_a_run_would_stop_is_refused_though_the_evidence_beats_it():
    def paid(share: int) -> Callable[[int, str], float]:
        return lambda number, kind: 0.6 if kind == "wrong" and number < share else WORTH[kind]

    assert problem(paid(5)) is None
    assert not missing(str(problem(paid(6))), "'wrong'", "6 of 100", "5%", "wrong 0.60")
    assert problem(lambda _, kind: {**WORTH, "right, but half": 0.85}[kind]) is None


def test_five_percent_of_the_tasks_may_be_poor():
    def poor(share: int) -> Callable[[int, str], float]:
        return lambda number, kind: WORTH[kind] * (0.75 if number < share else 1.0)

    assert problem(poor(5)) is None
    assert not missing(str(problem(poor(6))), "6 of 100", "0.8", "5%", "evidence 0.75")


def test_what_is_not_scored_counts_nowhere_and_no_score_at_all_is_a_fault(caplog):
    probed = asked(Judged(lambda number, kind: None if number % 2 else WORTH[kind]))
    assert (len(probed), problem_of(probed)) == (50, None)
    assert "{'judge_failed': 100}" in caplog.text
    without = Judged(lambda _, kind: None if kind == "evidence" else WORTH[kind])
    assert asked(without) == [], "nothing stands in for it"
    with pytest.raises(Failure, match="'judge_failed': 200"):
        problem(lambda *_: None)


def test_a_paid_judge_is_asked_little_and_about_other_kinds_of_each_next_task():
    """One that is fooled by a kind that comes late among many would never be found."""
    kinds = [f"wrong {number}" for number in range(7)]

    environment = Judged(lambda _, kind: WORTH.get(kind, float(kind == kinds[-1])))
    environment.bad = kinds
    environment.paid = True
    probed = asked(environment)
    assert len(probed) == PAID_TASKS
    assert len(environment.asked) == PAID_TASKS * 5
    assert "wrong 6" in str(problem_of(probed))
    assert {kind for _, kind in environment.asked} == {"evidence", "reference", *kinds}


@pytest.mark.parametrize(
    ("name", "judge", "paid"),
    [
        ("code", "openai/j", False),
        ("diagnosis", None, False),
        ("diagnosis", "openai/j", True),
        ("sql", None, False),
        ("sql", "openai/j", True),
    ],
)
def test_a_paid_judge_is_paid_by_agents_that_ask_one(name, judge, paid):
    """The sample of the code agent's check fell to five tasks beside a judge of others."""
    agent = registry.get(name)
    settings = agent.settings(_env_file=None, teacher_model=judge, reward_model_url=None)
    with closing(agent.open(settings, {})) as environment:
        assert environment.paid is paid
