"""A trainer without verl, Ray and vLLM: the rollout manager with proxy, collector and watch.

    .venv/bin/python -m bench.faults.standin AGENT RUN_DIR STORE_URL LLM_HOST:PORT PROXY_PORT PROXY_URL

Steps are as long as their rollouts, so a fault of a second shows. What would be trained is counted
as the trainer does before every update.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from common.command import Failure, run_command
from common.settings import load_settings, reveal
from episodes import registry
from training.engine import rollout_manager
from training.engine.rollout_manager import Finished, RolloutManager
from training.engine.watchdog import check_episodes
from training.setup.plan import EnginePlan, OutputPlan, Plan, ProxyPlan, RunStopped, StorePlan

PROMPTS, SAMPLES = 4, 8
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
CONFIG = {
    "data": {"max_prompt_length": 8192, "max_response_length": 8192, "train_batch_size": PROMPTS},
    "algorithm": {"adv_estimator": "grpo"},
    "actor_rollout_ref": {
        "model": {"path": "standin"},
        "rollout": {
            **SAMPLING,
            "n": SAMPLES,
            "val_kwargs": {**SAMPLING, "n": 1},
            "calculate_log_probs": False,
        },
    },
    "trainer": {"v1": {"sampler": {"max_off_policy_threshold": 1}}},
}


class Counted(RolloutManager):
    """Keeps the keys of the sequences that verl would be handed, and how many tokens they have."""

    keys: list[str]
    tokens: int

    def _deliver(self, rows: Any, finished: list[Finished], partition: str) -> None:
        scored = [pair for pair in finished if pair[0].cause is None]
        for record, trajectory in scored:
            self.keys += [f"{record.key}_{number}" for number in range(len(trajectory.sequences))]
            self.tokens += sum(sum(sequence.mask) for sequence in trajectory.sequences)
        self.delivered.update({record.key: record for record, _ in scored})

    def step(self, tasks: list[str], step: int) -> dict[str, float]:
        """Play and judge a step's rollouts, again while it is skipped. Return what an update would
        read.
        """
        self.keys, self.tokens, began, wave = [], 0, time.monotonic(), 0
        while not self.keys:
            wave += 1
            rows = [
                {
                    "uid": f"{step}.{wave}.{n}",
                    "index": n,
                    "task": task,
                    "global_steps": step,
                    "data_source": "all",
                }
                for n, task in enumerate(tasks)
            ]
            self._run(self._wave(rows, validate=False)).result()
        known = [self.delivered.pop(key) for key in list(self.delivered)]
        self.take_step_records()
        return {
            "timing_s/step": time.monotonic() - began,
            **check_episodes(known, self.keys, self.tokens),
        }


def main(name: str, run_dir: Path, store: str, llm: str, proxy_port: str, proxy_url: str) -> None:
    """Play steps without end. Raises Failure: the run is stopped."""
    agent, settings = registry.get(name), load_settings()
    run_dir.mkdir(parents=True, exist_ok=True)
    rollout_manager._tag = lambda *_: None  # there is no TransferQueue
    token = reveal(settings.agl_token)
    plan = Plan(
        EnginePlan("cpu", "standin", agent.turns, 1.0, 96, settings.episode_timeout),
        StorePlan(managed=False, external_address=store, token=token),
        ProxyPlan(port=int(proxy_port), public_host=proxy_url),
        OutputPlan(run_dir),
    )
    manager = Counted(plan, OmegaConf.create(CONFIG), [llm], str)
    tasks = [json.dumps(row, ensure_ascii=False) for row in agent.rows(agent.splits["train"])]
    metrics = run_dir / "metrics.jsonl"
    step, began = len(metrics.read_text().splitlines()) if metrics.exists() else 0, time.monotonic()
    while True:
        step += 1
        chosen = [tasks[(step * PROMPTS + n) % len(tasks)] for n in range(PROMPTS)]
        try:
            data = manager.step(chosen, step)
        except RunStopped as stopped:
            manager.close()
            raise Failure(str(stopped)) from None
        with metrics.open("a") as file:
            file.write(json.dumps({"step": step, "data": data}) + "\n")
        print(
            f"[{time.monotonic() - began:5.0f} s] step {step}: {data['timing_s/step']:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    told = sys.argv[1:]
    sys.exit(run_command("failed", lambda: main(told[0], Path(told[1]), *told[2:])))
