"""Have a model solve the tasks of a set, with MedAgentGym's command line, YAML and files.

    .venv/bin/python code_agent/main.py --config_path code_agent/configs/demo.yaml
    .venv/bin/python code_agent/main.py --config_path my.yaml --task medcalcbench --end_idx 100 --async_run --n_jobs 8

Writes <work_dir>/<task>/<result_dir_tag>/<mode>/history_<i>.json: the messages, then the result.
Finished files are kept, so the same command continues after Ctrl-C. Exit codes: 0 done, 1 failed or
some episodes are not scored, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from code_agent.environment import CodeEnvironment
from code_agent.game import LONGEST
from code_agent.medagentgym import histories
from code_agent.medagentgym.compute_score import scores_of
from code_agent.medagentgym.config import (
    Model,
    RunConfig,
    debugger_of,
    endpoint_of,
    load_config,
    parser_of,
)
from code_agent.medagentgym.histories import History
from code_agent.tasks import get_task_class
from code_agent.tasks.base import TaskSet
from common.command import Failure, UsageError, run_command
from common.llm.endpoint import ChatModel
from common.llm.retry import Patience
from common.settings import load_settings
from common.stopping import stop_in_order
from common.terminal import gathered
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
from training.serve import serve

EPISODE_SECONDS = 3600.0
REPLY_SECONDS = 900.0  # of one reply with all its tries
FAILURES = 5  # machine failures one after the other: the endpoint is at fault, not the tasks
MODES = {"valid": "val"}  # this project's names of modes, where they differ


@dataclass
class Run:
    """A configuration and what it needs. failed: machine failures since the last scored episode."""

    config: RunConfig
    tasks: TaskSet
    environment: CodeEnvironment
    policy: Endpoint
    failed: int = 0

    async def play_all(self) -> tuple[list[History], int]:
        """Return the finished episodes, earlier runs included, and how many were wanted.

        Raises UsageError: no task can be played here. Raises Failure: the endpoint keeps failing.
        """
        there = len(self.tasks)
        end = there if self.config.end_idx < 0 else min(self.config.end_idx, there)
        indices = range(self.config.start_idx, end)
        await self.check_tasks(indices)
        slots = asyncio.Semaphore(self.config.jobs)
        waiting = []
        for index in indices:
            names = [f"history_{index}_{number}.json" for number in range(self.config.rollouts)]
            for name in names or [f"history_{index}.json"]:
                waiting.append(self.episode(index, self.config.folder / name, slots))
        found = await gathered(waiting, "episodes", "episodes")
        return [history for history in found if history], len(waiting)

    async def check_tasks(self, indices: range) -> None:
        """Report the tasks that cannot be played here, before a model is called.

        Raises UsageError: no task can be played, or the set lacks what it needs.
        """
        refused = f"{self.config.task} cannot be played here"
        if why := self.tasks.missing():
            raise UsageError(f"{refused}: {why}")
        unusable = Counter[str]()
        for index in indices:
            if why := await self.environment.why_unusable(self.tasks.task(index)):
                unusable[why] += 1
        said = [f"{count} of {len(indices)} tasks: {why}" for why, count in unusable.items()]
        if unusable.total() == len(indices):
            raise UsageError(f"{refused}: {'; '.join(said)}")
        for line in said:
            print(f"unusable, {line}", file=sys.stderr)

    async def episode(self, index: int, path: Path, slots: asyncio.Semaphore) -> History | None:
        """Return an episode from its file or by playing it, or None if it is not scored."""
        async with slots:
            if kept := histories.read(path):
                return kept
            task = self.tasks.task(index)
            policy = ChatPolicy(self.policy, self.config.num_steps)
            playing = self.environment.play(task, policy)
            scored = await play(self.environment, task, playing, policy, EPISODE_SECONDS)
        score = scored.reward.score
        why = scored.detail or scored.reward.unscored
        if score is None:
            result: dict[str, Any] = {"result": "unscored", "reason": why}
        else:
            right = score > 0 and score > self.tasks.success_above(task)
            result = {"result": "success" if right else "failure", "score": score}
        ending = {
            "task": self.config.task,
            "task_type": task.task_type,
            "difficulty": task.difficulty,
            "ending": self.config.Env.ending,
            "answer": scored.episode.answer,
            "stop_reason": scored.episode.stop_reason,
            "steps": scored.episode.turns,
            "prompt_tokens": scored.episode.prompt_tokens,
            "seconds": round(scored.seconds, 2),
            **result,
        }
        histories.write(path, scored.episode.messages, ending)
        if scored.reward.unscored != "task_unusable":
            self.failed = self.failed + 1 if score is None else 0
        if self.failed >= FAILURES:
            raise Failure(f"{self.failed} episodes failed one after the other; the last: {why}")
        return histories.read(path)


@contextlib.contextmanager
def prepared(config: RunConfig) -> Iterator[Run]:
    """Yield what a run needs, a model's server included.

    Raises UsageError: rows or folder are unusable. Raises Failure: no sandbox, or no server.
    """
    tasks = get_task_class(config.task)(config.Data.data_path, MODES.get(config.mode, config.mode))
    if config.start_idx >= len(tasks):
        raise UsageError(
            f"start_idx {config.start_idx}: {config.task} has {len(tasks)} tasks "
            f"in mode {config.mode}"
        )
    try:
        config.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"work_dir {config.work_dir}: {config.folder} cannot be made ({error.strerror})"
        ) from None
    settings = load_settings().under({"max_turns": config.num_steps})
    options = {"ending": config.Env.ending}
    sets = {config.task: tasks}
    debugger = debugger_of(config.Debugger)
    environment = CodeEnvironment(settings, options, True, sets, debugger, LONGEST)
    with contextlib.closing(environment):
        asyncio.run(environment.check())
        model = config.Agent.llm
        if not model.is_folder:
            yield Run(config, tasks, environment, policy_endpoint(config, model))
            return
        log = config.folder / "vllm.log"
        print(f"starting vLLM for {model.model_name}, log in {log}", file=sys.stderr, flush=True)
        with serve(model.model_name, log, tools=False) as server:
            where = {"base_url": server.base_url, "model_name": server.name}
            served = model.model_copy(update=where)
            yield Run(config, tasks, environment, policy_endpoint(config, served))


def policy_endpoint(config: RunConfig, model: Model) -> Endpoint:
    """Return the policy's endpoint, which all episodes of a run share with its connections."""
    where = endpoint_of(model)
    attempts = (config.Agent.n_retry + 1) * config.Env.n_retry
    patience = Patience(attempts, REPLY_SECONDS, config.Agent.retry_delay, pauses_count=True)
    # A server of ours takes every value. What other models take, litellm knows
    chat = ChatModel(where, patience, translated=model.model_type != "vLLM")
    return Endpoint(
        where.base_url or "",
        where.model,
        temperature=model.temperature,
        top_p=None,
        max_tokens=model.max_new_tokens,
        chat_model=chat,
    )


def played(config: RunConfig) -> int:
    """Play, add a line to `running_records.jsonl`, print the outcome, and return the exit code.

    Raises UsageError, Failure.
    """
    with prepared(config) as run:
        found, wanted = asyncio.run(run.play_all())
    success, shown = scores_of(found) if found else (None, "")
    line = {
        "task": config.task,
        "tag": config.result_dir_tag,
        "mode": config.mode,
        "episodes": len(found),
        "success_rate": success,
    }
    with open(config.work_dir / "running_records.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    if not found:
        reasons = config.folder / "history_*.json"
        raise Failure(f"none of {wanted} episodes was scored; the reasons stand in {reasons}")
    print(shown)
    print(config.folder)
    if left := wanted - len(found):
        print(f"{left} episodes are not scored; the same command tries them again", file=sys.stderr)
    return 1 if left else 0


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser_of(__doc__).parse_args(argv)
    stop_in_order()
    return run_command(
        "main",
        lambda: played(load_config(arguments)),
        afterwards="the same command goes on from here",
    )
