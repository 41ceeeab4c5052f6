"""The typed settings of one training run: everything the engine room reads, besides verl's own
tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.command import UsageError

MAX_UNSCORED_SHARE = 0.30


class ConfigError(UsageError):
    """A setting cannot work; the message names what was seen, what was expected and what to do."""


class RunStopped(RuntimeError):
    """The run cannot go on; the message says what was seen and what to do."""


@dataclass(frozen=True)
class Plan:
    """One run. Built once by the command line, read everywhere, changed nowhere.

    `max_tokens` bounds what the policy generates in one call; `episode_timeout` is in seconds.
    `n_runners` processes play `concurrency` episodes each at once, more where a step has more
    (`training.start.make_plan`). `asynchronous` is None or "colocate", verl's mode without its ending. `algorithm` is the
    name given to --algorithm, if any. `lora_rank` 0 trains all weights; `lora_adapter_path` is an
    adapter to go on from. `deterministic` makes two runs with the same seed equal, at the price of
    one call after another. `max_unscored_share` is the share of a step's rollouts that may be
    unscored before the step is skipped. `tools`: the agent calls tools, which the model's chat
    template must render. `keep_thinking`: serve the model with a chat template that keeps the `<think>` blocks of
    earlier turns (`training.setup.chat_template`). `thinking`: a model thinks whose chat template
    can turn it off. `tool_parser`: vLLM's parser of tool calls, None: the one that fits
    (`training.setup.tool_parser`). `preset` is what the run began from: its `name`, and
    verl's `keys`. `keep`: how many checkpoints stay, None: all of them; `keep_best`: beside the
    last ones the best by validation. `token`: what requests to store and proxy carry, if anything.
    `trackers`: variables of experiment trackers, which may hold keys.
    `python`: the command with which Ray starts workers, if not this program's own Python
    (`training.cpu.fork_server`).
    """

    run_dir: Path
    device: str
    model: str
    max_turns: int
    max_turns_origin: str
    temperature: float
    max_tokens: int
    episode_timeout: float
    n_runners: int = 4
    concurrency: int = 32
    proxy: str = "direct"
    asynchronous: str | None = None
    algorithm: str | None = None
    trajectory_level: bool = True
    tools: bool = True
    keep_thinking: bool = False
    thinking: bool = False
    tool_parser: str | None = None
    lora_rank: int = 0
    lora_adapter_path: str | None = None
    deterministic: bool = False
    managed_store: bool = True
    external_store_address: str | None = None
    keep_spans: bool = False
    role: str = "both"
    store_host: str = "127.0.0.1"
    store_port: int = 4747
    proxy_host: str = "127.0.0.1"
    proxy_port: int = 0
    proxy_public_host: str | None = None
    token: str | None = field(default=None, repr=False)
    max_unscored_share: float = MAX_UNSCORED_SHARE
    debug: bool = False
    preset: Mapping[str, Any] = field(default_factory=dict)
    keep: int | None = None
    keep_best: bool = False
    trackers: Mapping[str, str] = field(default_factory=dict, repr=False)
    python: str = ""

    @property
    def store_address(self) -> str:
        """The address at which runners and trainer reach the store."""
        return self.external_store_address or f"http://{self.store_host}:{self.store_port}"
