"""The Ray actor that trains.

It is apart from `training.engine.trainer`, so that its caller need not import the engine first.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import ray
from omegaconf import DictConfig, OmegaConf

from training.proxy.doors import run_token
from training.setup.plan import Plan


@ray.remote
class TrainingActor:
    """Holds the trainer, the rollout manager and the proxy; `run` returns when training ends."""

    def run(self, config: DictConfig, plan: Plan) -> None:
        """Train to the end. The plan comes without its token.

        Raises RunStopped: see `training.engine.watchdog`.
        """
        plan = dataclasses.replace(plan, token=run_token())
        OmegaConf.resolve(config)
        with ThreadPoolExecutor() as pool:  # processes start beside the imports
            queue = pool.submit(_start_queue, config)
            if plan.device == "cpu" and config.trainer.nnodes == 1:
                from training.cpu.early_servers import begin

                begin(config, pool)
            from training.engine.trainer import train

            queue.result()
            train(config, plan)


def _start_queue(config: DictConfig) -> None:
    import transfer_queue

    transfer_queue.init(config.transfer_queue)
