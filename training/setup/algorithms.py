"""Algorithms by name: what `--algorithm` sets in verl (`algorithms.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.setup.plan import ConfigError

_TABLES: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("algorithms.toml").read_text(encoding="utf-8")
)


def keys_of(algorithm: str | None) -> dict[str, Any]:
    """Return the keys of an algorithm, {} for None, which leaves the preset's."""
    if algorithm is None:
        return {}
    table = _TABLES[algorithm]
    return {**table["fixed"], **table.get("usual", {})}


def check_algorithm(algorithm: str | None, user: Mapping[str, Any]) -> None:
    """Raise ConfigError if the user's overrides, by key, contradict the algorithm's name."""
    fixed = _TABLES[algorithm]["fixed"] if algorithm else {}
    for key, value in user.items():
        if value != fixed.get(key, value):
            raise ConfigError(
                f"--algorithm {algorithm} sets {key}={fixed[key]}, and the override says {value};"
                " leave out one of the two"
            )
