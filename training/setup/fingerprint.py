"""What rows, gold and rewards depend on, as one digest for each part, so that a program can say
which part changed.

    parts = fingerprints(agent, rows, settings, options)  # {"rows": "3f1c...", "code": ...}
    elsewhere(settings, options)                          # ["reward_model_url"]: no digest sees it

Secrets, and settings that only say how a run is served or shown, are left out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from common.files import file_digest
from common.settings import ROOT, Settings
from episodes.agent import Agent, Options

ROOMS = ("common", "data", "episodes", "scoring", "tools")
LEFT_OUT = ("__pycache__", "tiny_model")
# Settings of a run that no gold and no reward depends on, by how their names begin
OF_THE_RUN = ("agl_", "llm_proxy_", "llm_cache", "openai_", "swanlab_", "tensorboard_", "wandb_")
# Bytes; of a larger file the size and the time of its last change are hashed
MOST_BYTES = 2**26


def fingerprints(
    agent: Agent, rows: Mapping[str, Any], settings: Settings, options: Options
) -> dict[str, str]:
    """Return a digest for each part: rows, settings with the agent's flags, files that these name,
    code, and installed packages.
    """
    given = {**_values(settings), **options, "prompt_version": agent.prompt_version}
    named = [path for path in map(_path, given.values()) if path]
    rooms = [*agent.folders, *(ROOT / room for room in ROOMS)]
    return {
        "rows": _digest(json.dumps(rows, ensure_ascii=False)),
        "settings": _digest(json.dumps(given, ensure_ascii=False, sort_keys=True, default=str)),
        "files": _digest(_contents(named)),
        "code": _digest(_contents(rooms)),
        "packages": _digest(" ".join(_packages())),
    }


def elsewhere(settings: Settings, options: Options) -> list[str]:
    """Return the names of settings and flags that were given an address of another program, such as
    a database server: what lies there may change, and no digest sees it.
    """
    values = _values(settings)
    given = {name: values[name] for name in settings.model_fields_set if name in values}
    return sorted(
        name
        for name, value in {**given, **options}.items()
        if "://" in str(value) and not _path(value)
    )


def _values(settings: Settings) -> dict[str, Any]:
    return {
        name: value
        for name, value in settings
        if not name.startswith(OF_THE_RUN) and not isinstance(value, SecretStr)
    }


def _path(value: Any) -> Path | None:
    """Return the file or folder that a value names, as a path or in an address such as
    `sqlite:////home/me/my.db`; None if it names neither.
    """
    if not isinstance(value, str | Path) or not str(value):
        return None
    path = Path(str(value).partition(":///")[2] or value)
    # A plain word, such as the name of a judge, is not a path, whatever lies in this folder
    return path if os.sep in str(value) and path.exists() else None


def _contents(paths: Iterable[Path]) -> str:
    """Return one line for each file, of folders for each file inside: its path and its digest."""
    lines = []
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and not set(LEFT_OUT) & set(file.parts):
                lines.append(f"{file} {_content(file)}")
    return "\n".join(lines)


def _content(file: Path) -> str:
    found = file.stat()
    if found.st_size > MOST_BYTES:
        return f"{found.st_size} bytes, changed at {found.st_mtime_ns}"
    return file_digest(file)


def _packages() -> list[str]:
    return sorted(
        {
            path.name
            for entry in map(Path, sys.path)
            if entry.is_dir()
            for path in entry.glob("*.dist-info")
        }
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
