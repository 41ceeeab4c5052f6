"""A run's plan for tests, by flat names that say of which part they are."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from training.setup.plan import EnginePlan, OutputPlan, Plan, ProxyPlan, StorePlan

PARTS = {"engine": EnginePlan, "store": StorePlan, "proxy": ProxyPlan, "output": OutputPlan}
SIZES = {"temperature": 1.0, "max_tokens": 96, "episode_timeout": 60.0}


def plan_of(run_dir: Path, **changes: Any) -> Plan:
    """Return the usual plan with changes, such as `store_port`, `proxy_kind` or `output_keep`."""
    engine: dict[str, Any] = {"device": "cpu", "model": "m", "max_turns": 3, **SIZES}
    given: dict[str, Any] = {"engine": engine, "store": {}, "proxy": {}}
    given["output"] = {"run_dir": run_dir}
    of_the_engine = {field.name for field in fields(EnginePlan)}
    for name, value in changes.items():
        if name in of_the_engine:
            given["engine"][name] = value
        else:
            part, _, own = name.partition("_")
            given[part][own] = value
    made: dict[str, Any] = {part: PARTS[part](**own) for part, own in given.items()}
    return Plan(**made)
