"""Read the small files of a model's folder, or name the one that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from training.setup.plan import ConfigError

COPY_AGAIN = "copy it again from the base model, and if it is a pointer of Git LFS: git lfs pull"


def read_text(path: Path, hint: str = COPY_AGAIN) -> str:
    """Return a text file's content. Raises ConfigError with the hint."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path} ({type(error).__name__}); {hint}") from None


def read_json(path: Path, hint: str = COPY_AGAIN) -> dict[str, Any]:
    """Return the object in a JSON file. Raises ConfigError with the hint."""
    text = read_text(path, hint)
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        raise ConfigError(f"{path} holds no JSON object; {hint}") from None
