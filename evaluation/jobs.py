"""Playing the questions of an evaluation: which ones, one episode each, and the record that is kept of it.

    jobs = jobs_of(sample_rows(rows, n=300, seed=0), k=4)
    with Referee(settings) as referee:
        record = await referee.play(jobs[0], play)          # or Unscored, which says why there is no score

The same agent, tool and scoring as in training. What the policy did not finish is wrong and scores 0; what the machine
did not finish is unscored.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from common.settings import Settings
from episodes.openai_agents import Episode, EpisodeError
from scoring.judge import choose_judge, why_unusable
from scoring.rubric import Reward, Rubric
from sql_agent.judge_words import WORDS
from sql_agent.prompts import TOOL_NAME
from sql_agent.reward import abstained, is_unanswerable, rubric_from, score_episode, term_values
from sql_agent.task import Task

Row = dict[str, Any]
Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One episode to play: a row of the data, the task made of it, and which sample of it this is (from 0)."""

    row: Row
    task: Task
    sample: int

    @property
    def key(self) -> str:
        """A name of the episode that no other has."""
        return f"{self.task.id}#{self.sample}"


Play = Callable[[Job], Awaitable[Episode]]


class Unscored(Exception):
    """An episode without a score; `record` is as much of its record as there is, with the cause in it."""

    def __init__(self, record: Record) -> None:
        super().__init__(record["detail"] or record["unscored"])
        self.record = record


def sample_rows(rows: Sequence[Row], n: int | None, seed: int) -> list[Row]:
    """`n` rows in file order, as many of each task type as its share of the file; all rows for None."""
    if n is None or n >= len(rows):
        return list(rows)
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        kinds[row.get("task_type") or ""].append(number)
    exact = {kind: n * len(members) / len(rows) for kind, members in kinds.items()}
    quota = {kind: int(share) for kind, share in exact.items()}
    for kind in sorted(kinds, key=lambda kind: quota[kind] - exact[kind])[: n - sum(quota.values())]:
        quota[kind] += 1
    chance = random.Random(seed)
    chosen = [number for kind in sorted(kinds) for number in chance.sample(kinds[kind], quota[kind])]
    return [rows[number] for number in sorted(chosen)]


def jobs_of(rows: Sequence[Row], k: int) -> list[Job]:
    """`k` episodes of every row.

    Raises:
        TaskError: a row that cannot be used as a task.
    """
    return [Job(row, task, sample) for row in rows for task in [Task.from_row(row)] for sample in range(k)]


class JudgeError(RuntimeError):
    """The judge gives no score even for a known case; the message says what was seen."""


class Referee:
    """Scores episodes as training does, in a thread of its own, so that a long comparison delays no other episode."""

    def __init__(self, settings: Settings) -> None:
        self.judge = choose_judge(settings, WORDS)
        rubric = rubric_from(settings)
        # The answer's score is the judge's, whatever the training's reward is made of.
        self.rubric = rubric if "judge" in rubric.weights else Rubric({**rubric.weights, "judge": 1.0})
        self.timeout = settings.episode_timeout
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="referee", daemon=True)

    def __enter__(self) -> Referee:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _live(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        await self._over.wait()

    def check(self) -> None:
        """Ask the judge for a known case.

        Raises:
            JudgeError: it gives no score.
        """
        problem = asyncio.run_coroutine_threadsafe(why_unusable(self.judge, WORDS.known_case), self._loop).result()
        if problem:
            raise JudgeError(f"{problem}; nothing was played. See the judge's settings in docs/settings.md")

    async def play(self, job: Job, play: Play) -> Record:
        """Play and score one episode and return its record.

        Raises:
            Unscored: the machine failed, the episode took longer than EPISODE_TIMEOUT, or the judge gave no score.
        """
        start, episode = time.perf_counter(), None
        try:
            async with asyncio.timeout(self.timeout):
                episode = await play(job)
                reward = await self._in_thread(score_episode(job.task, episode, self.judge, self.rubric))
                detail = ""
        except TimeoutError:
            reward, detail = Reward(None, {}, "timeout"), f"no end after {self.timeout:g} s"
        except EpisodeError as error:
            reward, detail = Reward(None, {}, error.cause), str(error)
        record = record_of(job, episode or Episode(stop_reason="failed"), reward, time.perf_counter() - start)
        if record["score"] is None:
            raise Unscored(record | {"detail": detail})
        return record

    async def _in_thread(self, scoring: Coroutine[Any, Any, Reward]) -> Reward:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(scoring, self._loop))


def record_of(job: Job, episode: Episode, reward: Reward, seconds: float) -> Record:
    """What `episodes.jsonl` keeps of an episode; docs/evaluation.md explains every key."""
    task, values = job.task, term_values(job.task, episode)
    queries = queries_of(episode)
    finished = episode.stop_reason == "answered"
    record = {
        "id": task.id,
        "sample": job.sample,
        "task_type": task.task_type,
        "difficulty": job.row.get("difficulty") or "unknown",
        "question": task.question,
        "reference": task.answer,
        "answer": episode.answer,
        "stop_reason": episode.stop_reason,
        "score": reward.score if finished or reward.score is None else 0.0,
        "unscored": reward.unscored,
        "detail": "",
        "reward": reward.total,
        "terms": reward.terms,
        "measures": reward.measures,
        "checks": values,
        "execution_match": _as_bool(values.get("execution")),
        "evidence_recall": values.get("evidence_recall"),
        "unanswerable": is_unanswerable(task),
        "abstained": abstained(episode),
        "queries": queries,
        "sql": next((query["sql"] for query in reversed(queries) if query["ok"]), None),
        "turns": episode.turns,
        "prompt_tokens": episode.prompt_tokens,
        "completion_tokens": episode.completion_tokens,
        "seconds": round(seconds, 3),
        "transcript": episode.messages[2:],
    }
    # A model may write half of a surrogate pair, which no UTF-8 file can hold.
    return dict(json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")))


def queries_of(episode: Episode) -> list[dict[str, Any]]:
    """The statements the policy ran, in order, each with what came of it."""
    calls: dict[str, dict[str, str]] = {}  # the latest with each id: some endpoints use an id again in the next turn
    statements = []
    for message in episode.messages:
        calls |= {call["id"]: call["function"] for call in message.get("tool_calls") or []}
        if message["role"] == "tool" and calls[message["tool_call_id"]]["name"] == TOOL_NAME:
            statements.append(json.loads(calls[message["tool_call_id"]]["arguments"])["sql"])
    return [
        {"sql": sql, "ok": result.ok, "rows": result.count, "error": result.error}
        for sql, result in zip(statements, episode.tool_results, strict=True)
    ]


def _as_bool(value: float | None) -> bool | None:
    return None if value is None else value == 1.0
