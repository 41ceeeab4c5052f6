"""The plan of one training run: everything the engine room reads, besides verl's own tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.command import UsageError

MAX_UNSCORED_SHARE = 0.30


class ConfigError(UsageError):
    """A setting cannot work. The message names what was seen, what was expected and what to do."""


class RunStopped(RuntimeError):
    """The run cannot go on. The message says what was seen and what to do."""


@dataclass(frozen=True)
class EnginePlan:
    """The model, the episodes and the settings of training."""

    device: str
    model: str
    max_turns: int
    temperature: float
    max_tokens: int  # that the policy may generate in one call
    episode_timeout: float  # seconds
    algorithm: str | None = None  # the name given to --algorithm, if any
    trajectory_level: bool = True
    tools: bool = True  # the agent calls tools, which the model's chat template must render
    keep_thinking: bool = False  # with a chat template that keeps the thoughts of earlier turns
    thinking: bool = False  # a model thinks whose chat template can turn it off
    tool_parser: str | None = None  # vLLM's, None: the one that fits
    lora_rank: int = 0  # 0 trains all weights
    lora_adapter_path: str | None = None  # an adapter to go on from
    deterministic: bool = False  # two runs of one seed are equal: one call after another
    max_unscored_share: float = MAX_UNSCORED_SHARE  # of a step, above which it is skipped
    python: str = ""  # the command by which Ray starts workers, if not this program's own Python


@dataclass(frozen=True)
class StorePlan:
    """The store's place, and this process's part in it."""

    role: str = "both"
    managed: bool = True
    external_address: str | None = None
    host: str = "127.0.0.1"
    port: int = 4747
    token: str | None = field(default=None, repr=False)  # that store, proxy and vLLM ask for
    # At least: more where a step has more episodes (`training.start.make_plan`)
    n_runners: int = 4
    concurrency: int = 32  # episodes that a runner process plays at once

    @property
    def address(self) -> str:
        """The address at which runners and trainer reach the store."""
        return self.external_address or f"http://{self.host}:{self.port}"


@dataclass(frozen=True)
class ProxyPlan:
    """The proxy before vLLM that records its calls (`direct` or `litellm`), and its address."""

    kind: str = "direct"
    host: str = "127.0.0.1"
    port: int = 0
    public_host: str | None = None


@dataclass(frozen=True)
class OutputPlan:
    """The files that a run writes, and where."""

    run_dir: Path
    debug: bool = False
    keep: int | None = None  # checkpoints that stay, None: all of them
    keep_best: bool = False  # beside the last ones the best by validation
    preset: Mapping[str, Any] = field(default_factory=dict)  # its name, and verl's keys
    # Variables of experiment trackers, which may hold keys
    trackers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Plan:
    """One run. Built once by the command line, changed nowhere."""

    engine: EnginePlan
    store: StorePlan
    proxy: ProxyPlan
    output: OutputPlan
