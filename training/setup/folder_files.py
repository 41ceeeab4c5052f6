"""Read the small files of a model's folder, or name the one that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from training.setup.plan import ConfigError

LFS_POINTER = "version https://git-lfs"


def read_text(path: Path, hint: str) -> str:
    """Return a text file's content. Raises ConfigError with the hint: it is not there, or not
    UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path} ({type(error).__name__}); {hint}") from None


def read_json(path: Path, hint: str) -> dict[str, Any]:
    """Return the object in a JSON file. Raises ConfigError with the hint: there is no such file, or
    something else in it.
    """
    text = read_text(path, hint)
    if text.startswith(LFS_POINTER):
        raise ConfigError(f"{path} is a pointer of Git LFS; run: git lfs pull")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"cannot read {path} ({type(error).__name__}); {hint}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} holds {type(found).__name__}, expected an object; {hint}")
    return found
