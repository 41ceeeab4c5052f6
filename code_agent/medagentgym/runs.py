"""Have a model solve the tasks of a set, with MedAgentGym's command line, YAML and files.

    .venv/bin/python code_agent/main.py --config_path code_agent/configs/demo.yaml
    .venv/bin/python code_agent/main.py --config_path my.yaml --task medcalcbench --end_idx 100 --async_run --n_jobs 8

Writes <work_dir>/<task>/<result_dir_tag>/<mode>/history_<i>.json: the messages, then the result.
Finished files are kept, so the same command continues after Ctrl-C. Exit codes: 0 done, 1 failed or
some episodes are not scored, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from code_agent.environment import CodeEnvironment
from code_agent.game import LONGEST
from code_agent.medagentgym import histories
from code_agent.medagentgym.config import (
    Model,
    RunConfig,
    debugger_of,
    endpoint_of,
    load_config,
    parser_of,
)
from code_agent.medagentgym.histories import History, scores_of
from code_agent.tasks import get_task_class
from code_agent.tasks.base import TaskSet
from common.command import Failure, UsageError, run_command
from common.llm.endpoint import ChatModel
from common.llm.retry import Patience
from common.settings import load_settings
from common.stopping import stop_in_order
from common.terminal import gathered
from episodes.episode import Scored
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
from training.serve import serve

EPISODE_SECONDS = 3600.0
REPLY_SECONDS = 900.0  # of one reply with all its tries
FAILURES = 5  # machine failures one after the other: the endpoint is at fault, not the tasks
MODES = {"valid": "val"}  # this project's names of modes, where they differ


class Runner:
    """Plays the tasks of a set. failed: machine failures since the last scored episode."""

    def __init__(self, config: RunConfig, tasks: TaskSet, environment: CodeEnvironment) -> None:
        self.config = config
        self.tasks = tasks
        self.environment = environment
        self.failed = 0

    async def play_all(self, indices: range, endpoint: Endpoint) -> tuple[list[History], int]:
        """Return the finished episodes, earlier runs included, and how many were wanted.

        Raises Failure: the endpoint keeps failing.
        """
        slots = asyncio.Semaphore(self.config.jobs)
        waiting = []
        for index in indices:
            names = [f"history_{index}_{number}.json" for number in range(self.config.rollouts)]
            for name in names or [f"history_{index}.json"]:
                waiting.append(self.episode(index, self.config.folder / name, endpoint, slots))
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

    async def episode(
        self, index: int, path: Path, endpoint: Endpoint, slots: asyncio.Semaphore
    ) -> History | None:
        """Return an episode from its file or by playing it, or None if it is not scored."""
        async with slots:
            if kept := histories.read(path):
                return kept
            task = self.tasks.task(index)
            policy = ChatPolicy(endpoint, self.config.num_steps)
            playing = self.environment.play(task, policy)
            scored = await play(self.environment, task, playing, policy, EPISODE_SECONDS)
        histories.write(path, scored.episode.messages, self.ending(scored))
        if scored.reward.unscored != "task_unusable":
            self.failed = self.failed + 1 if scored.reward.score is None else 0
        if self.failed >= FAILURES:
            why = scored.detail or scored.reward.unscored
            raise Failure(f"{self.failed} episodes failed one after the other; the last: {why}")
        return histories.read(path)

    def ending(self, scored: Scored) -> dict[str, Any]:
        """Return the last element of an episode's file."""
        task: Any = scored.task
        score = scored.reward.score
        result: dict[str, Any] = {"result": "unscored"}
        if score is None:
            result["reason"] = scored.detail or scored.reward.unscored
        else:
            right = score > 0 and score > self.tasks.success_above(task)
            result = {"result": "success" if right else "failure", "score": score}
        return {
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


def play_config(config: RunConfig) -> tuple[list[History], int]:
    """Return the finished episodes and how many were wanted. A model's folder is served meanwhile.

    Raises UsageError: rows or folder are unusable. Raises Failure: no sandbox, or no server.
    """
    debugger = debugger_of(config.Debugger)
    model = config.Agent.llm
    endpoint_of(model)
    tasks = get_task_class(config.task)(config.Data.data_path, MODES.get(config.mode, config.mode))
    if config.start_idx >= len(tasks):
        raise UsageError(
            f"start_idx {config.start_idx}: {config.task} has {len(tasks)} tasks "
            f"in mode {config.mode}"
        )
    end = len(tasks) if config.end_idx < 0 else min(config.end_idx, len(tasks))
    indices = range(config.start_idx, end)
    try:
        config.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"work_dir {config.work_dir}: {config.folder} cannot be made ({error.strerror})"
        ) from None
    settings = load_settings().under({"max_turns": config.num_steps})
    options = {"ending": config.Env.ending}
    sets = {config.task: tasks}
    with ExitStack() as stack:
        environment = CodeEnvironment(settings, options, True, sets, debugger, LONGEST)
        stack.enter_context(closing(environment))
        asyncio.run(environment.check())
        runner = Runner(config, tasks, environment)
        asyncio.run(runner.check_tasks(indices))
        if is_unserved_folder(model):
            log = config.folder / "vllm.log"
            said = f"starting vLLM for {model.model_name}, log in {log}"
            print(said, file=sys.stderr, flush=True)
            server = stack.enter_context(serve(model.model_name, log, tools=False))
            where = {"base_url": server.base_url, "model_name": server.name}
            model = model.model_copy(update=where)
        return asyncio.run(runner.play_all(indices, policy_endpoint(config, model)))


def is_unserved_folder(model: Model) -> bool:
    """Return whether a model is a folder that no server serves yet."""
    named = model.model_type == "vLLM" and not (model.port or model.base_url)
    return named and Path(model.model_name).is_dir()


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
    found, wanted = play_config(config)
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
    goes_on = "the same command goes on from here"
    return run_command("main", lambda: played(load_config(arguments)), afterwards=goes_on)
