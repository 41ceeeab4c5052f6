"""The flags of the training command (`flags.toml`) and the agent's own, in groups."""

import argparse
from pathlib import Path
from typing import Any, cast

from common import command
from common.command import filled, number
from common.settings import below_root
from common.toml import table_beside
from episodes import registry
from episodes.agent import Agent
from episodes.turns import turns

USAGE = """Train the {name} agent.

    {program} --ci-fast                   one step on this machine, to see it work
    {program}                             the long run
    AGL_TOKEN=... AGL_MANAGED_STORE=0 {program} --llm-proxy --model DIR --external-store-address http://HOST:4747

Further key=value and +key=value go to verl. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""
FLAGS = table_beside(__file__, "flags.toml")
# Keys of verl that are changed most often
KEYS = {
    "trainer.total_training_steps": "steps (--ci: 20, --ci-fast: 1)",
    "trainer.total_epochs": "times through the file, at most",
    "data.train_batch_size": "tasks of a step",
    "actor_rollout_ref.rollout.n": "episodes of a task",
    "actor_rollout_ref.actor.optim.lr": "learning rate",
    "trainer.test_freq": "steps between validations",
    "trainer.save_freq": "steps between checkpoints",
}
KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": filled},
    "switch": {"action": "store_true"},
    "on or off": {"action": argparse.BooleanOptionalAction, "default": True},
    "count": {"type": number(int, lambda value: value >= 1, "of 1 or more")},
    "path": {"type": Path},
    "turns": {"type": turns, "metavar": "N|A-B"},
}
NEEDS = {"lora_rank": "lora", "lora_adapter_path": "lora", "keep_best": "keep"}
LORA_RANK = 32
OF_THE_AGENT = "agent"  # the group of the agent's own flags
# Flags of agent-lightning's examples that do not exist: what to use
INSTEAD = {
    "--weave": "episodes.jsonl keeps a sample of each step, and WANDB_API_KEY sends metrics to W&B",
    "--mongo-uri": "the store is in memory; a run that was killed goes on with --resume auto",
}


def parser_of(agent: Agent) -> command.Parser:
    """Return the parser of an agent's training command, its flags in the groups of `flags.toml`."""
    program = f"{command.WRITTEN} {' '.join(registry.training_command(agent.name))}"
    if command.CALLED:
        program = f"{command.CALLED} {agent.name}"
    program = command.as_typed(program)
    told = ["key=value of verl that are changed most often (defaults: docs/settings.md):"]
    for key, meaning in KEYS.items():
        told.append(f"  {key}: {meaning}")
    parser = command.Parser(
        prog=program,
        usage=f"{program} [flags] [key=value ...]",
        description=USAGE.format(name=agent.name, program=program),
        epilog="\n".join(told),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.instead = INSTEAD
    splits = {split: agent.splits[split] for split in ("train", "val")}
    files = {split: below_root(path) for split, path in splits.items()}
    for title, flags in FLAGS.items():
        group = parser.add_argument_group(title)
        if title == OF_THE_AGENT:
            agent.add_flags(cast("argparse.ArgumentParser", group))  # takes flags like a parser
        for names, given in flags.items():
            values = {**given, "help": given["help"].format(**files)}
            kind = KINDS[values.pop("kind", "text")]
            group.add_argument(*names.split(), **kind, **values)
    parser.set_defaults(**{f"{split}_file": str(path) for split, path in splits.items()})
    return parser


def parse(agent: Agent, arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line. End the program with code 2 if it is wrong."""
    parser = parser_of(agent)
    options = parser.parse_intermixed_args(arguments)
    if options.resume and "=" in options.resume:  # an override that follows a bare --resume
        options.overrides.append(options.resume)
        options.resume = "latest"
    if options.ci and options.ci_fast:
        parser.error("--ci is 20 steps and --ci-fast one; give one of them")
    for name, needed in NEEDS.items():
        if getattr(options, name) and not getattr(options, needed):
            parser.error(f"--{name.replace('_', '-')} needs --{needed}")
    options.lora_rank = options.lora_rank or LORA_RANK
    return options
