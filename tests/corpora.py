"""Files of one JSON value a line: cases that stand beside their test, and what a test writes."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def cases_of(test: str, name: str) -> list[Any]:
    """Return the cases of `NAME.jsonl` below the folder of a test; `test` is its `__file__`."""
    with (Path(test).parent / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_metrics(run: Path, steps: Mapping[int, Any]) -> None:
    """Write the metrics of a run, by step."""
    rows = [{"step": step, "data": data} for step, data in steps.items()]
    write_lines(run / "metrics.jsonl", rows)
