"""The Ray actor that trains, apart from `trainer`, so that its caller need not import verl."""

import dataclasses
import os
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import ray
from omegaconf import DictConfig, OmegaConf

from training.proxy.doors import run_token
from training.setup.plan import OutputPlan, Plan

TRACKERS = ("tensorboard", "swanlab", "wandb")


@ray.remote
class TrainingActor:
    """Holds the trainer, the rollout manager and the proxy. `run` returns when training ends."""

    def run(self, config: DictConfig, plan: Plan) -> None:
        """Train to the end. The plan comes without its token. Raises RunStopped."""
        store = dataclasses.replace(plan.store, token=run_token())
        plan = dataclasses.replace(plan, store=store)
        OmegaConf.resolve(config)
        if any(name in str(config.trainer.get("logger")) for name in TRACKERS):
            os.environ.update(tracker_places(plan.output))
        with ThreadPoolExecutor() as pool:  # processes start beside the imports
            queue = pool.submit(lambda: import_module("transfer_queue").init(config.transfer_queue))
            import_module("training.engine.kept_tokens").serve_kept_tokens()
            trainer = import_module("training.engine.trainer")
            queue.result()
            trainer.train(config, plan)


def tracker_places(output: OutputPlan) -> dict[str, str]:
    """Return the trackers' variables: the user's, or folders in the run's own."""
    folder = output.run_dir / "trackers"
    folder.mkdir(exist_ok=True)
    boards = output.trackers.get("TENSORBOARD_DIR")
    return {
        "SWANLAB_LOG_DIR": str(folder / "swanlab"),
        "WANDB_DIR": os.environ.get("WANDB_DIR", str(folder)),
        **output.trackers,
        "TENSORBOARD_DIR": str(Path(boards or folder / "tensorboard", output.run_dir.name)),
    }
