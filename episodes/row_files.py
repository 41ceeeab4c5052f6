"""The rows of a data file, Parquet or JSON lines, for `Agent.rows`."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from common.jsonl import read_jsonl
from episodes.agent import Row
from episodes.episode import AgentError


def read_rows(path: Path, what: str) -> list[Row]:
    """Return a file's rows, `what` in messages. Raises AgentError: unreadable, empty, an id twice."""
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet  # heavy, and agents are imported by every command

            rows = parquet.read_table(path).to_pylist()
        else:
            rows = [row for _, row in read_jsonl(path)]
    except (OSError, ValueError) as error:
        raise AgentError(
            f"{path} cannot be read: {error}; expected a parquet or JSONL file of {what}"
        ) from None
    if not rows:
        raise AgentError(f"{path} has no rows")
    refuse_twice((str(row["id"]) for row in rows if row.get("id") is not None), path)
    return rows


def refuse_twice(ids: Iterable[str], path: Path) -> None:
    """Raise AgentError if rows of a file have one id: one would be played and shown as all."""
    for name, count in Counter(ids).items():
        if count > 1:
            raise AgentError(f"{path} has the id {name!r} {count} times; expected one row of each")
