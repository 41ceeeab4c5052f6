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
    add(
        "--model",
        help="model folder or hub id (default: BASE_MODEL, else the bundled tiny model on CPU, Qwen/Qwen3-0.6B on GPU)",
    )
    agent.arguments(parser)
    switch("--ci-fast", help="one step, one validation, one checkpoint")
    switch("--ci", help="20 steps")
    on_or_off(
        "--llm-proxy",
        help="trace the agent's LLM calls in the proxy (OtelTracer, LlmProxyTraceToTriplet), or in the runners "
        "(AgentOpsTracer, TracerTraceToTriplet)",
    )
    add(
        "--proxy",
        choices=("litellm", "direct"),
        default="litellm",
        help="what the LLM proxy is: litellm (any API format), or a thin recording endpoint before vLLM, which costs a "
        "fraction a call (docs/performance.md)",
    )
    on_or_off("--trajectory-level", help="merge an episode's calls into one sequence where their token ids allow it")
    switch(
        "--keep-thinking",
        help="serve the model with a chat template that keeps the <think> blocks of earlier turns, so that an episode "
        "is one sequence (docs/architecture.md)",
    )
    count(
        "--max-turns", help="calls of the policy in one episode, the closing one included (default: MAX_TURNS, else 3)"
    )
    add("--external-store-address", metavar="URL", help="use a store served elsewhere; needs AGL_MANAGED_STORE=0")
    add("--mongo-uri", metavar="URI", help="keep the managed store in MongoDB, a replica set (needs pymongo)")
    count("--n-runners", default=4, help="processes that run episodes (default: 4)")
    add(
        "--concurrency",
        type=number(int, lambda value: value >= 0, "of 0 or more"),
        default=32,
        help="episodes a runner process plays at once (default: 32); 0: agent-lightning's own runner, which plays one "
        "at a time and is always used with --no-llm-proxy, because its tracer cannot tell episodes apart",
    )
    switch("--keep-spans", help="keep the spans of all rollouts in the run folder's spans/")
    add(
        "--async",
        dest="asynchronous",
        nargs="?",
        const="colocate",
        choices=("colocate", "separate"),
        help="play the next rollouts while the policy is updated: on the same devices (colocate), or on GPUs of their "
        "own (separate: not run, needs nccl, nixl or mooncake)",
    )
    switch("--lora", help="train an adapter (LoRA) of --lora-rank beside frozen weights")
    count("--lora-rank", default=32, help="with --lora: rank of the adapter (default: 32)")
    adapter = "with --lora: go on from this adapter (its rank must be --lora-rank)"
    add("--lora-adapter-path", metavar="DIR", help=adapter)
    switch(
        "--deterministic",
        help="two runs with the same data.seed are equal to the last bit: one LLM call after another, CPU only",
    )
    count("--n-gpus", default=1, help="GPUs of this node (default: 1)")
    add(
        "--resume",
        "--resume_checkpoint",
        nargs="?",
        const="latest",
        metavar="latest|PATH",
        help="continue from the latest checkpoint, or from a global_step_N folder",
    )
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to train (default: auto)")
    add("--run-dir", type=Path, help="folder of this run (default: runs/<name>, new)")
    switch("--debug", help="log everything, on the screen too")
    add("overrides", nargs="*", metavar="key=value", help="overrides for verl")
    options = parser.parse_intermixed_args(arguments)
    if options.resume and "=" in options.resume:
        options.overrides.append(options.resume)
        options.resume = "latest"
    if options.lora_adapter_path and not options.lora:
        parser.error("--lora-adapter-path needs --lora")
    return options
