"""How close rollouts come to the limit: this project's path, agent-lightning's, verl's, and a bare loop.

    python -m bench.rollouts [--rounds 3]          everything but --long: about 15 minutes on 2 cores
    python -m bench.rollouts --long 60             only continuous rollouts, for so many minutes, and their memory

Prints one line of JSON; `docs/performance.md` explains every figure. Both sides of a ratio are measured in the same
run, in interleaved rounds, and compared by their medians. Runner processes: as many on every side (2).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from bench.rollout_sides.processes import stores_with_runners
from common.startup import collect_rarely

ROOT = Path(__file__).resolve().parent.parent
PROMPTS, RUNNERS, CONCURRENCY = 16, 2, 64


def engine_sides(run_dir: Path, rounds: int) -> dict[str, Any]:
    """128 episodes of the bundled model on the real engine, played by every side."""
    import train_sql_agent
    from common.jsonl import write_jsonl
    from data.convert import on_disk
    from data.load import load_rows
    from training.config import build_config, parse_overrides
    from training.device import environment

    plan, preset = train_sql_agent.make_plan(train_sql_agent.parse(["--ci", "--run-dir", str(run_dir)]))
    files = {name: str(run_dir / f"{name}.jsonl") for name in ("train", "val")}
    config = build_config(plan, files, preset, parse_overrides([]))
    os.environ.update(environment(plan.device))
    import ray

    from bench.rollout_sides.engine import Sides
    from training.algorithm import _start_ray, _stop_ray

    run_dir.mkdir(parents=True)
    for name, path in files.items():
        write_jsonl(Path(path), map(on_disk, load_rows(ROOT / "data" / f"{name}.parquet")), force=False)
    _start_ray(plan, config)
    sizes = [(RUNNERS, CONCURRENCY, plan.max_turns)] * 2 + [(RUNNERS, 0, plan.max_turns)]
    try:
        with stores_with_runners(*sizes) as addresses:
            actor = Sides.remote()  # type: ignore[attr-defined]
            return ray.get(actor.run.remote(config, plan, addresses, tasks(files["train"], PROMPTS), rounds))
    finally:
        _stop_ray(plan)


def tasks(path: str, count: int) -> list[str]:
    """Rows of the training file as the trainer would send them."""
    from training.dataset import RolloutDataset

    rows = RolloutDataset(path)
    return [rows[number]["task"] for number in range(count)]


def report(engine: dict[str, Any], fixed: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """The figures acceptance names, and the tables behind them."""
    seconds, late = engine["seconds"], fixed["latency_250ms"]
    proxies = fixed["proxy"]
    return {
        "vs_agl_runner": _ratio(seconds["agl_runner"], seconds["litellm"]),
        "vs_verl_tool_loop": _ratio(seconds["verl"], seconds["litellm"]),
        "vs_verl_tool_loop_50ms": _ratio(seconds["verl_50ms"], seconds["litellm_50ms"]),
        "vs_bare_loop_250ms": late["ratio"]["litellm"],
        "proxy_speedup": _ratio(proxies["litellm"], proxies["agl"]),
        "sequences_per_episode": engine["sequences_per_episode"],
        "end_to_update_s": step["end_to_update_s"],
        "demo_rollout_ratio": _ratio(seconds["agl_path"], seconds["litellm"]),
        "direct": {
            "vs_agl_runner": _ratio(seconds["agl_runner"], seconds["direct"]),
            "vs_verl_tool_loop": _ratio(seconds["verl"], seconds["direct"]),
            "vs_verl_tool_loop_50ms": _ratio(seconds["verl_50ms"], seconds["direct_50ms"]),
            "vs_bare_loop_250ms": late["ratio"]["direct"],
            "proxy_speedup": _ratio(proxies["direct"], proxies["agl"]),
            "demo_rollout_ratio": _ratio(seconds["agl_path"], seconds["direct"]),
        },
        "engine": engine,
        "fixed_latency": fixed,
        "step": step,
    }


def _ratio(one: float, other: float) -> float:
    return round(one / other, 3)


def measure(rounds: int) -> dict[str, Any]:
    """Every part, one after another; each is shown on standard error when it is done."""
    from bench import step
    from bench.rollout_sides import fixed, proxies

    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder)
        measures: dict[str, Callable[[], Any]] = {
            "latency_250ms": lambda: fixed.against_bare_loop(run_dir, 0.25, rounds),
            "latency_0ms": lambda: fixed.against_bare_loop(run_dir, 0.0, rounds),
            "proxy": lambda: proxies.calls_per_second(rounds),
            "tokens_over_unique": lambda: fixed.tokens_by_calls(run_dir),
            "growth": lambda: fixed.growth(run_dir),
        }
        parts = {name: _shown(name, part) for name, part in measures.items()}
        engine = _shown("engine", lambda: _in_process(engine_sides, run_dir / "engine", rounds))
        trained = _shown("step", lambda: step.report(run_dir / "step", step.train(run_dir / "step", 3)))
    return report(engine, parts, trained)


def _shown(name: str, part: Callable[[], Any]) -> Any:
    result = part()
    print(json.dumps({name: result}), file=sys.stderr, flush=True)
    return result


def _in_process(part: Callable[..., Any], *arguments: Any) -> Any:
    """Run a part in a process of its own: verl settles when it is imported what device it is on."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(part, *arguments).result()


def long_run(minutes: float) -> dict[str, Any]:
    """Continuous rollouts only."""
    from bench.rollout_sides import fixed

    with tempfile.TemporaryDirectory() as folder:
        return {"long": fixed.long_run(Path(folder), minutes)}


def main() -> None:
    """Run the bench and print its one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.rollouts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of every comparison (default: 3)")
    parser.add_argument("--long", type=float, metavar="MINUTES", help="only continuous rollouts, for so long")
    options = parser.parse_args()
    collect_rarely()
    with contextlib.redirect_stdout(sys.stderr):  # litellm's banner
        result = long_run(options.long) if options.long else measure(options.rounds)
    machine = f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, {platform.machine()}"
    print(json.dumps({"bench": "rollouts", "machine": machine, **result}))


if __name__ == "__main__":
    main()
