"""agent-lightning's algorithm side: starts Ray, runs the training actor in it and watches both."""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import traceback
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
from agentlightning.algorithm import Algorithm
from omegaconf import DictConfig

from common.access import TOKEN
from training.engine.watchdog import POLL_SECONDS
from training.proxy.doors import keep_in_ray
from training.report.progress import Progress
from training.setup.cluster import check_nodes_found
from training.setup.device import environment
from training.setup.plan import ConfigError, Plan, RunStopped
from training.store.live_store import serving

END_SECONDS = 5.0
MEMORY_WAS_FULL = (
    "a machine's memory was full, so Ray ended a worker of this run. End other programs there, or "
    "make a step smaller (data.train_batch_size, MAX_TOKENS, --n-runners); then the same command "
    "with --resume auto goes on from the last checkpoint"
)


@dataclass
class Outcome:
    """How a run ended: done, failed or interrupted. `details` is for the log alone."""

    exit_reason: str
    message: str = ""
    details: str = ""


BEFORE = Outcome("interrupted")  # before the engine started


class VerlAlgorithm(Algorithm):
    """Runs verl's trainer on the store's rollouts. The end is in `outcome`. `run` never raises."""

    def __init__(self, plan: Plan, config: DictConfig, last: int, started: float) -> None:
        super().__init__()
        self.last = last  # step
        self.started = started  # the program, in Unix seconds
        self.plan = plan
        self.config = config
        self.outcome = BEFORE
        # Ray ends an actor without references. If that happened before Ray itself is shut down, the
        # screen of a successful run would say that the actor's own workers died.
        self._training: Any = None

    async def run(self, train_dataset: Any = None, val_dataset: Any = None) -> None:
        """Serve the store and train. Return when training ended, failed or was interrupted."""
        try:
            async with serving(self.plan.store):
                try:
                    await self._train()
                finally:
                    _stop_ray(self.plan.output.run_dir)
            self.outcome = Outcome("done")
        except asyncio.CancelledError:
            self.outcome = Outcome("interrupted")
        except Exception as error:
            cause = first_error(error)
            told = isinstance(cause, ConfigError | RunStopped)
            message = str(cause) if told else f"{type(cause).__name__}: {cause}"
            self.outcome = Outcome("failed", message, traceback.format_exc())

    async def _train(self) -> None:
        progress = Progress(self.plan.output.run_dir, self.last, self.started)
        ray = _start_ray(self.plan, self.config)
        actor = import_module("training.engine.actor").TrainingActor  # it imports Ray
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._training = actor.options(scheduling_strategy=here).remote()
        without_token = replace(self.plan, store=replace(self.plan.store, token=None))
        finished = self._training.run.remote(self.config, without_token)
        try:
            while not ray.wait([finished], timeout=0)[0]:
                if self.plan.store.role == "both":
                    self.get_trainer().strategy.look()
                progress.look()
                await asyncio.sleep(POLL_SECONDS)
            ray.get(finished)
        except Exception as error:
            if isinstance(first_error(error), ray.exceptions.OutOfMemoryError):
                raise RunStopped(MEMORY_WAS_FULL) from error
            raise
        progress.look()


def first_error(error: Exception) -> Exception:
    """Return the error that came first, without Ray's wrapping."""
    return getattr(error, "cause", None) or error


def _start_ray(plan: Plan, config: DictConfig) -> Any:
    cluster = os.environ.get("RAY_ADDRESS")
    if not cluster:
        # Ray 2.60 replaces 127.0.0.1 by the machine's own address unless this says that there is no
        # cluster.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # It comes before ~/.ray/auth_token, which outlives a run
        os.environ["RAY_AUTH_TOKEN"] = plan.store.token or ""
    import ray
    import ray.util.scheduling_strategies

    runtime_env: dict[str, Any] = {}
    if plan.engine.device == "cuda":  # on the CPU `verl.toml` has what verl says by its GPUs
        from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

        runtime_env = dict(get_ppo_ray_runtime_env(config))
    elif plan.engine.python:
        runtime_env["py_executable"] = plan.engine.python
    runtime_env["env_vars"] = {
        **runtime_env.get("env_vars", {}),
        **environment(plan.engine.device, plan.engine.model, config.trainer.n_gpus_per_node),
        "VERL_FILE_LOGGER_PATH": str(plan.output.run_dir / "metrics.jsonl"),
    }
    runtime_env["worker_process_setup_hook"] = "training.proxy.doors.guard_sockets"
    options: dict[str, Any] = {}
    if cluster:
        # The token must not stand here: these variables are shown on command lines.
        runtime_env["env_vars"][TOKEN] = ""
    else:
        options = dict(config.ray_kwargs.ray_init)
        options |= {"address": "local", "_node_ip_address": "127.0.0.1"}
        options["include_dashboard"] = False
    options |= {"runtime_env": runtime_env, "log_to_driver": plan.output.debug}
    options["logging_level"] = logging.INFO if plan.output.debug else logging.ERROR
    stop = signal.getsignal(signal.SIGTERM)
    ray.init(**options)
    if cluster:
        keep_in_ray(str(plan.store.token))
    # After Ray's own handler the process aborts within three seconds, whatever it is doing
    signal.signal(signal.SIGTERM, stop)
    check_nodes_found(config)
    return ray


def _stop_ray(run_dir: Path) -> None:
    """End what this run started in Ray and keep its logs. A second Ctrl-C waits for that."""
    import ray

    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        logs = None
        if ray.is_initialized() and not os.environ.get("RAY_ADDRESS"):
            logs = Path(import_module("ray._private.worker").global_worker.node.get_logs_dir_path())
        workers: list[psutil.Process] = []
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess):  # or a zombie
                if child.name() in ("raylet", "gcs_server"):
                    workers += [child, *child.children(recursive=True)]
                elif "training.cpu.fork_server" in child.cmdline():
                    workers += child.children(recursive=True)
        ray.shutdown()
        for process in psutil.wait_procs(workers, timeout=END_SECONDS)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if logs is not None:
            with contextlib.suppress(OSError):  # a full disk must not hide why the run ended
                kept = run_dir / "logs"
                kept.mkdir(exist_ok=True)
                for log in logs.glob("worker-*"):
                    if log.stat().st_size and not log.is_symlink():
                        shutil.copyfile(log, kept / log.name)
    finally:
        signal.signal(signal.SIGINT, previous)
