"""The rows of a data file, Parquet or JSON lines, for `Agent.rows`.

rows = read_rows("data/code/test.parquet", "questions")      # one dict of JSON values a row
"""

from __future__ import annotations

from pathlib import Path

from common.jsonl import read_jsonl
from episodes.agent import Row
from episodes.episode import AgentError


def read_rows(path: Path | str, what: str) -> list[Row]:
    """Return the rows of a file; `what` they are is said in messages.

    Raises AgentError: it cannot be read, or is empty.
    """
    path = Path(path)
    try:
        rows = _parquet(path) if path.suffix == ".parquet" else [row for _, row in read_jsonl(path)]
    except (OSError, ValueError) as error:
        raise AgentError(
            f"{path} cannot be read: {error}; expected a parquet or JSONL file of {what}"
        ) from None
    if not rows:
        raise AgentError(f"{path} has no rows")
    return rows


def _parquet(path: Path) -> list[Row]:
    from pyarrow import parquet  # heavy, and agents are imported by every command

    return list(parquet.read_table(path).to_pylist())
