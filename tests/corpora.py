"""Cases that stand in a file beside their test: one JSON value a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def cases_of(test: str, name: str) -> list[Any]:
    """Return the cases of `NAME.jsonl` below the folder of a test; `test` is its `__file__`."""
    with (Path(test).parent / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
