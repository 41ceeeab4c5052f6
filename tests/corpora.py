"""Files of one JSON value a line: cases that stand beside their test, and what a test writes."""

import json
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def cases_of(test: str, name: str) -> list[Any]:
    """Return the cases of `NAME.jsonl` below the folder of a test; `test` is its `__file__`."""
    with (Path(test).parent / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def public_template(name: str) -> str:
    """Return a chat template of a public model that TRL ships. TRL is not imported for it."""
    package = find_spec("trl")
    assert package is not None
    folder = Path(str(package.origin)).with_name("chat_templates")
    return (folder / f"{name}.jinja").read_text(encoding="utf-8")


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_metrics(run: Path, steps: Mapping[int, Any]) -> None:
    """Write the metrics of a run, by step."""
    rows = [{"step": step, "data": data} for step, data in steps.items()]
    write_lines(run / "metrics.jsonl", rows)
