"""Watch it learn: evaluate a model on new tasks, train it, evaluate it again, show what changed.

    make demo                                # the SQL agent, seed 1, its bundled model
    make demo AGENT=sql SEED=2
    make demo MODEL=models/qwen2.5-coder-0.5b            # a real model, with a warm-up

Every part is one of the project's own commands, printed before it runs. Their results are in
`before/`, `train/` and `after/`, summed up in `demo.json` and `report.html` (docs/training.md).
With `--warm-up` the model is also evaluated as it is (`published/`), learns demonstrations
(`warm/`), and the checkpoint with the best validation is exported (`trained/`).
Exit codes: 0 done, 1 a part failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import contextlib
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.command import (
    Failure,
    UsageError,
    filled,
    new_parser,
    number,
    positive,
    python_here,
    run_command,
)
from common.jsonl import read_object, write_text
from common.language import said
from common.settings import WORK, below_root
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, bundled_model
from evaluation.report.demo import AFTER, BEFORE, PUBLISHED, RESULT, TRAIN, build, show
from evaluation.report.page import REPORT, read

SEED = number(int, lambda value: value >= 0, "from 0")
TASKS = number(int, lambda value: value >= 2, "of at least 2, which an interval needs")
WARM, TRAINED = "warm", "trained"  # models that a demo of a real model makes on its way
# How a real model learns (docs/training.md)
WARM_UP_RATE = "2e-5"
WARM_UP_STEPS = 24  # at least: few demonstrations are learned several times
WARM_UP_BATCH = 8
REAL_MODEL = (
    *("--algorithm", "dr_grpo", "--lora", "--lora-rank", "16", "--keep", "1", "--keep-best"),
    "data.train_batch_size=8",
    "actor_rollout_ref.rollout.n=8",
    "actor_rollout_ref.actor.optim.lr=1e-4",
    "actor_rollout_ref.actor.optim.lr_warmup_steps=3",
    "algorithm.filter_groups.enable=true",
    "trainer.total_training_steps=20",
    "trainer.test_freq=4",
    "trainer.save_freq=4",
)
BEGUN = "demo_begun.json"  # what a folder's demo was asked for
SPENT = "demo_minutes.json"
SECONDS_TO_STOP = 90.0  # training hands its servers back and writes its summary


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("agent", choices=registry.names(), metavar="AGENT", help=", ".join(registry.names()))
    add("--seed", type=SEED, default=1, help="order of the training tasks; default: 1")
    add("--model", type=filled, help="model to begin with; default: the bundled one")
    add("--n", type=TASKS, help="test tasks; default: all of the agent's test file")
    warm_up = "demonstrations that a real model learns before, in 24 steps or more; default: none"
    add("--warm-up", type=positive(int), metavar="N", help=warm_up)
    add("--run-dir", type=Path, help="default: runs/demo-<agent>-seed<N>-<time>")
    add("overrides", nargs="*", metavar="key=value", help="for the training command")
    arguments = parser.parse_intermixed_args(argv)
    for text in arguments.overrides:
        if "=" not in text:
            parser.error(f"{text!r} is neither a flag nor key=value")
    return arguments


def demo(arguments: argparse.Namespace, argv: Sequence[str]) -> None:
    """Run the parts, write and show the result. Raises UsageError, and Failure: a part failed."""
    agent = registry.get(arguments.agent)
    if arguments.warm_up:  # an agent of one's own may have few tasks
        arguments.warm_up = min(arguments.warm_up, len(agent.rows(agent.splits["train"])))
    name = f"demo-{agent.name}-seed{arguments.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = (arguments.run_dir or WORK / "runs" / name).resolve()
    arguments.model = str(arguments.model or bundled_model(agent))
    if Path(arguments.model).is_dir():
        arguments.model = below_root(Path(arguments.model).resolve())
    begin(folder, {name: value for name, value in vars(arguments).items() if name != "run_dir"})
    minutes = run_parts(folder, parts_of(agent, folder, arguments))
    facts = {
        "minutes": round(sum(minutes.values()), 2),
        "minutes_by_part": minutes,
        "seed": arguments.seed,
        "model": arguments.model,
        "demonstrations": arguments.warm_up,
        "command": shlex.join([python_here(), "-m", "evaluation.demo", *argv]),
    }
    if not (folder / RESULT).exists():  # else it was ended before it had its page
        text = json.dumps(build(agent, folder, facts), ensure_ascii=False, indent=1)
        write_text(folder / RESULT, f"{text}\n", force=False)
    show(read_object(folder / RESULT))
    write_text(folder / REPORT, read([folder]).html(), force=True)
    print(folder / REPORT)
    print(folder, flush=True)


def run_parts(folder: Path, parts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Run what is left, and return the minutes of each part since the demo's first start."""
    spent = folder / SPENT
    minutes = read_object(spent)
    for name, command in parts.items():
        if name in (WARM, TRAINED) and (folder / name).exists():
            continue  # a model's folder is written whole or not at all
        start = time.monotonic()
        try:
            run_part(name, list(parts), command)
        finally:
            minutes[name] = round(minutes.get(name, 0.0) + (time.monotonic() - start) / 60, 2)
            write_text(spent, json.dumps(minutes) + "\n", force=True)
    return minutes


def parts_of(agent: Agent, folder: Path, arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the command of each part, in order."""
    model = arguments.model

    def evaluation(name: str, of: str) -> list[str]:
        command = ["-m", "evaluation.evaluate", agent.name]
        if arguments.n is not None:
            command += ["--n", str(arguments.n)]
        return [*command, "--model", of, "--out", str(folder / name)]

    train = str(folder / TRAIN)
    if not arguments.warm_up:
        return {
            BEFORE: evaluation(BEFORE, model),
            TRAIN: training_of(agent, model, train, agent.demo, arguments),
            AFTER: evaluation(AFTER, train),
        }
    warm = str(folder / WARM)
    trained = str(folder / TRAINED)
    epochs = max(1, WARM_UP_STEPS / math.ceil(arguments.warm_up / WARM_UP_BATCH))
    learn = ["-m", "training.cold_start", agent.name, "--base", model, "--out", warm]
    learn += ["--demonstrations", str(arguments.warm_up), "--epochs", f"{epochs:.6g}"]
    learn += ["--batch-size", str(WARM_UP_BATCH), "--lr", WARM_UP_RATE]
    learn += ["--seed", str(arguments.seed)]
    return {
        PUBLISHED: evaluation(PUBLISHED, model),
        WARM: learn,
        BEFORE: evaluation(BEFORE, warm),
        TRAIN: training_of(agent, warm, train, REAL_MODEL, arguments),
        TRAINED: ["-m", "training.export", train, "--step", "best", "--to", trained],
        AFTER: evaluation(AFTER, trained),
    }


def training_of(
    agent: Agent, model: str, run: str, options: Sequence[str], arguments: argparse.Namespace
) -> list[str]:
    """Return the command that trains a model, or goes on with its run."""
    command = [*registry.training_command(agent.name), "--ci", "--model", model, "--run-dir", run]
    command += [f"data.seed={arguments.seed}", *options, *arguments.overrides]
    return [*command, "--resume", "auto"] if Path(run).exists() else command


def begin(folder: Path, asked: dict[str, Any]) -> None:
    """Note what a demo's folder is for, or go on in it. Raises UsageError: it holds another."""
    noted = folder / BEGUN
    if noted.is_file():
        found = read_object(noted)
        if other := {name: found.get(name) for name in asked if found.get(name) != asked[name]}:
            raise UsageError(f"--run-dir {folder} holds a demo with {other}; choose another folder")
        return
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--run-dir {folder} is not empty; choose another")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(noted, json.dumps(asked, ensure_ascii=False) + "\n", force=False)
    begins = (
        "demo: {tasks} test tasks, training, the same tasks; after Ctrl-C the same command with "
        "--run-dir {folder} goes on from there"
    )
    print(said(begins, tasks=asked["n"] or said("all"), folder=folder), file=sys.stderr)
    if asked["warm_up"]:
        costs = (
            "with 0.5 billion parameters, two cores and bfloat16 it takes about 100 minutes (12 for "
            "the warm-up, 75 for training), 10 GB of memory and 14 GB of disk"
        )
        print(said(costs), file=sys.stderr)


def run_part(name: str, parts: Sequence[str], command: Sequence[str]) -> None:
    """Run a part as a program, which Ctrl-C and SIGTERM end before this raises.

    Raises Failure with the part's exit code where that says usage or interrupted.
    """
    place = {"number": parts.index(name) + 1, "count": len(parts)}
    part = said("demo: {name}, part {number} of {count}", name=name, **place)
    print(f"\n{part}\n$ {shlex.join([python_here(), *command])}", file=sys.stderr, flush=True)
    # A session of its own: Ctrl-C reaches it once, from here, and not a second time from the
    # terminal.
    process = subprocess.Popen([sys.executable, *command], cwd=WORK, start_new_session=True)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        stop(process)
        raise
    if code:
        failure = Failure(f"{name} ended with exit code {code}; what it said stands above")
        failure.exit_code = code if code in (2, 130) else 1
        raise failure


def stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a part and wait for it, killing it after SECONDS_TO_STOP or at a second Ctrl-C."""
    print("demo: stopping", file=sys.stderr, flush=True)
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C in its own terminal would do
    with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(SECONDS_TO_STOP)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    arguments = parse_arguments(argv)
    stop_in_order()

    return run_command(
        "demo",
        lambda: demo(arguments, argv),
        afterwards="what the parts wrote stays; with --run-dir the same command goes on",
    )


if __name__ == "__main__":
    sys.exit(main())
