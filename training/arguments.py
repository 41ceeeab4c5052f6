"""The flags of the training command, the same for every agent, and those of the agent's own.

options = parse(agent, ["--ci-fast", "data.seed=1"])
"""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import NoReturn

from common.command import number
from episodes.agent import Agent

USAGE = """Train the {name} agent.

    python train_{name}_agent.py --ci-fast                   one step on this machine, to see it work
    python train_{name}_agent.py                             the long run
    AGL_MANAGED_STORE=0 python train_{name}_agent.py --llm-proxy --model DIR --external-store-address http://HOST:4747

Further key=value and +key=value go to verl. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""


class Parser(argparse.ArgumentParser):
    """argparse that names the flag an unknown one was probably meant to be."""

    def error(self, message: str) -> NoReturn:
        unknown = [word.split("=")[0] for word in message.split() if word.startswith("--")]
        near = get_close_matches(unknown[0], list(self._option_string_actions)) if unknown else []
        hint = f"; did you mean {near[0]}?" if near and "unrecognized" in message else ""
        self.exit(2, f"error: {message}{hint}\nsee {self.prog} --help\n")


def parse(agent: Agent, arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; ends the program with code 2 where it is wrong."""
    parser = Parser(
        prog=f"train_{agent.name}_agent.py",
        description=USAGE.format(name=agent.name),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, switch = parser.add_argument, partial(parser.add_argument, action="store_true")
    on_or_off = partial(add, action=argparse.BooleanOptionalAction, default=True)
    count = partial(add, type=number(int, lambda value: value >= 1, "of 1 or more"))
    tasks = "tasks, as Parquet or JSONL (default: %(default)s)"
    add("--train-file", default=str(agent.splits["train"]), help=tasks)
    add("--val-file", default=str(agent.splits["val"]), help=tasks)
    usual = "BASE_MODEL, else the bundled tiny model on CPU, Qwen/Qwen3-0.6B on GPU"
    add("--model", help=f"model folder or hub id (default: {usual})")
    agent.arguments(parser)
    switch("--ci-fast", help="one step, one validation, one checkpoint")
    switch("--ci", help="20 steps")
    on_or_off("--llm-proxy", help="trace the agent's LLM calls in the proxy, or in the runners (AgentOpsTracer)")
    proxies = "litellm (any API format), or a thin endpoint before vLLM at a fraction of the cost (docs/performance.md)"
    add("--proxy", choices=("litellm", "direct"), default="litellm", help=proxies)
    on_or_off("--trajectory-level", help="merge an episode's calls into one sequence where their token ids allow it")
    kept = "serve a chat template that keeps the <think> blocks of earlier turns (docs/architecture.md)"
    switch("--keep-thinking", help=kept)
    count(
        "--max-turns", help="calls of the policy in an episode, the closing one included (default: MAX_TURNS, else 3)"
    )
    add("--external-store-address", metavar="URL", help="use a store served elsewhere; needs AGL_MANAGED_STORE=0")
    add("--mongo-uri", metavar="URI", help="keep the managed store in MongoDB, a replica set (needs pymongo)")
    count("--n-runners", default=4, help="processes that run episodes (default: 4)")
    at_once = "episodes a runner process plays at once (default: 32); 0, and always with --no-llm-proxy: one at a time"
    add("--concurrency", type=number(int, lambda value: value >= 0, "of 0 or more"), default=32, help=at_once)
    switch("--keep-spans", help="keep the spans of all rollouts in the run folder's spans/")
    add(
        "--async",
        dest="asynchronous",
        nargs="?",
        const="colocate",
        choices=("colocate", "separate"),
        help="play on while the policy is updated: on its devices (colocate), or GPUs of their own (separate: not run)",
    )
    switch("--lora", help="train an adapter (LoRA) of --lora-rank beside frozen weights")
    count("--lora-rank", default=32, help="with --lora: rank of the adapter (default: 32)")
    add("--lora-adapter-path", metavar="DIR", help="with --lora: go on from this adapter, of rank --lora-rank")
    switch("--deterministic", help="runs of one data.seed are equal to the last bit: one LLM call at a time, CPU only")
    count("--n-gpus", default=1, help="GPUs of this node (default: 1)")
    resume = partial(add, nargs="?", const="latest", metavar="latest|PATH")
    resume("--resume", "--resume_checkpoint", help="continue from the latest checkpoint, or a global_step_N folder")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to train (default: auto)")
    add("--run-dir", type=Path, help="folder of this run (default: runs/<name>, new)")
    switch("--debug", help="log everything, on the screen too")
    add("overrides", nargs="*", metavar="key=value", help="overrides for verl")
    options = parser.parse_intermixed_args(arguments)
    if options.resume and "=" in options.resume:  # an override that follows a bare --resume
        options.overrides.append(options.resume)
        options.resume = "latest"
    if options.lora_adapter_path and not options.lora:
        parser.error("--lora-adapter-path needs --lora")
    return options
