"""Have a model solve the tasks of a set, with MedAgentGym's command line, YAML and files.

    .venv/bin/python code_agent/main.py --config_path code_agent/configs/demo.yaml
    .venv/bin/python code_agent/main.py --config_path my.yaml --task medcalcbench --end_idx 100 --async_run --n_jobs 8
    .venv/bin/python code_agent/rollout.py --config_path my.yaml --mode train --async_run --n_jobs 16
    .venv/bin/python code_agent/rollout.py --config_path my.yaml --mode train --to-sft sft.jsonl --to-dpo pairs.jsonl

Writes <work_dir>/<task>/<result_dir_tag>/<mode>/history_<i>.json: the messages, then the result.
Finished files are kept, so the same command continues after Ctrl-C. `rollout.py` is `main.py
--num_rollouts 16`. --to-sft: the `messages` of right episodes, for `training.cold_start
--dialogues`. --to-dpo: pairs of a right and a wrong episode of one task (`prompt`, `chosen`,
`rejected`). Exit codes: 0 done, 1 failed or some episodes are not scored, 2 wrong usage, 130
interrupted.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
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
from code_agent.medagentgym.histories import History, dpo_rows, read_all, scores_of, sft_rows
from code_agent.tasks import get_task_class
from common.command import Failure, UsageError, run_command
from common.files import check_writable
from common.jsonl import write_jsonl
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


class Runner:
    """Plays tasks of a set. failed: machine failures since the last scored episode."""

    def __init__(self, config: RunConfig) -> None:
        """Read the tasks. Raises UsageError: they cannot be read, or the range has none."""
        self.config = config
        self.tasks = get_task_class(config.task)(config.Data.data_path, config.mode)
        end = len(self.tasks) if config.end_idx < 0 else min(config.end_idx, len(self.tasks))
        self.indices = range(config.start_idx, end)
        if not self.indices:
            raise UsageError(
                f"start_idx {config.start_idx}: {config.task} has {len(self.tasks)} tasks in mode "
                f"{config.mode}"
            )
        self.environment = CodeEnvironment(
            load_settings().under({"max_turns": config.num_steps}),
            {"ending": config.Env.ending},
            {config.task: self.tasks},
            debugger_of(config.Debugger),
            LONGEST,
        )
        self.slots = asyncio.Semaphore(config.jobs)
        self.failed = 0

    async def check(self) -> None:
        """Report unusable tasks, before a model is called. Raises UsageError: all are."""
        await self.environment.check()
        missing = self.tasks.missing()
        unusable = Counter[str]()
        for index in self.indices:
            task = self.tasks.task(index)
            unusable[missing or await self.environment.why_unusable(task)] += 1
        del unusable[""]
        said = [f"{count} of {len(self.indices)} tasks: {why}" for why, count in unusable.items()]
        if unusable.total() == len(self.indices):
            raise UsageError(f"{self.config.task} cannot be played here: {'; '.join(said)}")
        for line in said:
            print(f"unusable, {line}", file=sys.stderr)

    async def play_all(self, endpoint: Endpoint) -> list[History | None]:
        """Return the episodes, None without a score. Raises Failure: the endpoint fails."""
        waiting = []
        for index in self.indices:
            names = [f"history_{index}_{number}.json" for number in range(self.config.rollouts)]
            for name in names or [f"history_{index}.json"]:
                waiting.append(self.episode(index, self.config.folder / name, endpoint))
        return await gathered(waiting, "episodes", "episodes")

    async def episode(self, index: int, path: Path, endpoint: Endpoint) -> History | None:
        """Return an episode from its file or by playing it, or None if it is not scored."""
        async with self.slots:
            if kept := histories.read(path):
                return kept
            task = self.tasks.task(index)
            policy = ChatPolicy(endpoint, self.config.num_steps)
            playing = self.environment.play(task, policy)
            scored = await play(self.environment, task, playing, policy, EPISODE_SECONDS)
        score = scored.reward.score
        why = scored.detail or scored.reward.unscored
        result: dict[str, Any] = {"result": "unscored", "reason": why}
        if score is not None:
            right = self.tasks.succeeds(task, score)
            result = {"result": "success" if right else "failure", "score": score}
        ending = {
            "id": task.id,
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


@contextmanager
def served(model: Model, folder: Path) -> Iterator[Model]:
    """Yield the model. A vLLM model's folder without an address is served meanwhile."""
    has_address = model.model_type != "vLLM" or model.port or model.base_url
    if has_address or not Path(model.model_name).is_dir():
        yield model
        return
    log = folder / "vllm.log"
    said = f"starting vLLM for {model.model_name}, log in {log}"
    print(said, file=sys.stderr, flush=True)
    with serve(model.model_name, log, tools=False) as server:
        found = {"base_url": server.base_url, "model_name": server.name}
        yield model.model_copy(update=found)


def asked_at(model: Model, config: RunConfig) -> Endpoint:
    """Return a model's endpoint, which is asked as often as the configuration says."""
    where = endpoint_of(model)
    attempts = (config.Agent.n_retry + 1) * config.Env.n_retry
    longest_wait = config.Agent.retry_delay
    where.patience = Patience(attempts, REPLY_SECONDS, longest_wait, pauses_count=True)
    return Endpoint(
        where.base_url or "",
        where.model,
        temperature=model.temperature,
        top_p=None,
        max_tokens=model.max_new_tokens,
        chat_model=where,
    )


def played(config: RunConfig) -> int:
    """Play, record and print a run, and return the exit code. Raises UsageError, Failure."""
    endpoint_of(config.Agent.llm)
    runner = Runner(config)
    check_writable(config.folder, "work_dir")
    config.folder.mkdir(parents=True, exist_ok=True)
    with closing(runner.environment):
        asyncio.run(runner.check())
        with served(config.Agent.llm, config.folder) as model:
            episodes = asyncio.run(runner.play_all(asked_at(model, config)))
    found = [history for history in episodes if history]
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
    left = len(episodes) - len(found)
    if not found:
        reasons = config.folder / "history_*.json"
        raise Failure(f"none of {left} episodes was scored; the reasons stand in {reasons}")
    print(shown)
    print(config.folder)
    if left:
        print(f"{left} episodes are not scored; the same command tries them again", file=sys.stderr)
    return 1 if left else 0


def run(arguments: argparse.Namespace) -> int:
    """Play, or write training data. Return the exit code. Raises UsageError: no episode is of use."""
    config = load_config(arguments)
    if not (arguments.to_sft or arguments.to_dpo):
        return played(config)
    found = read_all(config.folder)
    for path, rows_of in ((arguments.to_sft, sft_rows), (arguments.to_dpo, dpo_rows)):
        if not path:
            continue
        rows = rows_of(found)
        if not rows:
            raise UsageError(
                f"{path} would be empty: {config.folder} has no right episode, or for --to-dpo no "
                "task with a right and a wrong one; play more with --num_rollouts"
            )
        write_jsonl(path, rows, force=False)
        print(f"{len(rows)} lines in {path}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("--to-sft", type=Path, metavar="FILE", help="play nothing; write right episodes")
    pairs = "play nothing; write pairs of right and wrong ones"
    add("--to-dpo", type=Path, metavar="FILE", help=pairs)
    arguments = parser.parse_args(argv)
    stop_in_order()
    goes_on = "the same command goes on from here"
    program = Path(sys.argv[0]).stem  # main.py, or rollout.py
    return run_command(program, lambda: run(arguments), afterwards=goes_on)


if __name__ == "__main__":
    sys.exit(main())
