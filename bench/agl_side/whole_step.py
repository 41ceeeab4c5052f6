"""Train this project's SQL agent with agent-lightning 0.3.0 as it comes.

    PEER_PYTHON -m bench.agl_side.whole_step SETTINGS.json     # bench.agl_step writes the file

A line for every step goes into steps.jsonl of the settings' folder: {"step": 1, "seconds": ...,
"gen": ..., "update_actor": ...}.
"""

import json
import sys
from pathlib import Path
from typing import Any

import agentlightning as agl
import ray
from agentlightning.adapter import LlmProxyTraceToTriplet
from agentlightning.algorithm.verl import VERL
from agentlightning.verl.trainer import AgentLightningTrainer

from bench.agl_side.peer_settings import STEPS, Settings, verl_config
from episodes import registry
from episodes.lit_agent import RESOURCE, EpisodeAgent

PHASES = ("gen", "old_log_prob", "update_actor")
LOGICAL_CPUS = 32  # verl's actors are many and mostly idle. Ray only counts


class LimitedAgent(EpisodeAgent):
    """The SQL agent with this step's limit of a reply, which the peer's resource does not carry."""

    def __init__(self, settings: Settings) -> None:
        turns = (settings.max_turns, settings.max_turns)
        super().__init__(registry.get("sql"), turns=turns)
        self.reply_tokens = settings.reply_tokens

    async def training_rollout_async(
        self, task: dict[str, Any], resources: Any, rollout: Any
    ) -> float | None:
        """Play one episode, and return its reward."""
        llm = resources[RESOURCE]
        sampling = {**llm.sampling_parameters, "max_tokens": self.reply_tokens}
        limited = llm.model_copy(update={"sampling_parameters": sampling})
        return await super().training_rollout_async(task, {RESOURCE: limited}, rollout)

    validation_rollout_async = training_rollout_async


class TimedTrainer(AgentLightningTrainer):
    """The peer's trainer. It writes down verl's own seconds of every step when the step ends."""

    def _train_step(self, batch_dict: dict[str, Any]) -> dict[str, Any]:
        metrics: dict[str, Any] = super()._train_step(batch_dict)
        line = {"step": self.global_steps, "seconds": metrics["timing_s/step"]}
        line |= {phase: metrics[f"timing_s/{phase}"] for phase in PHASES}
        line["triplets"] = metrics["training/n_triplets"]
        line["reward"] = metrics["training/reward"]
        path = Path(self.config.trainer.default_local_dir) / STEPS
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({name: float(value) for name, value in line.items()}) + "\n")
        return metrics


class OnLogicalGpu(VERL):
    """The peer's algorithm in a Ray of its own, which counts this machine as one device."""

    def run(self, train_dataset: Any = None, val_dataset: Any = None) -> None:
        counted = {"num_cpus": LOGICAL_CPUS, "num_gpus": 1, "resources": {"cpu": 1}}
        ray.init(address="local", include_dashboard=False, **counted)
        super().run(train_dataset, val_dataset)


def train(settings: Settings) -> None:
    agent = registry.get("sql")
    rows = [dict(row) for row in agent.rows(agent.splits["train"])]
    tracer = agl.OtelTracer()
    runner = agl.LitAgentRunner(
        tracer=tracer,
        poll_interval=settings.runner_poll_s,
        interval_jitter=settings.runner_poll_s / 2,
    )
    trainer = agl.Trainer(
        algorithm=OnLogicalGpu(verl_config(settings), trainer_cls=TimedTrainer),
        n_runners=settings.runners,
        tracer=tracer,
        runner=runner,
        adapter=LlmProxyTraceToTriplet(),
        port=settings.port,
    )
    trainer.fit(LimitedAgent(settings), rows, val_dataset=rows[: settings.questions])


if __name__ == "__main__":
    train(Settings.read(Path(sys.argv[1])))
