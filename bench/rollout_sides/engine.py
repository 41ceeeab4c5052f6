"""The real engine under all sides: one vLLM, one set of weights, and five ways to play the same
episodes on it.

- ours, through the litellm proxy and through `--proxy direct`
- agent-lightning's own runners on the same litellm proxy (`agl_runner`), and with its own proxy as
  well (`agl_path`: a project that uses agent-lightning unchanged)
- verl's tool agent loop (`verl_loop.py`)

Everything is in one Ray worker, as in training, of a process of its own: verl decides at its import
which device it is on.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from bench._harness import medians
from bench.rollout_sides.side_processes import (
    AGENT,
    background,
    plan_for,
    stores_with_runners,
    wait_for,
)
from common.jsonl import write_jsonl
from common.settings import load_settings
from episodes.agent import bundled_model
from training.setup.device import choose_device, environment
from training.setup.plan import Plan, ProxyPlan
from training.setup.ports import free_port

if TYPE_CHECKING:
    from training.engine.rollout_manager import RolloutManager

# The same number of runner processes on every side
PROMPTS = 16
RUNNERS = 2
CONCURRENCY = 64


def sides(run_dir: Path, rounds: int) -> dict[str, Any]:
    """Return the seconds of 128 episodes of the bundled model by side, and the mean calls of an
    episode.
    """
    run_dir.mkdir(parents=True)
    device = choose_device("auto")
    max_turns = load_settings().max_turns
    os.environ.update(environment(device))
    from training.engine.algorithm import _start_ray, _stop_ray
    from training.setup.presets import choose
    from training.setup.verl_config import build_config
    from training.start.make_plan import with_token

    chosen = choose(AGENT, "ci", device, 1)
    plan = with_token(plan_for("", run_dir, max_turns, ProxyPlan()))
    reply = AGENT.sizes(device).reply
    trained = replace(plan.engine, device=device, model=bundled_model(AGENT), max_tokens=reply)
    plan = replace(plan, engine=trained)
    files = {name: str(run_dir / f"{name}.jsonl") for name in ("train", "val")}
    for name, path in files.items():
        write_jsonl(Path(path), AGENT.rows(AGENT.splits[name]), force=False)
    config = build_config(
        plan.engine, run_dir, files, {**chosen, "trainer.logger": ["console"]}, []
    )
    tasks = Path(files["train"]).read_text(encoding="utf-8").splitlines()[:PROMPTS]
    ray = _start_ray(plan, config)
    sizes = [(RUNNERS, CONCURRENCY, max_turns)] * 2 + [(RUNNERS, 0, max_turns)]
    try:
        with stores_with_runners(*sizes) as stores:
            return ray.get(ray.remote(_measure).remote(config, plan, stores, tasks, rounds))
    finally:
        _stop_ray(run_dir)


def _measure(
    config: DictConfig, plan: Plan, stores: list[str], tasks: list[str], rounds: int
) -> dict[str, Any]:
    import transfer_queue as tq

    from bench.rollout_sides.fixed_latency import play
    from bench.rollout_sides.verl_loop import VerlLoop
    from training.engine.trainer import LightningTrainer

    OmegaConf.resolve(config)
    tq.init(config.transfer_queue)
    trainer = LightningTrainer(config=config)
    trainer.init()
    calls: dict[str, list[float]] = defaultdict(list)
    sequences: list[int] = []
    with ExitStack() as stack:
        managers = _managers(
            stack, config, plan, stores, trainer.llm_server_manager.get_addresses()
        )
        verl = VerlLoop(config, trainer.get_llm_client(), plan.engine.max_turns)

        def with_runners(name: str) -> float:
            # Two sides share the litellm proxy
            managers["litellm"].policy.recorder.store = managers[name].store
            seconds, finished = play(managers[name], tasks)
            calls[name] += [record.turns for record, _ in finished]
            sequences.extend(record.sequences for record, _ in finished if name == "litellm")
            return seconds

        def in_process() -> float:
            seconds, mean_calls = verl.play(tasks)
            calls["verl"].append(mean_calls)
            return seconds

        middle = medians(
            {**{name: partial(with_runners, name) for name in managers}, "verl": in_process}, rounds
        )
    return {
        "seconds": {name: round(value, 3) for name, value in middle.items()},
        "calls": {name: round(fmean(values), 3) for name, values in calls.items()},
        "sequences_per_episode": round(fmean(sequences), 4),
    }


def _managers(
    stack: ExitStack, config: DictConfig, plan: Plan, stores: list[str], servers: list[str]
) -> dict[str, RolloutManager]:
    from bench.rollout_sides.side_proxies import serve_agl
    from training.engine.rollout_manager import RolloutManager
    from training.proxy.direct import HEALTH

    ours, direct, agl = (
        replace(plan, store=replace(plan.store, external_address=address)) for address in stores
    )
    plans = {
        "litellm": replace(ours, proxy=ProxyPlan("litellm")),
        "direct": direct,
        "agl_runner": agl,
        "agl_path": agl,
    }
    managers = {
        name: RolloutManager(changed, config, servers, str) for name, changed in plans.items()
    }
    port = free_port("127.0.0.1")
    policy = managers["agl_path"].policy
    model, server = next(iter(policy.servers.items()))
    stack.enter_context(background(serve_agl, port, agl.store.address, model, policy.model, server))
    _redirect(managers["agl_path"], wait_for(port, HEALTH))
    _redirect(managers["agl_runner"], managers["litellm"].policy.address)
    return managers


def _redirect(side: RolloutManager, address: str) -> None:
    side.policy.address = address
    side.policy.resources = {"train": [], "val": []}
    side._run(side.policy.publish()).result()
