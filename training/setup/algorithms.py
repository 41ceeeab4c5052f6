"""Algorithms by name: what `--algorithm` sets in verl, and which of the user's keys it refuses.

    keys_of("gspo")                     # verl's keys, which go over the preset and below the user's
    check_algorithm("gspo", overrides)  # raises ConfigError

Names and values stand in `algorithms.toml`; all are verl's own, none is added here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.setup.plan import ConfigError

_TABLES: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("algorithms.toml").read_text(encoding="utf-8")
)
EVERY = _TABLES.pop("every")
CORRECTION = "algorithm.rollout_correction"
BYPASS = f"{CORRECTION}.bypass_mode"


def keys_of(algorithm: str | None) -> dict[str, Any]:
    """Return the keys of an algorithm; {} for None, which leaves the preset's."""
    if algorithm is None:
        return {}
    table = _TABLES[algorithm]
    return {**table["fixed"], **table.get("usual", {})}


def check_algorithm(algorithm: str | None, user: Mapping[str, Any], bypasses: bool) -> None:
    """Refuse what contradicts the algorithm's name or does nothing under it.

    user: the values of the user's overrides, by key. bypasses: whether vLLM's log-probabilities are
    taken for the old policy's, after which only the plain loss corrects for the difference.

    Raises ConfigError, which names the key.
    """
    if algorithm is None:
        return
    table = _TABLES[algorithm]
    idle = {**EVERY["idle"], **table["idle"]}
    if algorithm == "gspo" and bypasses:
        idle[CORRECTION] = f"with {BYPASS}=True only the plain loss makes that correction"
    for key, value in user.items():
        fixed = table["fixed"].get(key, value)
        if value != fixed:
            raise ConfigError(
                f"--algorithm {algorithm} sets {key}={fixed}, and "
                f"the override says {value}; leave out one of the two"
            )
        reason = next((idle[name] for name in idle if f"{key}.".startswith(f"{name}.")), "")
        if reason and key != BYPASS:
            raise ConfigError(
                f"{key} does nothing with --algorithm {algorithm}: {reason}; leave it out"
            )
