"""How close rollouts come to the limit: this project's path, agent-lightning's, verl's, and a bare
loop.

    .venv/bin/python -m bench.rollouts [--rounds 3]          everything but --long: about 15 minutes on 2 cores
    .venv/bin/python -m bench.rollouts --long 60             only continuous rollouts, for so many minutes, and their memory
    .venv/bin/python -m bench.rollouts --growth              only rollouts by runner processes and episodes in flight

`docs/quality.md` explains every figure. The sides of a ratio are measured in interleaved rounds and
compared by their medians. Compare two commits in turn, on a machine that does nothing else.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench import step
from bench._harness import main
from bench.rollout_sides import engine
from common.startup import collect_rarely


def report(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the figures docs/quality.md publishes, by default and for `--proxy litellm`."""
    common = {
        "sequences_per_episode": parts["engine"]["sequences_per_episode"],
        "end_to_update_s": parts["step"]["end_to_update_s"],
    }
    return {**_ratios(parts, "direct"), **common, "litellm": _ratios(parts, "litellm"), **parts}


def _ratios(parts: dict[str, Any], proxy: str) -> dict[str, float]:
    seconds = parts["engine"]["seconds"]
    calls = parts["proxy"]
    ratios = {
        "vs_agl_runner": seconds["agl_runner"] / seconds[proxy],
        "vs_verl_tool_loop": seconds["verl"] / seconds[proxy],
        "vs_bare_loop_250ms": parts["latency_250ms"]["ratio"][proxy],
        "proxy_speedup": calls[proxy] / calls["agl"],
        "demo_rollout_ratio": seconds["agl_path"] / seconds[proxy],
    }
    return {name: round(value, 3) for name, value in ratios.items()}


def compare(run_dir: Path, rounds: int) -> dict[str, Any]:
    """Return every part, measured one after another and shown on standard error as they come."""
    from bench.rollout_sides import fixed_latency, side_proxies

    measures: dict[str, Callable[[], Any]] = {
        "latency_250ms": lambda: fixed_latency.against_bare_loop(run_dir, 0.25, rounds),
        "latency_0ms": lambda: fixed_latency.against_bare_loop(run_dir, 0.0, rounds),
        "proxy": lambda: side_proxies.calls_per_second(rounds),
        "growth": lambda: fixed_latency.growth(run_dir),
        "engine": lambda: _on_engine(run_dir / "engine", rounds),
        "step": lambda: step.report(run_dir / "step", step.train(run_dir / "step", 3)),
    }
    parts = {}
    for name, part in measures.items():
        parts[name] = part()
        print(json.dumps({name: parts[name]}), file=sys.stderr, flush=True)
    return report(parts)


def _on_engine(run_dir: Path, rounds: int) -> dict[str, Any]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(engine.sides, run_dir, rounds).result()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    from bench.rollout_sides.fixed_latency import SIZES, WIDEST, growth, long_run

    collect_rarely()
    with tempfile.TemporaryDirectory() as folder:
        if options.long:
            return {"long": long_run(Path(folder), options.long)}
        if options.growth:
            return {"growth": growth(Path(folder), (*SIZES, WIDEST))}
        return compare(Path(folder), options.rounds)


FLAGS: dict[str, dict[str, Any]] = {
    "--rounds": {
        "type": int,
        "default": 3,
        "help": "interleaved rounds of every comparison (default: 3)",
    },
    "--long": {
        "type": float,
        "metavar": "MINUTES",
        "help": "only continuous rollouts, for so long",
    },
    "--growth": {
        "action": "store_true",
        "help": "only rollouts by runner processes and episodes in flight",
    },
}

if __name__ == "__main__":
    main("rollouts", __doc__, measure, FLAGS)
